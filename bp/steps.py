"""What a program tells about a step: the event, who asked for it, and to listeners all that was decided on the way."""

from collections.abc import Callable
from typing import NamedTuple

from bp.errors import BThreadError, EndlessLoop
from bp.events import Event
from bp.statements import Refusals
from bp.strategies import Candidate

__all__ = ["Listener", "Record", "Step"]


class Step(NamedTuple):
    """One selected event: its number (from 1), the super-step it belongs to, and who requested it.

    `super_step` counts the external events so far; `bthread` is None for an external event. `refusals` are those
    that were answered when the event is somebody's `otherwise`, else None.
    """

    number: int
    event: Event
    super_step: int
    bthread: str | None
    refusals: Refusals | None = None


class Record(NamedTuple):
    """A step as listeners see it: what else could have been selected, who resumed, and what went wrong."""

    step: Step
    candidates: tuple[Candidate, ...]
    resumed: tuple[str, ...]
    interrupted: tuple[str, ...]
    error: BThreadError | EndlessLoop | None = None


Listener = Callable[[Record], None]
