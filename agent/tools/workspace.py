"""Opens files and directories of a workspace, safe against links and concurrent changes that lead outside."""

import errno
import fcntl
import glob
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from operator import itemgetter
from typing import BinaryIO, Protocol, TypeVar

from attrs import frozen

from agent.tools.output import outputs_folder
from agent.tools.schemas import encoded
from agent.vocabulary.errors import PathRefused
from constitution import DENIED_PATHS
from constitution.places import WILD, is_denied, is_within, placed

Identity = tuple[int, int]  # device and inode: identify a file under any name

_ATTEMPTS = 40  # resolutions of a path that keeps changing
_MOST_DENIED_FILES = 10_000


def follow_links(path: str) -> str:
    """Return `path` without links, as far as it exists. Raises PathRefused if it keeps changing."""
    for _ in range(_ATTEMPTS):
        with suppress(OSError):  # a link that was replaced before it was read
            return os.path.realpath(path)
    raise PathRefused(f"permission denied: {path} is being changed all the time")


def expand(path: str, home: str) -> str:
    """Return `path` with a leading `~` component replaced by `home`."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _identities_below(path: str) -> set[Identity]:
    """Return the identities of files below a denied directory. Raises PathRefused if unknown: fail closed."""
    found: set[Identity] = set()
    for folder, _, names in os.walk(path, onerror=_cannot_tell):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            found.add((status.st_dev, status.st_ino))
        if len(found) > _MOST_DENIED_FILES:
            raise PathRefused(f"permission denied: a hard link, and {path} has too many files to tell whether into it")
    return found


def _cannot_tell(error: OSError) -> None:
    raise PathRefused(f"permission denied: a hard link, and {error.filename} cannot be read to tell whether into it")


def other_names(paths: Iterable[str]) -> frozenset[str]:
    """Return other mounts of these real paths, or of parts of them (Linux)."""
    with suppress(FileNotFoundError), open("/proc/self/mountinfo", "rb", buffering=0) as file:
        return _mounted(frozenset(paths), file.readall())
    return frozenset()


@lru_cache(maxsize=16)
def _mounted(paths: frozenset[str], mountinfo: bytes) -> frozenset[str]:
    return frozenset(name for path in paths for name in _names_of(path, tuple(_mounts(mountinfo))))


def _names_of(path: str, mounts: Sequence[tuple[bytes, str, str]]) -> Iterator[str]:
    below = [(device, root) for device, root, point in mounts if is_within(point, path)]
    above = [(len(point), device, root) for device, root, point in mounts if is_within(path, point)]
    length, device, root = max(above, key=itemgetter(0), default=(0, b"", "/"))
    shown = [*below, (device, _moved(path[length:], root))]
    for device, root, point in mounts:
        inner = [place for its, place in shown if its == device]
        yield from (point for place in inner if is_within(root, place))
        yield from (_moved(place[len(root) :], point) for place in inner if is_within(place, root))


def _moved(rest: str, into: str) -> str:
    return f"{into.rstrip('/')}/{rest.strip('/')}".rstrip("/") or "/"


def _mounts(mountinfo: bytes) -> Iterator[tuple[bytes, str, str]]:
    """Yield each mount, the latest first: its device, the directory on it, and the mount point."""
    for line in reversed(mountinfo.splitlines()):
        device, root, point = line.split(b" ", 5)[2:5]
        yield device, _unescaped(root), _unescaped(point)


def _unescaped(text: bytes) -> str:
    return os.fsdecode(re.sub(rb"\\(\d{3})", lambda found: bytes([int(found[1], 8)]), text))


class Changed(Exception):
    """A path changed since it was resolved: it is a link now, or was moved."""


_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_real(real: str, flags: int, kind: str = "file") -> int:
    """Open a path without links. Raises Changed if a link was followed, or OSError naming the path."""
    with _naming(real, kind):
        opened = os.open(real, flags)
    if _path_of(opened) != real:
        os.close(opened)
        raise Changed(real)
    return opened


@contextmanager
def _naming(real: str, kind: str = "file") -> Iterator[None]:
    """Add the path to an error of the system. Raises Changed for a link."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(f"no such {kind}: {real}") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Changed(real) from error
        raise type(error)(f"{real}: {error.strerror}") from error


