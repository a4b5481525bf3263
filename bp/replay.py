"""Replay of a trace on real b-threads, step by step, until its end or the first step that differs.

A recorded run or a counterexample of `verify` is a list of events. `replay` makes a program and selects them one by
one; at the first difference it stops and reports both sides. For time travel, replay a prefix of a trace: the result
has the statement of every b-thread at its end.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress

from attrs import evolve, frozen

from bp.errors import BThreadError
from bp.events import Event
from bp.program import BProgram, Step
from bp.statements import BThread, BThreadBody, Start, Sync, as_list, start
from bp.strategies import Candidate

Standing = tuple[tuple[str, Sync], ...]


@frozen
class Divergence:
    """The first difference between a replay and its trace: the number of the step (from 1), and both sides.

    `recorded`: the event of the trace; `possible`: the internal events that the program could select; `blockers`: the
    b-threads that hold the recorded event back; `taken`: the step that was taken, if its event is the same.
    """

    number: int
    recorded: Event | Step
    reason: str
    possible: tuple[Event, ...] = ()
    blockers: tuple[str, ...] = ()
    taken: Step | None = None

    def __str__(self) -> str:
        """Describe both sides in one line."""
        recorded = self.recorded.event if isinstance(self.recorded, Step) else self.recorded
        instead = ", ".join(map(repr, self.possible)) or "nothing internal"
        return f"step {self.number}: recorded is {recorded!r}: {self.reason}; the program would go on with: {instead}"


@frozen
class Replay:
    """The result of a replay: the steps taken, every b-thread's statement at the end, and the divergence, if any.

    `error`: an exception of a b-thread on the last step. It `agrees` if the whole trace was taken.
    """

    steps: tuple[Step, ...]
    standing: Standing
    hot: tuple[str, ...]
    divergence: Divergence | None = None
    error: BThreadError | None = None

    @property
    def agrees(self) -> bool:
        """True when every step of the trace was taken as recorded."""
        return self.divergence is None

    def __bool__(self) -> bool:
        """Return whether it agrees, for `assert replay(...)`."""
        return self.agrees


def replay(bthreads: Sequence[BThread], trace: Iterable[Event | Step], environment: Sequence[BThread] = ()) -> Replay:
    """Replay a trace and return the result.

    trace: events, for example of a violation, or the steps of a run; of steps, requesters and answered refusals are
    compared too. environment: the environment b-threads of `verify`.
    """
    left = list(reversed(as_list("trace", trace)))
    program = BProgram(*as_list("bthreads", bthreads), *map(outside, as_list("environment", environment)))
    steps: list[Step] = []
    try:
        divergence = _take(program, left, steps)
        return Replay(tuple(steps), program.standing, program.hot, divergence)
    except BThreadError as error:
        early = Divergence(len(steps) + 1, left[-1], f"the program has failed: {error}") if left else None
        return Replay(tuple(steps), (), (), early, error)
    finally:
        with suppress(BThreadError):
            program.close()


def _take(program: BProgram, left: list[Event | Step], steps: list[Step]) -> Divergence | None:
    """Take a trace, last entry first, to its end or its first divergence. Raises BThreadError if the program fails."""
    while left:
        possible, recorded = program.candidates, left[-1]
        event = recorded.event if isinstance(recorded, Step) else recorded
        reason, blockers = _objection(program, event, possible)
        step = None
        if not reason:
            left.pop()
            step = program.select(event)
            reason = _difference(recorded, step)
        if step is None or reason:
            events = tuple(candidate.event for candidate in possible)
            return Divergence(len(steps) + 1, recorded, reason, events, blockers, step)
        steps.append(step)
    _ = program.candidates  # calls the predicates of the last state
    return None


def _objection(program: BProgram, event: Event, possible: tuple[Candidate, ...]) -> tuple[str, tuple[str, ...]]:
    """Return why an event cannot be next, and the b-threads that hold it back."""
    if any(candidate.event == event for candidate in possible):
        return "", ()
    if blockers := tuple(by.bthread for by in program.blockers(event)):
        return f"held back by {', '.join(blockers)}", blockers
    if any(type(candidate.bthread) is not OutsideName for candidate in possible):
        return "no b-thread requests it, and what comes from outside has to wait", ()
    return "", ()


class OutsideName(str):
    """The name of a b-thread of the environment: equal to the same name inside, and known by its type."""

    __slots__ = ()


def outside(bthread: BThread) -> BThread:
    """Return a b-thread of the environment with an `OutsideName`; those that it starts get one, too."""
    return evolve(bthread, function=_starting_outside, args=(bthread,), kwargs={}, name=OutsideName(bthread.name))


def _starting_outside(bthread: BThread) -> BThreadBody:
    body = bthread.begin()
    heard = None
    with closing(body):
        while True:
            try:
                said = body.send(heard)
            except StopIteration:
                return
            heard = yield start(*map(outside, said)) if type(said) is Start else said


def _difference(recorded: Event | Step, step: Step) -> str:
    if not isinstance(recorded, Step) or (step.bthread, step.refusals) == (recorded.bthread, recorded.refusals):
        return ""
    return f"then it was requested by {_by(recorded)}, now by {_by(step)}"


def _by(step: Step) -> str:
    requester = "the outside" if step.bthread is None else step.bthread
    return requester if step.refusals is None else f"{requester} (refused: {list(step.refusals)})"
