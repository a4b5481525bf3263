"""Verdicts: a level, the rule that gave it, and the evidence in the command.

Levels are ordered (allow < ask < deny) and combine by `max`, so that adding a rule can only raise a verdict.
"""

from collections.abc import Iterable
from enum import StrEnum

from attrs import evolve, frozen

RANK = {"allow": 0, "ask": 1, "deny": 2}


class Level(StrEnum):
    """One of `allow`, `ask`, `deny`; `max` takes the stricter one."""

    allow = "allow"
    ask = "ask"
    deny = "deny"

    @property
    def rank(self) -> int:
        """0, 1 or 2; stricter levels are higher."""
        return RANK[self._value_]

    def __lt__(self, other: object) -> bool:
        return self.rank < other.rank if isinstance(other, Level) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.rank <= other.rank if isinstance(other, Level) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.rank > other.rank if isinstance(other, Level) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.rank >= other.rank if isinstance(other, Level) else NotImplemented


@frozen
class Evidence:
    """The position of a finding in the command, and its argv.

    `start` and `end` are character offsets into the command; for a nested script they span the outer command that
    starts it. `argv` is without quotes and wrappers; `…` marks unknown parts.
    """

    text: str
    start: int = 0
    end: int = 0
    argv: tuple[str, ...] = ()


@frozen
class Verdict:
    """A level with its reasons. `rule` and `category` are names; `explanation` is one sentence.

    `reasons`: all sentences for this level, `explanation` first, if there are several. An `allow` has an explanation if
    a grant, or a fact on the disk, decided.
    """

    level: Level
    rule: str = "nothing_objects"
    category: str = "none"
    evidence: tuple[Evidence, ...] = ()
    explanation: str = "no rule objects"
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.level}: {self.rule}: {self.explanation}"

    @property
    def allowed(self) -> bool:
        """True if the level is `allow`."""
        return self.level is Level.allow

    @classmethod
    def allow(cls) -> "Verdict":
        """Return the verdict that no rule objects."""
        return ALLOWED

    @property
    def granted(self) -> bool:
        """True if a grant of the user allowed it."""
        return self.allowed and self.rule == GRANTED.rule

    @classmethod
    def strictest(cls, verdicts: Iterable["Verdict"]) -> "Verdict":
        """Return the first of the strictest verdicts, with all their reasons; without verdicts, `Verdict.allow()`."""
        verdicts = [verdict for verdict in verdicts if verdict is not ALLOWED]
        if not verdicts:
            return ALLOWED
        first = max(verdicts, key=lambda verdict: verdict.level.rank)
        if first.level is Level.allow:
            return next((verdict for verdict in verdicts if verdict.granted), first)
        if len(verdicts) < 2:
            return first
        alike = (verdict for verdict in verdicts if verdict.level is first.level)
        reasons = tuple(
            dict.fromkeys(reason for verdict in alike for reason in verdict.reasons or (verdict.explanation,))
        )
        return evolve(first, reasons=reasons) if len(reasons) > 1 else first


ALLOWED = Verdict(Level.allow)
GRANTED = Verdict(Level.allow, "granted", "user", explanation="the user allowed it")
