"""Append-only files of JSON lines: each line is there whole or not at all, whatever interrupts its writer.

A line is appended with one write, under a lock that lasts for as long. What a killed process left of a line has no end,
is no line for a reader, and is cut off by the next writer. Each line says one value, as JSON.
"""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from agent.lab.concurrency import locked
from agent.vocabulary.conversion import parsed

T = TypeVar("T")


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, which need not be there and only its owner can read. Raises OSError; nothing is left."""
    with locked(path, flags=os.O_APPEND) as descriptor:
        end = _end_of_last_line(descriptor)
        if end < os.fstat(descriptor).st_size:
            os.ftruncate(descriptor, end)
        text = line.encode("utf-8", "replace") + b"\n"
        if os.write(descriptor, text) < len(text):
            os.ftruncate(descriptor, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file, without one that has no end; none if there is no file. Raises OSError."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text[: text.rfind(b"\n") + 1].decode("utf-8", "replace").split("\n")[:-1]


def values_in(path: Path, kind: type[T], name: str) -> Iterator[T]:
    """Yield the values of an attrs class that the lines of a file say; `name`: what such a value is called.

    An empty line says none. Raises ValueError that names file and line, and OSError.
    """
    for number, line in enumerate(whole_lines(path), start=1):
        if not line:
            continue
        try:
            yield parsed(line, kind, name.partition(" ")[0])
        except ValueError as error:
            raise ValueError(f"{path}:{number}: not a {name}: {error}") from error


def _end_of_last_line(descriptor: int, step: int = 65_536) -> int:
    """Return how long the file is without a line that has no end."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - step)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
