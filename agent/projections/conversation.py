"""The conversation: prompts, committed answers and the answers to calls, in the order in which they happened.

What was never committed is not in it, and neither is an empty answer. What people say during a run enters it where the
model is to hear it, and never between calls and their answers: steering with the next inference, a follow-up when the
run goes on with it. What a run leaves unheard enters with the next prompt, before it.
"""

from collections.abc import Sequence

from agent.events import (
    AnswerCommitted,
    CallAnswered,
    FollowUpGiven,
    HistoryGiven,
    InferenceRequested,
    PromptGiven,
    RunContinued,
    RunEnded,
    SteeringGiven,
)
from agent.messages import AssistantMessage, Message, Messages, ToolMessage, UserMessage
from agent.models import with_ids
from agent.reasons import follow_ups_heard, words_to_the_model
from bp import Event

__all__ = ["Conversation"]


class Conversation:
    """A list of messages that grows with the events."""

    def __init__(self) -> None:
        """Make an empty conversation."""
        self._messages: list[Message] = []
        self._unheard: list[SteeringGiven | FollowUpGiven] = []  # in the order in which they were said

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._messages)

    @property
    def unheard(self) -> tuple[str, ...]:
        """What people said during a run and the model has not been shown yet."""
        return tuple(said.text for said in self._unheard)

    def so_far(self) -> Messages:
        """Return all messages so far, at no cost: what a model is shown."""
        return Messages(self._messages)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case SteeringGiven() | FollowUpGiven():
                self._unheard.append(event)
            case InferenceRequested(draft="d0") if self._unheard:
                self._hear([said for said in self._unheard if isinstance(said, SteeringGiven)])
            case HistoryGiven():
                self._hear(self._unheard)
                self._messages.extend(event.messages)
            case PromptGiven():
                self._hear(self._unheard)
                self._messages.append(UserMessage(event.text, event.images))
            case AnswerCommitted() if not event.is_empty:
                self._messages.append(with_ids(event.message, event.calls))
            case CallAnswered():
                self._messages.append(ToolMessage(event.call, event.result, event.is_error, event.images))
            case RunContinued():
                self._go_on(event)
            case RunEnded(status="limit") if event.text:  # S0 5.1: the conversation says that it was cut short
                self._messages.append(AssistantMessage(event.text))

    def _go_on(self, continued: RunContinued) -> None:
        """Take up what those have to say because of whom the run goes on."""
        self._messages.extend(map(UserMessage, words_to_the_model(continued.refusals)))
        waiting = [said for said in self._unheard if isinstance(said, FollowUpGiven)]
        how_many = {"none": 0, "one": 1, "all": len(waiting)}[follow_ups_heard(continued.refusals)]
        self._hear(waiting[:how_many])

    def _hear(self, heard: Sequence[SteeringGiven | FollowUpGiven]) -> None:
        for said in tuple(heard):
            self._messages.append(UserMessage(said.text))
            self._unheard.remove(said)
