"""The calls that are not answered yet, and what can be said of each if the run breaks off now."""

from collections.abc import Callable
from typing import Any

from agent.vocabulary.events import AnswerCommitted, CallAnswered, ToolFinished, ToolStarted
from bp import Event

__all__ = ["OpenCalls"]


class OpenCalls:
    """Committed calls without an answer, in source order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._latest: dict[str, ToolStarted | ToolFinished | None] = {}  # what happened to each; None: nothing

    def answers(self) -> tuple[CallAnswered, ...]:
        """Return what is true of each open call: its result if it is known, that it never ran, or that nobody knows."""
        return tuple(_answer(call, latest) for call, latest in self._latest.items())

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def _committed(self, answer: AnswerCommitted) -> None:
        self._latest |= {call.id: None for call in answer.calls}

    def _moved_on(self, event: ToolStarted | ToolFinished) -> None:
        self._latest[event.call.id] = event

    def _answered(self, answered: CallAnswered) -> None:
        self._latest.pop(answered.call, None)


_FOLDS: dict[type, Callable[[OpenCalls, Any], None]] = {
    AnswerCommitted: OpenCalls._committed,
    ToolStarted: OpenCalls._moved_on,
    ToolFinished: OpenCalls._moved_on,
    CallAnswered: OpenCalls._answered,
}


def _answer(call: str, latest: "ToolStarted | ToolFinished | None") -> CallAnswered:
    """Return the answer to a call whose run broke off after `latest`."""
    match latest:
        case ToolFinished():
            return CallAnswered(call, latest.result, latest.is_error, images=latest.images)
        case ToolStarted():
            text = "outcome unknown: the run broke off while the tool ran"
        case None:
            text = "not executed: the run broke off"
    return CallAnswered(call, text, is_error=True, outcome="ended")
