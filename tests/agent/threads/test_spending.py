"""doom_loop, the budgets, the deadline and the summaries, each alone, and what happens without it."""

import pytest

from agent.threads.core import converse
from agent.threads.limits import budget_of_cost, budget_of_tokens, budget_per_turn, deadline
from agent.threads.stopping import stop_when_said
from agent.threads.summaries import summarize_when_full
from agent.threads.tool_calls import doom_loop
from agent.vocabulary.calls import ToolCall, signature
from agent.vocabulary.events import (
    ApprovalAnswered,
    CallAnswered,
    DeadlineReached,
    DeadlineSet,
    FollowUpGiven,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolStarted,
)
from agent.vocabulary.messages import Usage
from agent.vocabulary.reasons import Ending, worst_ending
from bp import BThread, Event, Refusal, Refusals
from tests.agent.threads.loops import FLAWED, A, B, Loop, action, committed, message

DONE = RunEnded("completed", "answered")


def again(id: str, text: str = "a") -> ToolCall:
    return ToolCall(id, "note", {"text": text})


def took(tokens: int, cost: float | None = None) -> InferenceFinished:
    return InferenceFinished("d0", message(""), usage=Usage(tokens, 0, cost))


# doom_loop


def test_the_third_identical_proposal_is_refused_and_nothing_more_is_asked_for() -> None:
    loop = Loop(doom_loop(3))
    loop.hear(committed(again("1")), committed(again("2")))
    assert loop.can(InferenceRequested())
    loop.hear(committed(again("3"), B))

    assert loop.reasons(ProposedAction(again("3"))) == ["Stopped: the same call 3 times in a row."]
    assert not loop.can(ProposedAction(B))
    assert not loop.can(InferenceRequested())
    loop.hear(DONE)
    assert loop.can(InferenceRequested())
    assert loop.can(ProposedAction(again("3")))


def test_calls_of_one_answer_count_like_those_of_several() -> None:
    converses = Loop(converse(), doom_loop(2))
    converses.hear()

    story = converses.hear(committed(again("1"), again("2")))

    assert story == ["answer_committed", "proposed_action:1", "call_answered:2"]
    assert converses.hear(CallAnswered("1", "x")) == ["call_answered:1", "run_ended"]
    assert converses.events[-1] == RunEnded("doom_loop", "doom_loop", "Stopped: the same call 2 times in a row.")


@pytest.mark.parametrize("between", [committed(B), DONE, SteeringGiven("Rather this")])
def test_any_other_call_a_new_run_and_steering_begin_the_count_anew(between: Event) -> None:
    loop = Loop(doom_loop(3))
    loop.hear(committed(again("1")), committed(again("2")), between, committed(again("3")))

    assert loop.can(ProposedAction(again("3")))


def test_a_call_that_cannot_be_proposed_neither_counts_nor_resets() -> None:
    loop = Loop(doom_loop(2))
    loop.hear(committed(FLAWED), committed(FLAWED))
    assert loop.can(InferenceRequested())

    loop.hear(committed(again("1")), committed(FLAWED), committed(again("2")))
    assert not loop.can(InferenceRequested())


def test_steering_lets_go_of_a_run_that_was_about_to_end() -> None:
    loop = Loop(doom_loop(2))
    loop.hear(committed(again("1"), again("2")), SteeringGiven("Rather this"))

    assert loop.can(InferenceRequested())


def test_arguments_are_compared_as_json_and_not_as_text() -> None:
    one = ToolCall("1", "t", {"a": 1, "b": {"c": [5.0, True]}})

    assert signature(one) == signature(ToolCall("2", "t", {"b": {"c": (5, True)}, "a": 1}))
    assert signature(one) != signature(ToolCall("2", "t", {"a": 1, "b": {"c": [5, 1]}}))
    assert signature(one) != signature(ToolCall("2", "u", {"a": 1, "b": {"c": [5, True]}}))


# budgets

BUDGETS = [
    (budget_of_tokens(10), "max_tokens", "Stopped: the budget of 10 tokens is used up."),
    (budget_of_cost(10.0), "max_cost", "Stopped: the budget of $10 is used up."),
]


@pytest.mark.parametrize(("bthread", "reason", "text"), BUDGETS)
def test_when_a_budget_is_used_up_no_model_is_asked_any_more(bthread: BThread, reason: str, text: str) -> None:
    loop = Loop(converse(), bthread)
    loop.hear()
    loop.hear(took(4, 4.0), committed(A), CallAnswered("a", "x"), took(6, 6.0))

    assert not loop.can(InferenceRequested("d1"))
    assert not loop.can(SummaryRequested())
    assert loop.can(ProposedAction(B))
    assert loop.hear(committed(B), CallAnswered("b", "x"))[-1] == "run_ended"
    assert loop.events[-1] == RunEnded("limit", reason, text)
    loop.hear()
    assert loop.story[-1] == "inference_requested"


