"""The conversation: prompts, committed answers and the answers to calls, in the order in which they happened.

What was never committed is not in it, and neither is an empty answer. What people say during a run enters it where the
model is to hear it, and never between calls and their answers: steering with the next inference, a follow-up when the
run goes on with it. What a run leaves unheard enters with the next prompt, before it.
"""

from agent.events import (
    AnswerCommitted,
    CallAnswered,
    FollowUpGiven,
    HistoryGiven,
    InferenceRequested,
    MessagesFound,
    PromptGiven,
    RunContinued,
    RunEnded,
    SteeringGiven,
)
from agent.messages import AssistantMessage, Message, Messages, ToolMessage, UserMessage
from agent.models import with_ids
from agent.projections.unheard import Unheard
from agent.reasons import follow_ups_heard, words_to_the_model
from bp import Event

__all__ = ["Conversation"]


class Conversation:
    """A list of messages that grows with the events."""

    def __init__(self) -> None:
        """Make an empty conversation."""
        self._messages: list[Message] = []
        self._unheard = Unheard()

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._messages)

    @property
    def unheard(self) -> tuple[str, ...]:
        """What people said during a run and the model has not been shown yet."""
        return self._unheard.texts

    def so_far(self) -> Messages:
        """Return all messages so far, at no cost: what a model is shown."""
        return Messages(self._messages)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case AnswerCommitted() if not event.is_empty:
                self._messages.append(with_ids(event.message, event.calls))
            case CallAnswered():
                self._messages.append(ToolMessage(event.call, event.result, event.is_error, event.images))
            case InferenceRequested(draft="d0"):
                self._messages.extend(self._unheard.take_steering())
            case SteeringGiven() | FollowUpGiven() | MessagesFound():
                self._unheard.fold(event)
            case RunContinued():
                self._messages.extend(map(UserMessage, words_to_the_model(event.refusals)))
                self._messages.extend(self._unheard.take_follow_ups(follow_ups_heard(event.refusals)))
            case HistoryGiven() | PromptGiven():
                self._begin(event)
            case RunEnded(status="limit") if event.text:  # S0 5.1: the conversation says that it was cut short
                self._messages.append(AssistantMessage(event.text))

    def _begin(self, event: HistoryGiven | PromptGiven) -> None:
        """Take up what an earlier run has left unheard, and then what is said now."""
        self._messages.extend(self._unheard.take_all())
        if isinstance(event, HistoryGiven):
            self._messages.extend(event.messages)
        else:
            self._messages.append(UserMessage(event.text, event.images))
