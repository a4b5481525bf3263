"""Stop and abort: two ways to end a run from outside. Both only refuse; every open call is still answered."""

from typing import Any, Literal

from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffStarted,
    FollowUpGiven,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    Question,
    RunEnded,
    SteeringGiven,
    StopAsked,
    SummaryRequested,
    ToolStarted,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync, where

LESSER_END = where(RunEnded, status="limit") | where(RunEnded, status="doom_loop")
"""Ends that were due before the request of the user; a run that was held meanwhile ends as requested."""

NEXT_INFERENCE = InferenceRequested | BackoffStarted | SummaryRequested
NEXT_TURN = NEXT_INFERENCE | where(RunEnded, status="completed")
NEXT_STEP = NEXT_INFERENCE | ApprovalAsked | where(RunEnded, status="completed", reason="answered")
NEXT_CALL = ProposedAction | ApprovalAsked | GateApproved | ToolStarted | Question


@bthread
def stop_on_request(after: Literal["call", "step"] = "call") -> BThreadBody:
    """After `stop_asked` start nothing new: no call (after="call"), or no turn (after="step", S1 7.3).

    The user is not asked any more: a user who said stop has left, and calls that need a yes are skipped.
    A step that ends with the agent's own `complete` has completed the run (S1 4.1: 5 comes before 7).
    """
    nothing_new = LESSER_END | (NEXT_TURN | NEXT_CALL if after == "call" else NEXT_STEP)
    ending = Ending("stopped", "stop_asked", "Stopped at the user's request.")
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=nothing_new, because=ending, wait_for=RunEnded)


@bthread
def abort_on_request() -> BThreadBody:
    """After `abort_asked` start nothing at all."""
    ending = Ending("aborted", "abort_asked", "Aborted at the user's request.")
    nothing = NEXT_TURN | NEXT_CALL | LESSER_END | where(RunEnded, status="stopped")
    while True:
        yield sync(wait_for=AbortAsked)
        yield sync(refuse=nothing, because=ending, wait_for=RunEnded)


def has_the_letters_stop(text: str) -> bool:
    """Return whether `text` contains "stop", in any case, also within a word."""
    return "stop" in text.lower()


def _says_so(said: Any) -> bool:
    return has_the_letters_stop(said.text)


@bthread
def stop_when_said() -> BThreadBody:
    """Request a stop whenever a message of the user, as steering or a follow-up, says to stop."""
    spoken = where((SteeringGiven, FollowUpGiven, ApprovalAnswered), _says_so)
    while True:
        said = yield sync(wait_for=spoken)
        yield sync(request=StopAsked(said.text), wait_for=RunEnded)
