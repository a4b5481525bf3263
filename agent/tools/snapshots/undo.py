"""Changes between two snapshots, who made them, and undoing them."""

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from typing import Literal

from attrs import field, frozen

from agent.tools.snapshots.store import Snapshot, Snapshots, explained
from agent.tools.snapshots.trees import FOLDER, NOTHING, Entry, SnapshotError, Trees, is_below, root_of

Kind = Literal["new", "deleted", "changed"]
CUT_OFF = ("a call that was cut off",)
UNDO = ("undo",)
"""The calls of the snapshots before and after an undo."""


@frozen
class Change:
    """A path in the workspace, or an absolute one in a further root, that differs. None: it was not there.

    by: the ids of the calls that changed it, "background" for a process of the run; empty: no call of this run did.
    """

    path: str
    before: Entry | None
    after: Entry | None
    by: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind | None:
        """The way in which the file has changed; None for folders, and where only times differ."""
        before, after = (entry if entry is not None and not entry.is_folder else None for entry in self.sides)
        if before is None or after is None:
            return "new" if after is not None else "deleted" if before is not None else None
        return None if has_same_bytes(before, after) else "changed"

    @property
    def is_unkept(self) -> bool:
        """True if what was there, or would have to go, was not kept."""
        was_kept = self.before is None or bool(self.before.content)
        return not was_kept or (self.after is not None and self.after.is_unkept)

    @property
    def is_of_times(self) -> bool:
        """True for a folder in which something has changed, and that is itself as it was."""
        return _is_folder(self.before) and _is_folder(self.after) and has_same_mode(*self.sides)

    @property
    def sides(self) -> tuple[Entry | None, Entry | None]:
        """Before and after."""
        return self.before, self.after


def has_same_mode(one: Entry | None, other: Entry | None) -> bool:
    """Return whether both are of the same kind and mode."""
    return one is not None and other is not None and one.mode == other.mode


def has_same_bytes(one: Entry | None, other: Entry | None) -> bool:
    """Return whether both are missing, folders, or files of the same content and mode."""
    if one is None or other is None:
        return one is other
    return (one.is_folder and other.is_folder) or (one.mode, one.content) == (other.mode, other.content)


