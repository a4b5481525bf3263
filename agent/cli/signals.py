"""Ctrl-C and its like: the first aborts the run in order, and its log says so; no process stays behind.

That takes a second. A Ctrl-C that comes when it should be over leaves at once.
"""

import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from agent.cli.exit_codes import of_signal

__all__ = ["HEARD", "Interruption"]

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """What signals did to a run: `number` is the first that came, None while there was none, and `name` its name.

    Once there was one, a Ctrl-C after `patience` seconds calls `leave` with the exit code.
    """

    def __init__(self, patience: float = 3.0, leave: "Callable[[int], None] | None" = None) -> None:
        self.number: int | None = None
        self.name = ""
        self._patience = patience
        self._leave = leave or leave_at_once
        self._since = 0.0

    async def watch(self, signals: AsyncIterator[signal.Signals], abort: Callable[[], None]) -> None:
        """Abort at the first signal; leave at a later Ctrl-C if that took too long."""
        async for number in signals:
            self.hear(number, abort)

    def hear(self, number: signal.Signals, abort: Callable[[], None]) -> None:
        """Take a signal: the first one aborts, a later Ctrl-C leaves if that took too long."""
        if self.number is None:
            self.number, self.name, self._since = int(number), number.name, time.monotonic()
            abort()
        elif number == signal.SIGINT and time.monotonic() >= self._since + self._patience:
            self._leave(of_signal(number))


def leave_at_once(code: int) -> NoReturn:
    """End this process and everything that it started."""
    for child in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    sys.stdout.flush()
    os._exit(code)


def descendants(process: int) -> list[int]:
    """Return the numbers of all processes below `process`, as far as the system tells."""
    children = _children()
    found: list[int] = []
    level = [process]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    return children
