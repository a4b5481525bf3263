"""What must hold for people who step in: what they say during a run is heard before anything else begins."""

from agent.events import (
    ApprovalAsked,
    FollowUpGiven,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    ToolStarted,
)
from agent.reasons import follow_ups_heard
from bp import BThreadBody, bthread, sync, where

__all__ = ["a_continued_run_asks_again", "follow_ups_are_heard", "steering_is_heard"]

CALL_NEWS = ProposedAction | ApprovalAsked | GateApproved | ToolStarted
ASKED = where(InferenceRequested, draft="d0")


@bthread
def a_continued_run_asks_again() -> BThreadBody:
    """When a run goes on, the model is asked again before it completes: it hears why the run goes on."""
    while True:
        yield sync(wait_for=RunContinued)
        said = yield sync(wait_for=ASKED | RunEnded)
        assert said.name != "run_ended" or said.status != "completed", "the run goes on, and completes as it is"


@bthread
def steering_is_heard() -> BThreadBody:
    """After steering no call begins, and the run does not complete, before the model is asked again."""
    while True:
        yield sync(wait_for=SteeringGiven)
        said = yield sync(wait_for=CALL_NEWS | ASKED | RunEnded)
        if isinstance(said, RunEnded):
            assert said.status != "completed", "the run completes, and the model has not heard the steering"
        else:
            assert isinstance(said, InferenceRequested), f"{said.name} before the model has heard the steering"


@bthread
def follow_ups_are_heard(at_once: bool) -> BThreadBody:
    """A run does not complete while a follow-up waits; it goes on with one of them, or with all `at_once`."""
    waiting = 0
    while True:
        said = yield sync(wait_for=FollowUpGiven | RunContinued | RunEnded)
        if isinstance(said, FollowUpGiven):
            waiting = 1 if at_once else waiting + 1
        elif isinstance(said, RunEnded):
            assert said.status != "completed" or not waiting, f"the run completes while {waiting} follow-ups wait"
            waiting = 0
        elif follow_ups_heard(said.refusals) != "none":
            assert waiting, "the run goes on with a follow-up that nobody gave"
            waiting -= 1
