"""Event selection strategies: which of the selectable events comes next.

A strategy is a value; a program gets a new *chooser* from it, so the same strategy, seed and program give the same
trace. A chooser gets the candidates (distinct selectable events, each with its first requester, higher priority and
older first) and returns one of them. Blocked and refused events never reach it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from attrs import field, frozen, validators

from bp.errors import BProgramError
from bp.events import Event


class Candidate(NamedTuple):
    """A selectable event, and the first b-thread (by priority and age) that requests it."""

    event: Event
    bthread: str
    priority: int
    age: int


Chooser = Callable[[Sequence[Candidate]], Candidate]


def choose(chooser: Chooser, candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the choice of `chooser`, None without candidates. Raises BProgramError if it is not a candidate."""
    if not candidates:
        return None
    chosen = chooser(candidates)
    if chosen not in candidates:
        raise BProgramError(
            f"the event selection strategy chose {chosen!r}, which is no candidate; return one of those given"
        )
    return chosen


class Strategy(Protocol):
    """An event selection strategy."""

    def chooser(self) -> Chooser:
        """Return a fresh chooser for one program."""


@frozen
class RandomStrategy:
    """Any candidate, evenly, whatever its priority, from a seed."""

    seed: int = field(default=0, validator=validators.instance_of(int))

    def chooser(self) -> Chooser:
        """Return a chooser with its own random generator."""
        from random import Random  # a slow import (3 ms)

        return Random(self.seed).choice


@frozen
class RoundRobinStrategy:
    """The candidates of the b-threads in turn, by age, whatever their priority."""

    def chooser(self) -> Chooser:
        """Return a chooser that starts with the oldest b-thread and continues after the last chosen one."""
        last = -1

        def choose(candidates: Sequence[Candidate]) -> Candidate:
            nonlocal last
            by_age = sorted(candidates, key=lambda candidate: candidate.age)
            chosen = next((candidate for candidate in by_age if candidate.age > last), by_age[0])
            last = chosen.age
            return chosen

        return choose


def chooser_of(strategy: Strategy | None) -> Chooser | None:
    """Return a new chooser, None for the default: the first candidate. Raises TypeError for an invalid strategy."""
    if isinstance(strategy, type) or (strategy is not None and not callable(getattr(strategy, "chooser", None))):
        raise TypeError(f"strategy={strategy!r}: give a strategy, for example RandomStrategy()")
    return None if strategy is None else strategy.chooser()
