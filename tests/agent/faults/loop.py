"""Faults of the loop: each b-thread stands in for the one whose name it has, and does one thing wrong."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from agent.threads.completion import COMPLETED, GO_ON, OBJECTIVE_TAKEN, TEXT_ALONE
from agent.threads.core import carry_out, continued_instead, ended_instead
from agent.threads.judging import grant, objection, rights_beyond
from agent.threads.limits import TURNS
from agent.threads.steering import HEARD, JOINTS, NEXT
from agent.threads.stopping import LESSER_END, NEXT_CALL, NEXT_INFERENCE, NEXT_TURN
from agent.threads.tool_calls import in_turn
from agent.vocabulary.calls import ToolCall, signature
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffStarted,
    CallAnswered,
    DeadlineReached,
    DraftsSettled,
    FollowUpGiven,
    GateApproved,
    GateRejected,
    HistoryGiven,
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
from agent.vocabulary.reasons import Declined, Ending, FollowUpWaits, Steered, rejected
from bp import BThreadBody, Event, Refusals, bthread, start, sync, where
from constitution import Action, Level, Verdict


@bthread(name="carry_out")
def does_not_wait_for_the_gate(call: ToolCall) -> BThreadBody:
    yield sync(request=ProposedAction(call))
    yield sync(wait_for=where(ActionDescribed, call=call))
    yield sync(request=ToolStarted(call))
    finished = yield sync(wait_for=where(ToolFinished, call=call))
    yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def runs_other_arguments_than_approved(call: ToolCall) -> BThreadBody:
    yield sync(request=ProposedAction(call))
    yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    changed = evolve(call, arguments={"path": "elsewhere"})
    yield sync(request=ToolStarted(changed))
    finished = yield sync(wait_for=where(ToolFinished, call=changed))
    yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def does_not_answer_rejections(call: ToolCall) -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateApproved):
        yield sync(request=ToolStarted(call))
        finished = yield sync(wait_for=where(ToolFinished, call=call))
        yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def answers_before_the_tool_has_ended(call: ToolCall) -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateRejected):
        yield sync(request=rejected(call.id, said.refusals))
        return
    yield sync(request=ToolStarted(call))
    yield sync(request=CallAnswered(call.id, "started"))


@bthread(name="carry_out")
def answers_twice(call: ToolCall) -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    answer = CallAnswered(call.id, "not now", is_error=True, outcome="rejected")
    if isinstance(said, GateApproved):
        yield sync(request=ToolStarted(call))
        finished = yield sync(wait_for=where(ToolFinished, call=call))
        answer = CallAnswered(call.id, finished.result, finished.is_error)
    yield sync(request=answer)
    yield sync(request=answer)


@bthread(name="gate")
def without_otherwise() -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(insists(described))


@bthread(name="gate")
def insists(described: ActionDescribed) -> BThreadBody:
    yield sync(request=GateApproved(described.call, described.facts))


@bthread(name="gate")
def with_a_single_slot() -> BThreadBody:
    """Whatever is described while an action is put up goes unseen."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield from put_up(described.call, GateApproved(described.call, described.facts))


@bthread(name="gate")
def decides_twice() -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        approved = GateApproved(described.call, described.facts)
        yield from put_up(described.call, approved)
        yield from put_up(described.call, approved)


