"""The errors of a behavioral program; each says which b-thread, event or step it is about.

Every error names the culprit, what was found, and the cure. `BProgramError` is the base of them all.
"""

import re
from collections.abc import Sequence
from copyreg import __newobj__  # type: ignore[attr-defined]
from typing import Any

WIDTH = 100  # characters of an event in a message, at most


def shortened(text: str, width: int = WIDTH) -> str:
    """Return a text, shortened in the middle if it is longer than `width` characters."""
    return text if len(text) <= width else f"{text[: width * 3 // 4]} ... {text[-width // 4 + 5 :]}"


def shown(events: Any) -> str:
    """Return an event or an event set in words: plain events and kinds by their names, a long one shortened."""
    return shortened(re.sub(r"event\('([^']*)'\)", r"\1", getattr(events, "__name__", repr(events))))


def listed(head: str, items: Sequence[str]) -> str:
    """Return a message with a line for each item; a single item follows the head directly."""
    return f"{head} {items[0]}" if len(items) == 1 else "".join((head, *(f"\n  {item}" for item in items)))


def require(condition: object, broken: str) -> None:
    """Raise AssertionError with the message `broken` unless the condition is true, also where -O drops assertions."""
    if not condition:
        raise AssertionError(broken)


class BProgramError(Exception):
    """The base of all errors of the engine. They can be pickled, with their attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (__newobj__, (type(self), *self.args), vars(self))


class BThreadError(BProgramError):
    """A b-thread raised, or yielded an object that is not a statement; the program has failed.

    `bthread` is its name, `event` the event that resumed it (None before its first synchronization point), `step` the
    number of that step (0 before the first). `__cause__` is the exception of the b-thread; further failures of the same
    step are in `__notes__`, the first ten of them.
    """

    def __init__(self, message: str, *, bthread: str, event: Any = None, step: int = 0) -> None:
        super().__init__(message)
        self.bthread = bthread
        self.event = event
        self.step = step


class EventSetError(BThreadError):
    """A predicate or an `otherwise` raised, or returned an invalid value; nothing was selected, the program has failed.

    `event_set` is the set whose predicate failed, or the `otherwise` function.
    """

    def __init__(self, message: str, *, bthread: str, event_set: Any, event: Any = None, step: int = 0) -> None:
        super().__init__(message, bthread=bthread, event=event, step=step)
        self.event_set = event_set


class EndlessLoop(BProgramError):
    """A super-step went on past `max_steps`; `events` and `bthreads` are the last ones, oldest first."""

    def __init__(self, message: str, *, events: tuple[Any, ...], bthreads: tuple[str, ...]) -> None:
        super().__init__(message)
        self.events = events
        self.bthreads = bthreads


class ProgramEnded(BProgramError):
    """The program was closed or has failed; it takes no further steps or events."""


class EffectError(BProgramError):
    """An effect has no outcome: its `broken` raised, or returned none of its outcome kinds; `started`: its event."""

    def __init__(self, message: str, *, started: Any) -> None:
        super().__init__(message)
        self.started = started


class Deadlock(BProgramError):
    """No event can happen, although a b-thread requests one or is hot.

    `waiting`: these b-threads, and their requests.
    """

    def __init__(self, message: str, *, waiting: tuple[str, ...]) -> None:
        super().__init__(message)
        self.waiting = waiting
