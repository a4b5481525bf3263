"""What people said during a run and the model has not been shown yet, in the order in which they said it."""

from collections.abc import Iterable
from typing import Literal

from agent.events import FollowUpGiven, MessagesFound, SteeringGiven
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
        """All of them."""
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

    def take_steering(self) -> tuple[str, ...]:
        """Return the steering that was given, which waits no longer."""
        return self._take([words for words in self._given if isinstance(words, SteeringGiven)])

    def take_follow_ups(self, how_many: Literal["none", "one", "all"]) -> tuple[str, ...]:
        """Return none, the first or all of the follow-ups that were given, which wait no longer."""
        waiting = [words for words in self._given if isinstance(words, FollowUpGiven)]
        return self._take(waiting[: {"none": 0, "one": 1, "all": len(waiting)}[how_many]])

    def take_all(self) -> tuple[str, ...]:
        """Return whatever waits; nothing does any longer."""
        texts = self.texts
        self._given, self._found = [], []
        return texts

    def _take(self, taken: Iterable[SteeringGiven | FollowUpGiven]) -> tuple[str, ...]:
        texts = []
        for words in taken:
            self._given.remove(words)
            texts.append(words.text)
        return tuple(texts)
