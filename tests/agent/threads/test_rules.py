"""The rules of the loop: an invariant says what must not happen, and these tests what has to."""

import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, tool
from agent.presets import DEFAULT
from agent.threads.core import CORE, carry_out, choose, converse, gate, session
from agent.threads.endings import (
    COMPLETE,
    PURSUE,
    abort_on_request,
    at_most,
    budget_of_cost,
    budget_of_tokens,
    budget_per_turn,
    complete_to_finish,
    deadline,
    empty_answers,
    iterations_at_most,
    one_objective,
    retry,
    stop_on_request,
    stop_when_said,
    too_many_failures,
)
from agent.threads.judging import Judge, by_constitution, rights_beyond
from agent.threads.steering import continue_with_follow_ups, seek_steering, skip_when_steered
from agent.threads.summaries import recover_from_overflow, summarize_when_full
from agent.threads.tool_calls import answers_in_source_order, doom_loop, no_start_without_approval, one_at_a_time
from agent.vocabulary.calls import ToolCall, signature
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    BackoffElapsed,
    CallAnswered,
    DeadlineReached,
    DraftsRefused,
    DraftsSettled,
    FollowUpGiven,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    RunStatus,
    SteeringGiven,
    StopAsked,
    SummaryFinished,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult, Usage
from agent.vocabulary.reasons import Declined, Ending, Flaw, FollowUpWaits, Steered, rejected, worst_ending
from bp import BThread, BThreadBody, Event, Refusal, Refusals, bthread, sync
from constitution import GRANTED, POLICIES, Action, Level, Verdict
from constitution.action import PathUse
from tests.agent.threads.loops import FLAWED, A, B, Loop, action, committed, described, drafted, finished, message
from tests.tables import rows

DONE = RunEnded("completed", "answered", "Done.")


@bthread
def refuse(events: object, because: object) -> BThreadBody:
    while True:
        yield sync(refuse=events, because=because)


# session


def test_between_runs_only_a_prompt_or_a_history_may_come() -> None:
    loop = Loop(session())
    loop.hear(HistoryGiven(()))

    assert loop.can(PromptGiven("Go"))
    assert not any(loop.can(event) for event in (StopAsked(), AbortAsked(), InferenceRequested(), DONE))


def test_a_prompt_during_a_run_waits_for_its_end() -> None:
    loop = Loop(session())
    loop.hear()
    assert not any(map(loop.can, (PromptGiven("And this"), HistoryGiven(()))))

    loop.hear(DONE)
    assert loop.can(PromptGiven("And this"))


# converse


def test_when_completion_is_refused_with_an_ending_the_run_ends_so() -> None:
    loop = Loop(converse(), refuse(DONE, Ending("stopped", "asked")))
    loop.hear()
    loop.hear(committed(text="Done."))

    assert loop.events[-1] == RunEnded("stopped", "asked")


# choose


def test_all_drafts_that_were_asked_for_are_waited_for() -> None:
    loop = Loop(choose())
    first, second = drafted("One."), drafted("Two.", draft="d1")

    assert loop.hear(InferenceRequested(), InferenceRequested("d1"), second)[-1] == "inference_finished"
    assert loop.hear(first) == ["inference_finished", "drafts_settled", "answer_committed"]
    assert loop.events[-2:] == [DraftsSettled(("d1", "d0")), AnswerCommitted("d1", second.message)]


# carry_out and gate