@bthread(name="gate")
def believes_every_yes() -> BThreadBody:
    """What a call would touch may have changed while the user was asked."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(put_up_at_once(described.call, GateApproved(described.call, described.facts)))


@bthread(name="gate")
def put_up_at_once(call: ToolCall, approved: GateApproved) -> BThreadBody:
    yield from put_up(call, approved)


def put_up(call: ToolCall, approved: GateApproved) -> Any:
    yield sync(request=approved, otherwise=lambda refusals: GateRejected(call, refusals))


@bthread(name="choose")
def commits_twice() -> BThreadBody:
    while True:
        finished = yield sync(wait_for=InferenceFinished)
        answer = AnswerCommitted(finished.draft, finished.message, finished.calls)
        yield sync(request=DraftsSettled((finished.draft,)))
        yield sync(request=answer)
        yield sync(request=answer)


@bthread(name="converse")
def does_not_wait_for_all_answers() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        while True:
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(answer, AnswerCommitted) and answer.calls:
                yield start(*[carry_out(call) for call in answer.calls])
                yield sync(wait_for=CallAnswered)
            elif isinstance(answer, AnswerCommitted):
                break
        yield sync(request=RunEnded("completed", "answered"))


@bthread(name="converse")
def insists_on_inference() -> BThreadBody:
    """No `otherwise`: a limit that refuses leaves the run standing."""
    while True:
        yield sync(wait_for=PromptGiven)
        while True:
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(answer, AnswerCommitted) and not answer.calls:
                break
            yield from carried_out(answer)
        yield sync(request=RunEnded("completed", "answered"), otherwise=RunContinued)


@bthread(name="converse")
def ends_at_a_stop_by_itself() -> BThreadBody:
    """What is under way is left behind."""
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(request=InferenceRequested())
        said = yield sync(wait_for=AnswerCommitted | StopAsked | where(DraftsSettled, drafts=()))
        if isinstance(said, AnswerCommitted):
            yield from carried_out(said)
        yield sync(request=RunEnded("stopped", "stop_asked"))


def carried_out(answer: Any) -> Any:
    calls = answer.calls if isinstance(answer, AnswerCommitted) else ()
    yield start(*[carry_out(call) for call in calls])
    for _ in calls:
        yield sync(wait_for=CallAnswered)


@bthread(name="session")
def lets_prompts_through() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven, block=~where((PromptGiven, HistoryGiven)))
        yield sync(wait_for=RunEnded)


Judge = Callable[[Action], Verdict]


@bthread(name="by_constitution")
def takes_any_answer_for_a_yes(judge: Judge) -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        verdict = judge(described.facts)
        if verdict.level is Level.deny or described.problem:
            yield start(denial(described.call, verdict))
        elif verdict.level is Level.ask:
            yield start(question(described.call))


@bthread(name="by_constitution")
def denial(call: ToolCall, verdict: Verdict) -> BThreadBody:
    yield sync(refuse=where(GateApproved, call=call), because=verdict, wait_for=where(GateRejected, call=call))


@bthread(name="by_constitution")
def question(call: ToolCall) -> BThreadBody:
    approval = where(GateApproved, call=call)
    yield sync(request=ApprovalAsked(call, "May it run?"), block=approval)
    yield sync(wait_for=where(ApprovalAnswered, call=call), block=approval)


@bthread(name="by_constitution")
def with_stale_objections(judge: Judge) -> BThreadBody:
    """An objection to a call that another b-thread rejected meanwhile lives on, and meets the next such call."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        verdict = judge(described.facts)
        if verdict.level is not Level.allow or described.problem:
            yield start(stale(described.call, verdict))


@bthread(name="by_constitution")
def stale(call: ToolCall, verdict: Verdict) -> BThreadBody:
    approval = where(GateApproved, call=call)
    if verdict.level is Level.ask:
        said = yield sync(
            request=ApprovalAsked(call, "?"), block=approval, wait_for=where((GateApproved, GateRejected), call=call)
        )
        if not isinstance(said, ApprovalAsked):
            return
        said = yield sync(wait_for=where(ApprovalAnswered, call=call), block=approval | RunEnded)
        if said.yes:
            return
    yield sync(refuse=approval, because=Declined(verdict), wait_for=where((GateApproved, GateRejected), call=call))


@bthread(name="by_constitution")
def lifts_without_a_yes(judge: Callable[[Action], Verdict]) -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if rights := rights_beyond(described.facts):
            yield start(grant(described.call, rights))
        if (verdict := judge(described.facts)).level is not Level.allow:
            yield start(objection(described, verdict))


@bthread(name="no_start_without_approval")
def never_believes_the_gate() -> BThreadBody:
    yield sync(refuse=ToolStarted, because="the gate did not approve it")


