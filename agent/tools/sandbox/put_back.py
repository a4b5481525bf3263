"""Places that run later (`.envrc`, hooks and settings of git): a change by a command without a right is put back.

They are looked up before and after each command, those that are not there as well, by one walk over what a command may
write. A command may change them by the right `write PATH`, to what was committed before the run began, and settings of
git that run nothing. What a user changes between two commands stays, unless a process of the run was alive.
"""

import os
import re
import stat
import subprocess
import time
import tomllib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha1, sha256
from pathlib import Path
from threading import RLock

from attrs import define, field, frozen

from agent.tools.programs import find_program
from agent.tools.sandbox.repository import followed, git_folders, repository_root
from agent.tools.workspace import Changed, Workspace, open_real
from agent.vocabulary.errors import ToolError
from constitution.places import is_private, is_within, kind_of_later

MOST_FOLDERS = 20_000
LARGEST = 1024 * 1024  # bytes of a file that can be put back
REMADE = frozenset(
    ["node_modules", "site-packages", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", "target"]
)
OF_GIT = frozenset(["config", "config.worktree", "commondir"])
COMMON = b"../.."  # what `commondir` of a worktree says
JUST_NOW = 100_000_000  # nanoseconds
WRITE = "write "  # the right to change a place
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@frozen
class Place:
    """A file or link: its kind and mode, its content or target, and the status by which a change is noticed."""

    mode: int = field(eq=lambda mode: mode & 0o170111)
    content: bytes
    status: tuple[int, ...] = field(eq=False)  # inode, size, times
    size: int = field(eq=False)


@frozen
class Listing:
    """The names in a folder of work that matter; `status` tells whether names have come or gone since."""

    status: tuple[int, ...]
    folders: tuple[str, ...]
    later: tuple[str, ...]
    private: Mapping[str, int]  # files with names of secrets, with their inodes
    is_of_git: bool


@define
class Walk:
    """Finds places that run later below folders, and files with the names of secrets.

    A folder that has not changed since the walk before costs a look at its status.
    """

    places: dict[str, Place] = field(factory=dict)
    private: dict[str, int] = field(factory=dict)
    _before: Mapping[str, Place] = field(factory=dict, init=False)
    _listings: dict[str, Listing] = field(factory=dict, init=False)

    def over(self, roots: tuple[str, ...]) -> None:
        """Look at everything below the roots, what is near to them first."""
        self._before, self.places, self.private = self.places, {}, {}
        listings, self._listings = self._listings, {}
        folders = deque((root, root) for root in roots)
        for _ in range(MOST_FOLDERS):
            if not folders:
                break
            root, folder = folders.popleft()
            if (listing := _listing(root, folder, listings.get(folder))) is None:
                continue
            self._listings[folder] = listing
            if listing.is_of_git:
                folders.extend((root, inner) for inner in self._of_git(folder))
                continue
            folders.extend((root, inner) for inner in listing.folders if inner not in roots)
            self.private.update(listing.private)
            for path in listing.later:
                self._add(path)

    def _of_git(self, folder: str) -> Iterator[str]:
        """Look at a folder of git, and yield those of its submodules and worktrees."""
        for entry in _listed(folder):
            if entry.name in OF_GIT or entry.is_symlink():
                self._add(entry.path)
        for hook in _listed(os.path.join(folder, "hooks")):
            if not hook.name.endswith(".sample"):
                self._add(hook.path)
        self._add(os.path.join(folder, "info", "attributes"))
        for inner in ("modules", "worktrees"):
            yield from (entry.path for entry in _listed(os.path.join(folder, inner)) if _is_folder(entry))

    def _add(self, path: str) -> None:
        with suppress(OSError):
            status = os.lstat(path)
            now = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._before.get(path)
            if known is not None and known.status == now:
                self.places[path] = known
            elif not stat.S_ISDIR(status.st_mode):
                content = _content(path, status)
                self.places[path] = Place(status.st_mode, content, () if _is_recent(status) else now, status.st_size)


def _listing(root: str, folder: str, before: Listing | None) -> Listing | None:
    """Return the listing of a folder, or the earlier one while no name came or went; None if it cannot be read."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    now = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    if before is not None and before.status == now:
        return before
    folders, later, private, names = list[str](), list[str](), dict[str, int](), set[str]()
    inner = folder[len(root.rstrip("/")) + 1 :]
    is_special = "/." in f"/{inner}" or folder.endswith("/bin")
    for entry in _listed(folder):
        names.add(entry.name)
        if _is_folder(entry):
            if entry.name not in REMADE:
                folders.append(entry.path)
            continue
        may_be_later = is_special or entry.name.startswith(".") or entry.name.endswith(".code-workspace")
        if may_be_later and kind_of_later(f"{inner}/{entry.name}") in ("workspace", "environment"):
            later.append(entry.path)
        if _has_private_name(entry.name) and not entry.is_symlink():
            private[entry.path] = entry.inode()
    is_of_git = "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
    return Listing(() if _is_recent(status) else now, tuple(folders), tuple(later), private, is_of_git)


def _is_recent(status: os.stat_result) -> bool:
    """Return whether a file or folder may change again within one tick of the clock of its file system."""
    return time.time_ns() - status.st_ctime_ns < JUST_NOW


def _listed(folder: str) -> list["os.DirEntry[str]"]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir(follow_symlinks=False)


_has_private_name = lru_cache(maxsize=65536)(is_private)


def _content(path: str, status: os.stat_result) -> bytes:
    """Return the content of a file, or the target of a link; nothing for others. Raises OSError."""
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
        return repr(status).encode()
    opened = os.open(path, READ)
    try:
        return os.read(opened, LARGEST)
    finally:
        os.close(opened)


@define(eq=False)
class Guard:
    """Keeps the places that run later in what the commands of an agent may write; the workspace is first in `roots`.

    private: the files with names of secrets that git does not track and no command has made, as of the last look.
    lasting: the agents of which processes in the background may be alive. All methods block, in any thread.
    """

    roots: tuple[str, ...]
    private: tuple[str, ...] = field(default=(), init=False)
    _walk: Walk = field(factory=Walk, init=False)
    _known: dict[str, Place] = field(factory=dict, init=False)
    _named_private: dict[str, int] = field(factory=dict, init=False)
    _made: set[tuple[str, int]] = field(factory=set, init=False)
    _granted: list[str] = field(factory=list, init=False)
    _running: int = field(default=0, init=False)
    lasting: set[int] = field(factory=set, init=False)
    _top: str = field(default="", init=False)
    _common: tuple[str, ...] = field(default=(), init=False)  # the folder of git that worktrees share
    _commits: tuple[str, ...] = field(default=(), init=False)  # from before: the agent may commit what it plants
    _lock: RLock = field(factory=RLock, init=False)

    def __attrs_post_init__(self) -> None:
        self._top = repository_root(self.roots[0])
        self._common = git_folders(self.roots[0])[-1:]
        if self._common:
            commits = self._git("rev-parse", "--all", "HEAD") or self._git("rev-parse", "--all")
            self._commits = tuple(commits.split())
        self.accept()

    def accept(self, *paths: str) -> None:
        """Take these places as they are, or all of them."""
        with self._lock:
            now = self._look()
            others = {path: place for path, place in self._known.items() if path not in paths} if paths else {}
            self._known = {**others, **{path: now[path] for path in paths or now if path in now}}

    def begin(self, rights: Iterable[str] = ()) -> bool:
        """Begin a command; return whether other processes of the run may have changed places since the last look."""
        with self._lock:
            self._granted.extend(right.removeprefix(WRITE) for right in rights if right.startswith(WRITE))
            self._running += 1
            return self._running > 1 or bool(self.lasting)

    def end(self) -> None:
        """End a command; rights hold on while processes in the background may be alive."""
        with self._lock:
            self._running -= 1
            if not (self._running or self.lasting):
                self._granted.clear()

    def refused(self) -> tuple[str, ...]:
        """Return the places that have changed and may not stay so."""
        with self._lock:
            now = self._look(by_commands=True)
            differ = (path for path in {**self._known, **now} if self._known.get(path) != now.get(path))
            refused = tuple(path for path in differ if not self._may_stay(path, self._known.get(path), now.get(path)))
            self._known = now if not refused else self._known
            return refused

    def put_back(self, paths: Iterable[str], *, asks: bool = True) -> list[str]:
        """Make places what they were before; return lines for the model and the user about that.

        asks: the user can be asked for the right.
        """
        left = dict[str, str]()
        with self._lock:
            for path in paths:
                try:
                    self._restore(path, self._known.get(path))
                except (OSError, ToolError, Changed) as error:
                    left[path] = str(error)
            self.accept()
        return [*_told(paths, left, asks=asks)]

    def _look(self, *, by_commands: bool = False) -> dict[str, Place]:
        self._walk.over(self.roots)
        walk, inodes = self._walk, {*self._named_private.values()}
        if by_commands:  # what was renamed keeps its inode
            self._made |= {each for each in walk.private.items() if each[1] not in inodes}
        self._made &= walk.private.items()
        self._named_private = walk.private
        self.private = tuple(self._untracked(walk.private.keys() - {path for path, _ in self._made}))
        return walk.places

    def _untracked(self, paths: Collection[str]) -> Iterator[str]:
        """Yield the files that git does not track, in the repository that each is in."""
        tops = {path: repository_root(os.path.dirname(path)) for path in sorted(paths)}
        for top in {*tops.values()}:
            named = [os.path.relpath(path, top) for path in tops if tops[path] == top] if top else []
            listed = self._git("ls-files", "-z", "--", *named, top=top) if named else ""
            tracked = {os.path.join(top, each) for each in listed.split("\0")}
            yield from (path for path in tops if tops[path] == top and path not in tracked)

    def _may_stay(self, path: str, old: Place | None, new: Place | None) -> bool:
        folder, name = os.path.split(path)
        if any(is_within(path, granted) for granted in self._granted):
            return True
        if new is None:
            return not os.path.isdir(folder) or self._is_remade(path) or self._was_committed(path, old)
        if os.path.exists(os.path.join(folder, "HEAD")) and name in OF_GIT:
            return new.content.strip() == COMMON if name == "commondir" else self._run_nothing(old, new)
        if name == ".git":
            return any(is_within(followed(path), root) for root in self.roots)
        return (old is None and self._is_remade(path)) or self._was_committed(path, new)

    def _is_remade(self, path: str) -> bool:
        return kind_of_later(path) == "environment"

    def _run_nothing(self, old: Place | None, new: Place) -> bool:
        """Return whether a file of settings differs in those only that run nothing."""
        before = self._settings(old) if old is not None else frozenset[str]()
        after = self._settings(new)
        return before is not None and after is not None and all(map(is_plain_setting, after - before))

    def _settings(self, place: Place) -> frozenset[str] | None:
        """Return the settings in a file, each as key, line break and value; None if git cannot read them."""
        said = self._git("config", "--file", "-", "--no-includes", "--null", "--list", given=place.content)
        return frozenset(said.split("\0")) - {""} if said or not place.content.strip() else None

    def _was_committed(self, path: str, place: Place | None) -> bool:
        """Return whether a file had this content in a commit from before the agent began."""
        top = repository_root(os.path.dirname(path))
        if place is None or not stat.S_ISREG(place.mode) or git_folders(top)[-1:] != self._common:
            return False
        blob = b"blob %d\0" % len(place.content) + place.content
        names = {sha1(blob, usedforsecurity=False).hexdigest(), sha256(blob).hexdigest()}
        inner = os.path.relpath(path, top)
        asked = os.fsencode("\n".join((*self._commits, "--", inner, "")))  # an empty line would end it
        listed = self._git("rev-list", "--objects", "--stdin", given=asked)
        return not names.isdisjoint(line.removesuffix(f" {inner}") for line in listed.splitlines())

    def _git(self, *words: str, given: bytes = b"", top: str = "") -> str:
        """Return what git says, none of the settings of a repository running; empty if it fails."""
        program = find_program("git", self.roots)
        if program is None:
            return ""
        where = top or self._top or "/"
        done = subprocess.run(
            [program, *QUIET, *words], cwd=where, env=BARE, input=given, capture_output=True, check=False
        )
        return os.fsdecode(done.stdout) if done.returncode == 0 else ""

    def _restore(self, path: str, old: Place | None) -> None:
        """Make a place what it was. Raises OSError, ToolError and Changed, also where a link leads elsewhere."""
        folder, name = os.path.split(path)
        root = next(root for root in self.roots if is_within(path, root))
        if old is not None and old.size > LARGEST:
            raise OSError("it is too large")
        handle = open_real(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, "directory")
        try:
            _remove(name, handle)
            if old is not None and stat.S_ISLNK(old.mode):
                os.symlink(old.content, name, dir_fd=handle)
        finally:
            os.close(handle)
        if old is not None and stat.S_ISREG(old.mode):
            with Workspace(root, denied=()).open_write(path) as file:
                file.write(old.content)
                os.fchmod(file.fileno(), stat.S_IMODE(old.mode))


def _remove(name: str, folder: int) -> None:
    """Remove a file; a folder in its place is renamed. Raises OSError."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        os.rename(name, f"{name}-{os.urandom(4).hex()}", src_dir_fd=folder, dst_dir_fd=folder)


def _told(paths: Iterable[str], left: Mapping[str, str], *, asks: bool) -> Iterator[str]:
    """Yield lines for the model and the user about places that were put back, or `left`, and why."""
    back = sorted(set(paths) - left.keys())
    if back:
        ask = f'; if it is necessary, ask the user for it: give the command again with rights=["{WRITE}{back[0]}"]'
        yield f"[put back, since it runs later with the user's rights: {', '.join(back)}{ask if asks else ''}]"
    for path, why in left.items():
        yield f"[changed, runs later with the user's rights, and could not be put back: {path}: {why}]"


QUIET = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*", "--no-replace-objects",
    "--literal-pathspecs",
)  # fmt: skip
BARE = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
}  # fmt: skip


@cache
def _plain(key: str) -> re.Pattern[str]:
    table = tomllib.loads(Path(__file__).with_name("git_settings.toml").read_text())
    return re.compile("|".join(table[key].split()))


def is_plain_setting(setting: str) -> bool:
    """Return whether a setting, as `git config --null --list` has it, makes no command of git run something."""
    key, _, value = setting.partition("\n")
    is_address = _plain("addresses").fullmatch(key) and _plain("address").fullmatch(value)
    return _plain("keys").fullmatch(key) is not None or is_address is not None