def _path_of(opened: int) -> str:
    """Return the present path of an open file; that of a removed one ends with a note."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(opened, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{opened}")


@frozen
class Entry:
    """One name in a directory; a link is neither a directory nor a file, and so are FIFOs and devices."""

    name: str
    is_directory: bool
    is_file: bool = False


@frozen(eq=False)
class LocalFolder:
    """An open directory at `real`, a path without links. `denied`: hidden paths, also without links."""

    handle: int
    real: str
    workspace: "Workspace"
    denied: frozenset[str]

    def entries(self) -> tuple[Entry, ...]:
        """Return its entries, sorted by name."""
        with os.scandir(self.handle) as entries:
            found = sorted_entries(entries)
        return tuple(entry for entry in found if self._path(entry.name) not in self.denied)

    def open(self, name: str) -> BinaryIO:
        """Return an ordinary file in it, open for reading. Raises PathRefused, or OSError naming the path."""
        with self._entry(name) as path:
            return open_file(path, self.workspace)

    @contextmanager
    def folder(self, name: str) -> Iterator["LocalFolder"]:
        """Yield a directory in it. Raises PathRefused, or OSError naming the path."""
        with self._entry(name) as path:
            handle = open_real(path, _FOLDER, "directory")
        try:
            yield LocalFolder(handle, path, self.workspace, self.denied)
        finally:
            os.close(handle)

    @contextmanager
    def _entry(self, name: str) -> Iterator[str]:
        path = self._path(name)
        if path in self.denied:
            raise PathRefused(f"permission denied: {path} is a denied path")
        try:
            yield path
        except Changed as error:
            raise PathRefused(f"permission denied: {path} is a link") from error

    def _path(self, name: str) -> str:
        return f"{self.real.rstrip('/')}/{name}"


def sorted_entries(entries: Iterable["os.DirEntry[str]"]) -> tuple[Entry, ...]:
    """Return entries sorted by name."""
    found = [(each.name, each.is_dir(follow_symlinks=False), each.is_file(follow_symlinks=False)) for each in entries]
    return tuple(Entry(*each) for each in sorted(found))


def open_file(real: str, workspace: "Workspace") -> BinaryIO:
    """Return an ordinary file, open for reading. Raises Changed for a link, PathRefused for other kinds."""
    look_at(real, real)
    opened = open_real(real, _READ)
    try:
        found = os.fstat(opened)
        _check_file(found, real)
        workspace.check_identity(real, found)
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def look_at(name: str, real: str, directory: int | None = None) -> os.stat_result | None:
    """Return the status of `name`, None if it is missing; checked before opening, which has effects on devices.

    Raises Changed for a link, PathRefused unless it is an ordinary file, else OSError naming `real`.
    """
    try:
        with _naming(real):
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(found.st_mode):
        raise Changed(real)
    _check_file(found, real)
    return found


def _check_file(found: os.stat_result, real: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{real} is a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        kind = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}.get(stat.S_IFMT(found.st_mode), "a device")
        raise PathRefused(f"permission denied: {real} is {kind}, not an ordinary file")


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

T = TypeVar("T")


class Workspace:
    """A root directory, further allowed roots, and denied paths, which win (S0 6.4).

    Relative paths start at `root`, which is absolute and without links; `~` is `home`, by default the user's. A denied
    path may be a pattern (`secrets/*`). `roots` and `denied` are the absolute ones, `root` the first. All
    methods raise PathRefused for forbidden paths, and OSError for failures; both name the path.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        allowed: Iterable[str | os.PathLike[str]] = (),
        denied: Iterable[str | os.PathLike[str]] = DENIED_PATHS,
        home: str | os.PathLike[str] | None = None,
    ) -> None:
        self._home = os.path.expanduser("~") if home is None else os.fspath(home)
        self.root = follow_links(os.path.abspath(expand(os.fspath(root), self._home)))
        roots = (follow_links(self._configured(path)) for path in allowed)
        self.roots = tuple(dict.fromkeys([self.root, *roots]))
        self.denied = tuple(self._configured(path) for path in denied)

    def _configured(self, path: str | os.PathLike[str]) -> str:
        """Return a path of a configuration as an absolute one, links not followed."""
        return placed(os.fspath(path), workspace=self.root, home=self._home)

    def _placed(self, path: str | os.PathLike[str]) -> str:
        """Return `path` as an absolute one, links not followed: relative ones start at the root, `~` is the home."""
        return os.path.join(self.root, expand(os.fspath(path), self._home))

    def _absolute(self, path: str) -> str:
        """Return a requested path as an absolute one. Raises PathRefused for an invalid path."""
        encoded(path, repr(path[:60]), PathRefused)
        return self._placed(path)

    def resolve(self, path: str) -> str:
        """Return `path` absolute and with its links followed, as far as it exists. Nothing is checked."""
        return follow_links(self._absolute(path))

    def check(self, real: str, asked: str, besides: str | None = None) -> None:
        """Raise PathRefused for a path without links that is outside or denied; `asked`: as the caller wrote it.

        `besides`: a folder of our own that may be read, and that the message does not name.
        """
        name = asked if asked == real else f"{asked} leads to {real}, which"
        for names, what in ((self._names, "a denied path"), (self.denied_names, "another name of a denied path")):
            if is_denied(real, tuple(names())):
                raise PathRefused(f"permission denied: {name} is {what}")
        roots = self.roots if besides is None else (*self.roots, besides)
        if not any(is_within(real, root) for root in roots):
            raise PathRefused(f"permission denied: {name} is outside the allowed paths ({', '.join(self.roots)})")

    def denied_names(self) -> frozenset[str]:
        """Return the denied paths: as written, with links followed, and at their other mounts."""
        names = self._names()
        return names.union(other_names(names))

    def _names(self) -> frozenset[str]:
        matches = {path: glob.glob(path, include_hidden=True) if WILD.search(path) else [] for path in self.denied}
        named = (name for path, each in matches.items() for name in (path, *each))
        return frozenset(name for path in named for name in (path, follow_links(path)))

    def check_identity(self, asked: str, found: os.stat_result) -> None:
        """Raise PathRefused for another name of a denied file: renamed, or hard-linked."""
        if (found.st_dev, found.st_ino) in self._denied_identities(hard_linked=found.st_nlink > 1):
            raise PathRefused(f"permission denied: {asked} is another name of a denied path")

    def _denied_identities(self, *, hard_linked: bool) -> set[Identity]:
        found: set[Identity] = set()
        for path in self._names():
            try:
                status = os.stat(path)
            except OSError:
                continue  # missing, so it has no other names
            found.add((status.st_dev, status.st_ino))
            if hard_linked and os.path.isdir(path):
                found |= _identities_below(path)
        return found

    def open_read(self, path: str) -> BinaryIO:
        """Return an ordinary file, open for reading; also a kept output of one of our commands."""
        _check_file_name(path)
        return self._open(path, lambda real: open_file(real, self), outputs_folder())

    @contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """Yield a new file to write to; it atomically replaces the one at `path` when the block ends.

        If the block raises, the old file stays as it was. Mode and owner are kept; missing directories below an allowed
        root are created.
        """
        _check_file_name(path)
        temporary = f".bpagent-{os.urandom(8).hex()}"
        directory, name, file, old = self._open(path, lambda real: self._create(real, temporary))
        try:
            with file:
                _copy_mode(file.fileno(), old)
                yield file
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        finally:
            os.close(directory)

    def list(self, path: str = ".") -> tuple[Entry, ...]:
        """Return the entries of a directory, sorted by name. A link is not followed, so it is not a directory."""
        with self.open_folder(path) as folder, os.scandir(folder.handle) as entries:
            return sorted_entries(entries)

    @contextmanager
    def open_folder(self, path: str = ".") -> Iterator[LocalFolder]:
        """Yield a directory, from which its content is reached without following links."""
        handle, real = self._open(path, lambda real: (open_real(real, _FOLDER, "directory"), real))
        try:
            yield LocalFolder(handle, real, self, self.denied_names())
        finally:
            os.close(handle)

    def _open(self, path: str, action: Callable[[str], T], besides: str | None = None) -> T:
        """Call `action(resolved)` with an allowed path, or one below `besides`; again if it changed meanwhile."""
        for _ in range(_ATTEMPTS):
            asked = self._absolute(path)
            real = follow_links(asked)
            written = os.path.normpath(asked) if ".." not in asked.split("/") else asked
            self.check(real, written, besides)
            with suppress(Changed):
                return action(real)
        raise PathRefused(f"permission denied: {path} is a loop of links, or is being changed all the time")

    def _create(self, real: str, temporary: str) -> tuple[int, str, BinaryIO, os.stat_result | None]:
        """Return a handle on the directory of a file, its name, a new file beside it, and its status if it exists."""
        folder, name = os.path.split(real)
        directory = self._directory(folder)
        try:
            old = look_at(name or ".", real, directory)
            if old is not None:
                self.check_identity(real, old)
                if not os.access(name, os.W_OK, dir_fd=directory, effective_ids=True):
                    raise PermissionError(f"permission denied: {real} is not writable")
            with _naming(real):
                descriptor = os.open(temporary, _WRITE, 0o666 if old is None else 0o600, dir_fd=directory)
            return directory, name, os.fdopen(descriptor, "wb"), old
        except BaseException:
            os.close(directory)
            raise

    def _directory(self, real: str) -> int:
        try:
            return open_real(real, _HANDLE, "directory")
        except FileNotFoundError:
            if not any(is_within(real, root) for root in self.roots):
                raise
        above, name = os.path.split(real)
        parent = self._directory(above)
        try:
            with suppress(FileExistsError), _naming(real, "directory"):
                os.mkdir(name, dir_fd=parent)
        finally:
            os.close(parent)
        return open_real(real, _HANDLE, "directory")


