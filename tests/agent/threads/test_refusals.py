"""What each rule of the loop refuses or holds, and what it lets through, of one list of events."""

from attrs import evolve

from agent.threads.core import OWN, choose, converse
from agent.threads.endings import (
    COMPLETE,
    PURSUE,
    abort_on_request,
    budget_of_cost,
    budget_of_tokens,
    complete_to_finish,
    deadline,
    empty_answers,
    iterations_at_most,
    one_objective,
    only_whole_answers,
    retry,
    stop_on_request,
    too_many_failures,
)
from agent.threads.steering import continue_with_follow_ups, seek_follow_ups, seek_steering, skip_when_steered
from agent.threads.summaries import recover_from_overflow, summarize_when_full
from agent.threads.tool_calls import doom_loop, only_whole_calls
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    CompletionDeclared,
    DeadlineReached,
    DeadlineSet,
    DraftsRefused,
    DraftsSettled,
    FactsRequested,
    FollowUpGiven,
    GateApproved,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult, Usage
from agent.vocabulary.reasons import Ending
from bp import BThread, BThreadBody, Event, Refusal, Refusals, bthread, sync
from tests.agent.threads.loops import FLAWED, A, B, Loop, action, committed, drafted, finished, message
from tests.tables import rows

OVER, DONE = RunEnded("failed", "over"), RunEnded("completed", "answered", "Done.")
EVENTS: dict[str, Event] = {
    "inference": InferenceRequested(),
    "other draft": InferenceRequested("d1"),
    "backoff": BackoffStarted(1),
    "summary": SummaryRequested(),
    "proposal": ProposedAction(A),
    "question": ApprovalAsked(A, "May it?"),
    "approval": GateApproved(A, action(A)),
    "lookup": FactsRequested(A, action(A)),
    "start": ToolStarted(A),
    "answer": CallAnswered("a", ToolResult("done")),
    "answered": DONE,
    "complete": RunEnded("completed", "success", "Done."),
    "stopped": RunEnded("stopped", "stop_asked"),
    "limit": RunEnded("limit", "max_tokens"),
    "doom": RunEnded("doom_loop", "doom_loop"),
    "failed": RunEnded("failed", "answered"),
    "continued": RunContinued(Refusals()),
    "follow-up": FollowUpGiven("and that"),
}
NEXT = "inference, other draft, backoff, summary"
CALLS = "proposal, question, approval, lookup, start"
FAILED = InferenceFailed("d0", "no connection")
BUSY, LATER = evolve(FAILED, retryable=True), evolve(FAILED, draft="d1", retryable=True)
TOO_LONG = InferenceFailed("d0", "too long", retryable=True, reason="context_length_exceeded")
INVALID = CallAnswered("f", ToolResult("not executed", is_error=True), "invalid")
REJECTED = CallAnswered("a", ToolResult("rejected", is_error=True), "rejected")
P, C = ToolCall("p", PURSUE), ToolCall("c", COMPLETE)
BAD = finished(A, is_error=True)
CUT = evolve(committed(text="Half a"), cut_off="length")
ELAPSED = BackoffElapsed(1, 0.1)
FULL = InferenceFinished("d0", message(""), usage=Usage(8, 0))
NO_DRAFT, SUMMED_UP = DraftsSettled(), SummaryFinished("so far")
SPENT = ToolFinished(A, ToolResult("", details={"usage": {"input_tokens": 2, "output_tokens": 0, "cost": 2.0}}))
ANSWERS = (CallAnswered("a", ToolResult("")), CallAnswered("b", ToolResult("")))


def again(*ids: str, polls: bool = False) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id, "note", {"text": "a"}, polls=polls) for id in ids)


