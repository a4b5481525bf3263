"""The conversation: prompts, committed answers and the answers to calls, in the order in which they happened.

What was never committed is not in it, and neither is an empty answer.
"""

from agent.events import (
    AnswerCommitted,
    CallAnswered,
    HistoryGiven,
    PromptGiven,
    RunContinued,
    RunEnded,
)
from agent.messages import AssistantMessage, Message, Messages, ToolMessage, UserMessage
from agent.models import with_ids
from agent.reasons import Unfinished
from bp import Event

__all__ = ["Conversation"]


class Conversation:
    """A list of messages that grows with the events."""

    def __init__(self) -> None:
        """Make an empty conversation."""
        self._messages: list[Message] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._messages)

    def so_far(self) -> Messages:
        """Return all messages so far, at no cost: what a model is shown."""
        return Messages(self._messages)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case HistoryGiven():
                self._messages.extend(event.messages)
            case PromptGiven():
                self._messages.append(UserMessage(event.text, event.images))
            case AnswerCommitted() if not event.is_empty:
                self._messages.append(with_ids(event.message, event.calls))
            case CallAnswered():
                self._messages.append(ToolMessage(event.call, event.result, event.is_error, event.images))
            case RunContinued():
                self._messages.extend(_why_unfinished(event))
            case RunEnded(status="limit") if event.text:  # S0 5.1: the conversation says that it was cut short
                self._messages.append(AssistantMessage(event.text))


def _why_unfinished(continued: RunContinued) -> list[UserMessage]:
    """Return what the model is told when it wanted to end the run, and may not."""
    reasons = [refusal.because for refusal in continued.refusals]
    return [UserMessage(reason.text) for reason in reasons if isinstance(reason, Unfinished)]
