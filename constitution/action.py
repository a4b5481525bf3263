"""Actions: descriptions of tool calls for the judge.

The caller resolves paths and programs; the judge reads no disk.
"""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import field, frozen

NO_HOME = "/home/.unknown"
"""The default home folder of an action."""

Access = Literal["read", "write", "delete", "list", "execute"]
Category = Literal["read", "write", "admin"]


MOSTLY_ABSENT = {"in the log": "if any"}
"""Metadata of a field that a log leaves out when it is empty."""


class Facts(Mapping[str, str]):
    """An immutable, hashable mapping from text to text."""

    __slots__ = ("_items",)

    def __init__(self, items: "Mapping[str, str] | tuple[tuple[str, str], ...]" = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> str:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._items == dict(other)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Facts({self._items!r})"


NO_FACTS = Facts()


def _facts(items: Mapping[str, str] | tuple[tuple[str, str], ...]) -> Facts:
    return items if isinstance(items, Facts) else Facts(items)


@frozen
class PathUse:
    """A path that a tool will use: as given, and absolute with every link followed by the caller."""

    given: str
    resolved: str
    access: Access


@frozen(cache_hash=True)  # facts are hashed several times in a turn
class Action:
    """One tool call with all facts that the judge needs.

    `command`: shell text; `argv`: a program started without a shell; `paths`: used by a file tool; `urls`: reached over
    the network. `resolved` maps absolute paths of its effects to where their links lead; missing ones are taken
    lexically. `executables` maps program words to files, "" if there is none. `background`: its processes stay after
    the call. `outputs`: a readable folder with long outputs of the run's own commands. `sandbox`: the level of
    confinement, "none" if the machine has no sandbox, empty if none is wanted. `rights`: requested beyond the sandbox;
    `needs`: those without which it would fail. `own`: files and folders of the agent itself, absolute, with links
    followed. `opaque`: the tool's effects are unknown. `contents` maps files that it would run, and that a command
    could have changed, to digests of their content. `kept`: folders, absolute and with links followed, of which a
    snapshot is taken before the call starts, so that every change in them can be undone, but for the files and folders
    with the names or paths in `unkept`.
    """

    tool: str
    category: Category
    workspace: str
    cwd: str = ""
    home: str = ""
    command: str | None = None
    argv: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    paths: tuple[PathUse, ...] = ()
    resolved: Facts = field(default=NO_FACTS, converter=_facts)
    executables: Facts = field(default=NO_FACTS, converter=_facts)
    background: bool = field(default=False, metadata=MOSTLY_ABSENT)
    outputs: str = field(default="", metadata=MOSTLY_ABSENT)
    sandbox: str = field(default="", metadata=MOSTLY_ABSENT)
    rights: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    needs: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    own: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    opaque: bool = field(default=False, metadata=MOSTLY_ABSENT)
    contents: Facts = field(default=NO_FACTS, converter=_facts, metadata=MOSTLY_ABSENT)
    kept: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    unkept: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)

    @property
    def content(self) -> str:
        """The digest of the contents of all files that the call would run; empty if there are none."""
        if not self.contents:
            return ""
        from hashlib import sha256  # slow import (OpenSSL), needed only for commands that run files

        told = "\0".join(f"{path}\0{self.contents[path]}" for path in sorted(self.contents))
        return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_confined(self) -> bool:
        """True if a sandbox confines what the call starts."""
        return self.sandbox not in ("", "none")

    @property
    def is_isolated(self) -> bool:
        """True if what the call starts has files, processes and a network of its own."""
        return self.sandbox in ("bubblewrap", "namespaces")

    @property
    def start(self) -> str:
        """The folder in which the call starts: `cwd`, or the workspace."""
        return posixpath.normpath(self.cwd or self.workspace or "/")
