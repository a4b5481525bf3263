"""What the model is shown: whole units, the newest prompt always, and a summary or a notice for what was left out."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent.models.model import message_tokens
from agent.projections.context import LEFT_OUT, SUMMED_UP, Context
from agent.projections.conversation import Conversation
from agent.projections.state import StateTracker
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    HistoryGiven,
    InferenceRequested,
    PromptGiven,
    RunEnded,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
)
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage, UserMessage
from bp import Event
from tests.agent.threads.loops import message

LONG = "x" * 400  # 100 tokens


class Shown:
    """A conversation, a tracker and a context that fold the same events."""

    def __init__(self, limit: int | None) -> None:
        self.conversation, tracker = Conversation(), StateTracker()
        self.context = Context(self.conversation, tracker, limit)
        self._projections = (self.conversation, tracker, self.context)

    def fold(self, *events: Event) -> Sequence[Message]:
        """Fold events, and return what the model is shown for an inference after them."""
        self.take(*events, InferenceRequested())
        return self.context.messages()

    def take(self, *events: Event) -> None:
        for event in events:
            for projection in self._projections:
                projection.fold(event)


def turn(number: int, *results: str) -> tuple[Event, ...]:
    """An answer with calls, and what they gave."""
    calls = tuple(ToolCall(f"{number}-{at}", "note") for at in range(len(results)))
    answers = (CallAnswered(call.id, result) for call, result in zip(calls, results, strict=True))
    return (AnswerCommitted("d0", message(f"turn {number}", *calls), calls), *answers)


def test_without_a_limit_the_conversation_is_shown_as_it_is() -> None:
    shown = Shown(None)
    messages = shown.fold(PromptGiven("Go"), *(event for number in range(30) for event in turn(number, LONG)))

    assert tuple(messages) == shown.conversation.messages
    assert len(messages) == 61


def test_the_oldest_units_are_left_out_and_the_newest_prompt_stays() -> None:
    shown = Shown(500)
    shown.fold(PromptGiven("First"), *turn(0, LONG), RunEnded("completed", "answered"), PromptGiven("Second"))
    messages = shown.fold(*(event for number in range(1, 9) for event in turn(number, LONG)))

    assert messages[0] == LEFT_OUT
    assert messages[1] == UserMessage("Second")
    assert messages[-1] == ToolMessage("8-0", LONG)
    assert sum(map(message_tokens, messages)) <= 500
    assert shown.context.tokens == sum(map(message_tokens, messages))
    assert len(shown.conversation.messages) == 20  # it keeps everything


def test_the_newest_unit_is_shown_even_if_it_does_not_fit() -> None:
    messages = Shown(50).fold(PromptGiven("Go"), *turn(1, "short"), *turn(2, LONG, LONG))

    assert [message.text[:6] for message in messages[1:]] == ["Go", "turn 2", "xxxxxx", "xxxxxx"]


def test_once_it_was_shortened_the_beginning_stays_the_same_for_a_while() -> None:
    """What a provider has read once it can reuse, unless the beginning changes at every turn."""
    shown, beginnings = Shown(1000), set()
    shown.fold(PromptGiven("Go"))
    for number in range(40):
        messages = shown.fold(*turn(number, LONG))
        beginnings.add(tuple(messages[:3]))

    assert len(beginnings) < 20


parts = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 600), max_size=3)), max_size=25)


@given(parts, st.integers(1, 700))
def test_a_call_is_never_shown_without_its_answer_nor_an_answer_without_its_call(
    turns: list[tuple[bool, list[int]]], limit: int
) -> None:
    shown = Shown(limit)
    newest = "go"
    shown.fold(PromptGiven(newest))
    for number, (prompts, lengths) in enumerate(turns):
        if prompts:
            newest = f"prompt {number}"
            shown.fold(PromptGiven(newest))
        messages = shown.fold(*turn(number, *("y" * length for length in lengths)))

        assert_whole(messages)
        assert [m for m in messages if m == UserMessage(newest)] == [UserMessage(newest)]
        fits = sum(map(message_tokens, messages)) <= limit
        assert fits or sum(isinstance(m, AssistantMessage) for m in messages) == 1  # the newest unit alone


def assert_whole(messages: Sequence[Message]) -> None:
    open_calls: list[str] = []
    for message_ in messages:
        if isinstance(message_, ToolMessage):
            assert message_.call_id in open_calls
            open_calls.remove(message_.call_id)
        else:
            assert not open_calls
            if isinstance(message_, AssistantMessage):
                open_calls = [call.id for call in message_.calls]
    assert not open_calls


def test_a_history_that_was_given_is_cut_in_units_too() -> None:
    call = RequestedCall("h", "note", "{}")
    history = (UserMessage(LONG), AssistantMessage("a", (call,)), ToolMessage("h", LONG), AssistantMessage("b"))
    messages = Shown(150).fold(HistoryGiven(history), PromptGiven("Go"))

    assert tuple(messages) == (LEFT_OUT, AssistantMessage("b"), UserMessage("Go"))


def test_a_summary_takes_the_place_of_what_it_sums_up() -> None:
    shown = Shown(800)
    shown.take(PromptGiven("Go"), *(event for number in range(5) for event in turn(number, LONG)))
    shown.take(SummaryRequested())

    older = shown.context.older_messages()
    assert [m.text for m in older if isinstance(m, AssistantMessage)] == ["turn 0", "turn 1", "turn 2", "turn 3"]
    assert UserMessage("Go") not in older
    messages = shown.fold(SummaryFinished("Notes were taken."))
    assert messages[0] == UserMessage(f"{SUMMED_UP}Notes were taken.")
    assert [m.text for m in messages[1:3]] == ["Go", "turn 4"]
    assert len(shown.conversation.messages) == 11

    shown.fold(*(event for number in range(5, 15) for event in turn(number, LONG)))
    shown.take(SummaryRequested())
    older = shown.context.older_messages()
    assert older[0] == messages[0]  # the summary before is summed up too
    assert older[1] == AssistantMessage("turn 4", (RequestedCall("4-0", "note"),))  # and what was left out since then


def test_when_no_summary_comes_what_does_not_fit_is_left_out_all_the_same() -> None:
    shown = Shown(300)
    shown.fold(PromptGiven("Go"), *turn(0, LONG), SummaryRequested())
    messages = shown.fold(*turn(1, LONG), *turn(2, LONG), *turn(3, LONG))

    assert sum(map(message_tokens, messages)) <= 300


def test_the_state_block_stands_before_the_prompt_also_when_older_messages_are_left_out() -> None:
    pursue = ToolCall("p", "pursue_objective", {"user_prompt": "Go", "objective": "All"})
    shown = Shown(300)
    shown.fold(PromptGiven("Go"), ToolFinished(pursue, "ok"))
    messages = shown.fold(*(event for number in range(6) for event in turn(number, LONG)))

    assert messages[0] == LEFT_OUT
    assert messages[1].text.startswith("[You are in an agentic loop: iteration 7")
    assert messages[2] == UserMessage("Go")
