"""The rules, each alone, and what happens without it: only_whole_calls, order, approval, constitution, limits."""

from collections.abc import Callable
from typing import Literal

import pytest

from agent.threads.core import carry_out, gate
from agent.threads.judging import by_constitution
from agent.threads.limits import at_most, empty_answers, retry, too_many_failures
from agent.threads.stopping import abort_on_request, stop_on_request
from agent.threads.tool_calls import answers_in_source_order, no_start_without_approval, one_at_a_time, only_whole_calls
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAnswered,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    FactsConfirmed,
    GateApproved,
    InferenceFailed,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from bp import BThreadBody, bthread, start, sync
from constitution import Action, Level, Verdict
from tests.agent.threads.loops import FLAWED, A, B, C, Loop, action, committed, described, finished

DONE = RunEnded("completed", "answered")
ABORTED = RunEnded("aborted", "abort_asked")


def answered(call: ToolCall, **options: str) -> CallAnswered:
    return CallAnswered(call.id, "x", **options)  # type: ignore[arg-type]


# only_whole_calls


def test_a_flawed_call_is_refused_until_it_is_answered() -> None:
    loop = Loop(only_whole_calls())
    loop.hear(committed(A, FLAWED))

    assert loop.can(ProposedAction(A))
    assert loop.reasons(ProposedAction(FLAWED)) == ["truncated: the arguments break off"]
    loop.hear(answered(FLAWED))
    assert loop.can(ProposedAction(FLAWED))


# one_at_a_time, answers_in_source_order


def test_only_the_first_unanswered_call_is_proposed() -> None:
    loop = Loop(one_at_a_time())
    loop.hear(committed(A, B, C))

    for now, later in [(A, (B, C)), (B, (C,))]:
        assert loop.can(ProposedAction(now))
        assert not any(loop.can(ProposedAction(call)) for call in later)
        loop.hear(answered(now))
    assert loop.can(ProposedAction(C))


def test_a_later_call_that_is_answered_early_is_passed_over() -> None:
    loop = Loop(one_at_a_time())
    loop.hear(committed(A, B, C), answered(B), answered(A))

    assert loop.can(ProposedAction(C))


def test_answers_wait_for_those_before_them() -> None:
    loop = Loop(answers_in_source_order())
    loop.hear(committed(A, B, C))

    assert [loop.can(answered(call)) for call in (A, B, C)] == [True, False, False]
    loop.hear(answered(A))
    assert [loop.can(answered(call)) for call in (B, C)] == [True, False]


@bthread
def carry_out_all(*calls: ToolCall) -> BThreadBody:
    yield sync(wait_for=type(committed()))
    yield start(*[carry_out(call) for call in calls])


# no_start_without_approval


def test_exactly_the_approved_call_value_may_start_once() -> None:
    loop = Loop(no_start_without_approval())
    other_arguments = ToolCall("a", "note", {"text": "other"})
    other_tool = ToolCall("a", "bash", {"text": "a"})

    assert loop.reasons(ToolStarted(A)) == ["the gate did not approve it"]
    loop.hear(GateApproved(A, action(A)))
    assert [loop.can(ToolStarted(call)) for call in (A, other_arguments, other_tool, B)] == [True, False, False, False]
    loop.hear(ToolStarted(A))
    assert not loop.can(ToolStarted(A))


def test_an_approval_is_forgotten_with_its_call() -> None:
    loop = Loop(no_start_without_approval())
    loop.hear(GateApproved(A, action(A)), GateApproved(B, action(B)), answered(A))

    assert [loop.can(ToolStarted(call)) for call in (A, B)] == [False, True]


# by_constitution


def judge_as(level: Level) -> Callable[[Action], Verdict]:
    def judge(_: Action) -> Verdict:
        return Verdict(level, "rule", explanation="why")

    return judge


def judged(level: Level) -> Loop:
    loop = Loop(gate(), by_constitution(judge_as(level)))
    loop.hear(described(A))
    return loop


def test_what_is_allowed_is_approved() -> None:
    assert judged(Level.allow).events[-1] == GateApproved(A, action(A))


def test_what_is_denied_is_rejected_with_the_verdict() -> None:
    [refusal] = judged(Level.deny).events[-1].refusals  # type: ignore[attr-defined]

    assert (refusal.bthread, refusal.because) == ("by_constitution", Verdict(Level.deny, "rule", explanation="why"))


@pytest.mark.parametrize("yes", [True, False])
def test_what_needs_a_person_waits_for_the_answer(yes: bool) -> None:
    loop = judged(Level.ask)

    assert loop.story[-1] == "approval_asked:a"
    assert not loop.can(DONE)
    loop.hear(ApprovalAnswered(A, yes, "because"), *([FactsConfirmed(A)] if yes else []))
    assert loop.story[-1] == ("gate_approved:a" if yes else "gate_rejected:a")
    assert loop.can(DONE)


