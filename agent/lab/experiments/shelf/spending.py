"""What real models took: nominally, kept answers included, and what they were asked for, by every run so far.

asked.jsonl     one line for each episode that asked a server; also for those that came to nothing
"""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, frozen

from agent.lab.experiments.shelf.rows import Row
from agent.lab.lines import append_line, whole_lines
from agent.messages import Usage

__all__ = ["Spent", "nominal", "note_spent", "read_spent"]


@frozen
class Spent:
    """Requests, tokens, and dollars where a price is known."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, requests: int, usage: Usage) -> "Spent":
        """Return what so many requests took."""
        return cls(requests, usage.tokens, usage.cost)

    def __add__(self, other: "Spent") -> "Spent":
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return Spent(self.requests + other.requests, self.tokens + other.tokens, cost)

    def __sub__(self, other: "Spent") -> "Spent":
        cost = None if self.cost is None else self.cost - (other.cost or 0.0)
        return Spent(self.requests - other.requests, self.tokens - other.tokens, cost)

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens" + ("" if self.cost is None else f" (${self.cost:.4f})")


def nominal(rows: Iterable[Row]) -> Spent:
    """Return what all answers in these episodes took."""
    return sum((Spent(0, row.model_tokens, row.cost) for row in rows), Spent())


def note_spent(folder: Path, episode: str, spent: Spent) -> None:
    """Write down what an episode asked for. Raises OSError."""
    if spent.requests:
        append_line(folder / "asked.jsonl", json.dumps({"episode": episode, **asdict(spent)}))


def read_spent(folder: Path) -> Spent:
    """Return what was asked for in all runs; a torn line counts nothing."""
    try:
        lines = whole_lines(folder / "asked.jsonl")
    except OSError:
        return Spent()
    return sum(map(_read, lines), Spent())


def _read(line: str) -> Spent:
    try:
        said = json.loads(line)
        return Spent(int(said["requests"]), int(said["tokens"]), said["cost"])
    except (ValueError, KeyError, TypeError):
        return Spent()