@rows(
    ("rule", "events", "held"),
    [
        # Requests of the user, and the clock
        (skip_when_steered(), [SteeringGiven("x")], "proposal, question, approval, start, answered, complete"),
        (skip_when_steered(), [SteeringGiven("x"), InferenceRequested("d1")],
         "proposal, question, approval, start, answered, complete"),
        (skip_when_steered(), [SteeringGiven("x"), InferenceRequested()], ""),
        (skip_when_steered(), [SteeringGiven("x"), OVER], ""),
        (stop_on_request(), [StopAsked()], f"{NEXT}, {CALLS}, answered, complete, limit, doom"),
        (stop_on_request("step"), [StopAsked()], f"{NEXT}, question, answered, limit, doom"),
        (stop_on_request(), [StopAsked(), OVER], ""),
        (abort_on_request(), [AbortAsked()], f"{NEXT}, {CALLS}, answered, complete, stopped, limit, doom"),
        (abort_on_request(), [AbortAsked(), OVER], ""),
        (deadline(1.0), [PromptGiven("x"), DeadlineReached(1.0)], f"{NEXT}, {CALLS}, answered, complete"),
        (deadline(1.0), [PromptGiven("x"), DeadlineReached(1.0), OVER], ""),
        (deadline(1.0), [PromptGiven("x"), OVER, DeadlineReached(1.0)], ""),
        (deadline(1.0), [PromptGiven("x"), OVER, PromptGiven("x"), DeadlineReached(1.0)],
         f"{NEXT}, {CALLS}, answered, complete"),
        # Limits
        (too_many_failures(2), [BAD, BAD], "inference, other draft, proposal"),
        (too_many_failures(2), [INVALID, INVALID], "inference, other draft, proposal"),
        (too_many_failures(2), [BAD, INVALID], "inference, other draft, proposal"),
        (too_many_failures(2), [REJECTED, REJECTED], ""),
        (too_many_failures(2), [BAD, finished(A), BAD], ""),
        (too_many_failures(1), [finished(A)], ""),
        (too_many_failures(2), [BAD, finished(A), BAD, BAD], "inference, other draft, proposal"),
        (empty_answers(2), [committed(), committed()], "inference, other draft"),
        (empty_answers(2), [committed(), committed(A), committed()], ""),
        (empty_answers(1), [committed(A)], ""),
        (empty_answers(2), [committed(), committed(text="x"), committed(), committed()], "inference, other draft"),
        (budget_of_tokens(2), [SPENT], "inference, other draft, summary"),
        (budget_of_cost(2.0), [SPENT], "inference, other draft, summary"),
        (budget_of_cost(1.0), [FULL], ""),
        (budget_of_cost(1.0), [FULL, SummaryFinished("x", Usage(1, 1, 1.0))], "inference, other draft, summary"),
        (doom_loop(2), [committed(*again("1", "2"))], "inference, other draft"),
        (doom_loop(2), [committed(*again("1", "2", "3")), OVER, committed(*again("4"))], ""),
        (doom_loop(2), [committed(*again("1", "2", "3")), SteeringGiven("x"), committed(*again("4"))], ""),
        (doom_loop(2), [committed(*again("1", "2", "3")), OVER, committed(*again("4", "5"))],
         "inference, other draft"),
        (doom_loop(2), [committed(*again("1", "2", polls=True))], ""),
        (doom_loop(3), [committed(*again("1", "2"))], ""),
        (doom_loop(), [committed(*again("1", "2", "3"))], "inference, other draft"),
        (doom_loop(), [committed(*again("1", "2"))], ""),
        # Failed inferences
        (retry(2), [FAILED], "inference, other draft"),
        (retry(2), [FAILED, OVER], ""),
        (retry(2), [BUSY], "inference, other draft, answered, complete, stopped, limit, doom, failed"),
        (retry(2), [BUSY, ELAPSED], ""),
        (retry(2), [BUSY, ELAPSED, BUSY], "inference, other draft"),
        (retry(2), [BUSY, ELAPSED, drafted("x"), BUSY, ELAPSED], ""),
        (retry(2), [BUSY, ELAPSED, OVER, BUSY, ELAPSED], ""),
        (retry(2), [BUSY, ELAPSED, BUSY, OVER, BUSY, ELAPSED], ""),
        (retry(1), [TOO_LONG], ""),
        (retry(1), [evolve(TOO_LONG, draft="d1")], "inference, other draft"),
        # Completion
        (only_whole_answers(), [CUT], "answered"),
        (only_whole_answers(), [committed(text="All of it")], ""),
        (only_whole_answers(), [evolve(committed(A, text="x"), cut_off="length")], ""),
        (only_whole_answers(), [evolve(committed(), cut_off="length")], ""),
        (only_whole_answers(), [CUT, RunContinued(Refusals())], ""),
        (only_whole_answers(), [CUT, OVER], ""),
        (only_whole_answers(), [CUT, OVER, CUT], "answered"),
        (complete_to_finish(), [PromptGiven("x")], "answered"),
        (complete_to_finish(), [PromptGiven("x"), finished(A)], "answered"),
        (complete_to_finish(), [PromptGiven("x"), finished(C)], "inference, other draft, proposal"),
        (complete_to_finish(True), [PromptGiven("x")], ""),
        (complete_to_finish(True), [PromptGiven("x"), finished(P, is_error=True)], ""),
        (complete_to_finish(True), [PromptGiven("x"), finished(P)], "answered"),
        (one_objective(), [finished(P)], ""),
        (iterations_at_most(2), [committed(A), finished(P), committed(A)], ""),
        (iterations_at_most(2), [finished(P), committed(A), finished(P), committed(A)], "inference, other draft"),
        (iterations_at_most(2), [finished(P), OVER, committed(A), finished(P), committed(A)], ""),
        (iterations_at_most(2), [committed(A), OVER, committed(A)], ""),
        (iterations_at_most(1), [], ""),
        (continue_with_follow_ups(True, most=1), [FollowUpGiven("x")], "answered, complete"),
        (continue_with_follow_ups(False, most=1), [FollowUpGiven("x")], "answered, complete, follow-up"),
        # Steering and follow-ups that a hook is asked for
        (seek_steering(), [PromptGiven("x")],
         "inference, other draft, proposal, answered, complete, stopped, limit, doom, failed"),
        (seek_steering(), [committed(text="x")],
         "inference, other draft, proposal, answered, complete, stopped, limit, doom, failed"),
        (seek_steering(), [committed(A, text="x")], ""),
        (seek_steering(), [committed()], ""),
        (seek_follow_ups(), [PromptGiven("x")], ""),
        (seek_follow_ups(), [committed(A)], ""),
        (seek_follow_ups(), [committed(text="x")],
         "continued, answered, complete, stopped, limit, doom, failed"),
        (seek_follow_ups(), [CompletionDeclared("success", "x")],
         "continued, answered, complete, stopped, limit, doom, failed"),
        (seek_follow_ups(), [committed(text="x"), AbortAsked(), MessagesFound("follow_up"), committed(text="x")], ""),
        # Summaries
        (summarize_when_full(8), [FULL, committed(A), ANSWERS[0]],
         "inference, other draft, answered, complete, stopped, limit, doom, failed"),
        (summarize_when_full(8), [FULL, committed(A), ANSWERS[0], SummaryFailed("x")], ""),
        (summarize_when_full(8), [FULL, committed(A), ANSWERS[0], SUMMED_UP], ""),
        (summarize_when_full(8), [FULL, committed(A, B), ANSWERS[0]], ""),
        (summarize_when_full(8), [FULL, committed()],
         "inference, other draft, answered, complete, stopped, limit, doom, failed"),
        (summarize_when_full(8), [FULL, OVER], ""),
        (summarize_when_full(8), [FULL, OVER, PromptGiven("x")],
         "inference, other draft, answered, complete, stopped, limit, doom, failed"),
        (summarize_when_full(8), [FULL, committed(text="x"), OVER], ""),
        *[
            (recover_from_overflow(True), [TOO_LONG, NO_DRAFT, SUMMED_UP, TOO_LONG, *between, TOO_LONG, NO_DRAFT],
             "inference, other draft, answered, complete, stopped, limit, doom, failed")
            for between in ([committed(A)], [OVER], [NO_DRAFT, evolve(TOO_LONG, retryable=False), NO_DRAFT, OVER])
        ],
        (recover_from_overflow(True), [TOO_LONG, committed(A), NO_DRAFT], ""),
        (recover_from_overflow(True), [TOO_LONG, OVER, NO_DRAFT], ""),
        (recover_from_overflow(True), [TOO_LONG, DraftsSettled(("d1",))], ""),
        (recover_from_overflow(False), [TOO_LONG, NO_DRAFT], ""),
        (recover_from_overflow(False), [evolve(TOO_LONG, retryable=False), NO_DRAFT], "inference, other draft"),
    ],
)  # fmt: skip
def test_a_rule_holds_these_events_and_no_others(rule: BThread, events: list[Event], held: str) -> None:
    loop = Loop(rule)
    loop.hear(*events)

    expected = {name for name in held.split(", ") if name}
    assert {name for name, event in EVENTS.items() if not loop.can(event)} == expected


