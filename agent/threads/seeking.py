"""Seeking: people who do not speak up by themselves are asked whether they have something to say (S2's hooks).

They are asked where the loop could take another course, and it waits for them there. What they say becomes
`steering_given` and `follow_up_given`, as if they had said it by themselves.
"""

from collections.abc import Callable
from typing import Any, Literal

from agent.vocabulary.events import (
    AbortAsked,
    AnswerCommitted,
    CallAnswered,
    CompletionDeclared,
    FollowUpGiven,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
)
from bp import BThreadBody, Event, bthread, contains, sync, where

__all__ = ["JOINTS", "NEXT", "UNSAID", "seek_follow_ups", "seek_steering"]


def is_final(answer: AnswerCommitted) -> bool:
    """Tell whether a run would complete with this answer: it says something, and asks for no call."""
    return not answer.calls and not answer.is_empty


FINAL = where(AnswerCommitted, is_final)
JOINTS: dict[str, Any] = {"steering": PromptGiven | CallAnswered | FINAL, "follow_up": FINAL | CompletionDeclared}
"""After which events people are asked."""

NEXT: dict[str, Any] = {
    "steering": ProposedAction | InferenceRequested | RunEnded,
    "follow_up": RunContinued | RunEnded,
}
"""What waits until they have answered."""

UNSAID: dict[str, Any] = {"steering": NEXT["steering"], "follow_up": where(RunEnded, status="completed")}
"""What waits until what they have answered is given; not more for a follow-up, which may have to wait itself."""

OVER = StopAsked | AbortAsked  # nobody is asked any more in this run

What = Literal["steering", "follow_up"]


@bthread
def seek_steering() -> BThreadBody:
    """Ask for steering after the prompt, after each answered call, and after an answer that would be the last."""
    yield from sought("steering", SteeringGiven)


@bthread
def seek_follow_ups() -> BThreadBody:
    """Ask for follow-ups after an answer that would be the last."""
    yield from sought("follow_up", FollowUpGiven)


def sought(what: What, given: Callable[[str], Event]) -> BThreadBody:
    """Ask at each joint, and once more when another one came meanwhile."""
    joints, following = JOINTS[what], NEXT[what]
    while True:
        said = yield sync(wait_for=joints | OVER)
        while said is not None and not isinstance(said, OVER):
            said = yield sync(request=MessagesSought(what), block=following, wait_for=OVER)
            if isinstance(said, MessagesSought):
                said = yield from heard(what, given)
        if said is not None:
            yield sync(wait_for=RunEnded)


def heard(what: What, given: Callable[[str], Event]) -> BThreadBody:
    """Wait for what was found and say it; return why to ask again, or not any more.

    When as many follow-ups wait as may, the others are said as soon as one was heard; what the end of the run leaves
    unsaid is kept by the conversation.
    """
    joints, following = JOINTS[what], NEXT[what]
    found = where(MessagesFound, what=what)
    again: Event | None = None
    said = yield sync(wait_for=found | joints | OVER, block=following)
    while not contains(found, said):
        again = again if isinstance(again, OVER) else said
        said = yield sync(wait_for=found | joints | OVER, block=following)
    for text in said.texts:
        said = yield sync(request=given(text), block=UNSAID[what], wait_for=RunEnded)
        if isinstance(said, RunEnded):
            return None
    return again
