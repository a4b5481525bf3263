"""Each b-thread as an automaton, unfolded lazily: (local state, event) -> (local state, started b-threads).

Generators cannot be copied. A new local state is reached by replaying its b-thread alone, from its start, along the
events that led there; afterwards it is a number. Every step is computed twice, the second time along another path to
the same local state if there is one: if the results differ, the b-thread has hidden state.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import CellType
from typing import Any, NamedTuple

from attrs import define, field

from bp.errors import BProgramError
from bp.events import Event, contains
from bp.statements import BThread, Start, Sync, advance
from bp.verification.fingerprint import (
    Description,
    VerificationError,
    check_interpreter,
    fingerprint_of_value,
    reachable,
)
from bp.verification.purity import LocalFailure, Purity

MOST_STARTS = 1_000  # the most b-threads that one event may start
MOST_LOCALS = 0x110000  # each is a character
AT_ITS_END = (None, None)  # the fingerprint of a finished b-thread


class Path(NamedTuple):
    """A path to a local state: a b-thread and the events that it advanced on."""

    bthread: BThread
    events: tuple[Event, ...]


@define(eq=False)
class Local:
    """A local state: a b-thread (by name and priority) at a synchronization point, with two paths to it.

    It includes the statement, which may depend on variables that are no longer live, and the generator that made it,
    which is never advanced again: its `finally` could change objects of the statement.
    """

    name: str
    priority: int
    environment: bool
    statement: Sync
    body: Any
    looks: tuple[Any, ...]
    paths: list[Path]
    moves: dict[int, "Move"] = field(factory=dict)  # by event number


class Move(NamedTuple):
    """The next local state after an event (None at the end), and the b-threads that it starts, by generation."""

    local: int | None
    event: Event
    started: tuple[tuple[int, ...], ...] = ()
    started_looks: tuple[Any, ...] = ()


class Outcome(NamedTuple):
    """The result of advancing a b-thread: its next statement (None at its end), its starts, and their fingerprints."""

    statement: Sync | None
    started: tuple[BThread, ...]
    body: Any
    looks: tuple[Any, ...]  # of its local state and its statement
    started_looks: tuple[Any, ...] = ()


class Automaton:
    """All local states of all b-threads of a program; numbers stand for them."""

    def __init__(self) -> None:
        """Make an automaton without states. Raises VerificationError on an interpreter it cannot trust."""
        check_interpreter()
        self.locals: list[Local] = []
        self._numbers: dict[Any, int] = {}
        self.purity = Purity()

    def close(self) -> None:
        """Release all generators; afterwards only known moves are available."""
        for local in self.locals:
            _let_go(local.body)

    def begin(self, bthreads: Sequence[tuple[BThread, int]], *, environment: bool) -> tuple[tuple[int, ...], ...]:
        """Return the first local states of b-threads, and of those that they start, by generation.

        Each b-thread comes with the priority it inherits. Raises LocalFailure and VerificationError.
        """
        generations: list[tuple[int, ...]] = []
        waiting = list(bthreads)
        total = 0
        while waiting:
            total += len(waiting)
            if total > MOST_STARTS:
                raise LocalFailure(waiting[0][0].name, BProgramError("b-threads start each other without end"))
            generation: list[int] = []
            following: list[tuple[BThread, int]] = []
            for bthread, inherited in waiting:
                priority = inherited if bthread.priority is None else bthread.priority
                local, started = self._first(bthread, priority, environment)
                generation += [] if local is None else [local]
                following += [(child, priority) for child in started]
            generations.append(tuple(generation))
            waiting = following
        return tuple(generations)

    def move(self, number: int, event: Event, event_number: int) -> Move:
        """Return the local state after `number` on `event`, which must concern it. Each event has its own number.

        Raises LocalFailure and VerificationError.
        """
        local = self.locals[number]
        move = local.moves.get(event_number)
        if move is None:
            move = local.moves[event_number] = self._computed(local, event)
        return move

    def _computed(self, local: Local, event: Event) -> Move:
        if self._interrupts(local, event):
            self.purity.call(local.name, self._replayed(local.paths[0]).close)
            return Move(None, event)
        outcome = self._advanced(local.paths[0], event)
        self._check_agreement(local, outcome.looks, outcome.started_looks, local.paths[-1], event)
        path = Path(local.paths[0].bthread, (*local.paths[0].events, event))
        number = self._number(local.name, local.priority, local.environment, outcome, path)
        started = tuple((child, local.priority) for child in outcome.started)
        generations = self.begin(started, environment=local.environment) if started else ()
        return Move(number, event, generations, outcome.started_looks)

    def _first(self, bthread: BThread, priority: int, environment: bool) -> tuple[int | None, tuple[BThread, ...]]:
        self.purity.begin(bthread)
        path = Path(bthread, ())
        outcome, again = self._advanced(path, None), self._advanced(path, None, watched=False)
        _let_go(again.body)
        if (outcome.looks, outcome.started_looks) != (again.looks, again.started_looks):
            raise VerificationError(_hidden(bthread.name, "its first statement is not always the same"))
        return self._number(bthread.name, priority, environment, outcome, path), outcome.started

    def _number(self, name: str, priority: int, environment: bool, outcome: Outcome, path: Path) -> int | None:
        """Return the number of a local state; a new one gets the next, a known one learns another path."""
        if outcome.statement is None:
            return None
        key = (name, priority, environment, *outcome.looks)
        number = self._numbers.get(key)
        if number is None:
            if len(self.locals) == MOST_LOCALS:
                raise VerificationError(f"b-thread {name!r}: more than {MOST_LOCALS:,} local states; does it count?")
            number = self._numbers[key] = len(self.locals)
            self.locals.append(
                Local(name, priority, environment, outcome.statement, outcome.body, outcome.looks, [path])
            )
            return number
        _let_go(outcome.body)
        if len(self.locals[number].paths) == 1 and self.locals[number].paths[0] != path:
            self._learn_path(number, path)
        return number

    def _learn_path(self, number: int, path: Path) -> None:
        """Add a second path to a local state; the moves computed from the first must hold for it too."""
        local = self.locals[number]
        local.paths.append(path)
        for move in tuple(local.moves.values()):
            if not self._interrupts(local, move.event):
                looks = AT_ITS_END if move.local is None else self.locals[move.local].looks
                self._check_agreement(local, looks, move.started_looks, path, move.event)

    def _interrupts(self, local: Local, event: Event) -> bool:
        interrupt = local.statement.interrupt
        return interrupt is not None and self.purity.call(local.name, contains, interrupt, event, watched=False)

    def _advanced(self, path: Path, event: Event | None, *, watched: bool = True) -> Outcome:
        """Replay a b-thread along `path`, then advance it on `event` (None: to its first synchronization point)."""
        bthread, body = path.bthread, None if event is None else self._replayed(path)
        started: list[BThread] = []
        try:
            if body is None:
                body, statement = self.purity.call(bthread.name, _begun, bthread, started, watched=watched)
            else:
                statement = self.purity.call(
                    bthread.name, advance, body.send, event, _take_on, started, watched=watched
                )
            return _outcome(bthread, statement, tuple(started), body)
        except BaseException:
            _let_go(body)
            raise

    def _replayed(self, path: Path) -> Any:
        return self.purity.call(path.bthread.name, _replay, path, watched=False)

    def _check_agreement(self, local: Local, looks: Any, started_looks: Any, path: Path, event: Event) -> None:
        """Raise VerificationError unless `event` leads from the end of `path` to the same result as the first time.

        If that was the same path, every function on it has been watched.
        """
        second = self._advanced(path, event, watched=path is not local.paths[0])
        _let_go(second.body)
        if (looks, started_looks) != (second.looks, second.started_looks):
            raise VerificationError(
                _hidden(local.name, "from the same place, the same event takes it to different places")
            )


def _begun(bthread: BThread, started: list[BThread]) -> tuple[Any, Sync | None]:
    """Return a new generator of a b-thread, and its first statement."""
    body = bthread.begin()
    return body, advance(body.send, None, _take_on, started)


def _replay(path: Path) -> Any:
    body = path.bthread.begin()
    for event in (None, *path.events):
        if advance(body.send, event, _take_on, []) is None:
            raise VerificationError(_hidden(path.bthread.name, "replayed on the same events, it ends earlier"))
    return body


def _outcome(bthread: BThread, statement: Sync | None, started: tuple[BThread, ...], body: Any) -> Outcome:
    """Return the outcome of a b-thread with fingerprints. Raises VerificationError if it cannot be described."""
    try:
        started_looks = tuple(map(fingerprint_of_value, started))
        if statement is None:
            return Outcome(None, started, body, AT_ITS_END, started_looks)
        description = Description()
        look = description.value(body, "")
        if description.assignable:
            for name, given in (*((child.name, child) for child in started), ("other b-threads", statement.because)):
                _check_shared(description, name, given)
        return Outcome(statement, started, body, (look, fingerprint_of_value(statement)), started_looks)
    except VerificationError as error:
        raise VerificationError(f"b-thread {bthread.name!r}: {error}") from None


def _check_shared(description: Description, name: str, given: Any) -> None:
    """Raise VerificationError if arguments of another b-thread read a variable that may still be assigned."""
    for value in reachable(given):
        if type(value) is CellType and id(value) in description.assignable:
            raise VerificationError(
                f"it shares the variable {description.assignable[id(value)]!r} with {name!r}, and may assign it "
                "afterwards: hidden state; pass its value as an argument"
            )


def _take_on(started: list[BThread], statement: Start) -> None:
    started.extend(statement)
    if len(started) > MOST_STARTS:
        raise BProgramError("it starts b-threads without end")


def _let_go(body: Any) -> None:
    """Close an unneeded generator; its `finally` is not part of the program."""
    try:
        if body is not None:
            body.close()
    except Exception:
        with suppress(Exception):  # it may yield in its `finally`, once
            body.close()


def _hidden(name: str, finding: str) -> str:
    return (
        f"b-thread {name!r} has hidden state: {finding}; keep what it decides on in its local variables, "
        "or wait for an event that carries it"
    )