def _check_file_name(path: str) -> None:
    """Refuse a path that can only be a directory, such as one with a trailing /."""
    if path.endswith(("/", "/.", "/..")):
        raise IsADirectoryError(f"{path} names a directory, not a file; leave its end out")


def _copy_mode(descriptor: int, old: os.stat_result | None) -> None:
    """Copy mode and owner of the old file to a new one; without permission it stays ours."""
    if old is None:
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


class Folder(Protocol):
    """An open directory: its content is reached from the handle, not by a path that may have changed."""

    def entries(self) -> Sequence[Entry]:
        """Return its entries, sorted by name, without forbidden ones."""

    def open(self, name: str) -> BinaryIO:
        """Return an ordinary file in it, open for reading; it has a descriptor of this machine (`fileno`)."""

    def folder(self, name: str) -> "AbstractContextManager[Folder]":
        """Yield a directory in it."""


class Files(Protocol):
    """The file system of file tools, with a root for relative paths (S2 "operations").

    `Workspace` is the local one. Another one is responsible for its own bounds. All methods block, since file tools run
    in a thread, and raise OSError or ToolError with a message for the model.
    """

    @property
    def root(self) -> str:
        """The root, absolute."""

    def resolve(self, path: str) -> str:
        """Return `path` absolute and with its links followed, as far as it exists."""

    def open_read(self, path: str) -> BinaryIO:
        """Return an ordinary file, open for reading; it has a descriptor of this machine (`fileno`)."""

    def open_write(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Yield a new file that atomically replaces the one at `path` when the block ends without an exception."""

    def list(self, path: str = ".") -> Sequence[Entry]:
        """Return the entries of a directory, sorted by name."""

    def open_folder(self, path: str = ".") -> "AbstractContextManager[Folder]":
        """Yield a directory."""
