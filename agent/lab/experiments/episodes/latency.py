"""Latency without a clock: how many answers come one after the other, if each takes as long as any other.

Answers are those of models, monitors, auditors and tools; what runs beside each other counts once. Seconds of an
experiment say nothing about latency: models are scripted, and episodes share processors.
"""

from collections.abc import Hashable

from attrs import define, field

from agent.events import InferenceFailed, InferenceFinished, InferenceRequested, ToolFinished, ToolStarted
from agent.questions import AuditGiven, AuditRequested, ScoreGiven, ScoreRequested
from bp import Event

__all__ = ["Rounds"]


@define
class Rounds:
    """The rounds of a run so far: a question that is asked in round n is answered at the end of round n + 1."""

    now: int = 0
    _asked: dict[Hashable, int] = field(factory=dict)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case InferenceRequested(draft=draft):
                self._asked["draft", draft] = self.now
            case InferenceFinished(draft=draft) | InferenceFailed(draft=draft):
                self._answered("draft", draft)
            case ScoreRequested(subject=subject, monitor=monitor):
                self._asked["score", subject, monitor] = self.now
            case ScoreGiven(subject=subject, monitor=monitor):
                self._answered("score", subject, monitor)
            case AuditRequested(subject=subject, auditor=auditor):
                self._asked["audit", subject, auditor] = self.now
            case AuditGiven(subject=subject, auditor=auditor):
                self._answered("audit", subject, auditor)
            case ToolStarted(call=call):
                self._asked["tool", call] = self.now
            case ToolFinished(call=call):
                self._answered("tool", call)

    def _answered(self, *question: Hashable) -> None:
        begun = self._asked.pop(question, None)
        if begun is not None:
            self.now = max(self.now, begun + 1)
