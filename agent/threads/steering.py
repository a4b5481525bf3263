"""Steering and follow-ups: the model reads them before the run completes, and hooks are polled for them."""

from collections.abc import Callable
from typing import Any, Literal

from agent.threads.core import NEXT_TURN
from agent.vocabulary.events import (
    AbortAsked,
    AnswerCommitted,
    ApprovalAsked,
    CallAnswered,
    CompletionDeclared,
    FollowUpGiven,
    GateApproved,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    ToolStarted,
)
from agent.vocabulary.reasons import FollowUpWaits, Steered, follow_ups_heard
from bp import BThreadBody, Event, bthread, contains, sync, where

HEARD = NEXT_TURN | RunEnded
"""The events that end steering: the loop's own inference is shown all of it; at an end, the rest is kept for later."""

COMPLETION = where(RunEnded, status="completed")
UNTIL_HEARD = ProposedAction | ApprovalAsked | GateApproved | ToolStarted | COMPLETION


@bthread
def skip_when_steered() -> BThreadBody:
    """After `steering_given` start no further call of the batch, and do not complete, until the model has read it.

    What runs finishes; each call that has not started is answered as skipped (S2). An open question is withdrawn.
    """
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=UNTIL_HEARD, because=Steered(), wait_for=HEARD)


MOST = 100
"""The number of follow-ups that may wait; further ones are left for the next run."""

NEWS = FollowUpGiven | RunContinued | RunEnded


@bthread
def continue_with_follow_ups(at_once: bool = False, most: int = MOST) -> BThreadBody:
    """Refuse completion while a follow-up waits: the run continues with it, one after the other or all `at_once`.

    One after the other, no more than `most` may wait.
    """
    while True:
        yield sync(wait_for=FollowUpGiven)
        waiting = 1
        while waiting:
            said = yield sync(
                refuse=COMPLETION,
                because=FollowUpWaits(at_once),
                block=FollowUpGiven if waiting == most and not at_once else None,
                wait_for=NEWS,
            )
            if isinstance(said, FollowUpGiven):
                waiting += not at_once
            elif isinstance(said, RunContinued):
                waiting = {"none": waiting, "one": waiting - 1, "all": 0}[follow_ups_heard(said.refusals)]
            else:
                waiting = 0  # those that a run leaves when it ends wait no more


def _is_final(answer: AnswerCommitted) -> bool:
    return not answer.calls and not answer.is_empty


FINAL = where(AnswerCommitted, _is_final)
"""The answers with which a run would complete: they say something, and ask for no call."""

JOINTS: dict[str, Any] = {"steering": PromptGiven | CallAnswered | FINAL, "follow_up": FINAL | CompletionDeclared}
"""The events after which a hook is asked."""

NEXT: dict[str, Any] = {
    "steering": ProposedAction | InferenceRequested | RunEnded,
    "follow_up": RunContinued | RunEnded,
}
"""The events that wait for the answer of the hook."""

UNSAID: dict[str, Any] = {"steering": NEXT["steering"], "follow_up": COMPLETION}
"""The events that wait until that answer is given; fewer for a follow-up, which may have to wait itself."""

OVER = StopAsked | AbortAsked  # hooks are not asked any more in this run

What = Literal["steering", "follow_up"]


@bthread
def seek_steering() -> BThreadBody:
    """Ask the hook for steering after the prompt, each answered call, and an answer that would be the last."""
    yield from sought("steering", SteeringGiven)


@bthread
def seek_follow_ups() -> BThreadBody:
    """Ask the hook for follow-ups after an answer that would be the last."""
    yield from sought("follow_up", FollowUpGiven)


def sought(what: What, given: Callable[[str], Event]) -> BThreadBody:
    """Ask at each of these points, and again if another one was reached meanwhile."""
    while True:
        said = yield sync(wait_for=JOINTS[what] | OVER)
        while said is not None and not isinstance(said, OVER):
            said = yield sync(request=MessagesSought(what), block=NEXT[what], wait_for=OVER)
            if isinstance(said, MessagesSought):
                said = yield from heard(what, given)
        if said is not None:
            yield sync(wait_for=RunEnded)


def heard(what: What, given: Callable[[str], Event]) -> BThreadBody:
    """Wait for the messages of the hook and give them; return whether and why to ask again. While the most follow-ups
    wait, each further one is given once another was read; the conversation keeps those left at the end of the run.
    """
    found, following = where(MessagesFound, what=what), NEXT[what]
    again: Event | None = None
    said = yield sync(wait_for=found | JOINTS[what] | OVER, block=following)
    while not contains(found, said):
        again = again if isinstance(again, OVER) else said
        said = yield sync(wait_for=found | JOINTS[what] | OVER, block=following)
    for text in said.texts:
        said = yield sync(request=given(text), block=UNSAID[what], wait_for=RunEnded)
        if isinstance(said, RunEnded):
            return None
    return again
