"""What was held back at each step of a run, and by whom: the run once more on a fresh program, with open eyes.

What came from outside is fed in again; the b-threads do the rest as they did then. Nothing else is started or asked.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attrs import frozen

from bp import Blocker, BProgram, BProgramError, Event, Step

if TYPE_CHECKING:
    from agent.session.run import Run

__all__ = ["Held", "Moment", "held_back", "retrace"]


@frozen
class Held:
    """A requested event that could not be selected: who asked for it, who was in the way, and why."""

    event: Event
    requester: str
    blockers: tuple[Blocker, ...]


@frozen
class Moment:
    """What was selected, and what was held back when it was; `step` is None for what stands at the end."""

    step: Step | None
    held: tuple[Held, ...] = ()


def retrace(run: "Run") -> tuple[Moment, ...]:
    """Return every step of `run` and, last, how its b-threads stand after it.

    Nothing is known to be held from where a b-thread decides otherwise than it did: b-threads are to be pure.
    """
    program = BProgram(*run.agent.bthreads)
    seen = {moment.step: moment for moment in _retraced(program, run.agent.journal.heard)}
    steps = tuple(seen.get(step, Moment(step)) for step in run.steps)
    return (*steps, *([seen[None]] if None in seen and run.steps[-1:] == list(seen)[-2:-1] else []))


def _retraced(program: BProgram, heard: list[Event]) -> Iterator[Moment]:
    try:
        for event in (None, *heard):
            held = held_back(program)
            if event is not None:
                program.post(event)
            while (step := program.step()) is not None:
                yield Moment(step, held)
                held = held_back(program)
        yield Moment(None, held)
    except BProgramError:
        return  # here the run broke off
    finally:
        program.close()


def held_back(program: BProgram) -> tuple[Held, ...]:
    """Return what is requested and cannot be selected; a request that has an `otherwise` is refused, not held."""
    return tuple(
        Held(event, name, blockers)
        for name, sync in program.standing
        for event in sync.requests
        if (blockers := program.blockers(event))
        and (sync.otherwise is None or all(blocker.because is None for blocker in blockers))
    )