@pytest.mark.parametrize(
    ("refused", "because", "text", "outcome"),
    [
        (ProposedAction, Flaw("no tool 'x'"), "not executed: no tool 'x'", "invalid"),
        (ProposedAction, Ending("stopped", "asked", "Stopped."), "skipped: Stopped.", "ended"),
        (ProposedAction, "too many", "rejected: refuse: too many", "ended"),
        (GateApproved, "secret read", "rejected: refuse: secret read", "rejected"),
        (
            GateApproved,
            Declined(Verdict(Level.ask, "r"), "no person present", present=False),
            "denied: no person present (refuse: no person present: ask: r: no rule objects)",
            "rejected",
        ),
        (ToolStarted, "not approved", "rejected: refuse: not approved", "ended"),
    ],
)
def test_a_refusal_at_any_gate_is_the_answer(refused: object, because: object, text: str, outcome: str) -> None:
    """Exactly one answer, whoever refuses, and it says why."""
    loop = Loop(carry_out(A), gate(), refuse(refused, because))
    loop.hear(described(A))

    [answered] = [event for event in loop.events if isinstance(event, CallAnswered)]
    assert answered == CallAnswered("a", ToolResult(text, is_error=True), outcome=outcome)  # type: ignore[arg-type]
    assert not any(isinstance(event, ToolStarted) for event in loop.events)


def test_a_flaw_of_the_call_is_the_first_reason_and_the_end_of_the_run_the_last() -> None:
    ending, flaw = Ending("stopped", "asked", "Stopped."), Flaw("truncated: ...")
    for because, text in [
        ((ending, "not today", flaw), "not executed: truncated: ..."),
        ((ending, "not today"), "rejected: refuse: not today"),
    ]:
        loop = Loop(carry_out(A), *(refuse(ProposedAction, reason) for reason in because))

        assert [event.result.text for event in loop.events if isinstance(event, CallAnswered)] == [text]


def test_the_gate_names_every_b_thread_that_refuses() -> None:
    for first, second in [("x", "y"), ("y", "x")]:
        loop = Loop(gate(), refuse(GateApproved, first), refuse(GateApproved, second))
        loop.hear(described(A))

        expected = Refusals((Refusal("refuse", "y"), Refusal("refuse", "x")))
        assert loop.events[-1] == GateRejected(A, expected)


# A thousand calls of one answer take time in proportion to their number


@tool(category="read", parallel=True)
def look(at: int) -> str:
    """Look."""
    return str(at)


def processor_time(calls: int, folder: Path) -> float:
    """Seconds of a processor for one answer with so many calls that run together."""
    preset = evolve(DEFAULT, max_failures=None)
    steps: list[Any] = [answer("", *[call("look", at=number) for number in range(calls)]), "Done."]
    begin = time.process_time()
    with Agent(ScriptedModel(steps), [look], preset=preset, log=folder / f"{calls}.jsonl") as agent:
        run = agent.run_sync("Look")
    assert run.status == "completed"
    return time.process_time() - begin


@pytest.mark.slow
def test_four_times_the_calls_take_about_four_times_as_long(tmp_path: Path) -> None:
    processor_time(50, tmp_path)  # what is loaded and learned once

    few, many = (min(processor_time(calls + again, tmp_path) for again in range(2)) for calls in (250, 1000))

    assert many / few < 9, "in proportion 4, in squares 16"


def again(id: str, text: str = "a") -> ToolCall:
    return ToolCall(id, "note", {"text": text})


def took(tokens: int, cost: float | None = None) -> InferenceFinished:
    return InferenceFinished("d0", message(""), usage=Usage(tokens, 0, cost))


# by_constitution


DECLARED = Action("deploy", "write", "/ws", cwd="/ws", argv=("curl", "https://example.com"))


WRITTEN = PathUse("a", "/ws/a", "write")


@rows(
    ("policy", "changes", "level", "is_granted"),
    [
        ("workspace", {}, "allow", True),
        ("default", {}, "ask", False),
        ("workspace", {"category": "admin"}, "ask", False),
        ("workspace", {"category": "read"}, "ask", False),
        ("workspace", {"argv": (), "command": "curl https://example.com"}, "ask", False),
        ("workspace", {"command": "curl https://example.com"}, "ask", False),
        ("workspace", {"argv": ("rm", "-rf", "/")}, "deny", False),
    ],
)
def test_s0_6_1_a_tool_that_is_declared_to_write_needs_no_yes_in_workspace_and_every_other_call_does(
    policy: str, changes: dict[str, Any], level: str, is_granted: bool
) -> None:
    verdict = Judge(POLICIES[policy])(evolve(DECLARED, **changes))

    assert (verdict.level.name, verdict.granted) == (level, is_granted)


