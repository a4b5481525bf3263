"""A super-step: what happens between two external events, and the bound that keeps it from going on for ever."""

from collections import deque

from bp.errors import EndlessLoop
from bp.events import Event

__all__ = ["SuperStep"]

TAIL = 10  # how many of its last events an endless loop shows


class SuperStep:
    """Counts the events and starts since the last external event.

    `number` counts the external events so far; `endless` is the error of this one. Invariant: `spent` is at most
    `limit`.
    """

    __slots__ = ("endless", "limit", "number", "spent", "tail")

    def __init__(self, limit: int) -> None:
        """Make the first super-step; `limit` is how many events and starts each may have. Raises TypeError."""
        if type(limit) is not int or limit < 1:
            raise TypeError(f"max_steps={limit!r}: give a positive integer")
        self.endless: EndlessLoop | None = None
        self.limit = limit
        self.number = 0
        self.spent = 0
        self.tail: deque[tuple[Event | None, str]] = deque(maxlen=TAIL)

    @property
    def unwatched(self) -> int:
        """How many events may yet happen before the last ones have to be noted; set it when some did."""
        return self.limit - TAIL - self.spent

    @unwatched.setter
    def unwatched(self, left: int) -> None:
        self.spent = self.limit - TAIL - left

    def next(self) -> None:
        """Begin the next super-step."""
        self.number += 1
        self.spent = 0
        self.tail.clear()

    def spend(self, event: Event | None, bthread: str) -> None:
        """Count an event (None: a start) by `bthread`; raises EndlessLoop when the limit is used up."""
        if self.spent == self.limit:
            self.endless = self._endless()
            raise self.endless
        self.spent += 1
        if self.spent > self.limit - TAIL:
            self.tail.append((event, bthread))

    def _endless(self) -> EndlessLoop:
        shown = ", ".join(f"{bthread!r} {'started' if event is None else event!r}" for event, bthread in self.tail)
        return EndlessLoop(
            f"a super-step went past {self.limit} events and starts; the last were: {shown}; "
            "make its b-threads wait for something, or raise max_steps",
            events=tuple(event for event, _ in self.tail if event is not None),
            bthreads=tuple(bthread for _, bthread in self.tail),
        )
