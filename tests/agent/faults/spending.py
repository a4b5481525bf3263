"""Faults of what a run may take, and of autonomous work: each stands in for the b-thread whose name it has."""

from agent.threads.completion import COMPLETED, GO_ON, OBJECTIVE_TAKEN, TEXT_ALONE
from agent.threads.limits import TURNS
from agent.threads.stopping import NEXT_CALL, NEXT_TURN
from agent.vocabulary.calls import signature
from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAnswered,
    DeadlineReached,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    StopAsked,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync, where

LIMIT = Ending("limit", "limit")


@bthread(name="doom_loop")
def never_compares(n: int = 3) -> BThreadBody:
    yield sync(wait_for=where(AnswerCommitted, draft="none"))


@bthread(name="doom_loop")
def holds_the_repeated_call(n: int = 3) -> BThreadBody:
    latest = ""
    while True:
        answer = yield sync(wait_for=AnswerCommitted | RunEnded)
        signatures = [signature(call) for call in getattr(answer, "calls", ())]
        if latest in signatures:
            yield sync(block=ProposedAction, wait_for=RunEnded)
        latest = signatures[-1] if signatures else ""


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


@bthread(name="budget_of_cost")
def holds_when_the_money_is_gone(limit: float) -> BThreadBody:
    while True:
        number = 0.0
        while number < limit:
            said = yield sync(wait_for=InferenceFinished | RunEnded)
            number = number + (said.usage.cost or 0.0) if isinstance(said, InferenceFinished) else 0.0
        yield sync(block=InferenceRequested, wait_for=RunEnded)


@bthread(name="budget_per_turn")
def allows_a_token_more(limit: int) -> BThreadBody:
    while True:
        yield sync(wait_for=where(InferenceFinished, lambda finished: finished.usage.tokens > limit + 1))
        yield sync(refuse=InferenceRequested, because=LIMIT, wait_for=RunEnded)


@bthread(name="deadline")
def lets_approved_calls_start_late(seconds: float) -> BThreadBody:
    while True:
        yield sync(wait_for=DeadlineReached)
        yield sync(refuse=NEXT_TURN, because=LIMIT, wait_for=RunEnded)


@bthread(name="deadline")
def holds_when_the_time_is_over(seconds: float) -> BThreadBody:
    while True:
        yield sync(wait_for=DeadlineReached)
        yield sync(block=NEXT_TURN | NEXT_CALL, wait_for=RunEnded)


@bthread(name="deadline")
def ends_the_run_when_the_time_is_over(seconds: float) -> BThreadBody:
    while True:
        yield sync(wait_for=DeadlineReached)
        yield sync(request=RunEnded("limit", "deadline"), wait_for=RunEnded)


@bthread(name="complete_to_finish")
def holds_the_end(after_objective: bool = False) -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(wait_for=COMPLETED | RunEnded, block=TEXT_ALONE)


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


@bthread(name="complete_to_finish")
def refuses_every_completion(after_objective: bool = False) -> BThreadBody:
    """Its own too, so that the run can neither end nor go on."""
    completed = where(RunEnded, status="completed")
    while True:
        yield sync(wait_for=OBJECTIVE_TAKEN)
        said = yield sync(wait_for=COMPLETED | RunEnded, refuse=completed, because=GO_ON)
        if isinstance(said, ToolFinished):
            done = Ending("completed", "success")
            over = InferenceRequested | ProposedAction
            yield sync(refuse=[over, completed], because=done, wait_for=where(RunEnded, status="failed"))


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


@bthread(name="stop_when_said")
def hears_answers_only() -> BThreadBody:
    while True:
        said = yield sync(wait_for=where(ApprovalAnswered, lambda answered: "stop" in answered.text.lower()))
        yield sync(request=StopAsked(said.text), wait_for=RunEnded)


@bthread(name="summarize_when_full")
def sums_up_while_tools_run(tokens: int) -> BThreadBody:
    full = where(InferenceFinished, lambda finished: finished.usage.tokens >= tokens)
    while True:
        yield sync(wait_for=full)
        yield sync(wait_for=AnswerCommitted | RunEnded)
        yield sync(request=SummaryRequested(), wait_for=RunEnded)


@bthread(name="summarize_when_full")
def waits_for_a_summary_that_may_fail(tokens: int) -> BThreadBody:
    full = where(InferenceFinished, lambda finished: finished.usage.tokens >= tokens and not finished.calls)
    while True:
        yield sync(wait_for=full)
        yield sync(wait_for=AnswerCommitted)
        yield sync(request=SummaryRequested(), block=InferenceRequested)
        yield sync(wait_for=SummaryFinished, block=InferenceRequested | RunEnded)
