"""Projections: what is remembered of what happened."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.model import message_tokens
from agent.projections.conversation import LEFT_OUT, SUMMED_UP, Context, Conversation
from agent.projections.narration import Narration
from agent.projections.state import StateTracker, Totals, told_to_model, told_to_user
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    CallAnswered,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    PromptGiven,
    RunEnded,
    SteeringGiven,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import (
    AssistantMessage,
    Message,
    RequestedCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from bp import Event
from constitution import Action
from constitution.action import PathUse
from tests.agent.threads.loops import committed, message

A, B, C = (ToolCall(id, "note") for id in "abc")
ASKING = AssistantMessage("So.", tuple(RequestedCall(id, "note") for id in ("a", "b", "c")))
COMMITTED = AnswerCommitted("d0", ASKING, (A, B, C))


def test_totals_count_turns_starts_and_tokens_of_all_drafts() -> None:
    totals = Totals()
    for event in (
        InferenceFinished("d0", ASKING, usage=Usage(1, 2)),
        InferenceFinished("d1", ASKING, usage=Usage(10, 20)),
        COMMITTED,
        ToolStarted(A),
    ):
        totals.fold(event)

    assert (totals.turns, totals.tool_starts, totals.usage) == (1, 1, Usage(11, 22))


# A run told as the events of S2, and what people said that was not heard


def told(narration: Narration, *events: Event) -> list[str]:
    return [one.type for event in events for one in narration.tell(event)]


def test_messages_of_earlier_runs_are_not_told_again() -> None:
    narration = Narration()
    types = told(narration, HistoryGiven((UserMessage("Before"),)), PromptGiven("Go"))

    assert types == ["agent_start", "turn_start", "message_start", "message_end"]
    assert narration.new_messages == (UserMessage("Go"),)


def test_a_turn_that_fails_is_one_turn_however_often_it_is_tried() -> None:
    narration = Narration()
    asked, failed = InferenceRequested(), InferenceFailed("d0", "busy", retryable=True)

    types = told(narration, PromptGiven("Go"), asked, failed, asked, failed, RunEnded("failed", "inference_failed"))

    assert (types.count("turn_start"), types.count("turn_end"), types[-1]) == (1, 1, "agent_end")


def test_a_message_that_a_hook_found_is_kept_when_the_run_ends_first() -> None:
    conversation = Conversation()
    found = MessagesFound("steering", ("this", "that"))
    for event in (PromptGiven("Go"), found, SteeringGiven("this"), RunEnded("aborted", "abort_asked")):
        conversation.fold(event)
    left = conversation.unheard

    conversation.fold(PromptGiven("Go on"))

    assert conversation.messages == tuple(map(UserMessage, ("Go", "this", "that", "Go on")))
    assert (left, conversation.unheard) == (("this", "that"), ())


def test_a_draft_of_a_protocol_takes_nothing_that_was_said() -> None:
    conversation = Conversation()
    conversation.fold(SteeringGiven("this"))

    conversation.fold(InferenceRequested("d1", role="trusted"))

    assert conversation.unheard == ("this",)


# The state tracker: what it reads of events, and how it is told


PURSUE = ToolCall("p", "pursue_objective", {"user_prompt": "Go", "objective": "All"})


def tracked(*events: Event) -> StateTracker:
    tracker = StateTracker(25)
    for event in (PromptGiven("Go"), *events):
        tracker.fold(event)
    return tracker


def described(call: ToolCall, **facts: Any) -> ActionDescribed:
    return ActionDescribed(call, Action(call.tool, "write", "/w", **facts))


def result(call: ToolCall, text: str = "out", **details: Any) -> ToolFinished:
    return ToolFinished(call, ToolResult(text, details=details))


def test_iterations_are_counted_from_the_objective_on_and_each_run_begins_anew() -> None:
    tracker = tracked(committed(PURSUE), result(PURSUE), committed(), committed())
    assert (tracker.state.iteration, tracker.state.objective) == (3, "All")

    tracker.fold(RunEnded("limit", "max_iterations"))
    assert (tracker.state.iteration, tracker.state.objective) == (3, "All")  # still there to be told
    tracker.fold(PromptGiven("More"))
    assert (tracker.state.iteration, tracker.state.objective, tracker.state.user_prompt) == (1, None, "More")


def test_files_are_those_that_the_gate_saw_or_that_the_tool_names() -> None:
    write, read, shell = (ToolCall(name, name) for name in ("write", "read", "shell"))
    uses = (PathUse("a", "/w/a", "write"), PathUse("b", "/w/b", "read"), PathUse("c", "/w/c", "delete"))
    failed = ToolFinished(write, ToolResult("no", is_error=True))
    events = (described(write, paths=uses), result(write), described(read, paths=uses[1:2]), result(read))
    tracker = tracked(*events, described(shell, command="make"), result(shell, modified=("/w/x", "/w/a")))

    assert tracker.state.files_modified == ("/w/a", "/w/c", "/w/x")
    assert tracked(described(write, paths=uses), failed).state.files_modified == ()


def test_the_last_command_is_the_one_that_the_gate_saw_or_that_the_tool_names() -> None:
    shell, terminal = ToolCall("s", "bash"), ToolCall("t", "terminal")
    tracker = tracked(described(shell, command="make"), result(shell, exit_code=2))
    assert tracker.state.last_command is not None
    assert (tracker.state.last_command.text, tracker.state.last_command.exit_code) == ("make", 2)

    tracker.fold(result(terminal, command="ls", exit_code=None))
    assert (tracker.state.last_command.text, tracker.state.last_command.exit_code) == ("ls", None)


def test_a_command_outside_of_a_terminal_is_for_the_user_and_not_for_the_model() -> None:
    """S1 3.2: directory and last command while a terminal is open; the rest stands in the conversation."""
    shell = ToolCall("s", "bash")
    state = tracked(result(PURSUE), described(shell, command="make"), result(shell, exit_code=2)).state

    assert "make" not in str(told_to_model(state))
    assert told_to_user(state).splitlines() == [
        "Objective: All",
        "Iterations: 0",
        "Last command: make (exit code 2)",
        "Its output: out",
    ]


def test_a_terminal_stays_open_over_runs_until_it_is_closed() -> None:
    terminal = ToolCall("t", "terminal")
    tracker = tracked(result(terminal, terminal="open", cwd="/w/src"), RunEnded("completed", "answered"))
    tracker.fold(PromptGiven("More"))
    assert (tracker.state.terminal, tracker.state.cwd) == ("open", "/w/src")

    tracker.fold(result(terminal, terminal="closed"))
    assert (tracker.state.terminal, tracker.state.cwd) == ("closed", None)


def test_the_block_is_concise_whatever_it_is_given() -> None:
    tall = ToolCall("p", "pursue_objective", {"user_prompt": "u\n" * 2000, "objective": "o" * 5000})
    files = tuple(f"/w/{number}" for number in range(500))
    terminal = result(
        ToolCall("t", "terminal"), "z" * 100_000, terminal="open", cwd="/w", command="make", modified=files
    )
    block = str(told_to_model(tracked(result(tall), terminal).state))

    assert len(block) < 2500
    assert "and 480 more" in block


def test_there_is_no_block_before_an_objective_and_after_the_run() -> None:
    answer: AnswerCommitted = committed(text="Hello.")

    assert told_to_model(tracked(answer).state) is None
    assert told_to_model(tracked(result(PURSUE), RunEnded("completed", "success")).state) is None


# What the model is shown: whole units, the newest prompt always, and a summary or a notice for what was left out


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
    answers = (CallAnswered(call.id, ToolResult(result)) for call, result in zip(calls, results, strict=True))
    return (AnswerCommitted("d0", message(f"turn {number}", *calls), calls), *answers)


def test_the_oldest_units_are_left_out_and_the_newest_prompt_stays() -> None:
    shown = Shown(500)
    shown.fold(PromptGiven("First"), *turn(0, LONG), RunEnded("completed", "answered"), PromptGiven("Second"))
    messages = shown.fold(*(event for number in range(1, 9) for event in turn(number, LONG)))

    assert messages[0] == LEFT_OUT
    assert messages[1] == UserMessage("Second")
    assert messages[-1] == ToolMessage("8-0", ToolResult(LONG))
    assert sum(map(message_tokens, messages)) <= 500
    assert shown.context.tokens == sum(map(message_tokens, messages))
    assert len(shown.conversation.messages) == 20  # it keeps everything


def test_once_it_was_shortened_the_beginning_stays_the_same_for_a_while() -> None:
    """What a provider has read once it can reuse, unless the beginning changes at every turn."""
    shown, beginnings = Shown(1000), set()
    shown.fold(PromptGiven("Go"))
    for number in range(40):
        messages = shown.fold(*turn(number, LONG))
        beginnings.add(tuple(messages[:3]))

    assert len(beginnings) < 20


parts = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 600), max_size=3)), max_size=25)


@pytest.mark.slow
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


def test_the_state_block_stands_before_the_prompt_also_when_older_messages_are_left_out() -> None:
    pursue = ToolCall("p", "pursue_objective", {"user_prompt": "Go", "objective": "All"})
    shown = Shown(300)
    shown.fold(PromptGiven("Go"), ToolFinished(pursue, ToolResult("ok")))
    messages = shown.fold(*(event for number in range(6) for event in turn(number, LONG)))

    assert messages[0] == LEFT_OUT
    assert messages[1].text.startswith("[You are in an agentic loop: iteration 7")
    assert messages[2] == UserMessage("Go")
