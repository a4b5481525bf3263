"""The cost of real models, in a ledger of all processes, and the limit of an experiment's cost.

    asked.jsonl     one line for each finished request to a server, failures included

All processes write to it, and each reads its new lines before a request: at the limit no request is sent, and the
episode is run again under a higher limit. Requests under way in other processes may still exceed it.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, field, frozen

from agent.lab.episodes.results import ResultsError, Row
from agent.lab.json_lines import Values, append_line
from agent.vocabulary.errors import AgentError


@frozen
class Spent:
    """Requests, tokens, and the cost in US dollars if prices are known."""

    requests: int = 0
    tokens: int = 0
    cost: float | None = None

    def __add__(self, other: "Spent") -> "Spent":
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return Spent(self.requests + other.requests, self.tokens + other.tokens, cost)

    def __sub__(self, other: "Spent") -> "Spent":
        cost = None if self.cost is None else self.cost - (other.cost or 0.0)
        return Spent(self.requests - other.requests, self.tokens - other.tokens, cost)

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens" + ("" if self.cost is None else f" (${self.cost:.4f})")


def nominal(rows: Iterable[Row]) -> Spent:
    """Return the usage of all answers of real models in these episodes."""
    real = (usage for row in rows for usage in row.roles if usage.model)
    return sum((Spent(0, usage.input_tokens + usage.output_tokens, usage.cost) for usage in real), Spent())


@frozen
class Noted(Spent):
    """The requests of an episode, and what they cost."""

    episode: str = field(kw_only=True)


def note_spent(folder: Path, episode: str, spent: Spent) -> None:
    """Write the requests of an episode to the ledger. Raises OSError."""
    append_line(folder / "asked.jsonl", json.dumps({"episode": episode, **asdict(spent)}))


class MoneyUsedUp(AgentError):
    """An experiment has reached its limit of cost; finished episodes are kept, and a higher limit continues it."""


class Ledger:
    """The requests of all processes of an experiment so far, and the limit of their cost, in US dollars."""

    def __init__(self, folder: Path, limit: float | None = None) -> None:
        self._notes, self.limit = Values(folder / "asked.jsonl", Noted, "note of what was asked for"), limit
        self._sum = Spent()

    def spent(self) -> Spent:
        """Return the usage so far; a torn line is ignored. Raises ResultsError for an invalid line."""
        try:
            for noted in self._notes.new():
                self._sum += noted
        except ValueError as error:
            raise ResultsError(f"{error}; correct the line, or remove it") from error
        except OSError as error:
            raise ResultsError(f"{self._notes.path}: cannot be read: {error.strerror}") from error
        return self._sum

    @property
    def is_used_up(self) -> bool:
        """True if the limit is reached; never without a limit. Raises ResultsError."""
        return self.limit is not None and (self.spent().cost or 0.0) >= self.limit

    def check(self) -> None:
        """Raise MoneyUsedUp at the limit, and ResultsError."""
        if self.is_used_up:
            raise MoneyUsedUp(f"${self._sum.cost or 0.0:.4f} of the ${self.limit:g} that it may cost are spent")
