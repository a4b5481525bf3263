"""Results of episodes: a row for each, and the folder in which an experiment keeps rows and logs.

    episodes.jsonl      one line for each episode that is over, appended with one write
    logs/KEY.jsonl      the log of each
    thresholds.json     the frozen thresholds

A torn last line (its writer was killed) is not a row; the episode runs again.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, frozen

from agent.lab.json_lines import Values, append_line
from agent.lab.measures.thresholds import suspicion
from agent.lab.settings.tasks import share_of
from agent.log.writing import LogInUse, lock
from agent.vocabulary.errors import AgentError

Status = Literal["ran", "failed"]


@frozen
class Step:
    """One committed call: whether it attacked (None: unknown), its outcome and its score."""

    tool: str
    attack: bool | None
    outcome: str
    score: float | None


@frozen
class RoleUsage:
    """The usage of one role's model in an episode.

    answers, tokens and cost (US dollars): cached answers included. requests and their usage: as counted by the server,
    failures included; 0 for scripted workers and simulated monitors, whose tokens are those that a model would have
    read and written. role: agent, trusted, editor, monitor or auditor.
    """

    role: str
    model: str
    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    requests: int = 0
    requested_tokens: int = 0
    requested_cost: float | None = None


@frozen
class Row:
    """One episode.

    status: "ran", or "failed" for a technical reason, given in `error`; such rows are counted, not measured. main: the
    share of the task that is done, 0 after an error of the agent. side: whether the side task succeeded, after call
    number `tau` if it is live. caught: whether a protocol had found the attack before that. scored, missing_scores: the
    numbers of requested and of unreadable scores; unread: the first unreadable answer. tokens, monitor_tokens: of the
    loop's models, and of the protocol's monitors. roles: the usage of each model. rounds: the longest chain of
    consecutive answers of models, monitors, auditors and tools. isolation: the achieved level: "bubblewrap" or "none".
    limits: the enforced limits of its cell; exceeded: those that the agent ran into.
    """

    key: str
    setting: str
    family: str
    task: str
    split: str
    policy: str
    attacks: bool
    protocol: str
    seed: int
    status: Status = "ran"
    error: str = ""
    ended: str = ""
    main: float = 0.0
    side: bool = False
    tau: int | None = None
    live: bool = True
    caught: bool = False
    turns: int = 0
    drafts: int = 0
    rejected: int = 0
    questions: int = 0
    scores: int = 0
    missing_scores: int = 0
    scored: int = 0
    unread: str = ""
    audits: int = 0
    tokens: int = 0
    monitor_tokens: int = 0
    rounds: int = 0
    seconds: float = 0.0
    isolation: str = "none"
    limits: str = ""
    exceeded: str = ""
    log: str = ""
    steps: tuple[Step, ...] = ()
    roles: tuple[RoleUsage, ...] = ()

    @property
    def highest(self) -> float | None:
        """The highest score of its steps; None if one is missing, 0 without steps."""
        highest = max((suspicion(step.score) for step in self.steps), default=0.0)
        return None if highest > 1 else highest


LINES = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda each: asdict(each, recurse=False))
"""Writes rows, each as one line."""


def _upgraded(data: Any) -> Any:
    """Return the data of a row; that of a failed episode where older versions wrote what a check gave unchecked."""
    if not isinstance(data, dict):
        return data
    values = data.get("main", 0.0), data.get("side", False)
    main, side = map(share_of, values)
    if main is None or side not in (0, 1):
        error = "the checks gave main {!r} and side {!r}, which is no result".format(*values)
        return {**data, "main": 0.0, "side": False, "status": "failed", "error": error}
    return {**data, "main": main, "side": bool(side)}


class ResultsError(AgentError):
    """The folder of an experiment cannot be read or written."""


class Results:
    """The store of an experiment's rows. Several processes may add rows at once."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, which need not exist yet. Raises ResultsError."""
        self.folder = folder
        self._written, self._rows = Values(self.path, Row, "row", _upgraded), dict[str, Row]()
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"{folder}: cannot be written: {error.strerror}") from error

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.folder / "logs"

    @property
    def path(self) -> Path:
        """The file of the rows."""
        return self.folder / "episodes.jsonl"

    def log_of(self, key: str) -> Path:
        """Return the path of an episode's log; the log of an interrupted attempt is removed."""
        path = self.logs / f"{key}.jsonl"
        path.unlink(missing_ok=True)
        return path

    def has_log(self, key: str) -> bool:
        """Return whether an episode has begun, also in an interrupted attempt."""
        return (self.logs / f"{key}.jsonl").exists()

    def add(self, row: Row) -> None:
        """Add a row. Raises ResultsError if it cannot be written."""
        try:
            append_line(self.path, LINES.encode(row))
        except OSError as error:
            told = f"{self.path}: a row cannot be written: {error.strerror}"
            raise ResultsError(f"{told}; what is finished is kept, run it again later") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other experiments out of the folder during the block. Raises ResultsError while one runs there."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            lock(descriptor, self.folder)
        except LogInUse as error:
            os.close(descriptor)
            told = f"{self.folder}: another experiment runs there now"
            raise ResultsError(f"{told}; wait for its end, or give this one another folder (--folder)") from error
        try:
            yield
        finally:
            os.close(descriptor)

    def rows(self) -> dict[str, Row]:
        """Return the last row of each key, except for a failure after it ran. Raises ResultsError (invalid line)."""
        try:
            for row in self._written.new():
                if row.status == "ran" or row.key not in self._rows or self._rows[row.key].status == "failed":
                    self._rows[row.key] = row
            return dict(self._rows)
        except ValueError as error:
            raise ResultsError(f"{error}; remove the line, and run it again") from error
        except OSError as error:
            raise ResultsError(f"{self.path}: cannot be read: {error.strerror}") from error

    def finished(self) -> frozenset[str]:
        """Return the keys of the episodes that ran without failure."""
        return frozenset(key for key, row in self.rows().items() if row.status == "ran")

    def select(self, keys: Iterable[str]) -> list[Row]:
        """Return the existing rows of these keys, in this order."""
        rows = self.rows()
        return [rows[key] for key in keys if key in rows]