@rows(
    ("rule", "events", "reason"),
    [
        (retry(1), [FAILED], "no connection"),
        (iterations_at_most(1), [committed(A, text=" Half. ")],
         "Stopped: maximum iteration limit reached.\n\nLast response: Half."),
        (iterations_at_most(2), [committed(A, text="Half."), committed(A)],
         "Stopped: maximum iteration limit reached.\n\nLast response: Half."),
        (iterations_at_most(1), [committed(A)], "Stopped: maximum iteration limit reached."),
        (iterations_at_most(1), [committed(A, text="old"), OVER, committed(A)],
         "Stopped: maximum iteration limit reached."),
    ],
)  # fmt: skip
def test_the_reason_tells_what_the_run_ends_with(rule: BThread, events: list[Event], reason: str) -> None:
    loop = Loop(rule)
    loop.hear(*events)

    assert loop.reasons(InferenceRequested()) == [reason]


def test_the_reason_of_a_failed_inference_is_that_of_the_model_or_a_general_one() -> None:
    for failed, reason in [(FAILED, "inference_failed"), (evolve(FAILED, reason="images_refused"), "images_refused")]:
        loop = Loop(retry(1))
        loop.hear(failed)
        [blocker] = loop.program.blockers(InferenceRequested())
        assert blocker.because.reason == reason


