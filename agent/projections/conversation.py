"""The conversation: prompts, committed answers and the answers to calls, in the order in which they happened."""

from collections.abc import Sequence
from typing import ClassVar

from attrs import evolve, frozen

from agent.models.calls import with_ids
from agent.projections import Projection
from agent.threads.core import OWN
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
from agent.vocabulary.messages import AssistantMessage, Message, Messages, ToolMessage, UserMessage, with_notices
from agent.vocabulary.reasons import follow_ups_heard, words_to_the_model

NOT_CARRIED = "left out, no images are shown to the model"


@frozen
class Carried:
    """A rule: `images` and `reasoning` are sent to the model, or dropped; a line replaces a dropped image."""

    images: bool = True
    reasoning: bool = True

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as they are sent to the model; the conversation keeps everything."""
        if self.images and self.reasoning:
            return messages
        return [self._of_one(message) for message in messages]

    def _of_one(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            return message if self.reasoning else evolve(message, reasoning="", reasoning_items=())
        if self.images or not message.images:
            return message
        return evolve(message, text=with_notices(message.text, message.images, NOT_CARRIED), images=())


CARRY_ALL = Carried()


class Conversation(Projection):
    """A list of messages that grows with the events."""

    def __init__(self) -> None:
        """Make an empty conversation."""
        self._messages: list[Message] = []
        self._given: list[SteeringGiven | FollowUpGiven] = []  # the model has not been shown them yet
        self._found: list[SteeringGiven | FollowUpGiven] = []  # by a hook, and not given yet

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return tuple(self._messages)

    @property
    def length(self) -> int:
        """The number of messages."""
        return len(self._messages)

    @property
    def unheard(self) -> tuple[str, ...]:
        """Texts of users during a run that the model has not been shown yet."""
        return tuple(words.text for words in (*self._given, *self._found))

    def so_far(self) -> Messages:
        """Return all messages so far, without a copy."""
        return Messages(self._messages)

    def _committed(self, answer: AnswerCommitted) -> None:
        if not answer.is_empty:
            self._messages.append(with_ids(answer.message, answer.calls))

    def _answered(self, answered: CallAnswered) -> None:
        self._messages.append(ToolMessage(answered.call, answered.result, answered.is_error, answered.images))

    def _asked(self, asked: InferenceRequested) -> None:
        if self._given and asked.draft == OWN:
            self._take([words for words in self._given if isinstance(words, SteeringGiven)])

    def _give(self, words: SteeringGiven | FollowUpGiven) -> None:
        self._given.append(words)
        if words in self._found:
            self._found.remove(words)

    def _find(self, found: MessagesFound) -> None:
        self._found.extend(map(SteeringGiven if found.what == "steering" else FollowUpGiven, found.texts))

    def _take(self, taken: Sequence[SteeringGiven | FollowUpGiven]) -> None:
        for words in taken:
            self._given.remove(words)
            self._messages.append(UserMessage(words.text, words.images))

    def _take_all(self) -> None:
        """Add all waiting messages, also those that a hook found and that were not given."""
        self._given, self._found = [*self._given, *self._found], []
        self._take(tuple(self._given))

    def _continued(self, continued: RunContinued) -> None:
        self._messages.extend(map(UserMessage, words_to_the_model(continued.refusals)))
        waiting = [words for words in self._given if isinstance(words, FollowUpGiven)]
        self._take(waiting[: {"none": 0, "one": 1, "all": len(waiting)}[follow_ups_heard(continued.refusals)]])

    def _told_before(self, history: HistoryGiven) -> None:
        self._take_all()  # messages that an earlier run has left come first
        self._messages.extend(history.messages)

    def _prompted(self, prompt: PromptGiven) -> None:
        self._take_all()
        self._messages.append(UserMessage(prompt.text, prompt.images))

    def _ended(self, ended: RunEnded) -> None:
        if ended.status == "limit" and ended.text:  # S0 5.1: the conversation says that it was cut short
            self._messages.append(AssistantMessage(ended.text))

    FOLDS: ClassVar = {
        AnswerCommitted: _committed,
        CallAnswered: _answered,
        InferenceRequested: _asked,
        SteeringGiven: _give,
        FollowUpGiven: _give,
        MessagesFound: _find,
        RunContinued: _continued,
        HistoryGiven: _told_before,
        PromptGiven: _prompted,
        RunEnded: _ended,
    }
