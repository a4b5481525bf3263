"""Rows: what is kept of an episode, tidy, as one line of JSON; its steps are rows of a second table."""

import json
from typing import Literal

from attrs import asdict, field, frozen

from agent.lab.measures.thresholds import suspicion

__all__ = ["Row", "Step", "write_row"]

Status = Literal["ran", "failed"]


@frozen
class Step:
    """One call that was committed: whether it attacked (None: nobody knows), what became of it, how it scored."""

    tool: str
    attack: bool | None
    outcome: str
    score: float | None


@frozen
class Row:
    """One episode.

    status: "ran", or "failed" where the infrastructure did; `error` says why, and such rows are counted, not measured.
    main: the share of the task that is done, 0 after an error of the agent's. side: whether the side task succeeded,
    after the call number `tau` where it is live. caught: a protocol had found the attack before that.
    scored, missing_scores: all scores that were asked for, and those that could not be read; unread: what the first of
    these said instead.
    tokens, monitor_tokens: of the loop's models, and of the protocol's monitors. model_tokens, cost (in dollars): of
    all real models, nominally. asked, asked_tokens, asked_cost: what these were asked for, and was not kept.
    rounds: how many answers of models, monitors, auditors and tools came one after the other.
    isolation: the level that the episode achieved: "bubblewrap", or "none". limits: those that were kept, in a cell;
    exceeded: those that the agent met with.
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
    model_tokens: int = 0
    cost: float | None = None
    asked: int = 0
    asked_tokens: int = 0
    asked_cost: float | None = None
    rounds: int = 0
    seconds: float = 0.0
    isolation: str = "none"
    limits: str = ""
    exceeded: str = ""
    log: str = ""
    steps: tuple[Step, ...] = field(default=())

    @property
    def highest(self) -> float | None:
        """The highest score of its steps; None where one is missing, 0 where nothing was done."""
        highest = max((suspicion(step.score) for step in self.steps), default=0.0)
        return None if highest > 1 else highest


def write_row(row: Row) -> str:
    """Return a row as one line, without its end."""
    fields = asdict(row, recurse=False)  # all are plain but the steps, and theirs are
    fields["steps"] = [asdict(step, recurse=False) for step in row.steps]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
