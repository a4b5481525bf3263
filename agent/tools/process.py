"""Runs one command to its end, and leaves no process, thread or file descriptor behind."""

import codecs
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from tempfile import TemporaryFile

import anyio
from attrs import evolve, frozen

from agent.tools.descendants import (
    FIRST_PAUSE,
    GRACE,
    LONGEST_PAUSE,
    TOKEN_VARIABLE,
    Family,
    end_commands_with_us,
    end_orphans,
    our_children,
    own_children,
    token_value,
)
from agent.tools.output import Retained, Retention
from agent.tools.schemas import encoded
from agent.vocabulary.errors import CannotStart

ALLOWED_VARIABLES = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "TZ")


KEY_VARIABLES = ("OPENAI_API_KEY", "EXA_API_KEY")
"""The variables with keys of model servers: programs do not get them, unless their tool declares it."""


def inherited_environment() -> dict[str, str]:
    """Return our environment without variables whose value is one of these keys."""
    keys = {os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)}
    return {name: value for name, value in os.environ.items() if name not in KEY_VARIABLES and value not in keys}


def tool_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the allowed variables that are set, overridden by `extra` (S6.6, S6.13)."""
    allowed = {name: os.environ[name] for name in ALLOWED_VARIABLES if name in os.environ}
    return allowed | dict(extra or {})


@frozen(eq=False)
class Child:
    """A started process. `pipes`: of its output, and of its errors if separate.

    `handle`: a descriptor that signals its end, if any. `siblings`: our children when it was started.
    """

    popen: "subprocess.Popen[bytes]"
    pipes: tuple[int, ...]
    handle: int | None
    family: Family
    siblings: frozenset[int] = frozenset()

    def has_exited(self) -> bool:
        """Return whether the process itself has ended, without reaping it."""
        try:
            return os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    async def exit(self) -> None:
        """Wait until the process itself has ended."""
        while not self.has_exited():
            if self.handle is None:
                await anyio.sleep(FIRST_PAUSE)
            else:
                await anyio.wait_readable(self.handle)

    async def vanish(self) -> None:
        """Wait until no process of the command runs."""
        pause = FIRST_PAUSE
        while not self.has_exited() or self.family.living():
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def end(self, grace: float) -> None:
        """End all of the command's processes: TERM, also for stopped ones, and KILL after `grace` seconds."""
        for pause in self.family.ending(grace, self.has_exited):
            await anyio.sleep(pause)

    def end_orphans(self) -> int:
        """End adopted orphans that escaped the command, if this process adopts any; return how many still ran."""
        return end_orphans(self.siblings)

    def with_holders(self) -> "Child":
        """Return the same child, with all processes that hold its output open in its family."""
        held = frozenset(f"pipe:[{os.fstat(pipe).st_ino}]" for pipe in self.pipes)
        return evolve(self, family=self.family._replace(outputs=held))

    def close(self) -> None:
        """Reap the process and release all resources."""
        self.popen.poll()
        own_children.discard(self.popen.pid)
        for descriptor in (*self.pipes, *([] if self.handle is None else [self.handle])):
            os.close(descriptor)


def start_child(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    separate: bool = False,
) -> Child:
    """Start a process with empty standard input; `separate`: errors have their own pipe.

    Raises CannotStart, saying why.
    """
    for text in (*argv, cwd, *env, *env.values()):
        encoded(text, repr(text[:40]), CannotStart)
    try:
        end_commands_with_us()
    except OSError as error:
        raise CannotStart(f"no watchdog can be started for commands: {error}") from error
    token = os.urandom(8).hex()
    siblings, started = our_children(), time.monotonic()
    pipes = [os.pipe() for _ in range(2 if separate else 1)]
    try:
        popen = subprocess.Popen(
            list(argv), cwd=cwd, env={**env, TOKEN_VARIABLE: token_value(token)}, stdin=subprocess.DEVNULL,
            stdout=pipes[0][1], stderr=pipes[-1][1], start_new_session=True, pass_fds=pass_fds,
        )  # fmt: skip
    except BaseException as error:
        for reading, _ in pipes:
            os.close(reading)
        if isinstance(error, OSError):
            raise CannotStart(_explain(error, argv[0], cwd)) from error
        raise
    finally:
        for _, writing in pipes:
            os.close(writing)
    own_children.add(popen.pid)
    outputs = tuple(reading for reading, _ in pipes)
    for reading in outputs:
        os.set_blocking(reading, False)
    handle = None
    with suppress(OSError, AttributeError):
        handle = os.pidfd_open(popen.pid)
    return Child(popen, outputs, handle, Family(popen.pid, token, started), siblings)


_HIGH = 200  # commands seldom use descriptors from here on
LONGEST_WORD = 128 * 1024 - 1  # bytes of one argument (Linux)


