"""A program as automata: each b-thread alone, unfolded lazily; a state of the program is a tuple of their states.

Generators cannot be copied. A local state is reached by replaying its b-thread alone, from its start, along a path: the
events that it advanced on. Afterwards it is a number. Up to three paths that meet in one local state are continued,
and must lead on to the same; the arguments of a b-thread are copied for each replay, so that lists and
objects in them are state of its own.

What a local state stops is asked of its event sets for the candidates that it meets, never for others: like a run.
"""

import copy
import io
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from attrs import define, evolve, field

from bp.board import Blocker, alternative_of, offers_of
from bp.errors import BProgramError
from bp.events import Event, check_kind, contains
from bp.payload import freeze
from bp.statements import BThread, Refusal, Refusals, Start, Sync, advance
from bp.verification.looks import VerificationError, look_at
from bp.verification.optimized import watched

T = TypeVar("T")
MOST_STARTS = 1_000  # b-threads that one event may start
MOST_PATHS = 3
State = tuple[int, ...]
Path = tuple[BThread, tuple[int, ...]]  # a b-thread, and the numbers of the events that it advanced on


class Failure(Exception):
    """A b-thread raised, or a predicate or an `otherwise` of it did."""

    def __init__(self, name: str, error: BaseException) -> None:
        said = next(iter(str(error).splitlines()), "")  # what a test runner adds to an assertion is left out
        super().__init__(f"b-thread {name!r}: {type(error).__name__}: {said}")
        self.name = name
        self.error = error


class Silence(io.TextIOBase):
    """Takes what b-threads print while they are explored."""

    def write(self, text: str) -> int:
        """Drop a text."""
        return len(text)


SILENCE = Silence()


