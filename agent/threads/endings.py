"""Rules that end a run or keep it from ending: requests of users, limits, the clock, failures, completion by a tool."""

from collections.abc import Callable
from typing import Any, Literal

from agent.threads.core import OWN
from agent.vocabulary.events import (
    AbortAsked,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    DeadlineReached,
    DeadlineSet,
    FollowUpGiven,
    GateApproved,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    Question,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import DEADLINE, CutOff, Ending, Unfinished
from bp import NONE, BThreadBody, bthread, contains, sync, where

# Requests of users

NEXT_INFERENCE = InferenceRequested | BackoffStarted | SummaryRequested
NEXT_OR_COMPLETED = NEXT_INFERENCE | where(RunEnded, status="completed")
NEXT_STEP = NEXT_INFERENCE | ApprovalAsked | where(RunEnded, status="completed", reason="answered")
NEXT_CALL = ProposedAction | ApprovalAsked | GateApproved | ToolStarted | Question

LESSER_END = where(RunEnded, status="limit") | where(RunEnded, status="doom_loop")
"""Ends that were due before the request of the user; a run that was held meanwhile ends as requested."""


@bthread
def stop_on_request(after: Literal["call", "step"] = "call") -> BThreadBody:
    """After `stop_asked` start nothing new: no call (after="call"), or no turn (after="step", S1 7.3).

    The user is not asked any more: a user who said stop has left, and calls that need a yes are skipped.
    A step that ends with the agent's own `complete` has completed the run (S1 4.1: 5 comes before 7).
    """
    nothing_new = LESSER_END | (NEXT_OR_COMPLETED | NEXT_CALL if after == "call" else NEXT_STEP)
    ending = Ending("stopped", "stop_asked", "Stopped at the user's request.")
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=nothing_new, because=ending, wait_for=RunEnded)


@bthread
def abort_on_request() -> BThreadBody:
    """After `abort_asked` start nothing at all."""
    ending = Ending("aborted", "abort_asked", "Aborted at the user's request.")
    nothing = NEXT_OR_COMPLETED | NEXT_CALL | LESSER_END | where(RunEnded, status="stopped")
    while True:
        yield sync(wait_for=AbortAsked)
        yield sync(refuse=nothing, because=ending, wait_for=RunEnded)


def _has_the_letters_stop(said: Any) -> bool:
    return "stop" in said.text.lower()


@bthread
def stop_when_said() -> BThreadBody:
    """Request a stop whenever a message of the user has the letters "stop", in any case, also within a word."""
    spoken = where((SteeringGiven, FollowUpGiven, ApprovalAnswered), _has_the_letters_stop)
    while True:
        said = yield sync(wait_for=spoken)
        yield sync(request=StopAsked(said.text), wait_for=RunEnded)


# Limits

Tally = Callable[[Any, Any], Any]
"""From a number and an event to the next number."""


def refuse_when(limit: Any, news: Any, tally: Tally, ending: Ending, refused: Any, begins: Any = None) -> BThreadBody:
    """Tally `news` in each run until `limit`; then refuse `refused` until the run has ended. `news` has RunEnded.

    begins: the events of `news` that can raise a tally of nothing, if not all can.
    """
    while True:
        number = 0
        while number < limit:
            said = yield sync(wait_for=news if number or begins is None else begins)
            number = 0 if isinstance(said, RunEnded) else tally(number, said)
        yield sync(refuse=refused, because=ending, wait_for=RunEnded)


LIMIT_TEXT = "Stopped: maximum iteration limit reached."  # S0 5.1
TURNS = AnswerCommitted | RunEnded
INVALID = where(CallAnswered, outcome="invalid")
FAILED = where(ToolFinished, lambda event: event.result.is_error)


