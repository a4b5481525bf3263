"""What a conversation has taken so far: turns, calls, tokens."""

from collections.abc import Callable
from typing import Any

from agent.vocabulary.events import AnswerCommitted, InferenceFinished, SummaryFinished, ToolStarted
from agent.vocabulary.messages import Usage
from bp import Event

__all__ = ["Totals"]


class Totals:
    """Counts over all runs of a conversation."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.turns = 0  # committed answers
        self.tool_starts = 0
        self.usage = Usage()  # tokens of all drafts, committed or not, and of summaries

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def _answered(self, _: AnswerCommitted) -> None:
        self.turns += 1

    def _started(self, _: ToolStarted) -> None:
        self.tool_starts += 1

    def _spent(self, event: InferenceFinished | SummaryFinished) -> None:
        self.usage += event.usage


_FOLDS: dict[type, Callable[[Totals, Any], None]] = {
    AnswerCommitted: Totals._answered,
    ToolStarted: Totals._started,
    InferenceFinished: Totals._spent,
    SummaryFinished: Totals._spent,
}
