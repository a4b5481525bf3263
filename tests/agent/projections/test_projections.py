"""Projections: what is remembered of what happened."""

from agent.projections.conversation import Conversation
from agent.projections.state import OpenCalls, Totals
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    HistoryGiven,
    InferenceFinished,
    PromptGiven,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, RequestedCall, ToolMessage, Usage, UserMessage
from bp import Event

A, B, C = (ToolCall(id, "note") for id in "abc")
ASKING = AssistantMessage("So.", tuple(RequestedCall(id, "note") for id in ("a", "b", "c")))
COMMITTED = AnswerCommitted("d0", ASKING, (A, B, C))


def conversation(*events: Event) -> Conversation:
    folded = Conversation()
    for event in events:
        folded.fold(event)
    return folded


def open_calls(*events: Event) -> OpenCalls:
    folded = OpenCalls()
    for event in events:
        folded.fold(event)
    return folded


def test_prompts_committed_answers_and_answers_to_calls_are_the_conversation() -> None:
    folded = conversation(
        HistoryGiven((UserMessage("Before"),)), PromptGiven("Go"), COMMITTED, CallAnswered("a", "1", is_error=True)
    )

    assert folded.messages == (UserMessage("Before"), UserMessage("Go"), ASKING, ToolMessage("a", "1", is_error=True))


def test_drafts_and_empty_answers_are_not() -> None:
    empty = AssistantMessage("", reasoning="hm")

    assert conversation(InferenceFinished("d0", ASKING), AnswerCommitted("d0", empty)).messages == ()


def test_the_ids_are_those_of_the_loop() -> None:
    said = AssistantMessage("", (RequestedCall("", "note"), RequestedCall("x", "")))
    calls = (ToolCall("c0001p000", "note"), ToolCall("x", "unnamed"))

    [message] = conversation(AnswerCommitted("d0", said, calls)).messages

    assert isinstance(message, AssistantMessage)
    assert [(call.id, call.name) for call in message.calls] == [("c0001p000", "note"), ("x", "unnamed")]


def test_only_a_limit_adds_its_text() -> None:
    """S0 5.1; all other ends are for the one who asked, not for the model."""
    limit, others = RunEnded("limit", "max_iterations", "Enough."), ("completed", "failed", "stopped", "aborted")

    assert conversation(limit).messages == (AssistantMessage("Enough."),)
    assert conversation(*[RunEnded(status, "r", "t") for status in others]).messages == ()  # type: ignore[arg-type]


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


def test_of_an_open_call_is_told_what_is_known() -> None:
    folded = open_calls(COMMITTED, ToolStarted(A), ToolStarted(B), ToolFinished(B, "2", is_error=True))

    first, second, third = folded.answers()
    assert first.result.startswith("outcome unknown")
    assert second == CallAnswered("b", "2", is_error=True)
    assert third.result == "not executed: the run broke off"


def test_an_answered_call_is_not_open() -> None:
    assert [answer.call for answer in open_calls(COMMITTED, CallAnswered("a", "1")).answers()] == ["b", "c"]