def test_a_question_is_over_when_somebody_else_refuses() -> None:
    """A yes that comes after the run was asked to stop approves nothing."""
    loop = Loop(gate(), by_constitution(judge_as(Level.ask)), stop_on_request())
    names = loop.hear(described(A), StopAsked(), ApprovalAnswered(A, yes=True))

    assert names == [
        "action_described:a",
        "approval_asked:a",
        "stop_asked",
        "gate_rejected:a",
        "approval_answered:a",
    ]
    assert loop.can(RunEnded("stopped", "stop_asked"))


def test_an_action_that_nobody_could_describe_is_denied() -> None:
    loop = Loop(gate(), by_constitution(judge_as(Level.allow)))
    loop.hear(described(A, problem="no such disk"))

    assert "no such disk" in str(loop.events[-1].refusals)  # type: ignore[attr-defined]


# limits


def test_at_most_counts_committed_answers_of_one_run() -> None:
    loop = Loop(at_most(2, "Enough."))
    loop.hear(committed(text="1"))

    assert loop.can(InferenceRequested())
    loop.hear(committed(text="2"))
    assert loop.reasons(InferenceRequested()) == ["Enough."]
    assert loop.can(DONE)
    assert loop.can(ProposedAction(A))
    loop.hear(DONE)
    assert loop.can(InferenceRequested())


def test_failures_in_a_row_count_tools_in_error_and_invalid_calls() -> None:
    loop = Loop(too_many_failures(3))
    error = ToolFinished(A, "boom", is_error=True)
    loop.hear(error, answered(A), answered(FLAWED, outcome="invalid"), answered(B, outcome="rejected"))

    assert loop.can(InferenceRequested())
    loop.hear(error)
    assert not loop.can(InferenceRequested())
    assert not loop.can(ProposedAction(A))
    assert loop.can(answered(A))


@pytest.mark.parametrize("between", [finished(A), DONE])
def test_a_success_or_a_new_run_begins_the_count_anew(between: ToolFinished | RunEnded) -> None:
    loop = Loop(too_many_failures(2))
    error = ToolFinished(A, "boom", is_error=True)
    loop.hear(error, between, error)

    assert loop.can(InferenceRequested())


def test_empty_answers_in_a_row_end_the_run() -> None:
    loop = Loop(empty_answers(2))
    loop.hear(committed(), committed(A), committed())

    assert loop.can(InferenceRequested())
    loop.hear(committed())
    assert "2 empty answers" in loop.reasons(InferenceRequested())[0]


# retry

BUSY = InferenceFailed("d0", "busy", retryable=True, retry_after=3.0)


def test_after_a_failure_the_next_inference_waits_for_its_backoff() -> None:
    loop = Loop(retry(3))

    assert loop.hear(BUSY) == ["inference_failed", "backoff_started"]
    assert loop.events[-1] == BackoffStarted(1, 3.0)
    assert not loop.can(InferenceRequested())
    assert not loop.can(ABORTED)
    loop.hear(BackoffElapsed(1, 3.0))
    assert loop.can(InferenceRequested())


def test_what_cannot_help_is_refused_at_once() -> None:
    loop = Loop(retry(4))

    assert loop.hear(InferenceFailed("d0", "no such model")) == ["inference_failed"]
    assert loop.reasons(InferenceRequested()) == ["no such model"]


# stopping

NEW = (InferenceRequested(), DONE, ProposedAction(A), GateApproved(A, action(A)), ToolStarted(A))


@pytest.mark.parametrize("after", ["call", "step"])
def test_a_stop_lets_nothing_new_start_until_the_run_has_ended(after: Literal["call", "step"]) -> None:
    loop = Loop(stop_on_request(after))
    loop.hear(StopAsked())

    expected = [False, False, False, False, False] if after == "call" else [False, False, True, True, True]
    assert [loop.can(event) for event in NEW] == expected
    assert loop.can(answered(A))
    assert loop.can(finished(A))
    loop.hear(RunEnded("stopped", "stop_asked"))
    assert all(loop.can(event) for event in NEW)


def test_an_abort_lets_nothing_start_until_the_run_has_ended() -> None:
    loop = Loop(abort_on_request())
    loop.hear(AbortAsked())

    assert not any(loop.can(event) for event in NEW)
    assert loop.can(answered(A))
    loop.hear(ABORTED)
    assert all(loop.can(event) for event in NEW)
