"""What real models took: nominally, kept answers included, and what they were asked for, by every run so far.

asked.jsonl     one line for each answer that a server was asked for, when it has come; also for what came to nothing

It is the ledger: all processes write into it, and each reads what is new in it before it asks a server.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from attrs import asdict, frozen

from agent.lab.experiments.shelf.episodes import ShelfError
from agent.lab.experiments.shelf.rows import Row
from agent.lab.lines import append_line
from agent.vocabulary.conversion import parsed
from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import Usage

__all__ = ["Ledger", "MoneyUsedUp", "Spent", "nominal", "note_spent", "read_spent"]


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
    """What an episode asked for."""

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
    return Ledger(folder).spent()


class MoneyUsedUp(AgentError):
    """An experiment has cost as much as it may; what is finished is kept, and a higher limit goes on."""


class Ledger:
    """What all processes of an experiment have asked for so far, and how much that may cost, in US dollars."""

    def __init__(self, folder: Path, limit: float | None = None) -> None:
        self._path, self.limit = folder / "asked.jsonl", limit
        self._read, self._lines, self._sum = 0, 0, Spent()

    def spent(self) -> Spent:
        """Return what was asked for; a torn line counts nothing. Raises ShelfError for what says nothing."""
        for line in self._new_lines():
            self._lines += 1
            try:
                if line:
                    noted = parsed(line, Noted, "note")
                    self._sum += Spent(noted.requests, noted.tokens, noted.cost)
            except ValueError as error:
                told = f"{self._path}:{self._lines}: not a note of what was asked for: {error}"
                raise ShelfError(f"{told}; correct the line, or remove it") from error
        return self._sum

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left; never without a limit. Raises ShelfError."""
        return self.limit is not None and (self.spent().cost or 0.0) >= self.limit

    def check(self) -> None:
        """Raise MoneyUsedUp when nothing is left, and ShelfError."""
        if self.is_used_up:
            raise MoneyUsedUp(f"${self._sum.cost or 0.0:.4f} of the ${self.limit:g} that it may cost are spent")

    def _new_lines(self) -> list[str]:
        """Return the lines that are whole, and new since the last look."""
        try:
            with self._path.open("rb") as notes:
                notes.seek(self._read)
                text = notes.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ShelfError(f"{self._path}: cannot be read: {error.strerror}") from error
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.decode("utf-8", "replace").split("\n")[:-1]
