"""The conversation, in the order in which it happened, and the part of it that the model is shown.

Whole units are left out of the context: a user message, or an assistant message with the answers to its calls, so that
no call lacks its answer. The newest user message and the newest unit are always shown. The conversation keeps all.

    summary or notice | units that fit | state block | newest user message | units that fit
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from attrs import define, evolve, frozen

from agent.models.calls import with_ids
from agent.models.model import message_tokens
from agent.projections import Projection
from agent.projections.state import StateTracker
from agent.threads.core import OWN
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    FollowUpGiven,
    HistoryGiven,
    InferenceFailed,
    InferenceRequested,
    MessagesFound,
    PromptGiven,
    RunContinued,
    RunEnded,
    SteeringGiven,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.messages import (
    AssistantMessage,
    Message,
    Messages,
    ToolMessage,
    ToolResult,
    UserMessage,
    with_notices,
    without_middle,
)
from agent.vocabulary.reasons import follow_ups_heard, words_to_the_model

NOT_CARRIED = "left out, no images are shown to the model"
REFUSED = "left out, the model's server refused it"


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
        return message if self.images else without_images(message, NOT_CARRIED)


def without_images(message: Message, why: str) -> Message:
    """Return a message with a line for each of its images, which says `why` it is left out."""
    match message:
        case AssistantMessage():
            return message
        case ToolMessage():
            return evolve(message, result=_in_words(message.result, why))
    return _in_words(message, why)


C = TypeVar("C", UserMessage, ToolResult)


def _in_words(content: C, why: str) -> C:
    return evolve(content, text=with_notices(content.text, content.images, why), images=())


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
        self._messages.append(ToolMessage(answered.call, answered.result))

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
        self._given += self._found
        self._found.clear()
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


LEFT_OUT = UserMessage("[Earlier messages were left out to make room.]")
SUMMED_UP = "[Summary of earlier messages, which were left out to make room:]\n"

ROOM_AFTER_TRIMMING = 0.75
"""The part of the context used after trimming; the rest is room for turns, so that providers can reuse caches."""

ROOM_FOR_RECENT = 0.25
"""The part of the context that recent messages may take when the others are summarized."""


SHORTENED = "\n[Shortened, since all of it is too long for you; ask for a part.]"
SHORTEST_RESULT = 100
"""The tokens that a shortened result has at least."""


def with_shorter_results(messages: Sequence[Message], limit: int) -> Sequence[Message]:
    """Return messages of about `limit` tokens: the longest results of tools are cut in the middle, to one size."""
    sizes = [message_tokens(message) for message in messages]
    results = sorted(size for message, size in zip(messages, sizes, strict=True) if isinstance(message, ToolMessage))
    room, most = limit - sum(sizes) + sum(results), SHORTEST_RESULT
    for number, size in enumerate(results):
        most = max(room // (len(results) - number), SHORTEST_RESULT)
        if size > most:
            break
        room -= size
    return [
        _shortened(message, size, most) if isinstance(message, ToolMessage) and size > most else message
        for message, size in zip(messages, sizes, strict=True)
    ]


def _shortened(message: ToolMessage, size: int, most: int) -> ToolMessage:
    kept = len(message.text) * most // size
    text = without_middle(message.text, kept) + SHORTENED
    return evolve(message, result=evolve(message.result, text=text))


@define
class Unit:
    """Messages that are shown or left out together: from `start` on, with the estimated number of tokens."""

    start: int
    tokens: int


class Context(Projection):
    """The messages of the next inference. `limit`: estimated tokens; None: no limit. A server's error for a context
    that is too long sets one, too; after its error for images those so far are left out.
    """

    def __init__(
        self,
        conversation: Conversation,
        tracker: StateTracker,
        limit: int | None = None,
        carried: Carried = CARRY_ALL,
    ) -> None:
        """Read `conversation` and `tracker`, which must fold each event first."""
        self._conversation, self._tracker = conversation, tracker
        self._limit, self._carried = limit, carried
        self._read = 0  # messages that are in a unit
        self._units: list[Unit] = []
        self._prompt = -1  # the unit of the newest user message
        self._first = 0  # the first unit that is shown
        self._recent = 0  # the first unit that a summary under way leaves out
        self._summed_up = 0  # the first unit that no summary covers
        self._preface: UserMessage | None = None  # the summary of the units before that
        self._tokens = 0  # of the units from the first one on
        self._refused = 0  # messages whose images the server refused, or might have

    @property
    def tokens(self) -> int:
        """The estimated tokens of the messages of the next inference."""
        self._read_on()
        prompt = self._units[self._prompt].tokens if self._is_prompt_apart else 0
        return self._tokens + prompt + (message_tokens(self._preface) if self._preface else 0)

    def messages(self) -> Sequence[Message]:
        """Return the messages for the model now."""
        messages = self._carried.of(self._in_place())
        if self._limit is None or self.tokens <= self._limit:
            return messages
        return with_shorter_results(messages, self._limit)

    @property
    def can_shrink(self) -> bool:
        """Return whether less could be shown: older units, or results that are not the shortest yet."""
        self._read_on()
        older = {*range(self._first, len(self._units) - 1)} - {self._prompt}
        least = 2 * SHORTEST_RESULT
        results = (message for message in self.messages() if isinstance(message, ToolMessage))
        return bool(older) or any(message_tokens(result) > least for result in results)

    def _so_far(self) -> Sequence[Message]:
        conversation = self._conversation.so_far()
        if not self._refused:
            return conversation
        blind = (without_images(message, REFUSED) for message in conversation[: self._refused])
        return [*blind, *conversation[self._refused :]]

    def _in_place(self) -> Sequence[Message]:
        conversation, block = self._so_far(), self._tracker.told_to_model
        if self._preface is None and block is None:
            return conversation
        self._read_on()
        before: list[Message] = [self._preface] if self._preface else []
        start, prompt = self._start_of(self._first), self._start_of(self._prompt)
        apart = [conversation[prompt]] if self._is_prompt_apart else []
        shown = [*before, *apart, *conversation[start:]]
        at = len(before) + (0 if apart else prompt - start)  # the place of the newest user message
        return shown if block is None else [*shown[:at], UserMessage(block), *shown[at:]]

    def _start_of(self, unit: int) -> int:
        """Return the index of the first message of a unit; of the messages to come, if there is no such unit."""
        return self._units[unit].start if 0 <= unit < len(self._units) else self._read

    def older_messages(self) -> tuple[Message, ...]:
        """Return the messages to summarize: the previous summary, and the older ones of those that came since."""
        self._read_on()
        conversation, prompt = self._conversation.so_far(), self._start_of(self._prompt)
        places = range(self._start_of(self._summed_up), self._start_of(self._recent))
        older = [conversation[at] for at in places if at != prompt]
        before = [self._preface] if self._preface and self._summed_up else []
        return (*before, *older) if older else ()

    def _sum_up(self, _: SummaryRequested) -> None:
        self._read_on()
        self._recent = self._first_that_fits(ROOM_FOR_RECENT)

    def _summed(self, summary: SummaryFinished) -> None:
        self._read_on()
        self._summed_up = self._recent
        self._show_from(self._recent, UserMessage(SUMMED_UP + summary.text))

    @property
    def _is_prompt_apart(self) -> bool:
        return 0 <= self._prompt < self._first

    def _read_on(self) -> None:
        """Take new messages into units."""
        if self._conversation.length > self._read:
            for at, message in enumerate(self._conversation.so_far()[self._read :], start=self._read):
                self._add(at, message)
            self._read = self._conversation.length

    def _trim(self, _: InferenceRequested) -> None:
        """Leave old units out when there are too many for the inference that comes now."""
        if self._limit is not None and self.tokens > self._limit:
            first = self._first_that_fits(ROOM_AFTER_TRIMMING)
            if {*range(self._first, first)} - {self._prompt}:  # the prompt is shown in any case
                self._show_from(first, self._preface or LEFT_OUT)

    def _add(self, at: int, message: Message) -> None:
        tokens = message_tokens(message)
        if isinstance(message, ToolMessage) and self._units:
            self._units[-1].tokens += tokens
        else:
            self._units.append(Unit(at, tokens))
        if isinstance(message, UserMessage):
            self._prompt = len(self._units) - 1
        self._tokens += tokens

    def _first_that_fits(self, part: float) -> int:
        """Return the first unit from which on all fit into a part of the limit; the newest one always does."""
        apart = message_tokens(self._preface or LEFT_OUT)
        room = (self._limit or 0) * part - apart - (self._units[self._prompt].tokens if self._prompt >= 0 else 0)
        first, tokens = len(self._units), 0
        while first > self._first:
            added = 0 if first - 1 == self._prompt else self._units[first - 1].tokens
            if tokens + added > room and first < len(self._units):
                break
            first, tokens = first - 1, tokens + added
        return first

    def _show_from(self, first: int, preface: UserMessage) -> None:
        self._tokens -= sum(unit.tokens for unit in self._units[self._first : first])
        self._first, self._preface = first, preface

    def _learn(self, failed: InferenceFailed) -> None:
        """Show less after a server's error: no images that it refused; half, then a fourth, of one that is too long.

        The size that the server would take is unknown.
        """
        if failed.draft != OWN:
            return
        if failed.reason == "images_refused":
            self._refused = self._conversation.length
        elif failed.reason == "context_length_exceeded":
            shown = self.tokens // 2 if self._limit is None else min(self.tokens, self._limit) // 4
            self._limit = max(1, shown)

    FOLDS: ClassVar = {
        InferenceFailed: _learn,
        SummaryRequested: _sum_up,
        SummaryFinished: _summed,
        InferenceRequested: _trim,
    }