@bthread
def hold(events: type[Event]) -> BThreadBody:
    yield sync(block=events, wait_for=FollowUpGiven)


@rows(
    ("rule", "held", "events", "asked"),
    [
        (retry(3), BackoffStarted, [BUSY, OVER], BUSY),
        (summarize_when_full(8), SummaryRequested, [FULL, committed(A), ANSWERS[0], OVER], FULL),
        (recover_from_overflow(True), SummaryRequested, [TOO_LONG, NO_DRAFT, OVER], TOO_LONG),
    ],
)
def test_what_was_held_until_the_run_had_ended_is_asked_for_no_more(
    rule: BThread, held: type[Event], events: list[Event], asked: Event
) -> None:
    loop = Loop(hold(held), rule)
    loop.hear(*events, FollowUpGiven("let go"))
    assert not any(isinstance(event, held) for event in loop.events)
    assert loop.can(InferenceRequested())

    loop.hear(*events[:-1])  # the next run counts from the beginning
    [started] = [event for event in loop.events if isinstance(event, held)]
    assert getattr(started, "attempt", 1) == 1
    assert not loop.can(InferenceRequested())


def test_a_deadline_that_was_held_until_the_run_had_ended_is_set_for_the_next_run_alone() -> None:
    loop = Loop(hold(DeadlineSet), deadline(1.0))
    assert loop.hear(PromptGiven("x"), OVER, FollowUpGiven("let go"))[-1] == "follow_up_given"
    assert loop.hear() == ["prompt_given", "deadline_set"]


def test_a_hook_that_is_held_holds_what_follows_and_is_not_called_after_a_stop() -> None:
    loop = Loop(hold(MessagesSought), seek_steering())
    loop.hear(PromptGiven("x"))
    assert not loop.can(InferenceRequested())
    assert loop.hear(StopAsked(), FollowUpGiven("let go"))[-1] == "follow_up_given"
    stopped = Loop(seek_steering())
    assert stopped.hear(PromptGiven("x"), *ANSWERS, StopAsked(), MessagesFound("steering"))[-1] == "messages_found"


