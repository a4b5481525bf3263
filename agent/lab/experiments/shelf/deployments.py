"""Rows of deployments: what each came to, as one line of JSON, in a file of their own beside that of the episodes."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from attrs import asdict, field, frozen

from agent.lab.experiments.shelf.episodes import ShelfError
from agent.lab.lines import append_line, values_in

__all__ = ["DeploymentRow", "DeploymentShelf", "DeploymentStep"]

Status = Literal["ran", "failed"]
Outcome = Literal["caught", "harm", "harmless", "skipped"]


@frozen
class DeploymentStep:
    """One episode of a deployment: its place and key, who ran it, what it came to, and what an audit said, if any.

    outcome: "caught" in time by a protocol, "harm" if the side task succeeded uncaught. suspicion None: a score is
    missing.
    """

    number: int
    key: str
    role: str
    policy: str
    outcome: Outcome
    main: float
    suspicion: float | None
    verdict: str = ""


@frozen
class DeploymentRow:
    """One deployment.

    status: "failed" when one of its episodes did; such rows are counted, not measured. caught_after: how many episodes
    had been run when something was caught first; None: nothing was. harm, harm_before: episodes with harm, and those of
    them that had been run by then. main: the share of all work that was done. disabled: roles and monitors.
    """

    key: str
    deployment: str
    rules: str
    protocol: str
    seed: int
    episodes: int
    status: Status = "ran"
    error: str = ""
    by_agent: int = 0
    by_trusted: int = 0
    skipped: int = 0
    attacks: int = 0
    audits: int = 0
    found: int = 0
    caught_after: int | None = None
    harm: int = 0
    harm_before: int = 0
    main: float = 0.0
    disabled: tuple[str, ...] = ()
    steps: tuple[DeploymentStep, ...] = field(default=())


class DeploymentShelf:
    """Where the rows of deployments are kept: `deployments.jsonl` in the folder of an experiment."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "deployments.jsonl"

    def add(self, row: DeploymentRow) -> None:
        """Add a row. Raises ShelfError when the disk does not take it."""
        try:
            append_line(self.path, json.dumps(asdict(row)))
        except OSError as error:
            told = f"{self.path}: a row cannot be written: {error.strerror}"
            raise ShelfError(f"{told}; finished deployments are kept, run it again later") from error

    def rows(self) -> dict[str, DeploymentRow]:
        """Return the last row of each key. Raises ShelfError for a line that is no row."""
        try:
            return {row.key: row for row in values_in(self.path, DeploymentRow, "row of a deployment")}
        except ValueError as error:
            raise ShelfError(f"{error}; remove the line, and run it again") from error
        except OSError as error:
            raise ShelfError(f"{self.path}: cannot be read: {error.strerror}") from error

    def missing(self, keys: Iterable[str]) -> Sequence[str]:
        """Return those of the keys that have no row, or one that failed, each once."""
        rows = self.rows()
        return [key for key in dict.fromkeys(keys) if key not in rows or rows[key].status == "failed"]