@pytest.mark.parametrize(("bthread", "reason", "text"), BUDGETS)
def test_a_text_that_uses_the_budget_up_is_still_an_answer(bthread: BThread, reason: str, text: str) -> None:
    loop = Loop(converse(), bthread)
    loop.hear()
    loop.hear(took(11, 11.0), committed(text="Done."))

    assert loop.events[-1] == RunEnded("completed", "answered", "Done.")


def test_summaries_and_drafts_that_came_to_nothing_are_paid_for_too() -> None:
    loop = Loop(budget_of_tokens(10))
    loop.hear(took(4), took(4))
    assert loop.can(InferenceRequested())

    loop.hear(SummaryFinished("so far", Usage(1, 1)))
    assert not loop.can(InferenceRequested())


def test_a_turn_may_take_its_budget_and_not_a_token_more() -> None:
    loop = Loop(budget_per_turn(10))
    loop.hear(took(5), took(5), committed(A), took(10), committed(A))
    assert loop.can(InferenceRequested())

    loop.hear(took(6), took(5), committed(A))
    assert loop.reasons(InferenceRequested()) == ["Stopped: a turn took more than the 10 tokens that one may take."]


# deadline


def test_the_clock_is_set_with_the_prompt_and_when_it_runs_down_nothing_starts() -> None:
    loop = Loop(deadline(2.5))

    assert loop.hear() == ["prompt_given", "deadline_set"]
    assert loop.events[-1] == DeadlineSet(2.5)
    new = (
        InferenceRequested(),
        SummaryRequested(),
        DONE,
        ProposedAction(A),
        GateApproved(A, action(A)),
        ToolStarted(A),
    )
    assert all(loop.can(event) for event in new)
    loop.hear(DeadlineReached(2.5))
    assert not any(loop.can(event) for event in new)
    assert loop.can(CallAnswered("a", "x"))
    assert loop.reasons(InferenceRequested()) == ["Stopped: the time limit of 2.5 seconds was reached."]
    loop.hear(RunEnded("limit", "deadline"))
    assert all(loop.can(event) for event in new)


def test_an_ending_by_the_clock_counts_before_the_failures_that_it_causes() -> None:
    def ends(*endings: Ending) -> str:
        ended = worst_ending(Refusals(Refusal("b", ending) for ending in endings))
        return "" if ended is None else ended.reason

    clock, failed = Ending("limit", "deadline"), Ending("failed", "inference_failed")
    stopped, done = Ending("stopped", "stop_asked"), Ending("completed", "success")
    assert ends(failed, clock) == "deadline"
    assert ends(clock, stopped) == "stop_asked"
    assert ends(Ending("limit", "max_iterations"), done) == "success"
    assert ends(Ending("aborted", "abort_asked"), done) == "abort_asked"


# summarize_when_full


def full_turn(loop: Loop) -> None:
    loop.hear()
    loop.hear(took(8), committed(A))


def test_after_a_full_inference_a_summary_comes_before_the_next_one() -> None:
    loop = Loop(converse(), summarize_when_full(8))
    full_turn(loop)

    assert loop.hear(CallAnswered("a", "x")) == ["call_answered:a", "summary_requested"]
    assert not loop.can(RunEnded("stopped", "stop_asked"))
    assert loop.hear(SummaryFinished("so far")) == ["summary_finished", "inference_requested"]


def test_a_failed_summary_holds_nothing_up() -> None:
    loop = Loop(converse(), summarize_when_full(8))
    full_turn(loop)
    loop.hear(CallAnswered("a", "x"))

    assert loop.hear(SummaryFailed("busy")) == ["summary_failed", "inference_requested"]
    assert loop.hear(took(7), committed(A), CallAnswered("a", "x"))[-1] == "inference_requested"


def test_a_full_answer_that_ends_the_run_is_summed_up_before_the_next_run_asks() -> None:
    loop = Loop(converse(), summarize_when_full(8))
    loop.hear()

    assert loop.hear(took(8), committed(text="Done.")) == ["inference_finished", "answer_committed", "run_ended"]
    assert loop.hear() == ["prompt_given", "summary_requested"]


# stop_when_said


@pytest.mark.parametrize(
    "said",
    [
        SteeringGiven("please Stop it"),
        FollowUpGiven("nonstop"),
        ApprovalAnswered(A, yes=False, text="no, STOP"),
    ],
)
def test_the_letters_stop_in_whatever_is_said_ask_for_a_stop(said: SteeringGiven) -> None:
    loop = Loop(stop_when_said())
    loop.hear(said)

    assert loop.events[-1] == StopAsked(said.text)


def test_other_words_do_not() -> None:
    assert Loop(stop_when_said()).hear(SteeringGiven("go on"), ApprovalAnswered(A, yes=True)) == [
        "steering_given",
        "approval_answered:a",
    ]


def test_a_run_that_goes_on_after_a_full_text_is_summed_up_first() -> None:
    loop = Loop(summarize_when_full(8))
    loop.hear(PromptGiven("Go"), took(8), committed(text="Done."))

    assert loop.hear(RunContinued(Refusals())) == ["run_continued", "summary_requested"]