def test_follow_ups_that_a_hook_found_are_given_before_the_run_completes_or_not_at_all() -> None:
    loop = Loop(hold(FollowUpGiven), seek_follow_ups())
    loop.hear(committed(text="x"), MessagesFound("follow_up", ("and that",)))
    assert [loop.can(DONE), loop.can(OVER)] == [False, True]
    assert loop.hear(OVER, committed(text="x"))[-1] == "messages_sought"
    free = Loop(seek_follow_ups())
    free.hear(committed(text="x"))
    assert free.hear(MessagesFound("follow_up", ("and that",)))[-1] == "follow_up_given"


@rows(
    ("because", "ended"),
    [
        ("too suspicious", RunEnded("failed", "drafts_refused", "Every draft was refused: watcher: too suspicious")),
        (Ending("limit", "max_cost", "Spent."), RunEnded("limit", "max_cost", "Spent.")),
    ],
)
def test_a_turn_without_a_draft_ends_the_run_with_the_reasons(because: object, ended: RunEnded) -> None:
    loop = Loop(converse())
    loop.hear(PromptGiven("x"), DraftsRefused(Refusals((Refusal("watcher", because),))))
    assert loop.events[-1] == ended


def test_an_answer_that_says_nothing_and_a_turn_without_drafts_are_asked_for_again() -> None:
    loop = Loop(converse())
    for said in (PromptGiven("x"), committed(), DraftsSettled(), RunContinued(Refusals())):
        loop.hear(said)
        assert loop.story[-1] == ("run_continued" if isinstance(said, RunContinued) else "inference_requested")
    assert loop.hear(committed(text="Done."))[-1] == "run_ended"


@bthread
def never(events: type[Event]) -> BThreadBody:
    yield sync(refuse=events, because="not today")


def test_an_inference_that_a_b_thread_refuses_ends_the_run_with_its_reason() -> None:
    loop = Loop(converse(), never(InferenceRequested))
    loop.hear()
    assert loop.events[-1] == RunEnded("failed", "inference_refused", "never: not today")


def test_half_a_text_is_the_text_of_the_run_that_fails_for_it() -> None:
    loop = Loop(converse(), only_whole_answers())
    loop.hear(PromptGiven("x"), CUT)
    assert loop.events[-1] == RunEnded("failed", "length", "Half a")


def test_while_a_backoff_is_held_no_inference_comes_before_it() -> None:
    loop = Loop(hold(BackoffStarted), retry(3))
    loop.hear(BUSY)
    assert not loop.can(InferenceRequested())


def test_calls_with_a_flaw_are_not_proposed_until_they_are_answered_and_others_are() -> None:
    loop = Loop(only_whole_calls())
    loop.hear(committed(A, FLAWED))
    assert [loop.can(ProposedAction(call)) for call in (A, FLAWED)] == [True, False]
    loop.hear(CallAnswered("a", ToolResult("")))
    assert loop.reasons(ProposedAction(FLAWED)) == [FLAWED.flaw]
    loop.hear(CallAnswered("f", ToolResult("")))
    assert loop.can(ProposedAction(FLAWED))
    loop.hear(committed(FLAWED))
    assert not loop.can(ProposedAction(FLAWED))


def test_other_calls_than_the_objective_are_approved_while_one_is_pursued() -> None:
    loop = Loop(one_objective())
    loop.hear(finished(P))
    approvals = [GateApproved(call, action(call)) for call in (A, P)]
    assert [loop.can(each) for each in approvals] == [True, False]
    loop.hear(finished(C))
    assert loop.can(approvals[1])


def test_only_the_same_turn_asks_for_further_drafts_and_each_once() -> None:
    loop = Loop(choose())
    assert [loop.can(InferenceRequested(draft)) for draft in (OWN, "d1")] == [True, False]
    loop.hear(InferenceRequested(), InferenceRequested("d1"))
    assert [loop.can(InferenceRequested(draft)) for draft in (OWN, "d1", "d2")] == [False, False, True]
    loop.hear(InferenceFailed("d0", "busy"))
    assert [loop.can(InferenceRequested(draft)) for draft in ("d0", "d1", "d2")] == [True, False, True]
    assert "drafts_settled" not in loop.story
    assert loop.hear(drafted("x", draft="d1"))[1:] == ["drafts_settled", "answer_committed"]
    assert [loop.can(InferenceRequested(draft)) for draft in (OWN, "d1")] == [True, False]
