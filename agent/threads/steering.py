"""Steering: what a person says meanwhile is heard before anything else begins, and before the run completes."""

from agent.vocabulary.events import (
    ApprovalAsked,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    SteeringGiven,
    ToolStarted,
)
from agent.vocabulary.reasons import Steered
from bp import BThreadBody, bthread, sync, where

__all__ = ["HEARD", "skip_when_steered"]

HEARD = where(InferenceRequested, draft="d0") | RunEnded
"""Where steering is over: the loop's own inference is shown all of it; what another end leaves is kept for later."""

NEXT = ProposedAction | ApprovalAsked | GateApproved | ToolStarted | where(RunEnded, status="completed")


@bthread
def skip_when_steered() -> BThreadBody:
    """After `steering_given` start no further call of the batch, and do not complete, until the model has heard it.

    What runs finishes; each call that has not started is answered as skipped (S2). An open question is withdrawn.
    """
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=NEXT, because=Steered(), wait_for=HEARD)