@bthread
def at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers in a run, then no further inference (S0 5.2, S5.7)."""
    ending = Ending("limit", "max_iterations", text)
    yield from refuse_when(turns, TURNS, lambda n, _: n + 1, ending, InferenceRequested)


@bthread
def too_many_failures(limit: int) -> BThreadBody:
    """End the run at the `limit`-th failure in a row: tools in error and invalid calls; refusals do not count."""
    ending = Ending("failed", "too_many_failures", f"Stopped: {limit} tool failures in a row.")
    news, begins = ToolFinished | INVALID | RunEnded, FAILED | INVALID
    yield from refuse_when(limit, news, failures_in_a_row, ending, InferenceRequested | ProposedAction, begins)


def failures_in_a_row(number: int, said: ToolFinished | CallAnswered) -> int:
    """Count failures; a success resets the count."""
    return number + 1 if said.result.is_error else 0


def _is_empty(answer: Any) -> bool:
    return bool(answer.is_empty)


EMPTY = where(AnswerCommitted, _is_empty)


@bthread
def empty_answers(limit: int) -> BThreadBody:
    """End the run at the `limit`-th answer in a row with neither text nor calls."""
    ending = Ending("failed", "empty_answers", f"Stopped: the model gave {limit} empty answers in a row.")
    asked = InferenceRequested
    yield from refuse_when(limit, TURNS, lambda n, said: n + 1 if said.is_empty else 0, ending, asked, EMPTY)


SPENDING = InferenceFinished | SummaryFinished | ToolFinished | RunEnded  # tools: the tokens of subagents
TURN_SPENDING = InferenceFinished | AnswerCommitted | RunEnded
ASKING = InferenceRequested | SummaryRequested


@bthread
def budget_of_tokens(limit: int) -> BThreadBody:
    """Refuse inferences in this run once `limit` tokens are used, those of uncommitted drafts included."""
    ending = Ending("limit", "max_tokens", f"Stopped: the budget of {limit:,} tokens is used up.")
    yield from refuse_when(limit, SPENDING, lambda n, said: n + said.usage.tokens, ending, ASKING)


@bthread
def budget_per_turn(limit: int) -> BThreadBody:
    """End the run after a turn that took more than `limit` tokens, all drafts of the turn together (S1 9.1)."""
    text = f"Stopped: a turn took more than the {limit:,} tokens that one may take."
    ending = Ending("limit", "max_tokens_per_iteration", text)
    yield from refuse_when(limit + 1, TURN_SPENDING, and_tokens_of_this_turn, ending, ASKING)


def and_tokens_of_this_turn(number: int, said: InferenceFinished | AnswerCommitted) -> int:
    """Add the tokens of a draft; with its answer a turn is over."""
    return 0 if isinstance(said, AnswerCommitted) else number + said.usage.tokens


@bthread
def budget_of_cost(limit: float) -> BThreadBody:
    """Refuse inferences in this run once it has cost `limit` US dollars."""
    ending = Ending("limit", "max_cost", f"Stopped: the budget of ${limit:g} is used up.")
    yield from refuse_when(limit, SPENDING, lambda n, said: n + (said.usage.cost or 0.0), ending, ASKING)


# The clock


@bthread
def deadline(seconds: float) -> BThreadBody:
    """Start the timer when a run begins. When it has elapsed, refuse everything; effects end (their `until`)."""
    ending = Ending("limit", DEADLINE, f"Stopped: the time limit of {seconds:g} seconds was reached.")
    while True:
        yield sync(wait_for=PromptGiven)
        said = yield sync(request=DeadlineSet(seconds), wait_for=RunEnded)
        if isinstance(said, DeadlineSet):
            said = yield sync(wait_for=DeadlineReached | RunEnded)
        if isinstance(said, DeadlineReached):
            yield sync(refuse=NEXT_OR_COMPLETED | NEXT_CALL, because=ending, wait_for=RunEnded)


# Failed inferences

OVERFLOW = where(InferenceFailed, draft=OWN, reason="context_length_exceeded")
"""The conversation is too long for the model's server; `threads.summaries` handles it."""

FAILURE = InferenceFailed & ~OVERFLOW
INFERENCES = FAILURE | InferenceFinished | RunEnded


