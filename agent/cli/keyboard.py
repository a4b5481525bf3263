"""Lines from standard input while a run goes on, from a terminal or a pipe; a file is no input.

A file cannot be waited for (and neither can /dev/null), and a thread that reads would keep the process from ending.
"""

import os
import select
import stat
from collections.abc import Callable

import anyio

__all__ = ["can_be_heard", "has_typed", "hear_lines", "is_terminal"]

PIECE = 4096  # bytes read at once
BACKGROUND_PAUSE = 0.2  # seconds between two looks whether the terminal is ours again
LONGEST_LINE = 64 * 1024  # bytes; the beginning of a longer one is forgotten


def is_terminal(descriptor: int = 0) -> bool:
    """Whether somebody can type there."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def has_typed(descriptor: int = 0) -> bool:
    """Whether something waits there that nobody has read yet: on a terminal a whole line, or its end."""
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):
        return False


def can_be_heard(descriptor: int = 0) -> bool:
    """Whether lines may come from there: a terminal or a pipe."""
    try:
        return os.isatty(descriptor) or stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


async def hear_lines(hear: Callable[[str], None], at_end: Callable[[], None], descriptor: int = 0) -> None:
    """Call `hear` with each line as it comes, without its end, and `at_end` once when there are no more."""
    waiting = b""
    while piece := await _next_piece(descriptor):
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            hear(_decoded(line))
        waiting = waiting[-LONGEST_LINE:]
    if waiting:
        hear(_decoded(waiting))
    at_end()


async def _next_piece(descriptor: int) -> bytes:
    """Return what came, or nothing at the end: end of input, or a terminal that is gone."""
    try:
        await anyio.wait_readable(descriptor)
        while _is_in_background(descriptor):
            await anyio.sleep(BACKGROUND_PAUSE)
            await anyio.wait_readable(descriptor)
        return os.read(descriptor, PIECE)
    except OSError:
        return b""


def _is_in_background(descriptor: int) -> bool:
    """Whether the terminal is somebody else's now, as after `bpagent ... &`: who reads then is suspended."""
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # a pipe, or a terminal that does not control us
        return False


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")