def changes(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Return all that differs between two snapshots of a workspace, by path; folders and times as well."""
    return tuple(_differences(before.trees, "", before.tree, after.tree))


def _differences(trees: Trees, path: str, one: Entry | None, other: Entry | None) -> Iterator[Change]:
    is_equal = one is not None and other is not None and (one.mode, one.mtime) == (other.mode, other.mtime)
    if is_equal and one is not None and other is not None and one.content == other.content:
        return
    is_folder = one is not None and one.is_folder
    is_unkept = any(entry is not None and entry.is_unkept for entry in (one, other))
    if not is_equal or not is_folder or is_unkept:
        yield Change(path, one, other)
    if is_unkept:
        return
    olds, news = (
        trees.entries(each.content) if each is not None and each.is_folder else NOTHING for each in (one, other)
    )
    for name in sorted({*olds, *news}):
        yield from _differences(trees, f"{path}/{name}" if path else name, olds.get(name), news.get(name))


def changes_since(snapshots: Snapshots, first: str, last: str | None = None) -> dict[str, Change]:
    """Return what changed since a snapshot of a run until its `last` one, by path, with who changed it last.

    Between a call and the next snapshot only background processes of the run count as the agent's.
    """
    run = first.rpartition("/")[0]
    chain = [snapshots.get(name) for name in snapshots.names(run) if first <= name <= (last or name)]
    total = dict[str, Change]()
    for one, other in pairwise(chain):
        by = other.calls if other.moment == "after" else one.calls or CUT_OFF
        if one.moment == "after" and other.moment != "after":
            by = ("background",) if one.background or other.background else ()
        for change in changes(one, other):
            earlier = total.get(change.path, change)
            by_now = earlier.by if change.is_of_times and change.path in total else by
            total[change.path] = Change(change.path, earlier.before, change.after, by_now)
    return total


@frozen
class Undone:
    """The result of an undo: the paths that are as they were, those left and why, and the snapshot that undoes it.

    repositories: those whose branches and HEAD were not moved back. pushed: branches of other places that had moved.
    """

    restored: tuple[str, ...]
    left: Mapping[str, str]
    before: str
    repositories: tuple[str, ...] = ()
    pushed: tuple[str, ...] = ()


def undo(
    snapshots: Snapshots, name: str, *, paths: Collection[str] = (), force: bool = False, git: bool = False
) -> Undone:
    """Make the workspace, or some paths of it, what it was at a snapshot; take a snapshot before.

    A path changes only if its bytes are those after the last call that touched it, or by `force`. What is below `.git`
    changes only with `git`, or if the repository is damaged. Raises SnapshotError; an undo that was cut off is finished
    first.
    """
    finish(snapshots)
    target = snapshots.get(name)
    now = snapshots.take(name.rpartition("/")[0], "undo", UNDO)
    since = changes_since(snapshots, name)
    differing = {each.path: each for each in changes(target, now) if _is_chosen(each, paths)}
    spared = set() if git else _spared_repositories(differing)
    left, plan = dict[str, str](), dict[str, Change]()
    for path, change in differing.items():
        touched = since.get(path)
        if any(is_below(path, repository) for repository in spared):
            continue
        if change.is_unkept:
            left[path] = "was not kept"
        elif not force and change.is_of_times and (touched is None or not touched.by):
            continue
        elif force or (touched is not None and touched.by and has_same_bytes(touched.after, change.after)):
            plan[path] = change
        else:
            left[path] = "was changed by something else than this run"
    _hold_together(plan, left, now, snapshots.roots)
    if not plan:
        return Undone((), left, now.name, tuple(sorted(spared)))
    journal = _Journal(target.name, now.name, tuple(plan), f".bpagent-undo-{os.urandom(8).hex()}")
    journal.write(snapshots)
    restored = _Restoration(snapshots, journal, target, now, left).carry_out(plan)
    pushed = (path for path in differing if "/refs/remotes/" in f"/{path}" and differing[path].kind)
    return Undone(restored, left, now.name, tuple(sorted(spared)), tuple(pushed))


def finish(snapshots: Snapshots) -> tuple[str, ...]:
    """Finish an undo that was cut off, and return the paths that it restored. Raises SnapshotError."""
    journal = _Journal.read(snapshots)
    if journal is None:
        return ()
    for root in snapshots.roots:
        shutil.rmtree(os.path.join(root, journal.staging), ignore_errors=True)
    target, then = snapshots.get(journal.target), snapshots.get(journal.now)
    now = snapshots.take(target.name.rpartition("/")[0], "undo", UNDO)
    was = {each.path: each.after for each in changes(target, then)}
    plan, left = dict[str, Change](), dict[str, str]()
    for change in changes(target, now):
        is_ours = change.path in journal.paths and change.path in was
        if (is_ours and has_same_bytes(was[change.path], change.after)) or has_same_bytes(*change.sides):
            plan[change.path] = change
        elif is_ours and (change.after is None or change.before is None or change.before.is_folder):
            plan[change.path] = change  # removed already, and not yet made
    _hold_together(plan, left, now, snapshots.roots)
    return _Restoration(snapshots, journal, target, then, left).carry_out(plan)


def _is_chosen(change: Change, paths: Collection[str]) -> bool:
    """Return whether a path is one of those to restore, below one, or a missing folder above one."""
    if not paths or any(is_below(change.path, path) for path in paths):
        return True
    is_missing = change.before is not None and change.before.is_folder and change.after is None
    return is_missing and any(is_below(path, change.path) for path in paths)


def _spared_repositories(differing: Mapping[str, Change]) -> set[str]:
    """Return the `.git` folders that have changed, were there before, and are whole."""
    found = dict[str, bool]()
    for path, change in differing.items():
        above, git, below = f"/{path}/".partition("/.git/")
        if git:
            folder, below = f"{above}/.git".lstrip("/"), below.rstrip("/")
            is_lost = below in ("", "HEAD", "config", "objects", "refs") and None in change.sides
            is_lost = is_lost or (
                change.after is None and below.startswith("objects/") and not _is_packed(folder, differing)
            )
            found[folder] = found.get(folder, True) and not is_lost
    return {folder for folder, is_whole in found.items() if is_whole}


def _is_packed(folder: str, differing: Mapping[str, Change]) -> bool:
    """Return whether git has made a new pack of objects, which then are no files of their own any more."""
    packs = (path for path in differing if path.startswith(f"{folder}/objects/pack/") and path.endswith(".pack"))
    return any(differing[path].before is None for path in packs)


def _hold_together(plan: dict[str, Change], left: dict[str, str], now: Snapshot, roots: Collection[str]) -> None:
    """Leave the folders that would not become empty, and what has no folder to be in."""
    for path in sorted(plan, reverse=True):
        change = plan[path]
        becomes_none = change.after is not None and change.after.is_folder and not _is_folder(change.before)
        if becomes_none and any(other != path and is_below(other, path) for other in left):
            left[path] = "holds something that is left"
            del plan[path]
    for path in sorted(plan):
        above = os.path.dirname(path)
        there = plan[above].before if above in plan else now.trees.find(now.tree, above)
        if plan[path].before is not None and not _is_folder(there) and path not in roots:
            left[path] = "its folder is not there any more"
            del plan[path]


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry.is_folder


@frozen
class _Journal:
    """The plan of an undo, on disk, so that it can be finished after it was cut off."""

    target: str
    now: str
    paths: tuple[str, ...]
    staging: str

    def write(self, snapshots: Snapshots) -> None:
        new = snapshots.folder / "undo.new"
        new.write_text(json.dumps([self.target, self.now, self.paths, self.staging]))
        new.replace(snapshots.folder / "undo.json")

    @classmethod
    def read(cls, snapshots: Snapshots) -> "_Journal | None":
        try:
            target, now, paths, staging = json.loads((snapshots.folder / "undo.json").read_text())
        except FileNotFoundError:
            return None
        return cls(target, now, tuple(paths), staging)

    def remove(self, snapshots: Snapshots) -> None:
        (snapshots.folder / "undo.json").unlink(missing_ok=True)


@frozen
class _Restoration:
    """Carries out a plan: new files are made beside, then what is too much goes, then they are renamed into place."""

    snapshots: Snapshots
    journal: _Journal
    target: Snapshot
    then: Snapshot
    left: dict[str, str]
    files: dict[str, tuple[str, int]] = field(factory=dict, init=False)  # by path: the new file's name and folder

    def carry_out(self, plan: Mapping[str, Change]) -> tuple[str, ...]:
        """Return the paths that are restored. Raises SnapshotError where the new files cannot be made."""
        files = {path: each.before for path, each in plan.items() if each.before and not each.before.is_folder}
        try:
            with explained(self.snapshots.root, "nothing was undone: "), ExitStack() as stack:
                roots = {self._root_of(path) for path in files}
                staging = {root: stack.enter_context(self._staging(root)) for root in roots}
                for number, (path, entry) in enumerate(files.items()):
                    self.files[path] = str(number), staging[self._root_of(path)]
                    self.target.trees.make(entry, *self.files[path])
                self._each(sorted(plan, reverse=True), lambda path: self._remove(plan[path]))
                self._each(sorted(plan), lambda path: self._place(plan[path]))
        except SnapshotError:
            self.journal.remove(self.snapshots)
            raise
        folders = {above for path in {"", *plan, *self.journal.paths} for above in (path, os.path.dirname(path))}
        self._each(sorted(folders, reverse=True), self._finish_folder)
        self.journal.remove(self.snapshots)
        self.snapshots.take(self.target.name.rpartition("/")[0], "after", UNDO)
        return tuple(path for path, change in plan.items() if path not in self.left and not change.is_of_times)

    def _each(self, paths: Iterable[str], act: Callable[[str], None]) -> None:
        for path in paths:
            if path not in self.left:
                try:
                    act(path)
                except OSError as error:
                    self.left[path] = error.strerror or str(error)

    def _root_of(self, path: str) -> str:
        return root_of(path, self.snapshots.roots) or self.snapshots.root

    @contextmanager
    def _staging(self, root: str) -> Iterator[int]:
        """Yield a new folder on the file system of a root."""
        path = os.path.join(root, self.journal.staging)
        os.makedirs(path, 0o700)
        staging = os.open(path, FOLDER)
        try:
            yield staging
        finally:
            os.close(staging)
            shutil.rmtree(path, ignore_errors=True)

    def _remove(self, change: Change) -> None:
        """Remove what is there and must not be, or is a folder where there is to be none, or the reverse."""
        if change.after is None or (
            change.before is not None and not change.after.is_folder and not change.before.is_folder
        ):
            return
        if change.before is None or not change.before.is_folder or not change.after.is_folder:
            with self._folder_of(change.path) as (folder, name):
                _check_unchanged(folder, name, change.after)
                (os.rmdir if change.after.is_folder else os.unlink)(name, dir_fd=folder)

    def _place(self, change: Change) -> None:
        if change.before is None or not change.path:
            return
        with self._folder_of(change.path) as (folder, name):
            if change.path in self.files:
                if change.after is None or not change.after.is_folder:
                    _check_unchanged(folder, name, change.after)
                new, staging = self.files[change.path]
                os.rename(new, name, src_dir_fd=staging, dst_dir_fd=folder)
            elif not _is_folder(change.after):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)

    def _finish_folder(self, path: str) -> None:
        """Give a folder its mode and time: those at the snapshot, or those before the undo if it is no part of it."""
        snapshot = self.target if path in self.journal.paths else self.then
        entry = self.target.trees.find(snapshot.tree, path)
        if _is_folder(entry) and entry is not None:
            with suppress(FileNotFoundError, NotADirectoryError), self._folder_at(path) as folder:
                os.fchmod(folder, entry.mode & 0o7777)
                os.utime(folder, ns=(entry.mtime, entry.mtime))

    @contextmanager
    def _folder_at(self, path: str) -> Iterator[int]:
        """Yield a folder in a root, or the one above it, reached without following a link below the root."""
        root = self._root_of(path)
        is_above = path.startswith("/") and not is_below(path, root)
        handle = os.open(path if is_above else root, FOLDER)
        try:
            for name in () if is_above else filter(None, path.removeprefix(root).split("/")):
                inner = os.open(name, FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _folder_of(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the folder that holds a path, and the name in it; the folder can be written."""
        above, _, name = path.rpartition("/")
        with self._folder_at(above) as folder:
            mode = os.fstat(folder).st_mode
            if mode & 0o300 != 0o300:
                os.fchmod(folder, mode & 0o7777 | 0o300)
            yield folder, name


def _check_unchanged(folder: int, name: str, entry: Entry | None) -> None:
    """Raise OSError if a file has changed since the snapshot before the undo."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    if status is None or entry is None or entry.is_folder:
        if (status is None) != (entry is None) and not (entry is not None and entry.is_folder):
            raise OSError(0, "was changed while it was undone")
        return
    is_same = (status.st_mode, status.st_mtime_ns, status.st_ino) == (entry.mode, entry.mtime, entry.inode)
    if not is_same and entry.is_file:
        raise OSError(0, "was changed while it was undone")
