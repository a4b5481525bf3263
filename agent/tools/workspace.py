"""Open files and directories of a workspace so that nothing outside it can be reached, whatever changes meanwhile.

    resolve the path (follow its links) -> check it against the boundary -> go down without following links -> open
                 ^------------------------- a link appeared on the way ----------------'

Links that stay inside work; links that lead outside are refused (S6.10 to S6.12). Only ordinary files are opened;
FIFOs and devices are refused without waiting for them.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeVar

from attrs import frozen

from agent.tools.boundary import Boundary, follow_links, make_boundary
from agent.tools.descent import Changed, open_directory, open_parent
from agent.tools.errors import PathRefused
from constitution import DENIED_PATHS

__all__ = ["Entry", "Workspace"]

_ATTEMPTS = 40  # resolutions of a path that keeps changing
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

T = TypeVar("T")


@frozen
class Entry:
    """One name in a directory."""

    name: str
    is_directory: bool


class Workspace:
    """A root directory, further allowed roots, and denied paths, which win.

    Relative paths start at `root`, `~` is `home` (by default the user's). All methods raise PathRefused for what is
    not allowed, and OSError for what does not work; both name the path.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        allowed: Iterable[str | os.PathLike[str]] = (),
        denied: Iterable[str | os.PathLike[str]] = DENIED_PATHS,
        home: str | os.PathLike[str] | None = None,
    ) -> None:
        self._boundary: Boundary = make_boundary(
            os.fspath(root),
            [os.fspath(path) for path in allowed],
            [os.fspath(path) for path in denied],
            None if home is None else os.fspath(home),
        )

    @property
    def root(self) -> str:
        """The root, absolute and without links."""
        return self._boundary.root

    def resolve(self, path: str) -> str:
        """Return `path` absolute and with its links followed, as far as it exists. Nothing is checked."""
        return follow_links(self._boundary.absolute(path))

    def open_read(self, path: str) -> BinaryIO:
        """Return an ordinary file, open for reading."""
        return self._open(path, self._open_file)

    @contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """Give a new file to write to; it replaces the one at `path` in one step when the block ends.

        If the block raises, the old file stays as it was. Mode and owner are kept; missing directories below an
        allowed root are made.
        """
        temporary = f".bpagent-{os.urandom(8).hex()}"
        directory, name, file = self._open(path, lambda real, asked: self._create(real, asked, temporary))
        try:
            with file:
                yield file
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        finally:
            os.close(directory)

    def list(self, path: str = ".") -> tuple[Entry, ...]:
        """Return what is in a directory, sorted by name. A link is not followed, so it is no directory."""
        return self._open(path, self._list)

    def _open(self, path: str, action: Callable[[str, str], T]) -> T:
        """Do `action(resolved, asked)` with an allowed path; again if the path changed meanwhile."""
        for _ in range(_ATTEMPTS):
            asked = self._boundary.absolute(path)
            real = follow_links(asked)
            self._boundary.check(real, os.path.normpath(asked) if ".." not in asked.split("/") else asked)
            with suppress(Changed):
                return action(real, asked)
        raise PathRefused(f"permission denied: {path} is a loop of links, or is being changed all the time")

    def _open_file(self, real: str, asked: str) -> BinaryIO:
        with self._parent(real, asked) as (directory, name):
            self._check_kind(directory, name, real)
            descriptor = _open_at(directory, name, _READ, real)
        try:
            self._check_file(os.fstat(descriptor), real)
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def _create(self, real: str, asked: str, temporary: str) -> tuple[int, str, BinaryIO]:
        with self._parent(real, asked, create=self._boundary.may_create) as (parent, name):
            old = self._check_kind(parent, name, real)
            if old is not None and not os.access(name, os.W_OK, dir_fd=parent):
                raise PermissionError(f"permission denied: {real} is not writable")
            descriptor = _open_at(parent, temporary, _WRITE, real, mode=0o666 if old is None else 0o600)
            try:
                _copy_mode(descriptor, old)
                return os.dup(parent), name, os.fdopen(descriptor, "wb")
            except BaseException:
                os.close(descriptor)
                os.unlink(temporary, dir_fd=parent)
                raise

    def _list(self, real: str, asked: str) -> tuple[Entry, ...]:
        with open_directory(real, visit=self._visitor(asked)) as directory, os.scandir(directory) as entries:
            found = [Entry(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        return tuple(sorted(found, key=lambda entry: entry.name))

    @contextmanager
    def _parent(
        self, real: str, asked: str, create: Callable[[str], bool] = lambda _: False
    ) -> Iterator[tuple[int, str]]:
        with open_parent(real, visit=self._visitor(asked), create=create) as parent:
            yield parent

    def _visitor(self, asked: str) -> Callable[[os.stat_result], None]:
        return lambda found: self._boundary.check_identity(found, asked)

    def _check_kind(self, directory: int, name: str, real: str) -> os.stat_result | None:
        """Look before opening: opening a device can do things. None: there is nothing of that name."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            raise Changed(real)
        self._check_file(found, real)
        return found

    def _check_file(self, found: os.stat_result, real: str) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(f"{real} is a directory, not a file")
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(f"permission denied: {real} is {_kind(found.st_mode)}, not an ordinary file")
        self._boundary.check_identity(found, real)


def _open_at(directory: int, name: str, flags: int, real: str, mode: int = 0o600) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=directory)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no such file: {real}") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Changed(real) from error
        raise type(error)(f"{real}: {error.strerror}") from error


def _copy_mode(descriptor: int, old: os.stat_result | None) -> None:
    """Give a new file mode and owner of the old one; where we may not give files away, it is ours."""
    if old is None:
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"