def guarded(name: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call code of a b-thread. Raises Failure for whatever it raises; a KeyboardInterrupt of its own comes again."""
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = SILENCE
    try:
        return function(*arguments) if __debug__ else watched(name, function, *arguments)
    except VerificationError:
        raise
    except KeyboardInterrupt as error:
        try:
            function(*arguments)
        except KeyboardInterrupt:
            raise Failure(name, error) from error
        raise
    except BaseException as error:
        raise Failure(name, error) from error
    finally:
        sys.stdout, sys.stderr = before


class Outcome(NamedTuple):
    """The result of advancing a b-thread: its generator, its next statement (None at its end), and its starts."""

    body: Any
    statement: Sync | None
    started: tuple[BThread, ...]
    looks: Any  # of its local state and statement, and of its starts


class Move(NamedTuple):
    """The next local state after an event (None at the end), the b-threads that it starts, and how both look."""

    after: int | None
    started: State
    looks: Any


@define(eq=False)
class Local:
    """A b-thread (by name and priority) at a synchronization point, with paths that lead there.

    `body` is the generator that made the statement; it is not closed, since its `finally` could change the statement.
    """

    name: str
    priority: int
    outside: bool
    statement: Sync
    body: Any
    paths: list[Path]
    moves: dict[int, Move] = field(factory=dict)  # by event
    failures: dict[int, Failure] = field(factory=dict)  # by event on which it fails
    hears: dict[int, bool] = field(factory=dict)  # by event: whether it requests, waits for or is interrupted by it


class Choice(NamedTuple):
    """An event that can be selected, where it comes from, and the local states whose `otherwise` it is."""

    event: int
    origin: str  # "internal", "promised" or "possible"
    taking: frozenset[int] = frozenset()


class Model:
    """The local states of a program by number, and the steps between its states."""

    def __init__(self, free: Collection[str] | None = None) -> None:
        """Know nothing yet; `begin` takes a program. `free`: names of players, see `verify`."""
        self.events: list[Event] = []
        self.locals: list[Local] = []
        self.requests: list[tuple[int, ...]] = []
        self.asks: list[int] = []  # by local state: the events (a mask) that it requests
        self.wants: list[int] = []  # those that it offers unless they are stopped: all, without preferences
        self.met: list[int] = []  # the candidates while it was there
        self.stops: list[int] = []  # those of them that it blocks or refuses
        self.refuses: list[int] = []
        self.choosy: set[int] = set()  # the local states with preferences or an `otherwise`
        self.outside: set[int] = set()
        self.unsure: dict[tuple[int, int], Failure] = {}  # predicates that failed, by local state and event
        self.rests = False  # whether a state was met in which no internal event can be selected
        self._free = free
        self._known: dict[int, tuple[Any, Any]] = {}
        self._numbers: dict[Any, int] = {}
        self._by_looks: dict[Any, int] = {}
        self._is_plain: dict[str, bool] = {}  # by the name of a kind or of a plain event
        self._after: defaultdict[int, dict[int, State]] = defaultdict(dict)  # by event and local state
        self._alternatives: dict[Any, int] = {}

    def begin(
        self, bthreads: Sequence[BThread], environment: Sequence[BThread] = (), possible: Iterable[Event] = ()
    ) -> None:
        """Begin the b-threads of a program; those that fail are in `failures`. What is known from others is kept."""
        self.failures: list[Failure] = []
        self.begun: list[tuple[BThread, bool, State]] = []  # each with the first local states of it and of its starts
        for bthread, outside in (*((each, False) for each in bthreads), *((each, True) for each in environment)):
            try:
                self.begun.append((bthread, outside, self._begun(bthread, 0, outside)))
            except Failure as failure:
                self.failures.append(failure)
        self.possible = tuple(map(self.number, possible))
        self.initial: State = tuple(sorted(local for _, _, first in self.begun for local in first))

    def close(self) -> None:
        """Close the generators that were kept."""
        for local in self.locals:
            let_go(local.body)

    def number(self, event: Event) -> int:
        """Return the number of an event; equal events that look different have different ones."""
        looks = self.looks(event)
        number = self._numbers.get(looks)
        if number is None:
            self._check_kind(event._kind)
            number = self._numbers[looks] = len(self.events)
            self.events.append(event)
        return number

    def looks(self, *values: Any) -> Any:
        """Return how values look together."""
        return look_at(self._known, *values)

    def _check_kind(self, kind: Any) -> None:
        if kind is None:
            return
        check_kind(kind)
        name, is_plain = (kind, True) if isinstance(kind, str) else (kind.name, False)
        if self._is_plain.setdefault(name, is_plain) is not is_plain:
            raise VerificationError(f"{name!r} is the name of an event kind and of a plain event; rename one of them")

    # Each b-thread alone.

    def _begun(self, bthread: BThread, inherited: int, outside: bool, depth: int = 0) -> State:
        """Return the first local states of a b-thread and of those that it starts. Raises Failure."""
        if depth > MOST_STARTS // 4:
            raise Failure(bthread.name, BProgramError("b-threads start each other without end"))
        priority = inherited if bthread.priority is None else bthread.priority
        outcome = self._advanced((bthread, ()), None)
        self._compare((bthread, ()), None, outcome.looks)
        local = self._local(priority, outside, outcome, (bthread, ()))
        started = self._started(outcome.started, priority, outside, depth + 1)
        return started if local is None else (local, *started)

    def _started(self, bthreads: Iterable[BThread], priority: int, outside: bool, depth: int = 0) -> State:
        return tuple(local for each in bthreads for local in self._begun(each, priority, outside, depth))

    def _advanced(self, path: Path, event: int | None) -> Outcome:
        """Replay a b-thread, then advance it on an event (None: to its first statement). Raises Failure."""
        name = path[0].name
        body, statement, started = guarded(name, self._replayed, path, event)
        try:
            looks = (None if statement is None else self.looks(body, statement), self.looks(*started))
        except VerificationError as error:
            raise VerificationError(f"b-thread {name!r}: {error}") from error
        return Outcome(body, statement, started, looks)

    def _replayed(self, path: Path, event: int | None) -> tuple[Any, Sync | None, tuple[BThread, ...]]:
        (bthread,) = copied(path[0])
        body, started = bthread.begin(), list[BThread]()
        events = () if event is None else (None, *map(self.events.__getitem__, path[1]))
        try:
            for before in events:
                if advance(body.send, before, take_on, []) is None:
                    raise hidden(bthread.name, "replayed on the same events, it ends earlier")
            said = advance(body.send, None if event is None else self.events[event], take_on, started)
        except BaseException:
            let_go(body)
            raise
        return body, said, tuple(started)

    def _compare(self, path: Path, event: int | None, looks: Any) -> None:
        """Raise VerificationError unless a path leads on to the same as another that looks alike."""
        outcome = self._advanced(path, event)
        let_go(outcome.body)
        if outcome.looks != looks:
            leads = "" if event is None else f"from the same place, {self.events[event]!r} leads to different places"
            raise hidden(path[0].name, leads or "it begins in different ways")

    def _local(self, priority: int, outside: bool, outcome: Outcome, path: Path) -> int | None:
        """Return the number of the local state of an outcome; a known one learns another path."""
        if outcome.statement is None:
            return None
        name = path[0].name
        key = (name, priority, outside, outcome.looks[0])
        number = self._by_looks.get(key)
        if number is not None:
            let_go(outcome.body)
            self._learn_path(self.locals[number], path)
            return number
        number = self._by_looks[key] = len(self.locals)
        self.locals.append(Local(name, priority, outside, outcome.statement, outcome.body, [path]))
        guarded(name, self._file, number, outcome.statement)
        return number

    def _file(self, number: int, statement: Sync) -> None:
        """Note what a new local state requests. Raises TypeError for an event kind that is none."""
        for events in (statement.wait_for, statement.block, statement.interrupt, statement.refuse):
            for _, kind, _, _ in () if events is None else events._rows:
                self._check_kind(kind)
        requests = tuple(map(self.number, statement.requests))
        is_choosy = statement.otherwise is not None or (len(requests) > 1 and not statement.any_of)
        self.requests.append(requests)
        self.asks.append(mask_of(requests))
        self.wants.append(0 if is_choosy else mask_of(requests))
        for column in (self.met, self.stops, self.refuses):
            column.append(0)
        self.choosy |= {number} if is_choosy else set()
        if self.locals[number].outside:
            self.outside.add(number)
            if statement.otherwise is not None:
                name = self.locals[number].name
                raise VerificationError(
                    f"b-thread {name!r} of the environment has an otherwise=; external events are not refused in turn: "
                    "request any_of(...) both, or put the b-thread beside the others"
                )

    def _learn_path(self, local: Local, path: Path) -> None:
        """Add another path to a local state; the moves known from the first must hold for it too."""
        if path in local.paths or len(local.paths) == MOST_PATHS:
            return
        local.paths.append(path)
        for event, move in tuple(local.moves.items()):
            if move.looks is not None:
                self._compare(path, event, move.looks)

    def move(self, number: int, event: int) -> Move:
        """Return where an event leads a local state that it concerns. Raises Failure."""
        local = self.locals[number]
        if event in local.failures:
            raise local.failures[event]
        if event not in local.moves:
            try:
                local.moves[event] = self._computed(local, event)
            except Failure as failure:
                local.failures[event] = failure
                raise
        return local.moves[event]

    def _computed(self, local: Local, event: int) -> Move:
        first, *others = local.paths
        if self.contains(local.statement.interrupt, event, local.name):
            guarded(local.name, self._closed, first)
            return Move(None, (), None)
        outcome = self._advanced(first, event)
        for path in others or (first,):
            self._compare(path, event, outcome.looks)
        paths = [(bthread, (*history, event)) for bthread, history in (first, *others)]
        after = [self._local(local.priority, local.outside, outcome, path) for path in paths]
        return Move(after[0], self._started(outcome.started, local.priority, local.outside), outcome.looks)

    def _closed(self, path: Path) -> None:
        bthread, history = path
        event, before = (history[-1], history[:-1]) if history else (None, ())
        body = self._replayed((bthread, before), event)[0]
        try:
            body.close()
        except BaseException:
            let_go(body)
            raise

    def contains(self, events: Any, event: int, name: str) -> bool:
        """Return whether an event set of a b-thread (or None) has an event. Raises Failure."""
        return events is not None and guarded(name, contains, events, self.events[event])

    # What can be selected in a state.

    def choices(self, state: State) -> tuple[Choice, ...]:
        """Return what can be selected: internal events, or else those from outside. Raises Failure."""
        inside, alternatives = self._offered(state, False)
        origins = {"internal": inside}
        if not inside:
            self.rests = True
            possible = mask_of(self.possible)
            outside, _ = self._offered(state, True)
            origins = {"promised": outside, "possible": possible & ~self._stopped(state, possible)}
            if self.unsure:
                self._check(state, self.possible)
        return tuple(
            Choice(event, origin, self._taking(event, alternatives) if alternatives else frozenset())
            for origin, events in origins.items()
            for event in bits(events)
        )

    def _taking(self, event: int, alternatives: dict[int, int]) -> frozenset[int]:
        happened = self.events[event]
        return frozenset(local for local, other in alternatives.items() if self.events[other] == happened)

    def offering(self, state: State) -> frozenset[int]:
        """Return the local states with an offer that can be selected: they are owed a turn in a fair run."""
        selectable = {choice.event for choice in self.choices(state) if choice.origin != "possible"}
        offers = {local: self._choice(local, state, self._stopped(state, self.asks[local]))[0] for local in set(state)}
        return frozenset(local for local, events in offers.items() if selectable.intersection(events))

    def _offered(self, state: State, outside: bool) -> tuple[int, dict[int, int]]:
        """Return the events (a mask) that b-threads offer, inside or outside, and the present alternatives."""
        members = [local for local in state if (local in self.outside) is outside and self.asks[local]]
        asked = wanted = 0
        for local in members:
            asked |= self.asks[local]
            wanted |= self.wants[local]
        stopped = self._stopped(state, asked)
        offers: list[tuple[str, int, Sequence[int]]] = []
        alternatives: dict[int, int] = {}
        is_plain = not self.unsure and (self._free is None or outside)
        for local in members:
            if local in self.choosy or not is_plain:
                offered, alternative = self._choice(local, state, stopped)
                offers.append((self.locals[local].name, self.locals[local].priority, offered))
                if alternative is not None:
                    alternatives[local] = alternative
        selectable = mask_of(chosen(offers, None if outside else self._free))
        return selectable | (wanted & ~stopped if is_plain else 0), alternatives

    def _stopped(self, state: State, events: int) -> int:
        """Return the events that b-threads block or refuse; all of `events` (a mask) have been asked about."""
        stopped, met, stops = 0, self.met, self.stops
        for local in state:
            if events & ~met[local]:
                self._ask(local, events & ~met[local])
            stopped |= stops[local]
        return stopped

    def _ask(self, local: int, events: int) -> None:
        self.met[local] |= events
        said, name = self.locals[local].statement, self.locals[local].name
        for event in bits(events) if said.block is not None or said.refuse is not None else ():
            try:
                is_refused = self.contains(said.refuse, event, name)
                is_stopped = self.contains(said.block, event, name) or is_refused
            except Failure as failure:
                self.unsure[local, event] = failure
                is_stopped = is_refused = False
            self.stops[local] |= is_stopped << event
            self.refuses[local] |= is_refused << event

    def _choice(self, local: int, state: State, stopped: int) -> tuple[Sequence[int], int | None]:
        """Return what one local state offers, and its alternative, if all that it requests is refused."""
        statement, requests = self.locals[local].statement, self.requests[local]
        is_refused = partial(self._is_refused, state)
        alternative = alternative_of(statement, requests, is_refused, partial(self._alternative, local, state))
        if alternative is not None:
            stopped |= self._stopped(state, 1 << alternative)

        def is_free(event: int) -> bool:
            self._check(state, (event,))
            return not stopped >> event & 1

        return offers_of(statement, requests, alternative, is_free), alternative

    def _is_refused(self, state: State, event: int) -> bool:
        self._check(state, (event,))
        return any(self.refuses[local] >> event & 1 for local in state)

    def _check(self, state: State, events: Iterable[int]) -> None:
        """Raise the Failure of a predicate that a step asks about one of `events`."""
        for event in events if self.unsure else ():
            for local in state:
                if (local, event) in self.unsure:
                    raise self.unsure[local, event]

    def _alternative(self, local: int, state: State) -> int:
        """Return the event of an `otherwise`, which must be the same for every order of the refusals."""
        refusing = tuple(by for by in state if self.refuses[by] & self.asks[local])
        key = (local, refusing)
        if key not in self._alternatives:
            by = sorted((self.locals[number] for number in refusing), key=lambda each: -each.priority)
            refusals = [Refusal(each.name, each.statement.because) for each in by]
            found = {self._otherwise(self.locals[local], order) for order in (refusals, refusals[::-1])}
            if len(found) > 1:
                raise hidden(self.locals[local].name, "its otherwise depends on the order of the refusals")
            self._alternatives[key] = found.pop()
        return self._alternatives[key]

    def _otherwise(self, local: Local, refusals: Sequence[Refusal]) -> int:
        return self.number(guarded(local.name, otherwise_of, local.statement, Refusals(refusals)))

    # Steps.

    def successor(self, state: State, choice: Choice) -> State:
        """Return the state after an event. Raises Failure."""
        known, taking = self._after[choice.event], choice.taking
        try:
            if not taking:
                return tuple(sorted([new for local in state for new in known[local]]))
        except KeyError:
            pass
        for local in state:
            if local not in known:
                known[local] = self.after(local, choice._replace(taking=frozenset()))
        after = [new for local in state for new in (self.after(local, choice) if local in taking else known[local])]
        return tuple(sorted(after))

    def after(self, local: int, choice: Choice) -> State:
        """Return the local states that come of one by an event: itself, or the next one and those started."""
        if not self.is_concerned(local, choice):
            return (local,)
        move = self.move(local, choice.event)
        return move.started if move.after is None else (move.after, *move.started)

    def place_after(self, local: int, choice: Choice) -> int | None:
        """Return the next local state of one b-thread; None at its end."""
        return self.move(local, choice.event).after if self.is_concerned(local, choice) else local

    def is_concerned(self, local: int, choice: Choice) -> bool:
        """Return whether an event advances or interrupts a local state. Raises Failure."""
        event, known = choice.event, self.locals[local]
        if event not in known.hears:
            said, name = known.statement, known.name
            is_heard = self.contains(said.wait_for, event, name) or self.contains(said.interrupt, event, name)
            known.hears[event] = is_heard or self.events[event] in said.requests
        return known.hears[event] or local in choice.taking

    def failures_on(self, state: State, choice: Choice) -> dict[int, Failure]:
        """Return the local states that fail on an event."""
        found = {}
        for local in dict.fromkeys(state):
            try:
                self.after(local, choice)
            except Failure as failure:
                found[local] = failure
        return found

    def blockers(self, members: Iterable[tuple[str, int]], event: Event) -> tuple[Blocker, ...]:
        """Return those that block or refuse an event, and why, among names with local states."""
        number, found = self.number(event), list[Blocker]()
        for name, local in members:
            self._stopped((local,), 1 << number)
            if self.stops[local] >> number & 1:
                is_refused = self.refuses[local] >> number & 1
                found.append(Blocker(name, self.locals[local].statement.because if is_refused else None))
        return tuple(dict.fromkeys(found))


def chosen(offers: Sequence[tuple[str, int, Sequence[T]]], free: Collection[str] | None) -> list[T]:
    """Return what may be selected of offers (name, priority, events): all, or with players what `verify` says."""
    others = [priority for name, priority, events in offers if events and free is not None and name not in free]
    highest = max(others, default=0)
    found: list[T] = []
    for name, priority, events in offers:
        if free is None or name in free:
            found += events
        elif priority == highest:
            found += events[:1]
    return found


def copied(*bthreads: BThread) -> list[BThread]:
    """Return b-threads with arguments of their own, shared as they were, so that each run may change them."""
    changing = [each for each in bthreads if not _is_frozen(each)]
    try:
        given = [value for each in changing for value in (*each.args, *each.kwargs.values())]
        sentinels = {id(value): value for value in given if type(value) is object}
        parts = copy.deepcopy([(each.function, each.args, each.kwargs) for each in changing], sentinels)
    except Exception:  # one that has no copy, such as a lock
        return list(bthreads)
    copies = {
        id(each): evolve(each, function=function, args=args, kwargs=kwargs)
        for each, (function, args, kwargs) in zip(changing, parts, strict=True)
    }
    return [copies.get(id(each), each) for each in bthreads]


def _is_frozen(bthread: BThread) -> bool:
    try:
        return all(freeze(each) is each for each in (bthread.function, bthread.args, *bthread.kwargs.values()))
    except TypeError:
        return False


def otherwise_of(statement: Sync, refusals: Refusals) -> Event:
    """Return the event of an `otherwise`. Raises TypeError if it is none."""
    event = statement.otherwise(refusals) if statement.otherwise is not None else None
    if not isinstance(event, Event):
        raise TypeError(f"its otherwise gave {event!r}; it must give an event")
    return event


def take_on(started: list[BThread], statement: Start) -> None:
    """Note the b-threads of a `start(...)`. Raises BProgramError for too many."""
    started.extend(statement)
    if len(started) > MOST_STARTS:
        raise BProgramError("it starts b-threads without end")


def let_go(body: Any) -> None:
    """Close a generator that is not needed; its `finally` is not part of the program."""
    with suppress(BaseException):
        body.close()
    with suppress(BaseException):
        body.close()  # it may have yielded in its `finally`


def hidden(name: str, found: str) -> VerificationError:
    """Return the error of a b-thread with hidden state."""
    return VerificationError(
        f"b-thread {name!r} is not a function of its events: {found}; keep what it decides on in its local variables "
        "or arguments, or wait for an event that carries it"
    )


def mask_of(positions: Iterable[int]) -> int:
    """Return a mask with ones at some positions."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones in a mask, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
