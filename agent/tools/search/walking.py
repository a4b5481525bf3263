"""Go through a directory and what is below it, in order, leaving out what `.gitignore` files leave out.

Hidden files are there, links are named and never followed. What cannot be looked into is passed over.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from attrs import frozen

from agent.tools.errors import ToolError
from agent.tools.files.operations import Files, Folder
from agent.tools.opening import Entry
from agent.tools.search.ignoring import NOTHING_IGNORED, Ignored, Rule, read_rules

__all__ = ["Found", "walk"]

_MOST_DEPTH = 200
_RULES = ".gitignore"
_MOST_RULE_BYTES = 1 << 20


@frozen(eq=False)
class Found:
    """Something that is no directory, at `path` below the start. It can be opened until the walk goes on."""

    path: str
    is_file: bool
    folder: Folder
    name: str

    def open(self) -> BinaryIO:
        """Return it, open for reading. Raises PathRefused or OSError."""
        return self.folder.open(self.name)


def walk(files: Files, start: str, *, all_files: bool = False) -> Iterator[Found]:
    """Yield everything below `start` that is no directory, sorted by path.

    `.gitignore` files from the root down are heard, unless `all_files`. Raises PathRefused or OSError for a `start`
    that is no directory or may not be looked into.
    """
    ignored = NOTHING_IGNORED if all_files else _rules_above(files, start)
    with files.open_folder(start) as folder:
        yield from _below(folder, "", ignored, all_files)


def _below(folder: Folder, path: str, ignored: Ignored, all_files: bool) -> Iterator[Found]:
    if path.count("/") > _MOST_DEPTH:
        return
    for entry in sorted(folder.entries(), key=_order):
        if not all_files and ignored.leaves_out(entry.name, is_directory=entry.is_directory):
            continue
        if entry.is_directory:
            yield from _inside(folder, entry, path, ignored, all_files)
        else:
            yield Found(path + entry.name, entry.is_file, folder, entry.name)


def _inside(folder: Folder, entry: Entry, path: str, ignored: Ignored, all_files: bool) -> Iterator[Found]:
    with suppress(OSError, ToolError), folder.folder(entry.name) as inner:
        rules = () if all_files else _rules_of(inner)
        yield from _below(inner, f"{path}{entry.name}/", ignored.below(entry.name, rules), all_files)


def _order(entry: Entry) -> str:
    """Directories stand where their paths do: as if their names ended with a /."""
    return f"{entry.name}/" if entry.is_directory else entry.name


def _rules_above(files: Files, start: str) -> Ignored:
    """Return what holds in `start` by the files of the directories from the root to it, and by its own."""
    root, target = files.resolve("."), files.resolve(start)
    names = target[len(root) :].strip("/").split("/") if target.startswith(f"{root.rstrip('/')}/") else []
    base = root if names or target == root else target
    with files.open_folder(base) as folder:
        return _rules_down(folder, names, NOTHING_IGNORED.below("", _rules_of(folder)))


def _rules_down(folder: Folder, names: list[str], ignored: Ignored) -> Ignored:
    if not names:
        return ignored
    with folder.folder(names[0]) as inner:
        return _rules_down(inner, names[1:], ignored.below(names[0], _rules_of(inner)))


def _rules_of(folder: Folder) -> tuple[Rule, ...]:
    with suppress(OSError, ToolError), folder.open(_RULES) as file:
        return read_rules(file.read(_MOST_RULE_BYTES))
    return ()
