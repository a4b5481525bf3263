"""The conversation: prompts, committed answers and the answers to calls, in the order in which they happened.

What was never committed is not in it, and neither is an empty answer. What people say during a run enters it where the
model is to hear it, and never between calls and their answers: steering with the next inference, a follow-up when the
run goes on with it. What a run leaves unheard enters with the next prompt, before it.
"""

from collections.abc import Callable
from typing import Any

from agent.models.calls import with_ids
from agent.projections.unheard import Unheard
from agent.vocabulary.events import (
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
from agent.vocabulary.messages import AssistantMessage, Message, Messages, ToolMessage, UserMessage
from agent.vocabulary.reasons import follow_ups_heard, words_to_the_model
from bp import Event

__all__ = ["Conversation"]

OWN = "d0"  # the draft with which the loop itself begins each turn


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
    def length(self) -> int:
        """How many messages there are."""
        return len(self._messages)

    @property
    def unheard(self) -> tuple[str, ...]:
        """What people said during a run and the model has not been shown yet."""
        return self._unheard.texts

    def so_far(self) -> Messages:
        """Return all messages so far, at no cost: what a model is shown."""
        return Messages(self._messages)

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        fold = _FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def _committed(self, answer: AnswerCommitted) -> None:
        if not answer.is_empty:
            self._messages.append(with_ids(answer.message, answer.calls))

    def _answered(self, answered: CallAnswered) -> None:
        self._messages.append(ToolMessage(answered.call, answered.result, answered.is_error, answered.images))

    def _asked(self, asked: InferenceRequested) -> None:
        if asked.draft == OWN:
            self._messages.extend(self._unheard.take_steering())

    def _said_meanwhile(self, said: SteeringGiven | FollowUpGiven | MessagesFound) -> None:
        self._unheard.fold(said)

    def _continued(self, continued: RunContinued) -> None:
        self._messages.extend(map(UserMessage, words_to_the_model(continued.refusals)))
        self._messages.extend(self._unheard.take_follow_ups(follow_ups_heard(continued.refusals)))

    def _told_before(self, history: HistoryGiven) -> None:
        self._messages.extend(self._unheard.take_all())  # what an earlier run has left unheard comes first
        self._messages.extend(history.messages)

    def _prompted(self, prompt: PromptGiven) -> None:
        self._messages.extend(self._unheard.take_all())
        self._messages.append(UserMessage(prompt.text, prompt.images))

    def _ended(self, ended: RunEnded) -> None:
        if ended.status == "limit" and ended.text:  # S0 5.1: the conversation says that it was cut short
            self._messages.append(AssistantMessage(ended.text))


_FOLDS: dict[type, Callable[[Conversation, Any], None]] = {
    AnswerCommitted: Conversation._committed,
    CallAnswered: Conversation._answered,
    InferenceRequested: Conversation._asked,
    SteeringGiven: Conversation._said_meanwhile,
    FollowUpGiven: Conversation._said_meanwhile,
    MessagesFound: Conversation._said_meanwhile,
    RunContinued: Conversation._continued,
    HistoryGiven: Conversation._told_before,
    PromptGiven: Conversation._prompted,
    RunEnded: Conversation._ended,
}
