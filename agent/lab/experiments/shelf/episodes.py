"""The shelf: the folder in which an experiment keeps its rows and logs, whatever interrupts it.

    episodes.jsonl      one line for each episode that is over, appended with one write
    logs/KEY.jsonl      the log of each
    thresholds.json     what was frozen

A torn last line (a process was killed while it wrote) is no row; the episode runs again.
"""

from collections.abc import Iterable
from pathlib import Path

from agent.lab.experiments.shelf.rows import Row, write_row
from agent.lab.lines import append_line, values_in
from agent.vocabulary.errors import AgentError

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
        try:
            append_line(self.path, write_row(row))
        except OSError as error:
            told = f"{self.path}: a row cannot be written: {error.strerror}"
            raise ShelfError(f"{told}; finished episodes are kept, run it again later") from error

    def rows(self) -> dict[str, Row]:
        """Return the last row of each key. Raises ShelfError for a line that is no row."""
        try:
            return {row.key: row for row in values_in(self.path, Row, "row")}
        except ValueError as error:
            raise ShelfError(f"{error}; remove the line, and its episode runs again") from error
        except OSError as error:
            raise ShelfError(f"{self.path}: cannot be read: {error.strerror}") from error

    def finished(self, *, retry: bool = True) -> frozenset[str]:
        """Return the keys that need not run again; failed ones do once more, with `retry`."""
        return frozenset(key for key, row in self.rows().items() if row.status == "ran" or not retry)

    def select(self, keys: Iterable[str]) -> list[Row]:
        """Return the rows of these keys, in their order, as far as there are any."""
        rows = self.rows()
        return [rows[key] for key in keys if key in rows]