@rows(
    ("facts", "rights"),
    [
        ({"sandbox": "bubblewrap", "rights": ("write /a",), "needs": ("network",)}, ("write /a", "network")),
        ({"sandbox": "bubblewrap", "rights": ("network a.example",), "needs": ("network",)}, ("network a.example",)),
        (
            {"sandbox": "bubblewrap", "rights": ("network a.example", "write /a"), "needs": ("network",)},
            ("network a.example", "write /a"),
        ),
        ({"sandbox": "none", "rights": ("network",)}, ()),
        ({"rights": ("network",)}, ()),
    ],
)
def test_a_yes_gives_the_rights_that_a_confined_call_asks_for_and_needs(
    facts: dict[str, Any], rights: tuple[str, ...]
) -> None:
    assert rights_beyond(evolve(DECLARED, **facts)) == rights


# doom_loop


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


def test_steering_continues_a_run_that_was_about_to_end() -> None:
    loop = Loop(doom_loop(2))
    loop.hear(committed(again("1"), again("2")), SteeringGiven("Rather this"))

    assert loop.can(InferenceRequested())


def test_calls_before_the_one_that_is_repeated_still_run() -> None:
    loop = Loop(doom_loop(2))
    loop.hear(committed(B, again("1"), again("2")))

    assert [loop.can(ProposedAction(call)) for call in (B, again("1"), again("2"))] == [True, True, False]


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


# What a rule has counted ends with the run


OVER = RunEnded("failed", "over")
FAILED = InferenceFailed("d0", "no connection")


@rows(
    ("rule", "events", "refused"),
    [
        (at_most(2), (committed(A), committed(A)), InferenceRequested()),
        (iterations_at_most(2), (committed(A), committed(A)), InferenceRequested()),
        (iterations_at_most(1), (finished(ToolCall("p", PURSUE)), committed(A)), InferenceRequested()),
        (too_many_failures(2), (finished(A, is_error=True), finished(A, is_error=True)), InferenceRequested()),
        (empty_answers(2), (committed(), committed()), InferenceRequested()),
        (budget_of_tokens(2), (took(1), took(1)), InferenceRequested()),
        (budget_of_cost(2.0), (took(1, 1.0), took(1, 1.0)), InferenceRequested()),
        (budget_per_turn(1), (took(1), took(1)), InferenceRequested()),
        (doom_loop(2), (committed(again("1")), committed(again("2"))), InferenceRequested()),
        (retry(1), (FAILED,), InferenceRequested()),
        (stop_on_request(), (StopAsked(),), ProposedAction(A)),
        (abort_on_request(), (AbortAsked(),), ProposedAction(A)),
        (one_objective(), (finished(ToolCall("p", PURSUE)),), GateApproved(ToolCall("q", PURSUE), action(A))),
        (complete_to_finish(), (finished(ToolCall("c", COMPLETE)),), InferenceRequested()),
        (complete_to_finish(after_objective=True), (finished(ToolCall("p", PURSUE)),), DONE),
    ],
)
def test_what_a_rule_has_counted_ends_with_the_run(rule: BThread, events: tuple[Event, ...], refused: Event) -> None:
    *before, last = events
    loop = Loop(rule)
    for _ in range(2):
        loop.hear(PromptGiven("Go"), *before, OVER)
        loop.hear(PromptGiven("Go"), *before)
        assert loop.can(refused)

        loop.hear(last)
        assert not loop.can(refused)
        loop.hear(OVER)
        assert loop.can(refused)


def test_after_an_objective_was_completed_another_may_be_taken() -> None:
    loop = Loop(one_objective())
    loop.hear(finished(ToolCall("p", PURSUE)), finished(ToolCall("c", COMPLETE)))

    assert loop.can(GateApproved(ToolCall("q", PURSUE), action(A)))


