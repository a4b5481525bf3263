"""A workspace as it was at a snapshot, in a folder of its own: prepared beside, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent.tools.snapshots.store import Snapshot
from agent.tools.snapshots.trees import Entry, SnapshotError, Trees


def make_worktree(snapshot: Snapshot, root: str, folder: Path) -> tuple[str, ...]:
    """Write the workspace `root` as it was at a snapshot into a new or empty folder; return what was not kept.

    Raises SnapshotError, and then the folder is as it was.
    """
    place = Path(os.path.realpath(folder))
    _check_free(place, root)
    staging = ""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        staging = tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent)
        unkept = _fill(snapshot, Path(staging))
        os.rename(staging, place)
    except OSError as error:
        raise SnapshotError(f"no copy was made: {error.filename}: {error.strerror}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return unkept


def _check_free(place: Path, root: str) -> None:
    if place.is_relative_to(root):
        raise SnapshotError(f"{place} is in the workspace {root}; name a folder outside of it")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise SnapshotError(f"{place} is not empty; name a new folder")


def _fill(snapshot: Snapshot, staging: Path) -> tuple[str, ...]:
    """Write all entries, then give folders their modes and times, the inner ones first."""
    folders, unkept = [("", snapshot.tree)], []
    for path, entry in _entries(snapshot.trees, "", snapshot.tree):
        if not entry.content:
            unkept.append(path)
        elif entry.is_folder:
            folders.append((path, entry))
            (staging / path).mkdir(0o700)
        else:
            snapshot.trees.make(entry, str(staging / path))
    for path, entry in reversed(folders):
        os.utime(staging / path, ns=(entry.mtime, entry.mtime))
        os.chmod(staging / path, entry.mode & 0o7777)
    return tuple(unkept)


def _entries(trees: Trees, above: str, tree: Entry) -> Iterator[tuple[str, Entry]]:
    """Yield what is below a folder, with its path, without further roots; each folder comes before what is in it."""
    for name, entry in sorted(trees.entries(tree.content).items()):
        if name.startswith("/"):
            continue
        yield above + name, entry
        if entry.is_folder and entry.content:
            yield from _entries(trees, f"{above}{name}/", entry)
