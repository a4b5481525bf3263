"""One walk over a workspace: it looks at everything there is, and keeps the contents that have changed."""

import json
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ELOOP, ENOENT, ENOTDIR
from typing import NamedTuple

from agent.tools.output import size_in_words
from agent.tools.search import Ignored, Rules, read_rules
from agent.tools.snapshots.objects import LARGE, Objects, Pack
from agent.vocabulary.errors import AgentError


class SnapshotError(AgentError):
    """A snapshot cannot be taken, found or restored; the message names what is in the way, and the cure."""


class TooLargeError(SnapshotError):
    """The workspace is too large to be kept as a whole. leave_out: the paths without which it is not."""

    leave_out: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A name in a folder, with its status as `lstat` gives it (times in nanoseconds).

    content: the name of a file's content, or of a folder's list of entries; the target of a link. Empty for what is
    there and was not kept. Folders have no `ctime` and `inode`; a file whose `ctime` is 0 is read again next time.
    """

    name: str
    mode: int
    size: int
    mtime: int
    ctime: int
    inode: int
    content: str

    @property
    def is_folder(self) -> bool:
        """True for a folder, also one that was not kept."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """True for an ordinary file or a link."""
        return stat.S_ISREG(self.mode) or stat.S_ISLNK(self.mode)

    @property
    def is_link(self) -> bool:
        """True for a symbolic link."""
        return stat.S_ISLNK(self.mode)

    @property
    def is_unkept(self) -> bool:
        """True for a file or folder whose bytes were not kept."""
        return not self.content and (self.is_folder or self.is_file)


Entries = Mapping[str, Entry]
NOTHING: Entries = {}

MADE_AGAIN: Mapping[str, str] = {
    "node_modules": ".package-lock.json .yarn-integrity .yarn-state.yml .modules.yaml",
    ".venv": "pyvenv.cfg",
    "venv": "pyvenv.cfg",
    "__pycache__": "*.pyc",
    ".mypy_cache": "CACHEDIR.TAG",
    ".pytest_cache": "CACHEDIR.TAG",
    ".ruff_cache": "CACHEDIR.TAG",
    ".hypothesis": "unicode_data",
    ".tox": "CACHEDIR.TAG",
    "target": "CACHEDIR.TAG",
}
"""Folders that a tool can make again, and what the tool leaves in them; they are left out where git ignores them."""

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
GONE = (ENOENT, ENOTDIR, ELOOP)  # of a name that was removed or became a link, since its folder was listed
DEEPEST = 200
TRIES = 3
JUST_NOW = 100_000_000  # nanoseconds: a file may have changed again within one tick of the clock of its file system


class Trees:
    """Reads the lists of entries that are kept, each once while it is in use."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.known: dict[str, Entries] = {"": NOTHING}

    def forget(self) -> None:
        """Read every list of entries again."""
        self.known = {"": NOTHING}

    def entries(self, content: str) -> Entries:
        """Return the entries of a folder. Raises SnapshotError where they are missing or damaged."""
        if content not in self.known:
            self.known[content] = {row[0]: Entry(*row) for row in json.loads(self.read(content))}
        return self.known[content]

    def read(self, content: str) -> bytes:
        """Return the content of a file. Raises SnapshotError where it is missing or damaged."""
        try:
            return self.objects.read(content)
        except (OSError, KeyError, ValueError) as error:
            raise SnapshotError(f"a part of the snapshot is missing or damaged: {error}") from error

    def _write_to(self, content: str, file: int) -> None:
        try:
            self.objects.write_to(content, file)
        except (KeyError, ValueError) as error:
            raise SnapshotError(f"a part of the snapshot is missing or damaged: {error}") from error

    def make(self, entry: Entry, path: str, folder: int | None = None) -> None:
        """Make a file or link at a new path, in an open folder. Raises what `read` does, and OSError of the file."""
        if entry.is_link:
            os.symlink(entry.content, path, dir_fd=folder)
        else:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
            try:
                self._write_to(entry.content, file)
                os.fchmod(file, entry.mode & 0o7777)
            finally:
                os.close(file)
        os.utime(path, ns=(entry.mtime, entry.mtime), dir_fd=folder, follow_symlinks=False)

    def find(self, tree: Entry, path: str) -> Entry | None:
        """Return what stood at a path in a workspace, or at an absolute one in a further root."""
        found: Entry | None = tree
        root = root_of(path, self.roots(tree))
        names = path.removeprefix(root).split("/") if root or not path.startswith("/") else ["/"]
        for name in filter(None, (root, *names)):
            found = self.entries(found.content).get(name) if found is not None and found.is_folder else None
        return found

    def roots(self, tree: Entry) -> tuple[str, ...]:
        """Return the further roots that are kept with a workspace: absolute paths beside the names in it."""
        return tuple(name for name in self.entries(tree.content) if name.startswith("/"))


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is that of a folder, or is in it. The workspace is "", further roots are absolute."""
    return path == folder or (path.startswith(f"{folder}/") if folder else not path.startswith("/"))


def root_of(path: str, roots: Iterable[str]) -> str:
    """Return the further root in which a path is; empty for one in the workspace."""
    return max((root for root in roots if is_below(path, root)), key=len, default="")


class Walk:
    """One walk over a workspace: what is unchanged since the walk before costs a look at its status.

    own: devices and inodes of folders that are no part of the folder above them.
    """

    def __init__(
        self, before: Trees, pack: Pack, *, exclude: tuple[str, ...] = (), budget: int,
        own: Collection[tuple[int, int]],
        is_cancelled: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.known: dict[str, Entries] = {"": NOTHING}
        self.made_again: list[str] = []
        self.unkept: list[str] = []
        self._before, self._pack, self._exclude, self._own = before, pack, exclude, own
        self._left = budget
        self._is_cancelled = is_cancelled
        self._recent = time.time_ns() - JUST_NOW
        self._handles: list[tuple[str, int]] = []  # the folders from the root to where the walk is
        self._rules: dict[int, Rules] = {}

    def tree(self, roots: Sequence[str], before: str) -> Entry:
        """Return the first folder with everything below it, and beside its entries the further roots that are there.

        before: the content of its entry in the walk before. Raises SnapshotError where it cannot be kept, and OSError.
        """
        olds = self._before.entries(before)
        there = [root for root in roots[1:] if os.path.isdir(root)]
        others = {root: self._root(root, root, olds[root].content if root in olds else "") for root in there}
        return self._root("", roots[0], before, others)

    def _root(self, name: str, path: str, before: str, others: Entries = NOTHING) -> Entry:
        with self._opened(name, path, None) as handle:
            status = os.fstat(handle)
            self._device = status.st_dev
            content = self._folder(handle, before, others)
            return Entry(name, status.st_mode, 0, status.st_mtime_ns, 0, 0, content)

    @contextmanager
    def _opened(self, name: str, path: str, above: int | None) -> Iterator[int]:
        if len(self._handles) > DEEPEST:
            raise SnapshotError(f"{self._path('')!r} lies more than {DEEPEST} folders deep; move what is below it")
        handle = os.open(path, FOLDER, dir_fd=above)
        self._handles.append((name, handle))
        try:
            yield handle
        finally:
            self._handles.pop()
            self._rules.pop(handle, None)
            os.close(handle)

    def _path(self, name: str) -> str:
        return "/".join([*(folder for folder, _ in self._handles if folder), name])

    def _folder(self, handle: int, before: str, others: Entries = NOTHING) -> str:
        if self._is_cancelled():
            raise SnapshotError("the snapshot was cancelled")
        olds, entries = self._before.entries(before), dict(others)
        with os.scandir(handle) as listed:
            for each in listed:
                name = each.name
                try:
                    status = each.stat(follow_symlinks=False)
                    old = olds.get(name)
                    if old is not None and old[1:6] == _status(status):
                        entries[name] = old
                    elif (entry := self._entry(handle, name, status, old)) is not None:
                        entries[name] = entry
                except OSError as error:
                    if error.errno not in GONE:
                        raise
        if entries != olds or not before:
            before = self._pack.add(json.dumps([entries[name] for name in sorted(entries)]).encode())
        self.known[before] = entries
        return before

    def _entry(self, handle: int, name: str, status: os.stat_result, old: Entry | None) -> Entry | None:
        """Return the entry of what has changed, or is a folder; None for the folder of the snapshots and for roots."""
        mode, size, mtime, ctime, inode = _status(status)
        if self._is_named(name):
            return self._left_out(name, mode, "named in snapshot_exclude")._replace(mtime=mtime)
        if stat.S_ISDIR(mode):
            if (status.st_dev, inode) in self._own:
                return None
            entry = Entry(name, mode, 0, mtime, 0, 0, self._below(handle, name, status, old))
            return old if entry == old else entry
        if stat.S_ISLNK(mode):
            ctime = ctime if ctime < self._recent else 0
            return Entry(name, mode, size, mtime, ctime, inode, os.readlink(name, dir_fd=handle))
        if stat.S_ISREG(mode):
            return self._file(handle, name, mode)
        return self._left_out(name, mode, NO_FILE)

    def _left_out(self, name: str, mode: int, why: str) -> Entry:
        self.unkept.append(f"{self._path(name)}: {why}")
        return Entry(name, mode, 0, 0, 0, 0, "")

    def _below(self, handle: int, name: str, status: os.stat_result, old: Entry | None) -> str:
        """Return the content of a folder; empty for one that is not kept."""
        try:
            with self._opened(name, name, handle) as opened:
                if why := refused_file_system(name, status.st_dev) if status.st_dev != self._device else "":
                    return self._left_out("", status.st_mode, why).content
                if self._can_be_made_again(name, opened):
                    self.made_again.append(self._path("").rstrip("/"))
                    return ""
                return self._folder(opened, old.content if old is not None and old.is_folder else "")
        except PermissionError:
            return self._left_out(name, status.st_mode, "cannot be read").content

    def _is_named(self, name: str) -> bool:
        """Return whether the user leaves this name or path out."""
        path = self._path(name)
        return name not in MADE_AGAIN and not {name, path, f"./{path}"}.isdisjoint(self._exclude)

    def _can_be_made_again(self, name: str, handle: int) -> bool:
        if name not in self._exclude:
            return False
        inside = os.listdir(handle)
        if name == "__pycache__":
            is_marked = all(".pyc" in each for each in inside)
        else:
            is_marked = not set(MADE_AGAIN[name].split()).isdisjoint(inside)
        return is_marked and self._is_ignored()

    def _is_ignored(self) -> bool:
        """Return whether git ignores the folder where the walk is, or one above it, in the repository around it."""
        names, handles = zip(*self._handles, strict=True)
        tops = [place for place, handle in enumerate(handles[:-1]) if _exists(".git", handle)]
        if _text(".gitignore", handles[-1]).strip().endswith(b"*"):
            return True  # caches that say so themselves
        ignored = Ignored()
        for place in range(tops[-1], len(names) - 1) if tops else ():
            if place > tops[-1]:
                ignored = Ignored(tuple((f"{path}{names[place]}/", rules) for path, rules in ignored.layers))
            ignored = Ignored((*ignored.layers, ("", self._rules_of(handles[place]))))
            if ignored.leaves_out(names[place + 1], is_directory=True):
                return True
        return False

    def _rules_of(self, handle: int) -> Rules:
        if handle not in self._rules:
            self._rules[handle] = read_rules(_text(".git/info/exclude", handle) + b"\n" + _text(".gitignore", handle))
        return self._rules[handle]

    def _file(self, handle: int, name: str, mode: int) -> Entry:
        """Keep a file as it was at one moment; one that is written all the time is kept as far as it was read."""
        try:
            file = os.open(name, READ, dir_fd=handle)
        except PermissionError:
            return self._left_out(name, mode, "cannot be read")
        try:
            for _ in range(TRIES):
                status = os.fstat(file)
                if not stat.S_ISREG(status.st_mode):
                    return self._left_out(name, status.st_mode, NO_FILE)
                content = self._large(file) if status.st_size >= LARGE else self._content(file, status)
                if content is None:
                    return self._left_out(name, mode, f"{TOO_LARGE} {size_in_words(status.st_size)}")
                if content and _status(os.fstat(file)) == _status(status):
                    break
            else:
                self.unkept.append(f"{self._path(name)}: {TORN}")
                content = self._pack.add(os.pread(file, LARGE, 0))
        finally:
            os.close(file)
        ctime = status.st_ctime_ns if status.st_ctime_ns < self._recent else 0
        return Entry(name, status.st_mode, status.st_size, status.st_mtime_ns, ctime, status.st_ino, content)

    def _large(self, file: int) -> str | None:
        name, size = self._pack.objects.add_large(file, self._left)
        self._left -= size
        return name or None

    def _content(self, file: int, status: os.stat_result) -> str:
        """Keep what an open file holds; return nothing if it changed within a tick of the clock of its file system."""
        self._left -= status.st_size
        if self._left < 0:
            raise TooLargeError
        content = os.pread(file, status.st_size, 0)
        if status.st_ctime_ns >= self._recent and os.pread(file, status.st_size, 0) != content:
            return ""
        return self._pack.add(content)


def _status(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """Return what tells whether a file has changed, in the order of an entry."""
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


TOO_LARGE = "is too large to be kept:"
NO_FILE = "is no file, folder or link"
TORN = "was written while it was read"


def _exists(name: str, handle: int) -> bool:
    try:
        os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return False
    return True


def _text(name: str, handle: int) -> bytes:
    """Return a file of rules; nothing where there is none."""
    with suppress(OSError):
        file = os.open(name, READ, dir_fd=handle)
        try:
            return os.read(file, 1 << 20) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
    return b""


MOUNTS = "/proc/self/mountinfo"
REMOTE = frozenset(
    ["afs", "ceph", "cifs", "davfs", "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"]
)
OF_SYSTEM = frozenset(["cgroup", "cgroup2", "debugfs", "devpts", "devtmpfs", "proc", "securityfs", "sysfs", "tracefs"])


def refused_file_system(name: str, device: int) -> str:
    """Return why the files on a device are not kept; empty where they are."""
    kind = _file_system(f"{os.major(device)}:{os.minor(device)}")
    if kind in REMOTE or (kind.startswith("fuse.") and kind != "fuse.fuse-overlayfs"):
        return f"lies on a network file system ({kind})"
    return f"is a part of the system ({kind})" if kind in OF_SYSTEM else ""


def _file_system(device: str) -> str:
    """Return the kind of file system on a device; empty where it is not known."""
    with suppress(OSError), open(MOUNTS, encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == device:
                return rest.split()[0]
    return ""
