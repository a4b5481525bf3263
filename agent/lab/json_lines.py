"""Append-only files of JSON lines: each line is written whole or not at all, also if its writer is interrupted.

A line is appended with one write, under a lock. The part of a line that a killed process left has no newline: readers
ignore it, and the next writer cuts it off. Each line is one JSON value.
"""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from agent.lab.concurrency import locked
from agent.vocabulary.encoding import parsed

T = TypeVar("T")


def append_line(path: Path, line: str) -> None:
    """Append a line to a file (created if missing, mode 0600). After an OSError nothing of it is left."""
    with locked(path, flags=os.O_APPEND) as descriptor:
        end = _end_of_last_line(descriptor)
        if end < os.fstat(descriptor).st_size:
            os.ftruncate(descriptor, end)
        text = line.encode("utf-8", "replace") + b"\n"
        if os.write(descriptor, text) < len(text):
            os.ftruncate(descriptor, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file, without an incomplete last one; none if there is no file. Raises OSError."""
    return [line.decode("utf-8", "replace") for line in _whole(path, 0)]


class Values(Generic[T]):
    """The values of an attrs class in the lines of a file; each line is read once."""

    def __init__(self, path: Path, kind: type[T], name: str, upgrade: Callable[[Any], Any] = lambda data: data) -> None:
        """Prepare to read. `name`: of such a value, for errors. `upgrade`: as for `parsed`."""
        self.path, self._kind, self._name, self._upgrade = path, kind, name, upgrade
        self._read, self._lines = 0, 0

    def new(self) -> Iterator[T]:
        """Yield the values of the lines added since the last call. Raises OSError, ValueError (invalid lines)."""
        for line in _whole(self.path, self._read):
            if line:
                try:
                    text, name = line.decode("utf-8", "replace"), self._name.partition(" ")[0]
                    yield parsed(text, self._kind, name, self._upgrade)
                except ValueError as error:
                    raise ValueError(f"{self.path}:{self._lines + 1}: not a {self._name}: {error}") from error
            self._read += len(line) + 1
            self._lines += 1


def _whole(path: Path, begin: int) -> list[bytes]:
    """Return the complete lines from a byte on. Raises OSError."""
    try:
        with path.open("rb") as file:
            file.seek(begin)
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def _end_of_last_line(descriptor: int, step: int = 65_536) -> int:
    """Return the length of the file without an incomplete last line."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - step)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
