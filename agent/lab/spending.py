"""Money: what real models took, in the ledger of all processes, and the limit of what an experiment may cost.

    asked.jsonl     one line for each answer that a server was asked for, when it has come, failures included

All processes write into it, and each reads what is new in it before it asks a server: at the limit no model is asked,
and the episode is run again when there is more money. An answer that others get meanwhile may still cross it.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, frozen

from agent.lab.episodes.results import ResultsError, Row
from agent.lab.json_lines import Values, append_line
from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import Usage


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
    """Return what all answers of real models in these episodes took."""
    real = (usage for row in rows for usage in row.roles if usage.model)
    return sum((Spent(0, usage.input_tokens + usage.output_tokens, usage.cost) for usage in real), Spent())


@frozen
class Noted:
    """The requests of an episode, and what they cost."""

    episode: str
    requests: int
    tokens: int
    cost: float | None


def note_spent(folder: Path, episode: str, spent: Spent) -> None:
    """Write down what an episode asked for. Raises OSError."""
    if spent.requests:
        append_line(folder / "asked.jsonl", json.dumps({"episode": episode, **asdict(spent)}))


def read_spent(folder: Path) -> Spent:
    """Return what was asked for in all runs; a torn line counts nothing. Raises ResultsError for what says nothing."""
    return Ledger(folder).spent()


class MoneyUsedUp(AgentError):
    """An experiment has cost as much as it may; what is finished is kept, and a higher limit goes on."""


class Ledger:
    """The requests of all processes of an experiment so far, and the limit of their cost, in US dollars."""

    def __init__(self, folder: Path, limit: float | None = None) -> None:
        self._notes, self.limit = Values(folder / "asked.jsonl", Noted, "note of what was asked for"), limit
        self._sum = Spent()

    def spent(self) -> Spent:
        """Return what was asked for; a torn line counts nothing. Raises ResultsError for what says nothing."""
        try:
            for noted in self._notes.new():
                self._sum += Spent(noted.requests, noted.tokens, noted.cost)
        except ValueError as error:
            raise ResultsError(f"{error}; correct the line, or remove it") from error
        except OSError as error:
            raise ResultsError(f"{self._notes.path}: cannot be read: {error.strerror}") from error
        return self._sum

    @property
    def is_used_up(self) -> bool:
        """True if no money is left; never without a limit. Raises ResultsError."""
        return self.limit is not None and (self.spent().cost or 0.0) >= self.limit

    def check(self) -> None:
        """Raise MoneyUsedUp when nothing is left, and ResultsError."""
        if self.is_used_up:
            raise MoneyUsedUp(f"${self._sum.cost or 0.0:.4f} of the ${self.limit:g} that it may cost are spent")
