"""The snapshots of one workspace: taken under a lock, each under a name of its own, the oldest removed at a limit."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC, EROFS
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

from attrs import evolve, field, frozen

from agent.tools.output import size_in_words
from agent.tools.snapshots.objects import LARGE, Objects
from agent.tools.snapshots.trees import (
    MADE_AGAIN,
    Entry,
    SnapshotError,
    TooLargeError,
    Trees,
    Walk,
    is_below,
    refused_file_system,
)

LIMIT = 2_000_000_000  # bytes of all snapshots of a workspace
AGREED = "left-out.json"  # in the folder of a store: the paths that a user has left out
PATIENCE = 60.0  # seconds until a lock that another process holds is given up

Moment = Literal["before", "after", "undo"]
"""The moment of a snapshot: before calls, after a call, or before an undo."""


@frozen
class Snapshot:
    """A workspace as it was at one moment. `name` is that of the run and a number.

    calls: the ids of the calls before or after which it was taken. background: whether processes of the run were alive.
    made_again: folders that were left out, since a tool can make them again. unkept: what could not be kept, and why.
    told: what else a user has to know.
    """

    name: str
    moment: Moment
    calls: tuple[str, ...]
    tree: Entry
    time: float
    background: bool = False
    made_again: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    trees: Trees = field(eq=False, repr=False, kw_only=True)

    def has(self, path: str) -> bool:
        """Return whether there was a file or folder of this path in the workspace. Raises SnapshotError."""
        return self.trees.find(self.tree, path) is not None

    def read(self, path: str) -> bytes:
        """Return what was in a file, by its path in the workspace. Raises SnapshotError."""
        entry = self.trees.find(self.tree, path)
        if entry is None or not entry.is_file or not entry.content:
            raise SnapshotError(f"the snapshot {self.name!r} has no file {path!r}")
        return os.fsencode(entry.content) if entry.is_link else self.trees.read(entry.content)


class Snapshots:
    """The snapshots of the workspace `root`, in a folder below `home` that only this user may open.

    further: folders outside of it that are kept, too, where they are there.
    """

    def __init__(
        self, root: str | os.PathLike[str], home: Path, *, further: Iterable[str] = (),
        exclude: tuple[str, ...] = tuple(MADE_AGAIN), limit: int = LIMIT,
    ) -> None:  # fmt: skip
        self.root = os.path.realpath(root)
        others = dict.fromkeys(os.path.realpath(os.path.expanduser(path)) for path in further)
        self.roots = (self.root, *(path for path in others if not is_below(path, self.root)))  # what is kept
        digest = sha256(os.fsencode(self.root)).hexdigest()[:16]
        self.folder = home / "snapshots" / f"{quote(os.path.basename(self.root)) or 'root'}-{digest}"
        self._refs = self.folder / "refs" / "snapshots"
        self._exclude, self._limit = (*exclude, *self._agreed()), limit
        self._latest = ("", "")  # the content of the tree of the latest snapshot of this process, and its name

    @classmethod
    def under(cls, options: Mapping[str, Any], root: str | os.PathLike[str], home: Path) -> "Snapshots":
        """Return the snapshots of a workspace under the options of a preset."""
        further = options.get("allowed_paths", ()) if options.get("bounded") else ()
        exclude = tuple(options.get("snapshot_exclude", MADE_AGAIN))
        return cls(root, home, further=further, exclude=exclude)

    def take(
        self, run: str, moment: Moment, calls: tuple[str, ...] = (), *, background: bool = False,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> Snapshot:  # fmt: skip
        """Keep the workspace as it is now. Raises SnapshotError, and then nothing is lost or left behind."""
        with explained(self.folder), self._locked(is_cancelled):
            self._check()
            trees, before = self._known()
            own = [os.stat(path) for path in (str(self.folder.parent), *self.roots) if os.path.isdir(path)]
            with trees.objects.writing() as pack:
                walk = Walk(
                    trees, pack, exclude=self._exclude, budget=self._limit,
                    own={(each.st_dev, each.st_ino) for each in own}, is_cancelled=is_cancelled,
                )  # fmt: skip
                tree = self._checked(walk, before)
                name = self._next(run)
                told = tuple(walk.made_again), tuple(walk.unkept)
                taken = Snapshot(name, moment, calls, tree, time.time(), background, *told, trees=trees)
                content = pack.add(_written(taken))
            self._refer(name, content)
            trees.objects.tidy()
            trees.known = walk.known
            self._latest = tree.content, name
            dropped = self._make_room(name)
            return evolve(taken, told=(dropped,)) if dropped else taken

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names and absolute paths that the user leaves out."""
        named = [name for name in self._exclude if name not in MADE_AGAIN]
        return tuple(os.path.normpath(os.path.join(self.root, name)) if "/" in name else name for name in named)

    def leave_out(self, paths: Iterable[str]) -> None:
        """Leave paths of the workspace out of all later snapshots, those of later runs included."""
        self._exclude = (*self._exclude, *paths)
        with explained(self.folder), self._locked():
            agreed = self.folder / AGREED
            agreed.write_text(json.dumps([*dict.fromkeys((*self._agreed(), *paths))]))

    def _agreed(self) -> list[str]:
        """Return the paths that are left out with the user's consent."""
        try:
            return list(json.loads((self.folder / AGREED).read_text()))
        except (OSError, ValueError):
            return []

    def get(self, name: str) -> Snapshot:
        """Return a snapshot by its name. Raises SnapshotError for one that is not there."""
        with explained(self.folder):
            trees = self._opened()
            try:
                content = trees.objects.read(self._ref(name).read_text().strip())
            except (OSError, KeyError, ValueError) as error:
                known = ", ".join(self.names(name.rpartition("/")[0])) or "none"
                raise SnapshotError(f"there is no snapshot {name!r} of {self.root}; there are: {known}") from error
            return _parsed(content, trees)

    def names(self, run: str) -> list[str]:
        """Return the names of a run's snapshots, the oldest first."""
        folder = self._refs / quote(run, safe="")
        numbers = sorted(os.listdir(folder)) if folder.is_dir() else []
        return [f"{run}/{number}" for number in numbers if number.isdigit()]

    def runs(self) -> list[str]:
        """Return the runs that have snapshots."""
        return sorted(unquote(folder.name) for folder in self._refs.iterdir()) if self._refs.is_dir() else []

    def remove(self, *runs: str) -> None:
        """Remove the snapshots of runs, and at once all that only they have kept. Raises SnapshotError."""
        if not self.folder.is_dir():
            return
        with explained(self.folder), self._locked():
            for run in runs:
                for name in self.names(run):
                    self._ref(name).unlink()
                if (folder := self._refs / quote(run, safe="")).is_dir():
                    folder.rmdir()
            self._collect()

    # Names.

    def _ref(self, name: str) -> Path:
        run, _, number = name.rpartition("/")
        return self._refs / quote(run, safe="") / number

    def _next(self, run: str) -> str:
        latest = self.names(run)[-1:]
        return f"{run}/{int(latest[0].rpartition('/')[2]) + 1 if latest else 1:06}"

    def _refer(self, name: str, content: str) -> None:
        ref = self._ref(name)
        ref.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = ref.with_name("new")
        new.write_text(f"{content}\n")
        new.rename(ref)

    def _by_age(self) -> list[Path]:
        refs = (ref for ref in self._refs.glob("*/*") if ref.name.isdigit())
        return sorted(refs, key=lambda ref: (ref.stat().st_mtime_ns, ref.name))

    # The store.

    def _checked(self, walk: Walk, before: str) -> Entry:
        """Return the tree of the workspace, of which the size is looked at the first time. Raises TooLargeError."""
        names = [] if before else largest(self.root, self._exclude, self._limit)
        if not names:
            try:
                return walk.tree(self.roots, before)
            except TooLargeError:
                names = largest(self.root, self._exclude, self._limit)
        paths = tuple(f"./{name}" for name in names)
        error = TooLargeError(
            f"{self.root} has more than {size_in_words(self._limit)} that would have to be kept; to leave the "
            f"largest out: --option snapshot_exclude={','.join(paths) or 'PATH,...'}"
        )
        error.leave_out = paths
        raise error

    def _check(self) -> None:
        """Raise SnapshotError for a workspace that is not kept."""
        for root in self.roots:
            if root != self.root and root in ("/", os.path.realpath(os.path.expanduser("~"))):
                raise SnapshotError(
                    f"one of allowed_paths is {root}, and is not kept as a whole; begin in a smaller folder, or do "
                    "without snapshots (option snapshots=false)"
                )
        for place in (*filter(os.path.isdir, self.roots), str(self.folder)):
            if why := refused_file_system(place, os.stat(place).st_dev):
                raise SnapshotError(f"{place} {why}, where snapshots are not safe; move it to a local disk")

    @cached_property
    def _trees(self) -> Trees:
        return Trees(Objects(self.folder))

    def _opened(self) -> Trees:
        self._trees.objects.refresh()
        return self._trees

    def _known(self) -> tuple[Trees, str]:
        """Return what is known of the latest snapshot, and the content of its tree."""
        trees = self._opened()
        if not self._latest[1] or not self._ref(self._latest[1]).exists():
            trees.forget()
            latest = self._by_age()[-1:]
            name = f"{unquote(latest[0].parent.name)}/{latest[0].name}" if latest else ""
            self._latest = self.get(name).tree.content if name else "", name
        return trees, self._latest[0]

    @contextmanager
    def _locked(self, is_cancelled: Callable[[], bool] = lambda: False) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        until = time.monotonic() + PATIENCE
        with open(self.folder / "lock", "a") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if is_cancelled() or time.monotonic() > until:
                        raise SnapshotError(f"another process has held {self.folder / 'lock'} too long") from None
                    time.sleep(0.02)
            yield

    def _make_room(self, newest: str) -> str:
        """Remove the oldest snapshots while all take more than the limit; return what to say about it."""
        if not self._is_too_large():
            return ""
        first = self.names(newest.rpartition("/")[0])[0]
        droppable = [ref for ref in self._by_age() if ref not in (self._ref(newest), self._ref(first))]
        dropped = 0
        while droppable and self._is_too_large():
            for ref in droppable[: len(droppable) // 4 + 1]:
                ref.unlink()
                dropped += 1
            droppable = droppable[len(droppable) // 4 + 1 :]
            self._collect()
        return f"removed the {dropped} oldest snapshots: all together had more than {size_in_words(self._limit)}"

    def _is_too_large(self) -> bool:
        if self._trees.objects.size() <= self._limit:
            return False
        folders = self._trees.known.values()
        current = {entry.content for folder in folders for entry in folder.values() if entry.size >= LARGE}
        return self._trees.objects.real_size(current) > self._limit

    def _collect(self) -> None:
        """Remove what no snapshot has kept."""
        trees = self._opened()
        trees.objects.keep_only(self._reachable(Trees(trees.objects)))
        if not self._ref(self._latest[1]).exists():
            trees.forget()

    def _reachable(self, trees: Trees) -> set[str]:
        reached = set[str]()
        for ref in self._by_age():
            content = ref.read_text().strip()
            reached.add(content)
            folders = [_parsed(trees.objects.read(content), trees).tree.content]
            while folders:
                folder = folders.pop()
                if folder not in reached:
                    reached.add(folder)
                    for entry in trees.entries(folder).values():
                        (folders.append if entry.is_folder and entry.content else reached.add)(entry.content)
        return reached


def largest(root: str, exclude: Container[str], limit: int) -> list[str]:
    """Return the largest entries of a folder, those without which the rest has no more than `limit` bytes.

    Large files are not counted: what is too much of them is left out one by one.
    """
    device = os.stat(root).st_dev
    with os.scandir(root) as listed:
        sizes = {each.name: _size(each, exclude, device) for each in listed if f"./{each.name}" not in exclude}
    names, left = sorted(sizes, key=lambda name: sizes[name]), sum(sizes.values())
    chosen: list[str] = []
    while left > limit:
        chosen.append(names.pop())
        left -= sizes[chosen[-1]]
    return chosen


def _size(entry: os.DirEntry[str], exclude: Container[str], device: int) -> int:
    """Return the bytes of a file, or of those in a folder; nothing for what is on another device or cannot be read."""
    try:
        status = entry.stat(follow_symlinks=False)
        if status.st_dev != device or entry.name in exclude:
            return 0
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as below:
                return sum(_size(each, exclude, device) for each in below)
        return status.st_size if entry.is_file(follow_symlinks=False) and status.st_size < LARGE else 0
    except OSError:
        return 0


@contextmanager
def explained(place: str | Path, what: str = "") -> Iterator[None]:
    """Raise SnapshotError for an OSError: what was not done, the file or else the place, why, and the cure."""
    try:
        yield
    except OSError as error:
        full = error.errno in (ENOSPC, EDQUOT)
        cures = {EROFS: "it is read-only", ENOSPC: "the disk is full", EDQUOT: "the disk quota is used up"}
        cure = "; make room, or move BPAGENT_HOME" if full else ""
        why = cures.get(error.errno or 0, error.strerror or str(error))
        name = error.filename if isinstance(error.filename, str) and "/" in error.filename else place
        raise SnapshotError(f"{what}{name}: {why}{cure}") from error


def _written(snapshot: Snapshot) -> bytes:
    rows = {name: getattr(snapshot, name) for name in KEPT}
    return json.dumps(rows, indent=1).encode()


KEPT = ("name", "moment", "calls", "tree", "time", "background", "made_again", "unkept")
LISTS = ("calls", "made_again", "unkept")


def _parsed(content: bytes, trees: Trees) -> Snapshot:
    rows = json.loads(content)
    lists = {name: tuple(rows[name]) for name in LISTS}
    return Snapshot(**{**rows, **lists, "tree": Entry(*rows["tree"])}, trees=trees)
