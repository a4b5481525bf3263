"""Open the files of a walk a batch at a time, in the background, and give them all back whatever happens."""

import os
import resource
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from attrs import frozen

from agent.tools.errors import ToolError
from agent.tools.files.operations import Files
from agent.tools.search.walking import walk

__all__ = ["Batches", "Opened", "search_among"]

_MOST_OPEN = 400
_LOOKED_AT = 8192  # first bytes; with a NUL among them a file is no text


@frozen(eq=False)
class Opened:
    """An open text file, under the name that is shown."""

    name: str
    file: BinaryIO


class Batches:
    """Open files, some at a time. `take` blocks and may run in another thread, `close` never waits for it."""

    def __init__(self, files: Iterable[Opened]) -> None:
        self._files = iter(files)
        self._open: list[Opened] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> list[Opened]:
        """Give the files of the batch before back, and return the next ones; none at the end."""
        with self._lock:
            self._give_back()
            limit = min(_MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
            for opened in self._files:
                self._open.append(opened)
                if len(self._open) >= limit or self._closed:
                    break
            batch = list(self._open)
        if self._closed:
            self.close()
        return batch

    def close(self) -> None:
        """Give everything back: now, or when the `take` that is under way ends."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._give_back()
            if isinstance(self._files, Iterator) and hasattr(self._files, "close"):
                self._files.close()
            self._lock.release()

    def _give_back(self) -> None:
        while self._open:
            self._open.pop().file.close()


def search_among(files: Files, path: str) -> Iterator[Opened]:
    """Yield the text files at `path`: it itself, or what is below it. The one who takes them closes them.

    Raises PathRefused or OSError for a `path` that cannot be looked into.
    """
    try:
        with files.open_folder(path):
            pass
    except NotADirectoryError:
        yield Opened(path.rstrip("/").rpartition("/")[2], files.open_read(path))
        return
    for found in walk(files, path):
        with suppress(OSError, ToolError):
            if found.is_file and (file := _as_text(found.open())) is not None:
                yield Opened(found.path, file)


def _as_text(file: BinaryIO) -> BinaryIO | None:
    """Return the file, or close it when it holds no text."""
    try:
        if b"\0" not in os.pread(file.fileno(), _LOOKED_AT, 0):
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None