@bthread(name="one_at_a_time")
def holds_the_second_call_only(together: str) -> BThreadBody:
    """With two calls it is right."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            first, second, *_ = answer.calls
            yield start(holds_one(first, second))


@bthread(name="one_at_a_time")
def holds_one(first: ToolCall, second: ToolCall) -> BThreadBody:
    yield sync(wait_for=where(CallAnswered, call=first.id), block=where(ProposedAction, call=second))


@bthread(name="answers_in_source_order")
def lets_go_at_the_next_result() -> BThreadBody:
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            yield sync(wait_for=ToolFinished | CallAnswered, block=where(CallAnswered, call=answer.calls[1].id))


@bthread(name="too_many_failures")
def forgives_failures_at_each_turn(limit: int) -> BThreadBody:
    ending = Ending("failed", "too_many_failures")
    while True:
        failures = 0
        while failures < limit:
            said = yield sync(wait_for=AnswerCommitted | where(ToolFinished, is_error=True) | RunEnded)
            failures = failures + 1 if isinstance(said, ToolFinished) else 0
        yield sync(refuse=InferenceRequested | ProposedAction, because=ending, wait_for=RunEnded)


@bthread(name="retry")
def does_not_wait_for_the_backoff(attempts: int) -> BThreadBody:
    while True:
        failed = yield sync(wait_for=InferenceFailed)
        if failed.retryable:
            yield sync(request=BackoffStarted(1), wait_for=RunEnded)


@bthread(name="recover_from_overflow")
def sums_up_again_and_again(summarize: bool) -> BThreadBody:
    while True:
        yield sync(wait_for=where(InferenceFailed, reason="context_length_exceeded"))
        said = yield sync(request=SummaryRequested(), block=InferenceRequested, wait_for=RunEnded)
        if isinstance(said, SummaryRequested):
            yield sync(wait_for=SummaryFinished | SummaryFailed, block=InferenceRequested | RunEnded)


@bthread(name="stop_on_request")
def lets_the_backoff_begin(after: str = "call") -> BThreadBody:
    """A fault that the first version of the loop had: after a stop, the next attempt was still waited for."""
    nothing_new = InferenceRequested | where(RunEnded, status="completed") | ProposedAction | GateApproved | ToolStarted
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=nothing_new, because=Ending("stopped", "stop_asked"), wait_for=RunEnded)


@bthread(name="stop_on_request")
def hears_one_stop(after: str = "call") -> BThreadBody:
    """It keeps one run from going on, and is over."""
    yield sync(wait_for=StopAsked)
    ending = Ending("stopped", "stop_asked")
    yield sync(refuse=NEXT_TURN | NEXT_CALL | LESSER_END, because=ending, wait_for=RunEnded)


@bthread(name="abort_on_request")
def lets_the_run_complete() -> BThreadBody:
    while True:
        yield sync(wait_for=AbortAsked)
        ending = Ending("aborted", "abort_asked")
        yield sync(refuse=InferenceRequested | BackoffStarted | NEXT_CALL, because=ending, wait_for=RunEnded)


COMPLETION = where(RunEnded, status="completed")


STEERED = NEXT["steering"]


@bthread(name="skip_when_steered")
def hears_steering_once() -> BThreadBody:
    yield sync(wait_for=SteeringGiven)
    yield sync(refuse=NEXT_CALL | COMPLETION, because=Steered(), wait_for=HEARD)


@bthread(name="skip_when_steered")
def skips_one_call() -> BThreadBody:
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=NEXT_CALL | COMPLETION, because=Steered(), wait_for=HEARD | CallAnswered)


@bthread(name="continue_with_follow_ups")
def forgets_the_second(at_once: bool, most: int) -> BThreadBody:
    while True:
        yield sync(wait_for=FollowUpGiven)
        second = yield sync(
            refuse=COMPLETION, because=FollowUpWaits(), wait_for=FollowUpGiven | RunContinued | RunEnded
        )
        if isinstance(second, FollowUpGiven):
            yield sync(
                refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | RunEnded
            )


@bthread(name="continue_with_follow_ups")
def takes_itself_for_heard(at_once: bool, most: int) -> BThreadBody:
    """The run goes on because of another b-thread, and the follow-up is forgotten."""
    while True:
        yield sync(wait_for=FollowUpGiven)
        yield sync(refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | RunEnded)


@bthread(name="seek_steering")
def does_not_wait_for_people() -> BThreadBody:
    while True:
        yield sync(wait_for=JOINTS["steering"])
        yield sync(request=MessagesSought("steering"))
        found = yield sync(wait_for=MessagesFound)
        for text in found.texts:
            yield sync(request=SteeringGiven(text))


@bthread(name="seek_steering")
def waits_for_people_after_the_end() -> BThreadBody:
    """The run may end while they are asked: what they say comes when no run is under way."""
    while True:
        yield sync(wait_for=JOINTS["steering"])
        yield sync(request=MessagesSought("steering"), block=STEERED)
        yield sync(wait_for=MessagesFound, block=ProposedAction | InferenceRequested)


@bthread(name="converse")
def completes_all_the_same() -> BThreadBody:
    """The run is said to go on, and ends."""
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = RunContinued(Refusals())
        while not isinstance(said, RunEnded):
            said = yield sync(request=InferenceRequested(), otherwise=ended_instead)
            if isinstance(said, InferenceRequested):
                said = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(said, AnswerCommitted) and not said.calls:
                ending = RunEnded("completed", "answered")
                said = yield sync(request=ending, otherwise=continued_instead)
                if isinstance(said, RunContinued):
                    said = yield sync(request=ending, otherwise=continued_instead)


@bthread(name="one_at_a_time")
def forgets_the_barrier(together: str) -> BThreadBody:
    """Calls that may run together wait for no other call; only the others wait."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        alone = tuple((call,) for call in answer.calls if not call.parallel)
        yield start(in_turn(alone))


