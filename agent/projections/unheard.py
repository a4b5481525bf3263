"""What people said during a run and the model has not been shown yet, in the order in which they said it."""

from collections.abc import Iterable, Sequence
from typing import Literal

from agent.vocabulary.events import FollowUpGiven, MessagesFound, SteeringGiven
from agent.vocabulary.messages import UserMessage
from bp import Event

__all__ = ["Unheard"]


class Unheard:
    """Words that wait: given as steering or as follow-ups, or found by a hook and not given yet."""

    def __init__(self) -> None:
        """Begin with none."""
        self._given: list[SteeringGiven | FollowUpGiven] = []
        self._found: list[SteeringGiven | FollowUpGiven] = []

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them, without the images that came with them."""
        return tuple(words.text for words in (*self._given, *self._found))

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case SteeringGiven() | FollowUpGiven():
                self._given.append(event)
                if event in self._found:
                    self._found.remove(event)
            case MessagesFound(what="steering"):
                self._found.extend(map(SteeringGiven, event.texts))
            case MessagesFound(what="follow_up"):
                self._found.extend(map(FollowUpGiven, event.texts))

    def take_steering(self) -> tuple[UserMessage, ...]:
        """Return the steering that was given, which waits no longer."""
        return self._take([words for words in self._given if isinstance(words, SteeringGiven)])

    def take_follow_ups(self, how_many: Literal["none", "one", "all"]) -> tuple[UserMessage, ...]:
        """Return none, the first or all of the follow-ups that were given, which wait no longer."""
        waiting = [words for words in self._given if isinstance(words, FollowUpGiven)]
        return self._take(waiting[: {"none": 0, "one": 1, "all": len(waiting)}[how_many]])

    def take_all(self) -> tuple[UserMessage, ...]:
        """Return whatever waits; nothing does any longer."""
        waiting = (*self._given, *self._found)
        self._given, self._found = [], []
        return _messages(waiting)

    def _take(self, taken: Sequence[SteeringGiven | FollowUpGiven]) -> tuple[UserMessage, ...]:
        for words in taken:
            self._given.remove(words)
        return _messages(taken)


def _messages(said: Iterable[SteeringGiven | FollowUpGiven]) -> tuple[UserMessage, ...]:
    return tuple(UserMessage(words.text, words.images) for words in said)
