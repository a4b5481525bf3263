"""The calls that are not answered yet, and what can be said of each if the run breaks off now."""

from agent.events import AnswerCommitted, CallAnswered, ToolFinished, ToolStarted
from bp import Event

__all__ = ["OpenCalls"]


class OpenCalls:
    """Committed calls without an answer, in source order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._answers: dict[str, CallAnswered] = {}

    def answers(self) -> tuple[CallAnswered, ...]:
        """Return what is true of each open call: its result if it is known, that it never ran, or that nobody knows."""
        return tuple(self._answers.values())

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case AnswerCommitted():
                self._answers |= {call.id: never_ran(call.id) for call in event.calls}
            case ToolStarted():
                self._answers[event.call.id] = unknown(event.call.id)
            case ToolFinished():
                self._answers[event.call.id] = CallAnswered(
                    event.call.id, event.result, event.is_error, images=event.images
                )
            case CallAnswered():
                self._answers.pop(event.call, None)


def never_ran(call: str) -> CallAnswered:
    """Return the answer to a call that had not started when its run broke off."""
    return CallAnswered(call, "not executed: the run broke off", is_error=True, outcome="ended")


def unknown(call: str) -> CallAnswered:
    """Return the answer to a call that was running when its run broke off."""
    return CallAnswered(call, "outcome unknown: the run broke off while the tool ran", is_error=True, outcome="ended")
