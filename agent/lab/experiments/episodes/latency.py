"""Latency without a clock: how many answers come one after the other, if each takes as long as any other.

Answers are those of models, monitors, auditors and tools; what runs beside each other counts once. Seconds of an
experiment say nothing about latency: models are scripted, and episodes share processors.
"""

from collections.abc import Callable, Hashable
from operator import attrgetter

from attrs import define, field

from agent.vocabulary.events import InferenceFailed, InferenceFinished, InferenceRequested, ToolFinished, ToolStarted
from agent.vocabulary.questions import AuditGiven, AuditRequested, ScoreGiven, ScoreRequested
from bp import Event

__all__ = ["Rounds"]


MATTERS: dict[type[Event], Callable[[Event], Hashable]] = {
    InferenceRequested: attrgetter("draft"),
    ScoreRequested: attrgetter("subject", "monitor"),
    AuditRequested: attrgetter("subject", "auditor"),
    ToolStarted: attrgetter("call"),
}
"""What questions are about, and so are their answers."""

ANSWERS: dict[type[Event], type[Event]] = {
    InferenceFinished: InferenceRequested,
    InferenceFailed: InferenceRequested,
    ScoreGiven: ScoreRequested,
    AuditGiven: AuditRequested,
    ToolFinished: ToolStarted,
}
"""Which question each answers."""


@define
class Rounds:
    """The rounds of a run so far: a question that is asked in round n is answered at the end of round n + 1."""

    now: int = 0
    _asked: dict[Hashable, int] = field(factory=dict)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        kind = type(event)
        if kind in MATTERS:
            self._asked[kind, MATTERS[kind](event)] = self.now
        elif (question := ANSWERS.get(kind)) is not None:
            begun = self._asked.pop((question, MATTERS[question](event)), None)
            if begun is not None:
                self.now = max(self.now, begun + 1)
