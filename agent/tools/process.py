"""Run one command to its end, and leave nothing of it behind: no process, no thread, no file descriptor.

    started -> it exits            -> output is drained -> what it left behind is ended, and counted
            -> the time is up      -> TERM, 2 s grace, KILL for all of its processes
            -> the call is cancelled -> the same with 0.3 s grace, shielded

Whoever holds the output open does not keep us: the command is over when its first process has ended.
"""

import codecs
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import anyio
from attrs import field, frozen

from agent.tools.child import Child, start_child
from agent.tools.output import HeadAndTail
from agent.tools.retention import Collector

__all__ = ["Finished", "run_process"]

GRACE = 2.0  # seconds between TERM and KILL when the time is up
CANCELLED_GRACE = 0.3  # and when the call is cancelled, which must be over within a second
LEFT_BEHIND_GRACE = 0.2  # and for what a finished command left behind
DRAIN = 0.2  # seconds in which background processes may end by themselves after the command

PROGRESS_INTERVAL = 0.05  # seconds between two pieces of output that whoever looks on is shown

_PIECE = 65536  # bytes read at once
_PIECES = 16  # reads before others get their turn; together as much as a pipe holds at most


@frozen
class Finished:
    """How a command ended.

    `output` is standard output and error in arrival order, cut to the limit; with errors on their own, these are in
    `errors`. Exactly one of `exit_code` and `signal`
    is a number. `survivors` counts the processes that were still there after the command ended by itself; they were
    ended too. `duration` is in seconds.
    """

    output: str
    exit_code: int | None
    signal: int | None
    timed_out: bool
    truncated: bool
    survivors: int
    duration: float
    errors: str = ""


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float | None,
    output_limit: int = 200 * 1024,
    output: Collector | None = None,
    errors: Collector | None = None,
    progress: Callable[[str], None] | None = None,
    stdin: bytes | None = None,
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Run `argv` in `cwd` with exactly `env` (and our token), and return how it ended.

    `timeout` is in seconds, None for none. Of the output the first and last bytes are kept, `output_limit` in all, or
    what `output` keeps; with `errors` the standard error goes there. `progress` gets all of it as it comes.
    Standard input is empty, or `stdin`; `pass_fds` are descriptors that the process gets under the same numbers.
    Raises CannotStart if nothing was started.
    """
    child = start_child(argv, cwd=cwd, env=env, stdin=stdin, pass_fds=pass_fds, separate=errors is not None)
    collectors = [HeadAndTail(output_limit) if output is None else output, *([] if errors is None else [errors])]
    try:
        timed_out, survivors = await _attended(child, collectors, timeout, _Shown(progress))
    except BaseException:
        await _end_at_once(child)
        raise
    finally:
        child.close()
    return _finished(child, collectors, timed_out, survivors)


async def _attended(
    child: Child, collectors: Sequence[Collector], timeout: float | None, shown: "_Shown"
) -> tuple[bool, int]:
    """Take a command's output until it is over; return whether its time was up, and how many processes it left."""
    pipes = [child.pipe, *([] if child.error_pipe is None else [child.error_pipe])]
    listeners = [_Listener(pipe, kept, shown) for pipe, kept in zip(pipes, collectors, strict=True)]
    async with anyio.create_task_group() as group:
        for listener in listeners:
            group.start_soon(listener.listen)
        group.start_soon(shown.show_now_and_then)
        timed_out = await _end_in_time(child, timeout)
        survivors = await _settle(child, listeners)
        group.cancel_scope.cancel()
    for listener in listeners:
        listener.take()
    shown.show()
    return timed_out, survivors + child.end_orphans()


async def _end_at_once(child: Child) -> None:
    """End a command whose call is over, and all that it started."""
    with anyio.CancelScope(shield=True):
        await child.end(CANCELLED_GRACE)
        await child.with_holders().end(0)
        child.end_orphans()


@frozen(eq=False)
class _Listener:
    """Reads a command's output until its end."""

    pipe: int
    output: Collector
    shown: "_Shown"
    at_end: anyio.Event = field(init=False, factory=anyio.Event)
    decoder: codecs.IncrementalDecoder = field(
        init=False, factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    async def listen(self) -> None:
        while not self.at_end.is_set():
            await anyio.wait_readable(self.pipe)
            self.take()

    def take(self) -> None:
        """Take what is there now: at most as much as a pipe holds, so that others get their turn."""
        with suppress(BlockingIOError):
            for _ in range(_PIECES):
                piece = os.read(self.pipe, _PIECE)
                self._add(piece)
                if not piece:
                    self.at_end.set()
                    return

    def _add(self, piece: bytes) -> None:
        self.output.add(piece)
        if text := self.decoder.decode(piece, not piece):
            self.shown.add(text)


class _Shown:
    """Shows the output to whoever looks on, joined, at most twenty times a second."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self._progress = progress
        self._waiting: list[str] = []

    def add(self, text: str) -> None:
        if self._progress is not None:
            self._waiting.append(text)

    def show(self) -> None:
        if self._progress is not None and self._waiting:
            text = "".join(self._waiting)
            self._waiting.clear()
            self._progress(text)

    async def show_now_and_then(self) -> None:
        while self._progress is not None:
            await anyio.sleep(PROGRESS_INTERVAL)
            self.show()


async def _end_in_time(child: Child, timeout: float | None) -> bool:
    """Wait for the command's end, or bring it about; return whether the time was up."""
    with anyio.move_on_after(timeout):
        await child.exit()
        return False
    await child.end(GRACE)
    return True


async def _settle(child: Child, listeners: Sequence[_Listener]) -> int:
    """Take the last output of a command that has ended, and end what it left behind; return how many those were."""
    with anyio.move_on_after(DRAIN):
        await _ends_of(listeners)
        await child.vanish()
        return 0
    if not all(listener.at_end.is_set() for listener in listeners):
        child = child.with_holders()
    survivors = len(child.family.living(child.age))
    if survivors:
        await child.end(LEFT_BEHIND_GRACE)
        with anyio.move_on_after(DRAIN):
            await _ends_of(listeners)
    return survivors


async def _ends_of(listeners: Sequence[_Listener]) -> None:
    for listener in listeners:
        await listener.at_end.wait()


def _finished(child: Child, collectors: Sequence[Collector], timed_out: bool, survivors: int) -> Finished:
    code = child.popen.returncode
    return Finished(
        output=collectors[0].text(),
        errors="".join(collector.text() for collector in collectors[1:]),
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=timed_out,
        truncated=any(collector.truncated for collector in collectors),
        survivors=survivors,
        duration=child.age,
    )