# deadline


def test_the_time_of_each_run_is_its_own_and_nothing_new_begins_when_it_has_elapsed() -> None:
    loop = Loop(deadline(5))
    assert loop.hear() == ["prompt_given", "deadline_set"]
    loop.hear(DONE)
    assert loop.hear() == ["prompt_given", "deadline_set"]

    loop.hear(DeadlineReached(5))
    new = (InferenceRequested(), ProposedAction(A), ToolStarted(A), DONE)
    assert [loop.reasons(event) for event in new] == [["Stopped: the time limit of 5 seconds was reached."]] * len(new)

    loop.hear(RunEnded("limit", "deadline"))
    assert loop.hear() == ["prompt_given", "deadline_set"]
    assert all(map(loop.can, new))


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


# summarize_when_full, recover_from_overflow


TOO_LONG = InferenceFailed("d0", "too long", retryable=True, reason="context_length_exceeded")
NO_DRAFT, SUMMED_UP = DraftsSettled(), SummaryFinished("so far")


@rows(
    ("first", "is_summed_up"),
    [
        ((), True),
        ((TOO_LONG, committed(A)), True),  # another model has answered
        ((TOO_LONG, NO_DRAFT, SUMMED_UP, committed(A)), True),  # the next turn
        ((TOO_LONG, NO_DRAFT, SUMMED_UP, DONE), True),  # the next run
        ((TOO_LONG, NO_DRAFT, SUMMED_UP), False),
        ((TOO_LONG, NO_DRAFT, SUMMED_UP, TOO_LONG, NO_DRAFT, DONE), True),
    ],
)
def test_a_conversation_that_is_too_long_is_summed_up_once_in_a_turn(
    first: tuple[Event, ...], is_summed_up: bool
) -> None:
    loop = Loop(recover_from_overflow(summarize=True))
    loop.hear(HistoryGiven(()), *first)

    assert (loop.hear(TOO_LONG, NO_DRAFT)[-1] == "summary_requested") is is_summed_up
    assert loop.can(InferenceRequested()) is not is_summed_up
    if is_summed_up:
        assert not loop.can(DONE)
        assert loop.hear(SUMMED_UP) == ["summary_finished"]
        assert loop.can(InferenceRequested())


def test_where_no_less_of_a_conversation_helps_the_run_ends_with_the_cure() -> None:
    again, least = (TOO_LONG, NO_DRAFT), (evolve(TOO_LONG, retryable=False), NO_DRAFT)
    for summarize, overflows in [(False, (*again, *again, *again, *again)), (False, least), (True, least)]:
        loop = Loop(recover_from_overflow(summarize))
        loop.hear(*overflows[:-2])
        assert loop.can(InferenceRequested())
        loop.hear(*overflows[-2:])

        [because] = loop.reasons(InferenceRequested())
        assert "Give a shorter prompt" in because
        loop.hear(RunEnded("failed", "context_length_exceeded"))
        assert loop.can(InferenceRequested())


def test_a_full_answer_that_ends_the_run_is_summed_up_before_the_next_run_asks() -> None:
    loop = Loop(converse(), summarize_when_full(8))
    loop.hear()

    assert loop.hear(took(8), committed(text="Done.")) == ["inference_finished", "answer_committed", "run_ended"]
    assert loop.hear() == ["prompt_given", "summary_requested"]


def test_what_is_not_full_is_not_summed_up_and_calls_are_answered_first() -> None:
    loop = Loop(summarize_when_full(8))
    loop.hear(
        PromptGiven("Go"),
        took(7),
        committed(A, B),
        CallAnswered("a", ToolResult("")),
        CallAnswered("b", ToolResult("")),
    )
    assert loop.story[-1] == "call_answered:b"

    assert loop.hear(took(8), committed(A, B), CallAnswered("a", ToolResult("")))[-1] == "call_answered:a"
    assert loop.hear(CallAnswered("b", ToolResult(""))) == ["call_answered:b", "summary_requested"]


