"""Limits on a run: iterations, failures, tokens, money, time, and attempts of an inference."""

from collections.abc import Callable
from typing import Any

from agent.threads.core import OWN
from agent.threads.stopping import NEXT_CALL, NEXT_TURN
from agent.vocabulary.events import (
    AnswerCommitted,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    DeadlineReached,
    DeadlineSet,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
)
from agent.vocabulary.reasons import DEADLINE, Ending
from bp import BThreadBody, bthread, sync, where

TURNS = AnswerCommitted | RunEnded
INVALID = where(CallAnswered, outcome="invalid")
TOOL_NEWS = ToolFinished | INVALID | RunEnded
TOOL_FAILURE = where(ToolFinished, is_error=True) | INVALID

LIMIT_TEXT = "Stopped: maximum iteration limit reached."  # S0 5.1

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


@bthread
def at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers in a run, then no further inference (S0 5.2, S5.7)."""
    yield from refuse_when(
        turns, TURNS, lambda n, _: n + 1, Ending("limit", "max_iterations", text), InferenceRequested
    )


@bthread
def too_many_failures(limit: int) -> BThreadBody:
    """End the run at the `limit`-th failure in a row: tools in error and invalid calls; refusals do not count."""
    ending = Ending("failed", "too_many_failures", f"Stopped: {limit} tool failures in a row.")
    yield from refuse_when(
        limit, TOOL_NEWS, failures_in_a_row, ending, InferenceRequested | ProposedAction, TOOL_FAILURE
    )


@bthread
def empty_answers(limit: int) -> BThreadBody:
    """End the run at the `limit`-th answer in a row with neither text nor calls."""
    ending = Ending("failed", "empty_answers", f"Stopped: the model gave {limit} empty answers in a row.")
    yield from refuse_when(
        limit, TURNS, lambda n, said: n + 1 if said.is_empty else 0, ending, InferenceRequested, EMPTY
    )


def failures_in_a_row(number: int, said: ToolFinished | CallAnswered) -> int:
    """Count failures; a success resets the count."""
    return number + 1 if isinstance(said, CallAnswered) or said.is_error else 0


def is_empty(answer: AnswerCommitted) -> bool:
    """Return whether an answer has neither text nor calls."""
    return answer.is_empty


EMPTY = where(AnswerCommitted, is_empty)


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


@bthread
def budget_of_cost(limit: float) -> BThreadBody:
    """Refuse inferences in this run once it has cost `limit` US dollars."""
    ending = Ending("limit", "max_cost", f"Stopped: the budget of ${limit:g} is used up.")
    yield from refuse_when(limit, SPENDING, lambda n, said: n + (said.usage.cost or 0.0), ending, ASKING)


def and_tokens_of_this_turn(number: int, said: InferenceFinished | AnswerCommitted) -> int:
    """Add the tokens of a draft; with its answer a turn is over."""
    return 0 if isinstance(said, AnswerCommitted) else number + said.usage.tokens


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
            yield sync(refuse=NEXT_TURN | NEXT_CALL, because=ending, wait_for=RunEnded)


OVERFLOW = where(InferenceFailed, draft=OWN, reason="context_length_exceeded")
"""The reason when a conversation is too long for the model's server; `threads.summaries` handles it."""

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
        if not failures:
            continue
        if said.retryable and failures < attempts:
            said = yield sync(
                request=BackoffStarted(failures, said.retry_after), block=InferenceRequested, wait_for=RunEnded
            )
            if isinstance(said, BackoffStarted):
                elapsed = where(BackoffElapsed, attempt=failures)
                yield sync(wait_for=elapsed, block=InferenceRequested | RunEnded)
            else:
                failures = 0
        else:
            ending = Ending("failed", said.reason or "inference_failed", said.error)
            yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
            failures = 0