@bthread(name="one_at_a_time")
def waits_for_the_barrier_to_begin(together: str) -> BThreadBody:
    """What comes after the barrier is held until the barrier is proposed, and not until it is answered."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            first, *others = answer.calls
            later = [where(ProposedAction, call=call) for call in others]
            yield sync(wait_for=where(ProposedAction, call=first) | where(CallAnswered, call=first.id), block=later)


@bthread(name="stop_on_request")
def asks_after_a_stop(after: str = "step") -> BThreadBody:
    """A fault that the first version of the loop had: who had said stop was asked about the rest of the step."""
    nothing_new = NEXT_INFERENCE | where(RunEnded, status="completed", reason="answered")
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=nothing_new, because=Ending("stopped", "stop_asked"), wait_for=RunEnded)


LIMIT = Ending("limit", "limit")


@bthread(name="doom_loop")
def skips_the_repeated_call_and_goes_on(n: int = 3) -> BThreadBody:
    latest = ""
    while True:
        answer = yield sync(wait_for=AnswerCommitted | RunEnded)
        signatures = [signature(call) for call in getattr(answer, "calls", ())]
        if latest in signatures:
            ending = Ending("doom_loop", "doom_loop")
            yield sync(refuse=ProposedAction, because=ending, wait_for=InferenceRequested | RunEnded)
        latest = signatures[-1] if signatures else ""


@bthread(name="budget_of_tokens")
def forgets_what_was_spent_at_each_turn(limit: int) -> BThreadBody:
    while True:
        number = 0
        while number < limit:
            said = yield sync(wait_for=InferenceFinished | AnswerCommitted | RunEnded)
            number = number + said.usage.tokens if isinstance(said, InferenceFinished) else 0
        yield sync(refuse=InferenceRequested, because=LIMIT, wait_for=RunEnded)


@bthread(name="deadline")
def lets_approved_calls_start_late(seconds: float) -> BThreadBody:
    while True:
        yield sync(wait_for=DeadlineReached)
        yield sync(refuse=NEXT_TURN, because=LIMIT, wait_for=RunEnded)


@bthread(name="complete_to_finish")
def never_hears_complete(after_objective: bool = False) -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(wait_for=RunEnded, refuse=TEXT_ALONE, because=GO_ON)


@bthread(name="complete_to_finish")
def goes_on_with_the_batch(after_objective: bool = False) -> BThreadBody:
    while True:
        yield sync(wait_for=OBJECTIVE_TAKEN)
        said = yield sync(wait_for=COMPLETED | RunEnded, refuse=TEXT_ALONE, because=GO_ON)
        if isinstance(said, ToolFinished):
            done = Ending("completed", "success")
            yield sync(refuse=InferenceRequested, because=done, wait_for=RunEnded | RunContinued)


@bthread(name="one_objective")
def forgets_the_objective_at_the_next_turn() -> BThreadBody:
    while True:
        yield sync(wait_for=OBJECTIVE_TAKEN)
        yield sync(wait_for=InferenceRequested)


@bthread(name="iterations_at_most")
def begins_anew_with_each_objective(turns: int, text: str = "") -> BThreadBody:
    while True:
        taken = 0
        while taken < turns:
            said = yield sync(wait_for=TURNS | OBJECTIVE_TAKEN)
            taken = taken + 1 if isinstance(said, AnswerCommitted) else 0
        yield sync(refuse=InferenceRequested, because=LIMIT, wait_for=RunEnded | OBJECTIVE_TAKEN)


@bthread(name="summarize_when_full")
def sums_up_while_tools_run(tokens: int) -> BThreadBody:
    full = where(InferenceFinished, lambda finished: finished.usage.tokens >= tokens)
    while True:
        yield sync(wait_for=full)
        yield sync(wait_for=AnswerCommitted | RunEnded)
        yield sync(request=SummaryRequested(), wait_for=RunEnded)