def test_a_run_that_goes_on_after_a_full_text_is_summed_up_first() -> None:
    loop = Loop(summarize_when_full(8))
    loop.hear(PromptGiven("Go"), took(8), committed(text="Done."))

    assert loop.hear(RunContinued(Refusals())) == ["run_continued", "summary_requested"]


def test_the_letters_stop_in_whatever_is_said_and_they_alone_ask_for_a_stop() -> None:
    stop, rest = SteeringGiven("please Stop it"), SteeringGiven("go on")
    for said in (stop, FollowUpGiven("nonstop"), ApprovalAnswered(A, yes=False, text="no, STOP")):
        loop = Loop(stop_when_said())
        assert loop.hear(rest, ApprovalAnswered(A, yes=True)) == ["steering_given", "approval_answered:a"]

        loop.hear(said)
        assert loop.events[-1] == StopAsked(said.text)


@bthread
def hold_stops() -> BThreadBody:
    yield sync(block=StopAsked, wait_for=RunEnded)


def test_a_stop_that_was_held_until_the_run_had_ended_does_not_stop_the_next() -> None:
    loop = Loop(hold_stops(), stop_when_said())

    assert loop.hear(SteeringGiven("stop"), DONE) == ["steering_given", "run_ended"]


# seek_steering, seek_follow_ups


def test_a_hook_is_asked_again_when_a_call_was_answered_meanwhile_and_what_follows_waits_for_its_messages() -> None:
    loop = Loop(seek_steering())
    assert loop.hear() == ["prompt_given", "messages_sought"]
    loop.hear(CallAnswered("a", ToolResult("done")), MessagesFound("follow_up", ("for another hook",)))
    assert not any(map(loop.can, (InferenceRequested(), ProposedAction(A), DONE)))

    found = MessagesFound("steering", ("Rather this", "and that"))
    assert loop.hear(found) == ["messages_found", "steering_given", "steering_given", "messages_sought"]
    assert loop.hear(MessagesFound("steering")) == ["messages_found"]
    assert all(map(loop.can, (InferenceRequested(), ProposedAction(A), DONE)))


def test_after_a_stop_a_hook_is_asked_in_the_next_run_only() -> None:
    stop, found = StopAsked(), MessagesFound("steering", ("Rather this",))
    for before in ((found, stop), (stop, found), (stop, CallAnswered("a", ToolResult("")), found)):
        loop = Loop(seek_steering())
        loop.hear(PromptGiven("Go"), *before)

        assert loop.story[-1] != "messages_sought"
        assert loop.hear(CallAnswered("b", ToolResult(""))) == ["call_answered:b"]
        assert loop.hear(DONE, PromptGiven("Go")) == ["run_ended", "prompt_given", "messages_sought"]


# complete_to_finish, skip_when_steered, continue_with_follow_ups


PURSUING = ToolCall("p", PURSUE, {"user_prompt": "Go", "objective": "All of it"})
COMPLETING = ToolCall("c", COMPLETE, {"result": "It is done.", "status": "partial"})


def ran(call: ToolCall) -> tuple[ToolFinished, CallAnswered]:
    return finished(call), CallAnswered(call.id, ToolResult("x"))


def test_a_complete_that_failed_or_did_not_run_completes_nothing() -> None:
    loop = Loop(complete_to_finish())
    loop.hear()
    loop.hear(finished(COMPLETING, is_error=True), CallAnswered("c", ToolResult("rejected"), outcome="rejected"))

    assert loop.can(InferenceRequested())
    assert not loop.can(DONE)


@bthread
def one_more_thing() -> BThreadBody:
    """Somebody has something left to say when the run would complete, once."""
    yield sync(refuse=RunEnded, because="one more thing", wait_for=RunContinued)


