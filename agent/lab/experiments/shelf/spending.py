"""What real models took: nominally, kept answers included, and what they were asked for, by every run so far.

asked.jsonl     one line for each episode that asked a server; also for those that came to nothing
"""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, frozen

from agent.lab.experiments.shelf.episodes import ShelfError
from agent.lab.experiments.shelf.rows import Row
from agent.lab.lines import append_line, values_in
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


@frozen
class Noted:
    """What one episode asked for, once."""

    episode: str
    requests: int
    tokens: int
    cost: float | None


def note_spent(folder: Path, episode: str, spent: Spent) -> None:
    """Write down what an episode asked for. Raises OSError."""
    if spent.requests:
        append_line(folder / "asked.jsonl", json.dumps({"episode": episode, **asdict(spent)}))


def read_spent(folder: Path) -> Spent:
    """Return what was asked for in all runs; a torn line counts nothing. Raises ShelfError for what says nothing."""
    path = folder / "asked.jsonl"
    try:
        noted = list(values_in(path, Noted, "note of what was asked for"))
    except ValueError as error:
        raise ShelfError(f"{error}; correct the line, or remove it") from error
    except OSError as error:
        raise ShelfError(f"{path}: cannot be read: {error.strerror}") from error
    return sum((Spent(each.requests, each.tokens, each.cost) for each in noted), Spent())
