"""One process of ours with everything the system gives us for it: its output, a handle on its end, its family.

A child leads its own session. It is reaped last, in `close`: until then its number is its own, and signals to its
group cannot hit anyone else.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

import anyio
from attrs import evolve, frozen

from agent.tools.adoption import end_orphans, note_end, note_start, our_children
from agent.tools.descendants import TOKEN_VARIABLE, Family, token_value
from agent.tools.errors import CannotStart

__all__ = ["Child", "start_child"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.05  # seconds between two looks at what still runs
_KILL_ROUNDS = 30


@frozen(eq=False)
class Child:
    """A started process. `pipe` reads its output, and its errors too unless these have a pipe of their own.

    `handle`, if any, tells its end. `siblings` were our children when it was started.
    """

    popen: "subprocess.Popen[bytes]"
    pipe: int
    error_pipe: int | None
    handle: int | None
    family: Family
    started: float
    siblings: frozenset[int] = frozenset()

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def has_exited(self) -> bool:
        """Whether the process itself has ended; it is not reaped by asking."""
        try:
            return os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    async def exit(self) -> None:
        """Wait until the process itself has ended."""
        while not self.has_exited():
            if self.handle is None:
                await anyio.sleep(_FIRST_PAUSE)
            else:
                await anyio.wait_readable(self.handle)

    async def vanish(self) -> None:
        """Wait until nothing of the command runs any more."""
        pause = _FIRST_PAUSE
        while not self.has_exited() or self.family.living(self.age):
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def end(self, grace: float) -> None:
        """End all of the command's processes: TERM, also for stopped ones, and KILL after `grace` seconds."""
        self.family.send(signal.SIGTERM, self.age)
        self.family.send(signal.SIGCONT, self.age)
        with anyio.move_on_after(grace):
            await self.vanish()
        for _ in range(_KILL_ROUNDS):
            if not self.family.send(signal.SIGKILL, self.age) and self.has_exited():
                return
            await anyio.sleep(_FIRST_PAUSE)

    def end_orphans(self) -> int:
        """End what hid from the command completely, where this process adopts orphans; return how many still ran."""
        return end_orphans(self.siblings)

    def with_holders(self) -> "Child":
        """Return the same child, to whose family also belongs whoever holds its output open."""
        held = frozenset(f"pipe:[{os.fstat(pipe).st_ino}]" for pipe in (self.pipe, self.error_pipe) if pipe is not None)
        return evolve(self, family=evolve(self.family, outputs=held))

    def close(self) -> None:
        """Reap the process and give everything back to the system."""
        self.popen.poll()
        note_end(self.popen.pid)
        for descriptor in (self.pipe, self.error_pipe, self.handle):
            if descriptor is not None:
                os.close(descriptor)


def start_child(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    pass_fds: Sequence[int] = (),
    separate: bool = False,
) -> Child:
    """Start a process whose standard input is empty, or `stdin`; `separate`: errors have a pipe of their own.

    Raises CannotStart, saying why.
    """
    for text in (*argv, cwd, *env, *env.values()):
        _check_text(text)
    token = os.urandom(8).hex()
    with ExitStack() as on_failure, ExitStack() as afterwards:
        reading, writing = _pipe(on_failure, afterwards)
        error_reading, error_writing = _pipe(on_failure, afterwards) if separate else (None, writing)
        siblings, started = our_children(), time.monotonic()
        streams = _Streams(stdin, writing, error_writing, pass_fds)
        popen = _open(argv, cwd, {**env, TOKEN_VARIABLE: token_value(token)}, streams)
        note_start(popen.pid)
        on_failure.pop_all()
    family = Family(popen.pid, token)
    return Child(popen, reading, error_reading, _open_handle(popen.pid), family, started, siblings)


def _pipe(on_failure: ExitStack, afterwards: ExitStack) -> tuple[int, int]:
    """Return a pipe that is read without waiting; the writing end is given back when the process has it."""
    reading, writing = os.pipe()
    on_failure.callback(os.close, reading)
    afterwards.callback(os.close, writing)
    os.set_blocking(reading, False)
    return reading, writing


@frozen
class _Streams:
    """What a process reads and writes."""

    stdin: bytes | None
    output: int
    errors: int
    others: Sequence[int]


def _open(argv: Sequence[str], cwd: str, env: Mapping[str, str], streams: _Streams) -> "subprocess.Popen[bytes]":
    try:
        with ExitStack() as files:
            source: int = subprocess.DEVNULL
            if streams.stdin is not None:
                from tempfile import TemporaryFile  # brings compression and random numbers along

                file = files.enter_context(TemporaryFile())
                file.write(streams.stdin)
                file.seek(0)
                source = file.fileno()
            return subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=env,
                stdin=source,
                stdout=streams.output,
                stderr=streams.errors,
                start_new_session=True,
                pass_fds=streams.others,
            )
    except OSError as error:
        raise CannotStart(_explain(error, argv[0], cwd)) from error


def _open_handle(number: int) -> int | None:
    with suppress(OSError, AttributeError):
        return os.pidfd_open(number)
    return None


def _explain(error: OSError, program: str, cwd: str) -> str:
    if not os.path.isdir(cwd):
        return f"cannot start {program!r}: the working directory {cwd!r} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"cannot start {program!r}: no such program on PATH"
    return f"cannot start {program!r}: {error.strerror or error}"


def _check_text(text: str) -> None:
    """Refuse what no process can be given. Raises CannotStart."""
    if "\0" in text:
        raise CannotStart(f"a NUL character at position {text.index(chr(0))} of {text[:40]!r}; leave it out")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CannotStart(f"a lone surrogate at position {error.start} of {text[:40]!r}; leave it out") from error
