"""Faults of the rules: each b-thread here stands in for the one whose name it has, and does one thing wrong."""

from collections.abc import Callable

from agent.threads.judging import grant, objection, rights_beyond
from agent.threads.stopping import LESSER_END, NEXT_CALL, NEXT_TURN
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    StopAsked,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BThreadBody, bthread, start, sync, where
from constitution import Action, Level, Verdict

Judge = Callable[[Action], Verdict]

# by_constitution


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
def judges_one_call_at_a_time(judge: Judge) -> BThreadBody:
    """A single slot: what is described while a person thinks goes unjudged."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        call, approval = described.call, where(GateApproved, call=described.call)
        verdict = judge(described.facts)
        denied = verdict.level is Level.deny or described.problem is not None
        if verdict.level is Level.ask and not denied:
            yield sync(request=ApprovalAsked(call, "May it run?"), block=approval)
            said = yield sync(wait_for=where(ApprovalAnswered, call=call), block=approval | RunEnded)
            denied = not said.yes
        if denied:
            yield sync(refuse=approval, because=verdict, wait_for=where(GateRejected, call=call))


@bthread(name="by_constitution")
def never_lets_go(judge: Judge) -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if judge(described.facts).level is not Level.allow:
            yield start(holds_for_ever(described.call))


@bthread(name="by_constitution")
def holds_for_ever(call: ToolCall) -> BThreadBody:
    yield sync(block=where(GateApproved, call=call))


@bthread(name="by_constitution")
def with_stale_objections(judge: Judge) -> BThreadBody:
    """An objection to a call that somebody else rejected meanwhile lives on, and meets the next such call."""
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


# no_start_without_approval, only_whole_calls, and the order of a batch


@bthread(name="no_start_without_approval")
def never_believes_the_gate() -> BThreadBody:
    yield sync(refuse=ToolStarted, because="the gate did not approve it")


@bthread(name="only_whole_calls")
def lets_calls_run_that_are_cut_off() -> BThreadBody:
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        yield start(*[refuse_unknown(call) for call in answer.calls if call.flaw == "unknown tool"])


@bthread(name="only_whole_calls")
def refuse_unknown(call: ToolCall) -> BThreadBody:
    proposal = where(ProposedAction, call=call)
    yield sync(refuse=proposal, because=Flaw("unknown tool"), wait_for=where(CallAnswered, call=call.id))


@bthread(name="only_whole_calls")
def holds_flawed_calls() -> BThreadBody:
    while True:
        yield sync(wait_for=AnswerCommitted, block=where(ProposedAction, lambda proposed: bool(proposed.call.flaw)))


@bthread(name="one_at_a_time")
def waits_for_the_last_answer(together: str) -> BThreadBody:
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            *_, last = answer.calls
            later = where(ProposedAction, call=last)
            yield sync(wait_for=where(CallAnswered, call=last.id), block=later)


@bthread(name="one_at_a_time")
def lets_go_when_the_first_call_is_proposed(together: str) -> BThreadBody:
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            yield sync(wait_for=ProposedAction, block=where(ProposedAction, call=answer.calls[1]))


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


@bthread(name="answers_in_source_order")
def wants_the_last_answer_first() -> BThreadBody:
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            first, *_, last = answer.calls
            yield sync(wait_for=where(CallAnswered, call=last.id), block=where(CallAnswered, call=first.id))


@bthread(name="by_constitution")
def judges_the_first_call_of_an_answer(judge: Judge) -> BThreadBody:
    """What runs beside it goes unjudged."""
    while True:
        yield sync(wait_for=AnswerCommitted)
        described = yield sync(wait_for=ActionDescribed | AnswerCommitted)
        if isinstance(described, ActionDescribed):
            verdict = judge(described.facts)
            if verdict.level is not Level.allow or described.problem:
                yield start(denial(described.call, verdict))


# Limits and retries


@bthread(name="at_most")
def holds_at_the_limit(turns: int, text: str = "") -> BThreadBody:
    while True:
        for _ in range(turns):
            yield sync(wait_for=AnswerCommitted)
        yield sync(block=InferenceRequested, wait_for=RunEnded)


@bthread(name="at_most")
def allows_one_more(turns: int, text: str = "") -> BThreadBody:
    while True:
        taken = 0
        while taken <= turns:
            said = yield sync(wait_for=AnswerCommitted | RunEnded)
            taken = 0 if isinstance(said, RunEnded) else taken + 1
        ending = Ending("limit", "max_iterations")
        yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)


@bthread(name="at_most")
def ends_the_run_itself(turns: int, text: str = "") -> BThreadBody:
    while True:
        taken = 0
        while taken < turns:
            said = yield sync(wait_for=AnswerCommitted | RunEnded)
            taken = 0 if isinstance(said, RunEnded) else taken + 1
        yield sync(request=RunEnded("limit", "max_iterations"), wait_for=RunEnded)


@bthread(name="too_many_failures")
def holds_after_failures(limit: int) -> BThreadBody:
    while True:
        for _ in range(limit):
            yield sync(wait_for=where(ToolFinished, is_error=True))
        yield sync(block=InferenceRequested | ProposedAction, wait_for=RunEnded)


@bthread(name="too_many_failures")
def forgives_failures_at_each_turn(limit: int) -> BThreadBody:
    ending = Ending("failed", "too_many_failures")
    while True:
        failures = 0
        while failures < limit:
            said = yield sync(wait_for=AnswerCommitted | where(ToolFinished, is_error=True) | RunEnded)
            failures = failures + 1 if isinstance(said, ToolFinished) else 0
        yield sync(refuse=InferenceRequested | ProposedAction, because=ending, wait_for=RunEnded)


@bthread(name="empty_answers")
def takes_no_answer_for_empty(limit: int) -> BThreadBody:
    yield sync(wait_for=where(AnswerCommitted, draft="none"))


@bthread(name="empty_answers")
def holds_after_empty_answers(limit: int) -> BThreadBody:
    while True:
        empty = 0
        while empty < limit:
            said = yield sync(wait_for=AnswerCommitted)
            empty = empty + 1 if said.is_empty else 0
        yield sync(block=InferenceRequested, wait_for=RunEnded)


@bthread(name="retry")
def never_gives_up(attempts: int) -> BThreadBody:
    while True:
        failed = yield sync(wait_for=InferenceFailed)
        yield sync(request=BackoffStarted(1, failed.retry_after), block=InferenceRequested)
        yield sync(wait_for=BackoffElapsed, block=InferenceRequested | RunEnded)


@bthread(name="retry")
def does_not_wait_for_the_backoff(attempts: int) -> BThreadBody:
    while True:
        failed = yield sync(wait_for=InferenceFailed)
        if failed.retryable:
            yield sync(request=BackoffStarted(1), wait_for=RunEnded)


@bthread(name="retry")
def holds_for_good_after_a_failure(attempts: int) -> BThreadBody:
    while True:
        yield sync(wait_for=InferenceFailed)
        yield sync(block=InferenceRequested, wait_for=InferenceFinished)


@bthread(name="recover_from_overflow")
def asks_again_though_it_was_too_long(summarize: bool) -> BThreadBody:
    yield sync(wait_for=RunEnded)


@bthread(name="recover_from_overflow")
def sums_up_again_and_again(summarize: bool) -> BThreadBody:
    while True:
        yield sync(wait_for=where(InferenceFailed, reason="context_length_exceeded"))
        said = yield sync(request=SummaryRequested(), block=InferenceRequested, wait_for=RunEnded)
        if isinstance(said, SummaryRequested):
            yield sync(wait_for=SummaryFinished | SummaryFailed, block=InferenceRequested | RunEnded)


# Stop and abort


@bthread(name="stop_on_request")
def only_blocks(after: str = "call") -> BThreadBody:
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(block=NEXT_TURN | NEXT_CALL, wait_for=RunEnded)


@bthread(name="stop_on_request")
def lets_approved_calls_start(after: str = "call") -> BThreadBody:
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=NEXT_TURN, because=Ending("stopped", "stop_asked"), wait_for=RunEnded)


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
def ends_the_run_at_once() -> BThreadBody:
    while True:
        yield sync(wait_for=AbortAsked)
        yield sync(request=RunEnded("aborted", "abort_asked"), wait_for=RunEnded)


@bthread(name="abort_on_request")
def lets_the_run_complete() -> BThreadBody:
    while True:
        yield sync(wait_for=AbortAsked)
        ending = Ending("aborted", "abort_asked")
        yield sync(refuse=InferenceRequested | BackoffStarted | NEXT_CALL, because=ending, wait_for=RunEnded)


@bthread(name="abort_on_request")
def waits_for_the_next_turn() -> BThreadBody:
    while True:
        yield sync(wait_for=AbortAsked)
        yield sync(wait_for=InferenceRequested)
        ending = Ending("aborted", "abort_asked")
        yield sync(refuse=NEXT_TURN | NEXT_CALL, because=ending, wait_for=RunEnded)


# the sandbox


@bthread(name="by_constitution")
def lifts_without_a_yes(judge: Callable[[Action], Verdict]) -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if rights := rights_beyond(described.facts):
            yield start(grant(described.call, rights))
        if (verdict := judge(described.facts)).level is not Level.allow:
            yield start(objection(described, verdict))
