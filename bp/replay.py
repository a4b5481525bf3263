"""Replay of a trace on real b-threads, step by step, until its end or the first step that differs.

A recorded run or a counterexample of `verify` is a list of events. `replay` makes a program and selects them one by
one; where the program would not have done the same, it stops and tells both sides. Time travel is to replay the first
so many steps of a trace: the result tells where every b-thread stands then.
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

    `recorded` is what the trace has; `possible` are the internal events that the program would go on with, `blockers`
    the b-threads that hold the recorded event back, `taken` the step that was taken when its event is the same.
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
    """The result of a replay: the steps taken, where every b-thread stands at the end, and what went wrong.

    `error` is what a b-thread raised on the last step. It `agrees` when the whole trace was taken.
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
        """Return whether it agrees: `assert replay(...)` means what it says."""
        return self.agrees


def replay(bthreads: Sequence[BThread], trace: Iterable[Event | Step], environment: Sequence[BThread] = ()) -> Replay:
    """Replay a trace and return the result.

    trace: events, for example those of a violation, or the steps of a run; of steps, who requested them and which
    refusals they answer is compared too. environment: the b-threads that `verify` was given as its environment.
    """
    recorded, outside = as_list("trace", trace), map(_outside, as_list("environment", environment))
    program = BProgram(*as_list("bthreads", bthreads), *outside)
    tape = Tape(program)
    try:
        divergence = tape.take(recorded)
        return Replay(tuple(tape.steps), program.standing, program.hot, divergence)
    except BThreadError as error:
        return Replay(tuple(tape.steps), (), (), tape.early(error), error)
    finally:
        with suppress(BThreadError):
            program.close()


class Tape:
    """A trace on its way through a program."""

    def __init__(self, program: BProgram) -> None:
        self.steps: list[Step] = []
        self._program = program
        self._left: list[Event | Step] = []

    def take(self, trace: tuple[Event | Step, ...]) -> Divergence | None:
        """Take a trace up to its end or its first divergence. Raises BThreadError when the program fails."""
        self._left = list(reversed(trace))
        while self._left:
            possible = self._program.candidates
            recorded = self._left[-1]
            event = recorded.event if isinstance(recorded, Step) else recorded
            reason, blockers = self._objection(event, possible)
            step = None
            if not reason:
                self._left.pop()
                step = self._program.select(event)
                reason = _difference(recorded, step)
            if reason:
                events = tuple(candidate.event for candidate in possible)
                return Divergence(len(self.steps) + 1, recorded, reason, events, blockers, step)
            assert step is not None
            self.steps.append(step)
        assert self._program.candidates is not None  # asks the predicates of the last state
        return None

    def early(self, error: BThreadError) -> Divergence | None:
        """Return the divergence of a program that failed before the end of its trace."""
        if not self._left:
            return None
        return Divergence(len(self.steps) + 1, self._left[-1], f"the program has failed: {error}")

    def _objection(self, event: Event, possible: tuple[Candidate, ...]) -> tuple[str, tuple[str, ...]]:
        """Say why an event cannot be next, and who holds it back."""
        if any(candidate.event == event for candidate in possible):
            return "", ()
        blockers = tuple(by.bthread for by in self._program.blockers(event))
        if blockers:
            return f"held back by {', '.join(blockers)}", blockers
        if any(type(candidate.bthread) is not OutsideName for candidate in possible):
            return "no b-thread requests it, and what comes from outside has to wait", ()
        return "", ()


class OutsideName(str):
    """The name of a b-thread of the environment: equal to the same name inside, and known by its type."""

    __slots__ = ()


def _outside(bthread: BThread) -> BThread:
    """Return a b-thread of the environment under a name of type `OutsideName`; those that it starts get one, too."""
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
            heard = yield start(*map(_outside, said)) if type(said) is Start else said


def _difference(recorded: Event | Step, step: Step) -> str:
    """Say how a step differs from the recorded one, if it does."""
    if not isinstance(recorded, Step) or (step.bthread, step.refusals) == (recorded.bthread, recorded.refusals):
        return ""
    return f"then it was requested by {_by(recorded)}, now by {_by(step)}"


def _by(step: Step) -> str:
    requester = "the outside" if step.bthread is None else step.bthread
    return requester if step.refusals is None else f"{requester} (refused: {list(step.refusals)})"
