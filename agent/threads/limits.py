"""Bounds on a run. A limit only refuses: whatever is open is still answered, and `converse` ends the run."""

from agent.events import AnswerCommitted, CallAnswered, InferenceRequested, ProposedAction, RunEnded, ToolFinished
from agent.reasons import Ending
from bp import BThreadBody, bthread, sync, where

__all__ = ["LIMIT_TEXT", "at_most", "empty_answers", "too_many_failures"]

TURNS = AnswerCommitted | RunEnded
TOOL_NEWS = ToolFinished | where(CallAnswered, outcome="invalid") | RunEnded

LIMIT_TEXT = "Stopped: maximum iteration limit reached."  # S0 5.1


@bthread
def at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers in a run, then no further inference (S0 5.2, S5.7)."""
    while True:
        taken = 0
        while taken < turns:
            said = yield sync(wait_for=TURNS)
            taken = 0 if isinstance(said, RunEnded) else taken + 1
        yield sync(refuse=InferenceRequested, because=Ending("limit", "max_iterations", text), wait_for=RunEnded)


@bthread
def too_many_failures(limit: int) -> BThreadBody:
    """End the run at the `limit`-th failure in a row: tools in error and invalid calls; refusals do not count."""
    ending = Ending("failed", "too_many_failures", f"Stopped: {limit} tool failures in a row.")
    while True:
        failures = 0
        while failures < limit:
            said = yield sync(wait_for=TOOL_NEWS)
            failed = isinstance(said, CallAnswered) or (isinstance(said, ToolFinished) and said.is_error)
            failures = failures + 1 if failed else 0
        yield sync(refuse=InferenceRequested | ProposedAction, because=ending, wait_for=RunEnded)


@bthread
def empty_answers(limit: int) -> BThreadBody:
    """End the run at the `limit`-th answer in a row with neither text nor calls."""
    ending = Ending("failed", "empty_answers", f"Stopped: the model gave {limit} empty answers in a row.")
    while True:
        empty = 0
        while empty < limit:
            said = yield sync(wait_for=TURNS)
            empty = empty + 1 if isinstance(said, AnswerCommitted) and said.is_empty else 0
        yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
