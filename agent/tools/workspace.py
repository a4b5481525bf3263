"""Open files and directories of a workspace so that nothing outside it can be reached, whatever changes meanwhile.

    resolve the path (follow its links) -> check it against the boundary -> go down without following links -> open
                 ^------------------------- a link appeared on the way ----------------'

Links that stay inside work; links that lead outside are refused (S6.10 to S6.12). Only ordinary files are opened;
FIFOs and devices are refused without waiting for them.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeVar

from agent.tools.boundary import Boundary, follow_links, make_boundary
from agent.tools.descent import Changed, open_directory, open_parent
from agent.tools.errors import PathRefused
from agent.tools.opening import Entry, LocalFolder, look_at, open_at, open_file, sorted_entries
from constitution import DENIED_PATHS

__all__ = ["Workspace"]

_ATTEMPTS = 40  # resolutions of a path that keeps changing
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

T = TypeVar("T")


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
        _check_file_name(path)
        return self._open(path, self._open_file)

    @contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """Give a new file to write to; it replaces the one at `path` in one step when the block ends.

        If the block raises, the old file stays as it was. Mode and owner are kept; missing directories below an
        allowed root are made.
        """
        _check_file_name(path)
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

    @contextmanager
    def open_folder(self, path: str = ".") -> Iterator[LocalFolder]:
        """Give a directory, from which what is below it is reached without following links."""
        handle, real = self._open(path, self._folder_handle)
        try:
            yield LocalFolder(handle, real, self._boundary, self._boundary.denied_names())
        finally:
            os.close(handle)

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
            return open_file(directory, name, real, self._boundary)

    def _create(self, real: str, asked: str, temporary: str) -> tuple[int, str, BinaryIO]:
        with self._parent(real, asked, create=self._boundary.may_create) as (parent, name):
            old = look_at(parent, name, real, self._boundary)
            if old is not None and not os.access(name, os.W_OK, dir_fd=parent, effective_ids=True):
                raise PermissionError(f"permission denied: {real} is not writable")
            descriptor = open_at(parent, temporary, _WRITE, real, mode=0o666 if old is None else 0o600)
            try:
                _copy_mode(descriptor, old)
                return os.dup(parent), name, os.fdopen(descriptor, "wb")
            except BaseException:
                os.close(descriptor)
                os.unlink(temporary, dir_fd=parent)
                raise

    def _list(self, real: str, asked: str) -> tuple[Entry, ...]:
        with open_directory(real, visit=self._visitor(asked)) as directory, os.scandir(directory) as entries:
            return sorted_entries(entries)

    def _folder_handle(self, real: str, asked: str) -> tuple[int, str]:
        with open_directory(real, visit=self._visitor(asked)) as directory:
            return os.dup(directory), real

    @contextmanager
    def _parent(
        self, real: str, asked: str, create: Callable[[str], bool] = lambda _: False
    ) -> Iterator[tuple[int, str]]:
        with open_parent(real, visit=self._visitor(asked), create=create) as parent:
            yield parent

    def _visitor(self, asked: str) -> Callable[[os.stat_result], None]:
        return lambda found: self._boundary.check_identity(found, asked)


def _check_file_name(path: str) -> None:
    """Refuse what can only be a directory; without its end it would be a file of another name."""
    if path.endswith(("/", "/.", "/..")):
        raise IsADirectoryError(f"{path} names a directory, not a file; leave its end out")


def _copy_mode(descriptor: int, old: os.stat_result | None) -> None:
    """Give a new file mode and owner of the old one; where we may not give files away, it is ours."""
    if old is None:
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
