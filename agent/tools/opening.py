"""Open what a directory handle leads to: ordinary files only, nothing denied, and no link is followed.

`LocalFolder` goes further down from there: what it opens is below it, whatever the paths mean by now.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from attrs import frozen

from agent.tools.boundary import Boundary
from agent.tools.descent import Changed
from agent.tools.errors import PathRefused

__all__ = ["Entry", "LocalFolder", "look_at", "open_at", "open_file", "sorted_entries"]

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen
class Entry:
    """One name in a directory; a link is neither a directory nor a file, and so are FIFOs and devices."""

    name: str
    is_directory: bool
    is_file: bool = False


@frozen(eq=False)
class LocalFolder:
    """An open directory at `real`, a path without links. What is denied is not there: `denied` are such paths."""

    handle: int
    real: str
    boundary: Boundary
    denied: frozenset[str]

    def entries(self) -> tuple[Entry, ...]:
        """Return what is in it, sorted by name."""
        with os.scandir(self.handle) as entries:
            found = sorted_entries(entries)
        return tuple(entry for entry in found if self._path(entry.name) not in self.denied)

    def open(self, name: str) -> BinaryIO:
        """Return an ordinary file in it, open for reading. Raises PathRefused, or OSError naming the path."""
        path = self._path(name)
        if path in self.denied:
            raise PathRefused(f"permission denied: {path} is a denied path")
        try:
            return open_file(self.handle, name, path, self.boundary)
        except Changed as error:
            raise PathRefused(f"permission denied: {path} is a link") from error

    @contextmanager
    def folder(self, name: str) -> Iterator["LocalFolder"]:
        """Give a directory in it. Raises PathRefused, or OSError naming the path."""
        path = self._path(name)
        if path in self.denied:
            raise PathRefused(f"permission denied: {path} is a denied path")
        try:
            handle = open_at(self.handle, name, _FOLDER, path)
        except Changed as error:
            raise PathRefused(f"permission denied: {path} is a link") from error
        try:
            self.boundary.check_identity(os.fstat(handle), path)
            yield LocalFolder(handle, path, self.boundary, self.denied)
        finally:
            os.close(handle)

    def _path(self, name: str) -> str:
        return f"{self.real.rstrip('/')}/{name}"


def sorted_entries(entries: Iterable["os.DirEntry[str]"]) -> tuple[Entry, ...]:
    """Return entries sorted by name."""
    found = (
        Entry(entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
        for entry in entries
    )
    return tuple(sorted(found, key=lambda entry: entry.name))


def open_file(directory: int, name: str, real: str, boundary: Boundary) -> BinaryIO:
    """Return an ordinary file, open for reading. Raises Changed for a link, PathRefused for what is none."""
    look_at(directory, name, real, boundary)
    descriptor = open_at(directory, name, _READ, real)
    try:
        _check_file(os.fstat(descriptor), real, boundary)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def look_at(directory: int, name: str, real: str, boundary: Boundary) -> os.stat_result | None:
    """Return the status of `name`, None when there is no such file: opening a device unseen can do things.

    Raises Changed for a link, PathRefused for what is denied or no file, else OSError naming `real`.
    """
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise type(error)(f"{real}: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        raise Changed(real)
    _check_file(found, real, boundary)
    return found


def open_at(directory: int, name: str, flags: int, real: str, mode: int = 0o600) -> int:
    """Open `name` in the directory `directory`. Raises Changed for a link, else OSError naming `real`."""
    try:
        return os.open(name, flags, mode, dir_fd=directory)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no such file: {real}") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Changed(real) from error
        raise type(error)(f"{real}: {error.strerror}") from error


def _check_file(found: os.stat_result, real: str, boundary: Boundary) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{real} is a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise PathRefused(f"permission denied: {real} is {_kind(found.st_mode)}, not an ordinary file")
    boundary.check_identity(found, real)


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
