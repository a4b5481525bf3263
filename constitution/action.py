"""Actions: descriptions of tool calls, to be judged. Paths and programs arrive resolved; judging reads no disk."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import field, frozen

Access = Literal["read", "write", "delete", "list", "execute"]
Category = Literal["read", "write", "admin"]


MOSTLY_ABSENT = {"in the log": "if any"}
"""Metadata of a field that a log leaves out when it is empty."""


class Facts(Mapping[str, str]):
    """A mapping from text to text that cannot change, and is hashable."""

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
    """A path that a tool will use: as given, and absolute with every link followed (the caller did that)."""

    given: str
    resolved: str
    access: Access


@frozen(cache_hash=True)
class Disk:
    """Facts that the caller found on the disk about the words of a call; paths are absolute, as text.

    Of the words that `mentions` gave, `folders` are there, `linked` are files that have other names too, `repositories`
    are repositories of git that have no files. `matches` maps a pattern to the paths that it stands for, with a NUL
    between. `unsaved` are files that version control could not bring back as they are: changed or untracked, and not
    ignored. `declared` are the packages that the project names in its own files. All empty: nothing was looked up.
    """

    folders: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    matches: Facts = field(default=NO_FACTS, converter=_facts)
    unsaved: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


NOTHING_FOUND = Disk()


@frozen(cache_hash=True)  # in several events of a turn, and each is looked up more than once
class Action:
    """One tool call with everything that judging it needs.

    `command` is shell text; `argv` is a program started without a shell; `paths` are what a file tool touches,
    `urls` what a tool reaches over the network.
    `resolved` maps words as `mentions` gave them to absolute paths with links followed; a word that is missing is
    taken lexically. `executables` maps program words to files, "" when there is none.
    `background`: what is started stays after the call. `outputs` is a folder with long outputs of the run's own
    commands, which may be read. `sandbox`: the level at which it is confined, "none" where the machine has no sandbox,
    empty where none is wanted. `rights`: what the call asks for beyond the sandbox; `needs`: what it could not do
    without. `own`: files and folders of the agent itself, absolute, with links followed. `opaque`: what the tool does
    is not known. `contents` maps the files that it would run, and that a command could have changed, to what identifies
    what is in them. `disk` is what else was found.
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
    disk: Disk = NOTHING_FOUND
    background: bool = field(default=False, metadata=MOSTLY_ABSENT)
    outputs: str = field(default="", metadata=MOSTLY_ABSENT)
    sandbox: str = field(default="", metadata=MOSTLY_ABSENT)
    rights: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    needs: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    own: tuple[str, ...] = field(default=(), metadata=MOSTLY_ABSENT)
    opaque: bool = field(default=False, metadata=MOSTLY_ABSENT)
    contents: Facts = field(default=NO_FACTS, converter=_facts, metadata=MOSTLY_ABSENT)

    @property
    def content(self) -> str:
        """The digest of the contents of all files that the call would run; empty if there are none."""
        if not self.contents:
            return ""
        from hashlib import sha256  # with OpenSSL, for the first command that runs a file

        told = "\0".join(f"{path}\0{self.contents[path]}" for path in sorted(self.contents))
        return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_confined(self) -> bool:
        """True if a sandbox confines what the call starts."""
        return self.sandbox not in ("", "none")

    @property
    def start(self) -> str:
        """The folder in which the call starts: `cwd`, or the workspace."""
        return posixpath.normpath(self.cwd or self.workspace or "/")
