"""What must hold for people who step in: what they say during a run is heard before anything else begins."""

from agent.threads.seeking import JOINTS, NEXT, UNSAID
from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAsked,
    FollowUpGiven,
    GateApproved,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    ToolStarted,
)
from agent.vocabulary.reasons import follow_ups_heard
from bp import BThreadBody, bthread, contains, sync, where

__all__ = ["a_continued_run_asks_again", "follow_ups_are_heard", "people_are_asked", "steering_is_heard"]

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
def people_are_asked(what: str) -> BThreadBody:
    """At each joint people are asked, and what they say is given, before anything else begins.

    Except after a stop, and while an earlier find could not be given yet.
    """
    joints, following = JOINTS[what], NEXT[what]
    given = where({"steering": SteeringGiven, "follow_up": FollowUpGiven}[what])
    found = where((MessagesSought, MessagesFound), what=what)
    owed, unsaid = False, 0
    while True:
        said = yield sync(wait_for=joints | following | found | given | StopAsked | AbortAsked | RunEnded)
        if isinstance(said, MessagesSought):
            owed = False
        elif isinstance(said, MessagesFound):
            unsaid = len(said.texts)
        elif contains(given, said):
            unsaid = max(0, unsaid - 1)
        elif isinstance(said, StopAsked | AbortAsked):
            owed = False
            yield sync(wait_for=RunEnded)
            unsaid = 0
        elif contains(following, said):
            assert not owed, f"{said.name}, and nobody was asked for {what}"
            assert not (unsaid and contains(UNSAID[what], said)), f"{said.name}, and what was found was not given"
            unsaid = 0 if isinstance(said, RunEnded) else unsaid
        if contains(joints, said) and not unsaid:
            owed = True


@bthread
def follow_ups_are_heard(at_once: bool, most: int) -> BThreadBody:
    """A run does not complete while a follow-up waits; it goes on with one of them, or with all `at_once`.

    No more than `most` wait.
    """
    waiting = 0
    while True:
        said = yield sync(wait_for=FollowUpGiven | RunContinued | RunEnded)
        if isinstance(said, FollowUpGiven):
            waiting = 1 if at_once else waiting + 1
            assert waiting <= most, f"{waiting} follow-ups wait; no more than {most} may"
        elif isinstance(said, RunEnded):
            assert said.status != "completed" or not waiting, f"the run completes while {waiting} follow-ups wait"
            waiting = 0
        elif follow_ups_heard(said.refusals) != "none":
            assert waiting, "the run goes on with a follow-up that nobody gave"
            waiting -= 1
