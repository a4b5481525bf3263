"""How a protocol ends what it does not trust any more: nothing starts, and the run ends as failed."""

from agent.vocabulary.events import (
    ApprovalAsked,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import Contained, Subject
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, sync, where

__all__ = ["COMPLETED", "EVERYTHING", "contain"]

EVERYTHING = InferenceRequested | ProposedAction | ApprovalAsked | GateApproved | ToolStarted
COMPLETED = where(RunEnded, status="completed")


def contain(subject: Subject, because: object) -> BThreadBody:
    """Say that a subject is contained, and refuse everything after it until the run has ended."""
    reason = str(because)
    ending = Ending("failed", "contained", f"Stopped: {reason}.")
    yield sync(request=Contained(subject, reason), refuse=EVERYTHING, because=ending, block=RunEnded)
    yield sync(refuse=EVERYTHING | COMPLETED, because=ending, wait_for=RunEnded)
