"""Whole outputs in files, for a model that was shown a part: who owns these files, and when they go.

They lie in a folder of this process, which only its user can read, and which goes when the process ends. When they are
too much together, the oldest go first. The text that names such a file is in the log, the file is not.
"""

import atexit
import os
import shutil
from contextlib import suppress
from typing import BinaryIO

from agent.tools.cutting import size_in_words

__all__ = ["Spill"]

MOST_KEPT = 512 * 1024 * 1024  # bytes of all files together

_folders: dict[int, str] = {}  # by the process that made it: one that was forked has none yet


def _folder() -> str:
    """Return the folder of this process; made at its first use, and anew if somebody took it away."""
    from tempfile import mkdtemp

    folder = _folders.get(os.getpid())
    if folder is None or not os.path.isdir(folder):
        folder = _folders[os.getpid()] = mkdtemp(prefix="bpagent-outputs-")
        atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _make_room(folder: str, size: int) -> None:
    """Remove the oldest files until `size` bytes more may be kept."""
    with os.scandir(folder) as entries:
        found = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
    total = sum(os.lstat(path).st_size for _, path in found)
    for _, path in found:
        if total + size <= MOST_KEPT:
            return
        total -= os.lstat(path).st_size
        os.unlink(path)


class Spill:
    """Holds an output up to `limit` bytes, and writes it to a file from then on: up to `quota` bytes of it."""

    def __init__(self, limit: int, quota: int) -> None:
        self.path: str | None = None
        self._limit, self._quota = limit, quota
        self._held = bytearray()
        self._file: BinaryIO | None = None
        self._written = 0
        self._problem = ""

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""
        if self._file is None and not self._problem:
            self._held += piece
            if len(self._held) > self._limit:
                self._open()
        else:
            self._write(piece)

    def keep(self) -> str:
        """Write what is held, and say where the output is."""
        if self._file is None and not self._problem:
            self._open()
        if self._problem:
            return f"all of it could not be kept: {self._problem}"
        if self._file is not None:
            self._file.close()
        part = "all of it" if self._written < self._quota else f"its first {size_in_words(self._written)}"
        return f"{part} is in {self.path}"

    def drop(self) -> None:
        """Give the file back: nobody was told of it."""
        if self._file is not None:
            self._file.close()
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)

    def _open(self) -> None:
        from tempfile import mkstemp  # brings compression and random numbers along

        try:
            folder = _folder()
            _make_room(folder, self._quota)
            descriptor, self.path = mkstemp(prefix="output-", suffix=".txt", dir=folder)
            self._file = os.fdopen(descriptor, "wb", buffering=0)
        except OSError as error:
            self._problem = str(error.strerror)
        self._write(bytes(self._held))
        self._held.clear()

    def _write(self, piece: bytes) -> None:
        if self._file is None or self._problem:
            return
        rest = memoryview(piece)[: self._quota - self._written]
        try:
            while rest:
                count = self._file.write(rest) or 0
                self._written += count
                rest = rest[count:]
        except OSError as error:  # no room on the disk: the command goes on
            self._problem = str(error.strerror)
