"""What file tools need of a file system, so that another one can take the place of the local one (S2).

`Workspace` is the local implementation. Whoever implements this for another machine is responsible for its bounds.
All methods block (file tools run in a thread), and raise OSError or ToolError with a message for the model.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from agent.tools.workspace import Entry


class Folder(Protocol):
    """An open directory: what is in it is reached from here, not by a path that may lead elsewhere by now."""

    def entries(self) -> Sequence[Entry]:
        """Return what is in it, sorted by name, without what may not be touched."""

    def open(self, name: str) -> BinaryIO:
        """Return an ordinary file in it, open for reading; it has a descriptor of this machine (`fileno`)."""

    def folder(self, name: str) -> "AbstractContextManager[Folder]":
        """Give a directory in it."""


class Files(Protocol):
    """A file system with a root, where relative paths start."""

    @property
    def root(self) -> str:
        """The root, absolute."""

    def resolve(self, path: str) -> str:
        """Return `path` absolute and with its links followed, as far as it exists."""

    def open_read(self, path: str) -> BinaryIO:
        """Return an ordinary file, open for reading; it has a descriptor of this machine (`fileno`)."""

    def open_write(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Give a new file that replaces the one at `path` in one step when the block ends, and not if it raises."""

    def list(self, path: str = ".") -> Sequence[Entry]:
        """Return what is in a directory, sorted by name."""

    def open_folder(self, path: str = ".") -> "AbstractContextManager[Folder]":
        """Give a directory."""