def test_after_complete_a_follow_up_is_heard_and_the_run_goes_on_as_it_began() -> None:
    for after_objective, ends in ((False, False), (True, True)):
        loop = Loop(converse(), complete_to_finish(after_objective), one_more_thing())
        loop.hear()
        loop.hear(*ran(PURSUING), committed(COMPLETING))
        assert loop.hear(*ran(COMPLETING))[-3:] == ["completion_declared", "run_continued", "inference_requested"]

        loop.hear(committed(text="Hello."))
        assert (loop.story[-1] == "run_ended") == ends


def test_a_step_that_completes_the_work_completes_the_run_though_a_stop_was_asked_for() -> None:
    """S1 4.1: complete exits the loop (5) before the interrupt is looked at (7)."""
    for after, status in (("step", "completed"), ("call", "stopped")):
        loop = Loop(converse(), complete_to_finish(), stop_on_request(after))  # type: ignore[arg-type]
        loop.hear()
        loop.hear(committed(COMPLETING), StopAsked(), *ran(COMPLETING))

        assert [event.status for event in loop.events if isinstance(event, RunEnded)] == [status]


@bthread
def hold_the_end() -> BThreadBody:
    """Hold every end of the run until a summary has come, as a protocol does that waits for a score."""
    yield sync(wait_for=SummaryFinished, block=RunEnded)


@pytest.mark.parametrize("due", ["limit", "doom_loop", "stopped"])
def test_an_end_that_is_due_and_held_becomes_the_one_that_the_user_requests_meanwhile(due: RunStatus) -> None:
    refused = DraftsRefused(Refusals((Refusal("a_protocol", Ending(due, "too_much")),)))
    requests: dict[str, tuple[Event, ...]] = {
        due: (),
        "stopped": (StopAsked(),),
        "aborted": (StopAsked(), AbortAsked()),
    }
    for status, asked in requests.items():
        for after in ("call", "step"):
            loop = Loop(converse(), stop_on_request(after), abort_on_request(), hold_the_end())
            loop.hear(PromptGiven("Go"), refused, *asked)
            assert "run_ended" not in loop.story

            loop.hear(SummaryFinished("so far"))
            assert [event.status for event in loop.events if isinstance(event, RunEnded)] == [status]


def test_a_call_that_is_being_asked_about_is_skipped_and_its_question_withdrawn() -> None:
    def judge(action: object) -> Verdict:
        return Verdict(Level.ask, "any_rule", explanation="May it?")

    loop = Loop(*CORE, by_constitution(judge), skip_when_steered())
    loop.hear(PromptGiven("Go"), drafted("", A), described(A))

    assert loop.hear(SteeringGiven("rather this"))[-1] == "gate_rejected:a"  # answered when the question is known to be
    assert loop.hear(ApprovalAnswered(A, yes=False))[:2] == ["approval_answered:a", "call_answered:a"]
    [gone] = [event for event in loop.events if isinstance(event, GateRejected)]
    assert [refusal.because for refusal in gone.refusals] == [Steered()]
    assert rejected("a", gone.refusals).result.text == "skipped: Skipped due to queued user message."


def test_a_follow_up_waits_while_another_b_thread_refuses_completion() -> None:
    refusals = Refusal("reviewer", "Look again."), Refusal("continue_with_follow_ups", FollowUpWaits())
    loop = Loop(continue_with_follow_ups())
    loop.hear(FollowUpGiven("and then that"), RunContinued(Refusals(refusals)))

    assert not loop.can(DONE)


def test_follow_ups_keep_a_run_going_one_by_one_or_all_at_once() -> None:
    for at_once in (False, True):
        loop = Loop(continue_with_follow_ups(at_once))
        loop.hear(FollowUpGiven("and then that"), FollowUpGiven("and this"))

        heard = RunContinued(Refusals((Refusal("continue_with_follow_ups", FollowUpWaits(at_once)),)))
        loop.hear(heard)
        assert loop.can(DONE) is at_once
        loop.hear(heard)
        assert loop.can(DONE)


