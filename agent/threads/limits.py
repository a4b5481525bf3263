"""Bounds on a run, each the same b-thread: it tallies up to its limit, then refuses, and `converse` ends the run.

A limit only refuses: whatever is open is still answered.
"""

from collections.abc import Callable
from typing import Any

from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolFinished,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, Event, bthread, sync, where

__all__ = ["LIMIT_TEXT", "at_most", "empty_answers", "refuse_when", "too_many_failures"]

TURNS = AnswerCommitted | RunEnded
TOOL_NEWS = ToolFinished | where(CallAnswered, outcome="invalid") | RunEnded

LIMIT_TEXT = "Stopped: maximum iteration limit reached."  # S0 5.1

Tally = Callable[[Any, Any], Any]
"""From a number and an event to the next number."""


def refuse_when(limit: Any, news: Any, tally: Tally, ending: Ending, refused: Any) -> BThreadBody:
    """Tally `news` in each run until `limit`; then refuse `refused` until the run has ended. `news` has RunEnded."""
    while True:
        number = 0
        while number < limit:
            said = yield sync(wait_for=news)
            number = 0 if isinstance(said, RunEnded) else tally(number, said)
        yield sync(refuse=refused, because=ending, wait_for=RunEnded)


@bthread
def at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers in a run, then no further inference (S0 5.2, S5.7)."""
    yield from refuse_when(turns, TURNS, one_more, Ending("limit", "max_iterations", text), InferenceRequested)


@bthread
def too_many_failures(limit: int) -> BThreadBody:
    """End the run at the `limit`-th failure in a row: tools in error and invalid calls; refusals do not count."""
    ending = Ending("failed", "too_many_failures", f"Stopped: {limit} tool failures in a row.")
    yield from refuse_when(limit, TOOL_NEWS, failures_in_a_row, ending, InferenceRequested | ProposedAction)


@bthread
def empty_answers(limit: int) -> BThreadBody:
    """End the run at the `limit`-th answer in a row with neither text nor calls."""
    ending = Ending("failed", "empty_answers", f"Stopped: the model gave {limit} empty answers in a row.")
    yield from refuse_when(limit, TURNS, empty_in_a_row, ending, InferenceRequested)


def one_more(number: int, said: Event) -> int:
    """Count every event."""
    return number + 1


def failures_in_a_row(number: int, said: ToolFinished | CallAnswered) -> int:
    """Count failures; a success begins anew."""
    return number + 1 if isinstance(said, CallAnswered) or said.is_error else 0


def empty_in_a_row(number: int, said: AnswerCommitted) -> int:
    """Count empty answers; any other begins anew."""
    return number + 1 if said.is_empty else 0
