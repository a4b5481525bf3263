"""Places that run later (`.envrc`, hooks and settings of git): a change by a command without a right is put back.

They are looked up before and after each command, those that are not there as well, by one walk over what a command may
write. A command may change them by the right `write PATH`, to what was committed before the run began, and settings of
git that run nothing. What a user changes between two commands stays, unless a process of the run was alive.
"""

import os
import re
import stat
import subprocess
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
from constitution.zones import is_private, is_within, kind_of_later

MOST_FOLDERS = 20_000
LARGEST = 1024 * 1024  # bytes of a file that can be put back
REMADE = frozenset(
    ["node_modules", "site-packages", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", "target"]
)
OF_GIT = frozenset(["config", "config.worktree", "commondir"])
COMMON = b"../.."  # what `commondir` of a worktree says
WRITE = "write "  # the right to change a place
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@frozen
class Place:
    """A file or link: its kind and mode, its content or target, and the status by which a change is noticed."""

    mode: int = field(eq=lambda mode: mode & 0o170111)
    content: bytes
    status: tuple[int, ...] = field(eq=False)  # inode, size, times


@define
class Walk:
    """The findings of one walk below folders: places that run later, and files with the names of secrets."""

    before: Mapping[str, Place]
    places: dict[str, Place] = field(factory=dict)
    private: dict[str, int] = field(factory=dict)  # with the inodes

    def over(self, roots: Iterable[str]) -> "Walk":
        """Look at everything below the roots, what is near to them first."""
        roots = tuple(roots)
        folders = deque((root, root) for root in roots)
        for _ in range(MOST_FOLDERS):
            if not folders:
                break
            root, folder = folders.popleft()
            entries = _listed(folder)
            names = {entry.name for entry in entries}
            if "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names):
                folders.extend((root, inner) for inner in self._of_git(folder, entries))
            else:
                folders.extend((root, inner) for inner in self._of_work(root, folder, entries) if inner not in roots)
        return self

    def _of_git(self, folder: str, entries: Iterable["os.DirEntry[str]"]) -> Iterator[str]:
        """Look at a folder of git, and yield those of its submodules and worktrees."""
        for entry in entries:
            if entry.name in OF_GIT or entry.is_symlink():
                self._add(entry)
        for hook in _listed(os.path.join(folder, "hooks")):
            if not hook.name.endswith(".sample"):
                self._add(hook)
        for entry in _listed(os.path.join(folder, "info")):
            if entry.name == "attributes":
                self._add(entry)
        for inner in ("modules", "worktrees"):
            yield from (entry.path for entry in _listed(os.path.join(folder, inner)) if _is_folder(entry))

    def _of_work(self, root: str, folder: str, entries: Iterable["os.DirEntry[str]"]) -> Iterator[str]:
        inner = folder[len(root.rstrip("/")) + 1 :]
        is_special = "/." in f"/{inner}" or folder.endswith("/bin")
        for entry in entries:
            if _is_folder(entry):
                if entry.name not in REMADE:
                    yield entry.path
                continue
            is_later = is_special or entry.name.startswith(".") or entry.name.endswith(".code-workspace")
            if is_later and kind_of_later(f"{inner}/{entry.name}") in ("workspace", "environment"):
                self._add(entry)
            if _has_private_name(entry.name) and not entry.is_symlink():
                self.private[entry.path] = entry.inode()

    def _add(self, entry: "os.DirEntry[str]") -> None:
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            now = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self.before.get(entry.path)
            if known is not None and known.status == now:
                self.places[entry.path] = known
            elif not stat.S_ISDIR(status.st_mode):
                self.places[entry.path] = Place(status.st_mode, _content(entry.path, status), now)


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
    lasts: a process in the background may be alive. All methods block, and are safe in any thread.
    """

    roots: tuple[str, ...]
    private: tuple[str, ...] = field(default=(), init=False)
    _known: dict[str, Place] = field(factory=dict, init=False)
    _named_private: dict[str, int] = field(factory=dict, init=False)
    _made: set[tuple[str, int]] = field(factory=set, init=False)
    _granted: list[str] = field(factory=list, init=False)
    _running: int = field(default=0, init=False)
    lasts: bool = field(default=False, init=False)
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

    def begin(self, rights: Iterable[str] = (), *, are_alive: bool = False) -> bool:
        """Begin a command; return whether others may have changed places since the last look.

        are_alive: processes in the background go on.
        """
        with self._lock:
            others = self._running > 0 or self.lasts
            self._granted.extend(right.removeprefix(WRITE) for right in rights if right.startswith(WRITE))
            self._running, self.lasts = self._running + 1, are_alive
            return others

    def end(self, *, lasts: bool = False) -> None:
        """End a command, or go on without it while it `lasts`, in the background; then its rights hold on."""
        with self._lock:
            self._running, self.lasts = self._running - 1, self.lasts or lasts
            if not (self._running or self.lasts):
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
        walk = Walk(self._known).over(self.roots)
        inodes = {*self._named_private.values()}
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
        if old is not None and old.status[1] > LARGEST:
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