def test_an_approval_is_used_up_by_its_start_and_forgotten_with_the_answer() -> None:
    for after in (ToolStarted(A), CallAnswered("a", ToolResult("rejected"))):
        loop = Loop(no_start_without_approval())
        loop.hear(GateApproved(A, action(A)), GateApproved(B, action(B)))
        assert [loop.can(ToolStarted(call)) for call in (A, B, again("c"))] == [True, True, False]

        loop.hear(after)
        assert [loop.can(ToolStarted(call)) for call in (A, B)] == [False, True]


def test_neighbours_that_may_run_together_run_together_and_each_other_call_alone() -> None:
    first, second, last = (ToolCall(id, "look", parallel=True) for id in "xyz")
    loop = Loop(one_at_a_time("neighbours"))
    loop.hear(committed(first, second, A, last))
    for answered, proposed in [("", [True, True, False, False]), ("xy", [True, True, True, False]), ("a", [True] * 4)]:
        loop.hear(HistoryGiven(()), *(CallAnswered(id, ToolResult("")) for id in answered))
        assert [loop.can(ProposedAction(call)) for call in (first, second, A, last)] == proposed


def test_an_answer_waits_for_those_before_it() -> None:
    loop = Loop(answers_in_source_order())
    loop.hear(committed(A, B, again("c")))
    assert [loop.can(CallAnswered(id, ToolResult(""))) for id in "abc"] == [True, False, False]

    loop.hear(CallAnswered("a", ToolResult("")))
    assert [loop.can(CallAnswered(id, ToolResult(""))) for id in "bc"] == [True, False]


def test_no_more_inferences_than_the_attempts_are_made_and_the_run_waits_for_each_backoff() -> None:
    failed = evolve(FAILED, retryable=True)
    loop = Loop(retry(3))
    for attempt in (1, 2):
        assert loop.hear(failed) == ["inference_failed", "backoff_started"]
        loop.hear(BackoffElapsed(3 - attempt, 0.1))  # of another attempt
        assert not any(map(loop.can, (InferenceRequested(), DONE)))
        loop.hear(BackoffElapsed(attempt, 0.1))
        assert loop.can(InferenceRequested())
    assert loop.hear(failed) == ["inference_failed"]
    assert loop.reasons(InferenceRequested()) == ["no connection"]


def test_no_more_follow_ups_than_the_most_may_wait_one_after_the_other() -> None:
    for at_once in (False, True):
        loop = Loop(continue_with_follow_ups(at_once, most=2))
        loop.hear(FollowUpGiven("1"))
        assert loop.can(FollowUpGiven("2"))
        loop.hear(FollowUpGiven("2"))
        assert loop.can(FollowUpGiven("3")) is at_once

        loop.hear(OVER)  # what a run leaves waits no more
        assert loop.can(DONE)


def test_calls_that_may_all_run_together_are_proposed_together() -> None:
    first, second = (ToolCall(id, "look", parallel=True) for id in "ab")
    for together, calls, is_proposed in [
        ("all", (first, second), True),
        ("all", (first, B), False),
        ("none", (first, second), False),
    ]:
        loop = Loop(one_at_a_time(together))  # type: ignore[arg-type]
        loop.hear(committed(*calls))
        assert loop.can(ProposedAction(calls[-1])) is is_proposed


def test_what_the_user_granted_beforehand_lifts_the_sandbox_before_the_call_is_approved() -> None:
    facts = Action("bash", "write", "/w", sandbox="bubblewrap", rights=("network",))
    loop = Loop(*CORE, by_constitution(lambda _: GRANTED))
    loop.hear(PromptGiven("Go"), drafted("", A))

    assert loop.hear(ActionDescribed(A, facts))[1:] == ["sandbox_lifted:a", "gate_approved:a", "tool_started:a"]
    assert [event.rights for event in loop.events if isinstance(event, ToolStarted)] == [("network",)]
