"""Whatever people say with the letters "stop" in it is a wish to stop: steering, follow-ups, answers (S1 6.3, 7.3)."""

from typing import Any

from agent.vocabulary.events import ApprovalAnswered, FollowUpGiven, RunEnded, SteeringGiven, StopAsked
from bp import BThreadBody, bthread, sync, where

__all__ = ["has_the_letters_stop", "stop_when_said"]


def has_the_letters_stop(text: str) -> bool:
    """Whether "stop" stands anywhere in `text`, in any case, also within a word."""
    return "stop" in text.lower()


def _says_so(said: Any) -> bool:
    return has_the_letters_stop(said.text)


@bthread
def stop_when_said() -> BThreadBody:
    """Ask to stop whenever a person says so in whatever else is said."""
    spoken = where((SteeringGiven, FollowUpGiven, ApprovalAnswered), _says_so)
    while True:
        said = yield sync(wait_for=spoken)
        yield sync(request=StopAsked(said.text), wait_for=RunEnded)