@bthread
def retry(attempts: int) -> BThreadBody:
    """Allow `attempts` inferences for an answer: the next one waits for its backoff, and comes only if it may help.

    While a backoff is under way the run does not end; a stop, an abort or the deadline cuts the backoff short.
    """
    failures = 0
    while True:
        said = yield sync(wait_for=INFERENCES if failures else FAILURE)
        failures = failures + 1 if isinstance(said, InferenceFailed) else 0
        if failures and said.retryable and failures < attempts:
            backoff = BackoffStarted(failures, said.retry_after)
            if (yield sync(request=backoff, block=InferenceRequested, wait_for=RunEnded)) == backoff:
                elapsed = where(BackoffElapsed, attempt=failures)
                yield sync(wait_for=elapsed, block=InferenceRequested | RunEnded)
            else:
                failures = 0
        elif failures:
            ending = Ending("failed", said.reason or "inference_failed", said.error)
            yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
            failures = 0


# Answers that were cut off


def _is_cut_off(answer: Any) -> bool:
    return bool(answer.cut_off) and not answer.calls and not answer.is_empty


TEXT_ALONE = where(RunEnded, status="completed", reason="answered")
CUT_OFF_TEXT = where(AnswerCommitted, _is_cut_off)


@bthread
def only_whole_answers() -> BThreadBody:
    """Complete no run with a text that was cut off: it fails with this text, unless it goes on for another reason."""
    while True:
        answer = yield sync(wait_for=CUT_OFF_TEXT)
        because = CutOff(answer.cut_off, answer.message.text)
        yield sync(refuse=TEXT_ALONE, because=because, wait_for=RunContinued | RunEnded)


# Completion by a tool (S1). The arguments of the two tools are read from their results: only calls that ran count.

PURSUE, COMPLETE = "pursue_objective", "complete"
"""The tools that begin and end autonomous work."""

GO_ON = Unfinished(
    "You have not called complete, so the run goes on. Continue, or call complete with the result and the status "
    "success, partial or failure."
)


def _pursues(event: Any) -> bool:
    return bool(event.call.tool == PURSUE)


def _completes(event: Any) -> bool:
    return bool(event.call.tool == COMPLETE)


OBJECTIVE_TAKEN = where(ToolFinished, _pursues) & ~FAILED
COMPLETED = where(ToolFinished, _completes) & ~FAILED


@bthread
def complete_to_finish(after_objective: bool = False) -> BThreadBody:
    """End the run when `complete` is called; a text alone does not complete it.

    With `after_objective` that holds once an objective was taken. If the user has more to say after `complete`, the run
    continues as it began.
    """
    while True:
        said = yield sync(wait_for=PromptGiven)
        is_pursuing = not after_objective
        while not isinstance(said, RunEnded):
            said = yield sync(
                wait_for=COMPLETED | OBJECTIVE_TAKEN | RunEnded,
                refuse=TEXT_ALONE if is_pursuing else NONE,
                because=GO_ON,
            )
            if contains(OBJECTIVE_TAKEN, said):
                is_pursuing = True
            elif isinstance(said, ToolFinished):
                over = InferenceRequested | ProposedAction
                given = said.call.arguments
                done = Ending("completed", str(given.get("status", "success")), str(given.get("result", "")))
                said = yield sync(refuse=over, because=done, wait_for=RunEnded | RunContinued)
                is_pursuing = not after_objective


@bthread
def one_objective() -> BThreadBody:
    """While an objective is pursued, refuse to take another one."""
    because = "an objective is being pursued; call complete before you take another one"
    while True:
        yield sync(wait_for=OBJECTIVE_TAKEN)
        yield sync(wait_for=COMPLETED | RunEnded, refuse=where(GateApproved, _pursues), because=because)


@bthread
def iterations_at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers, counted from the first objective of the run; the last response is returned.

    Before there is an objective they are counted too: `turns` answers without one are a limit as well (S1 4.3, 7.2).
    """
    taken, pursuing, response = 0, False, ""
    while True:
        words = f"{text}\n\nLast response: {response}" if response else text
        said = yield sync(
            wait_for=TURNS | OBJECTIVE_TAKEN,
            refuse=InferenceRequested if taken >= turns else NONE,
            because=Ending("limit", "max_iterations", words),
        )
        if isinstance(said, AnswerCommitted):
            taken, response = taken + 1, said.message.text.strip() or response
        elif isinstance(said, RunEnded):
            taken, pursuing, response = 0, False, ""
        elif not pursuing:
            taken, pursuing = 0, True
