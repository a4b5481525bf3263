"""The shelf: the folder in which an experiment keeps its rows and logs, whatever interrupts it.

    episodes.jsonl      one line for each episode that is over, appended with one write
    logs/KEY.jsonl      the log of each
    thresholds.json     what was frozen

A torn last line (a process was killed while it wrote) is no row; the episode runs again.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

from agent.errors import AgentError
from agent.lab.experiments.shelf.rows import Row, read_row, write_row

__all__ = ["Shelf", "ShelfError"]


class ShelfError(AgentError):
    """The folder of an experiment cannot be read or written; finished episodes are kept."""


class Shelf:
    """Where an experiment is kept. Several processes may add rows at once."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, which need not exist yet. Raises ShelfError."""
        self.folder = folder
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ShelfError(f"{folder}: cannot be written: {error.strerror}") from error

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    @property
    def path(self) -> Path:
        """The file of the rows."""
        return self.folder / "episodes.jsonl"

    def log_of(self, key: str) -> Path:
        """Return where the log of an episode goes; what an interrupted attempt left there is removed."""
        path = self.logs / f"{key}.jsonl"
        path.unlink(missing_ok=True)
        return path

    def has_log(self, key: str) -> bool:
        """Whether an episode has begun: here, or in an attempt that was interrupted."""
        return (self.logs / f"{key}.jsonl").exists()

    def add(self, row: Row) -> None:
        """Add a row. Raises ShelfError when the disk does not take it."""
        line = write_row(row).encode("utf-8", "replace")
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                _append(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            told = f"{self.path}: a row cannot be written: {error.strerror}"
            raise ShelfError(f"{told}; finished episodes are kept, run it again later") from error

    def rows(self) -> dict[str, Row]:
        """Return the last row of each key. Raises ShelfError for a line in the middle that is no row."""
        if not self.path.exists():
            return {}
        found: dict[str, Row] = {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                if line:
                    row = read_row(line)
                    found[row.key] = row
            except ValueError as error:
                if number < len(lines) and not _was_torn(line):
                    raise ShelfError(f"{self.path}:{number}: {error}") from error
        return found

    def finished(self, *, retry: bool = True) -> frozenset[str]:
        """Return the keys that need not run again; failed ones do once more, with `retry`."""
        return frozenset(key for key, row in self.rows().items() if row.status == "ran" or not retry)

    def select(self, keys: Iterable[str]) -> list[Row]:
        """Return the rows of these keys, in their order, as far as there are any."""
        rows = self.rows()
        return [rows[key] for key in keys if key in rows]


def _append(descriptor: int, line: bytes) -> None:
    """Write a line with one write; after a torn one, on a line of its own. What did not fit stays as a torn one."""
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    text = b"\n" + line if torn else line
    written = os.write(descriptor, text)
    if written < len(text):
        raise OSError(28, "no space left on device")


def _was_torn(line: str) -> bool:
    """Whether a line is the beginning of a row only: what an earlier process was killed over, or had no room for."""
    try:
        json.loads(line)
    except ValueError:
        return line.startswith('{"key":')
    return False