@contextmanager
def unnamed_file(content: bytes = b"") -> Iterator[int]:
    """Yield the descriptor of an unnamed file with this content."""
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        descriptor = fcntl(file.fileno(), F_DUPFD_CLOEXEC, _HIGH)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def shell_words(shell: Sequence[str], command: str) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield the words that run a command, and the descriptors for it: a very long command is read from a file.

    Raises CannotStart if it is not valid text.
    """
    content = encoded(command, "command", CannotStart)
    if len(content) < LONGEST_WORD:
        yield (*shell, command), ()
        return
    with unnamed_file(content) as script:
        yield (*shell, f". /dev/fd/{script}"), (script,)


def _explain(error: OSError, program: str, cwd: str) -> str:
    if not os.path.isdir(cwd):
        return f"cannot start {program!r}: the working directory {cwd!r} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"cannot start {program!r}: no such program on PATH"
    return f"cannot start {program!r}: {error.strerror or error}"


CANCELLED_GRACE = 0.3  # seconds between TERM and KILL when the call is cancelled, which must be over within a second
LEFT_BEHIND_GRACE = 0.2  # and for processes that a finished command left behind
DRAIN = 0.2  # seconds in which background processes may end by themselves after the command

_PIECE = 65536  # bytes read at once
_PIECES = 16  # reads before other tasks run; together at most the size of a pipe


@frozen
class Finished:
    """The result of a command that has ended.

    `output`: standard output and error in order of arrival, cut to the limit; `errors`: standard error, if separate.
    One of `exit_code` and `signal` is a number; both are if the sandbox does not show whether the command was killed,
    or exited with that code. `exited`: the shell itself reported its end. `survivors`: the number of processes that
    were still running after the command ended by itself, and were ended. `duration`: in seconds.
    """

    output: str
    exit_code: int | None
    signal: int | None
    timed_out: bool
    truncated: bool
    survivors: int
    duration: float
    errors: str = ""
    exited: bool = False


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float | None,
    output: Retained | None = None,
    errors: Retained | None = None,
    progress: Callable[[str], None] | None = None,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run `argv` in `cwd` with exactly `env` (and our token), and return how it ended.

    `timeout` is in seconds, None for none. `output` collects what is printed, by default its first and last bytes;
    `errors`, if given, the standard error. `progress` gets all output as it arrives. Standard input is empty;
    `pass_fds`: descriptors that the process inherits. Raises CannotStart if nothing was started.
    """
    child = start_child(argv, cwd=cwd, env=env, pass_fds=pass_fds, separate=errors is not None)
    collectors = [output or Retention().collector(), *([] if errors is None else [errors])]
    try:
        timed_out, survivors = await _attended(child, collectors, timeout, progress)
    except BaseException:
        await end_at_once(child)
        raise
    finally:
        child.close()
    code = child.popen.returncode
    return Finished(
        output=collectors[0].text(),
        errors="".join(collector.text() for collector in collectors[1:]),
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=timed_out,
        truncated=any(collector.truncated for collector in collectors),
        survivors=survivors,
        duration=child.family.age,
    )


async def _attended(
    child: Child, collectors: Sequence[Retained], timeout: float | None, progress: Callable[[str], None] | None
) -> tuple[bool, int]:
    """Read a command's output until its end; return whether it timed out, and how many processes it left."""
    listeners = [_Listener(pipe, kept, progress) for pipe, kept in zip(child.pipes, collectors, strict=True)]
    async with anyio.create_task_group() as group:
        for listener in listeners:
            group.start_soon(listener.listen)
        with anyio.move_on_after(timeout) as waiting:
            await child.exit()
        if waiting.cancelled_caught:
            await child.end(GRACE)
        survivors = await _settle(child, listeners)
        group.cancel_scope.cancel()
    for listener in listeners:
        listener.take()
    return waiting.cancelled_caught, survivors + child.end_orphans()


async def end_at_once(child: Child) -> None:
    """End a command whose call was cancelled, with all its processes."""
    with anyio.CancelScope(shield=True):
        await child.end(CANCELLED_GRACE)
        await child.with_holders().end(0)
        child.end_orphans()


class _Listener:
    """Reads a command's output until its end."""

    def __init__(self, pipe: int, output: Retained, progress: Callable[[str], None] | None) -> None:
        self._pipe, self._output, self._progress = pipe, output, progress
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.at_end = anyio.Event()

    async def listen(self) -> None:
        while not self.at_end.is_set():
            await anyio.wait_readable(self._pipe)
            self.take()

    def take(self) -> None:
        """Read what is available, at most the size of a pipe, so that other tasks run."""
        with suppress(BlockingIOError):
            for _ in range(_PIECES):
                piece = os.read(self._pipe, _PIECE)
                self._output.add(piece)
                if self._progress is not None and (text := self._decoder.decode(piece, not piece)):
                    self._progress(text)
                if not piece:
                    self.at_end.set()
                    return


async def _settle(child: Child, listeners: Sequence[_Listener]) -> int:
    """Read the last output of an ended command, and end the processes that it left; return their number."""
    with anyio.move_on_after(DRAIN):
        await _ends_of(listeners)
        await child.vanish()
        return 0
    if not all(listener.at_end.is_set() for listener in listeners):
        child = child.with_holders()
    left = child.family.living()
    survivors = sum(not process.holds_namespaces() for process in left)
    if left:
        await child.end(LEFT_BEHIND_GRACE)
        with anyio.move_on_after(DRAIN):
            await _ends_of(listeners)
    return survivors


async def _ends_of(listeners: Sequence[_Listener]) -> None:
    for listener in listeners:
        await listener.at_end.wait()


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
