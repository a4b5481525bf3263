"""Counterexamples: what is wrong in a state space, each with a shortest story of how it comes about.

A state says how many b-threads stand where, and not which: a story follows the individual b-threads along its trace,
so that instances of one function are told apart by their arguments.
"""

import os
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import chain
from typing import Any, Literal, NamedTuple

from attrs import evolve, field, frozen

from bp.events import Event, PredicateError, as_event_set, contains
from bp.statements import BThread
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import LocalFailure, Move
from bp.verification.states import Choice, StateSpace, bits, mask_of

__all__ = [
    "Coverage",
    "FirstFound",
    "Happened",
    "Violation",
    "Violations",
    "coverage_of",
    "instance",
    "local_states",
    "shown",
    "shown_set",
]

LINES = 15  # of a printed violation, at most
WIDTH = 100  # characters of an event that is told, at most
ARGUMENTS = 40  # characters of the arguments by which instances are told apart, at most
ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Kind = Literal["error", "never", "deadlock", "hot", "endless"]
Trace = tuple[Event, ...]


class Happened(NamedTuple):
    """One event of a trace: the names of the b-threads that requested it (none: it came from outside) or waited for it.

    `text` says the same, and tells instances of one function apart by their arguments.
    """

    event: Event
    requested_by: tuple[str, ...]
    heard_by: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{shown(self.event)}: {self.text}"


@frozen
class Violation:
    """One thing that is wrong, and a shortest way there.

    kind: "error" (a b-thread raised), "never" (a forbidden event), "deadlock", "hot" (a b-thread must go on and need
    not), or "endless" (internal events without end). trace: the events from the start. bthread: the name of the
    culprit, where there is one. blockers: at a deadlock, (name of the b-thread, event, its blockers). cycle: the
    events that repeat. story: the events of trace and cycle, with the b-threads that requested and heard them.
    where: file, line and text of the statement that raised.
    """

    kind: Kind
    trace: Trace
    message: str
    bthread: str | None = None
    blockers: tuple[tuple[str, Event, tuple[tuple[str, Any], ...]], ...] = ()
    cycle: Trace = ()
    story: tuple[Happened, ...] = field(default=(), repr=False)
    where: str = ""

    def __str__(self) -> str:
        """Tell the story, one line for each event, in 15 lines at most; the last says what is wrong."""
        lines = [f"{number:>3}  {happened}" for number, happened in enumerate(self.story, start=1)]
        if self.cycle:
            lines.insert(len(self.trace), "     then again and again:")
        if len(lines) > LINES - 1:
            kept = (LINES - 2) // 2
            lines = [*lines[:kept], f"     ... {len(lines) - 2 * kept} more ...", *lines[-kept:]]
        where = f" (at {self.where})" if self.where else ""
        return "\n".join([*lines, f"{self.kind}: {' '.join(self.message.split())}{where}"])


class FirstFound(Exception):
    """A violation was found, and the first one is enough."""


class Violations:
    """Violations: one for each deadlock state, `never` argument, failing b-thread, hot b-thread, endless component.

    `found` has them by subject; the first one stays, whose trace is a shortest. `withheld`: by b-thread and
    event, promised events that are held back where nothing can come any more. Traces are given as functions, since most
    are not needed.
    """

    def __init__(self, space: StateSpace, never: Any, *, first: bool = False) -> None:
        """Begin with nothing; `never`: an event set, or a list of them; `first`: raise FirstFound at a violation."""
        self.found: dict[Any, Violation] = {}
        self.withheld: dict[tuple[str, Event], str] = {}
        self.never = [as_event_set(events) for events in (never if isinstance(never, list | tuple) else (never,))]
        self.space = space
        self._first = first

    def selected(self, event: int, trace: Callable[[], Trace]) -> None:
        """Judge an event that can be selected after a trace: is it one that must never happen?"""
        happened = self.space.masks.events[event]
        for position, events in enumerate(self.never):
            if ("never", position) not in self.found and _contains(events, happened):
                message = f"{shown(happened)} happens, which is never to happen"
                self._keep(("never", position), Violation("never", (*trace(), happened), message))

    def ended(self, state: str, trace: Callable[[], Trace], *, is_over: bool) -> None:
        """Judge a state where nothing internal and nothing promised comes: a deadlock, a hot end, or all is well.

        So every request is held back. is_over: nothing that is possible comes either.
        """
        automaton, masks = self.space.automaton, self.space.masks
        held = [local for local in dict.fromkeys(map(ord, state)) if masks.requests[local]]
        blocked = [local for local in held if not automaton.locals[local].environment]
        if is_over and len(held) > len(blocked):
            self._note_withheld(state, [local for local in held if local not in blocked])
        if blocked:
            self._deadlock(state, trace(), blocked)
            return
        for local in dict.fromkeys(map(ord, state)):
            if automaton.locals[local].statement.hot:
                self.hot(local, trace(), ())

    def failed_on(self, state: str, choice: Choice, trace: Callable[[], Trace]) -> None:
        """Keep that b-threads fail when an event is selected in a state: each of them."""
        events = (*trace(), self.space.masks.events[choice.event])
        for local in dict.fromkeys(map(ord, state)):
            try:
                self.space.place_after(local, choice)
            except LocalFailure as failure:
                self.failed(failure, events, local)

    def failed(self, failure: LocalFailure, trace: Trace, local: int | None = None) -> None:
        """Keep that a b-thread fails at the end of a trace."""
        where = _line_of(failure.error)
        violation = Violation("error", trace, str(failure), bthread=failure.name, where=where)
        self._keep(("error", failure.name), violation, local)

    def hot(self, local: int, trace: Trace, cycle: Trace) -> None:
        """Keep that a b-thread stays hot, around a cycle or (without one) at an end."""
        name = self.space.automaton.locals[local].name
        message = f"b-thread {name!r} stays hot " + ("around a fair cycle" if cycle else "at an end")
        self._keep(("hot", name), Violation("hot", trace, message, bthread=name, cycle=cycle), local)

    def endless(self, number: int, trace: Trace, cycle: Trace) -> None:
        """Keep that internal events go on for ever, from the state of this number on."""
        message = "internal events go on without end"
        self._keep(("endless", number), Violation("endless", trace, message, cycle=cycle))

    def _deadlock(self, state: str, trace: Trace, blocked: list[int]) -> None:
        automaton = self.space.automaton
        wishes, told = [], []
        members = [(automaton.locals[local].name, local) for local in map(ord, state)]
        cast = Cast(self.space, trace)
        for local in blocked:
            for event in automaton.locals[local].statement.requests:
                wishes.append((automaton.locals[local].name, event, self.space.blockers(members, event)))
                held = f"requests {shown(event)}, held by {cast.holders(event)}"
                told += [f"{name!r} {held}" for name in cast.names_at(local)]
        self._keep(("deadlock", state), Violation("deadlock", trace, "; ".join(told), blockers=tuple(wishes)))

    def _note_withheld(self, state: str, locals_: list[int]) -> None:
        automaton = self.space.automaton
        members = [(automaton.locals[local].name, local) for local in map(ord, state)]
        for local in locals_:
            found = automaton.locals[local]
            for event in found.statement.requests:
                if (found.name, event) not in self.withheld:
                    told = f"{shown(event)} of {found.name!r}, held by {_held(self.space.blockers(members, event))}"
                    self.withheld[found.name, event] = told

    def _keep(self, key: Any, violation: Violation, culprit: int | None = None) -> None:
        """Keep what is new, with its story; `culprit` is the local state at which its b-thread fails or stays."""
        if key in self.found:
            return
        cast = Cast(self.space, (*violation.trace, *violation.cycle))
        message = violation.message
        if culprit is not None and violation.bthread is not None:
            for name in cast.names_at(culprit, before=violation.kind == "error")[:1]:
                message = message.replace(repr(violation.bthread), repr(name), 1)
        self.found[key] = evolve(violation, message=message, story=cast.story())
        if self._first:
            raise FirstFound


class Cast:
    """The individual b-threads of a program, each at its local state, along a trace."""

    def __init__(self, space: StateSpace, events: Iterable[Event]) -> None:
        """Follow `events` from the start; on the last one b-threads may fail."""
        self._space = space
        self._standing: list[tuple[BThread, int]] = []
        self._before = self._standing
        self._instances: dict[str, set[str]] = {}  # by name: instances that are there at the same time
        self._happened: list[tuple[Event, int, list[tuple[BThread, int]]]] = []  # with the b-threads concerned
        for begun in space.begun:
            first, *others = begun.generations or ((),)
            self._join([(begun.bthread, local) for local in first])
            self._join(self._started(others))
        state = space.initial
        for event in events:
            present, choices = space.selection.choices(state)
            number = space.masks.number(event)
            choice = next(choice for choice in choices if choice.event == number)
            self._take(choice, event)
            with suppress(LocalFailure):
                state = space.successor(state, present, choice)

    def story(self) -> tuple[Happened, ...]:
        """Return the events of the trace, each with the b-threads that requested and heard it."""
        return tuple(self._told(*happened) for happened in self._happened)

    def names_at(self, local: int, *, before: bool = False) -> list[str]:
        """Return the names of the b-threads at a local state at the end of the trace, or `before` its last event."""
        members = self._before if before else self._standing
        return list(dict.fromkeys(self._name(bthread) for bthread, at in members if at == local))

    def holders(self, event: Event) -> str:
        """Return the names of those that block or refuse an event at the end, and why."""
        return _held(self._space.blockers([(self._name(bthread), at) for bthread, at in self._standing], event))

    def _take(self, choice: Choice, event: Event) -> None:
        self._before = self._standing
        concerned = [(bthread, local) for bthread, local in self._before if self._is_concerned(local, choice)]
        self._happened.append((event, choice.advancing, concerned))
        moved = {local for _, local in concerned}
        self._standing = []
        going: list[tuple[BThread, int]] = []
        started: list[tuple[int, ...]] = []
        for bthread, local in self._before:
            with suppress(LocalFailure):
                move = self._space.automaton.move(local, event, choice.event) if local in moved else Move(local)
                going += [] if move.local is None else [(bthread, move.local)]
                started += move.started
        self._join(going)
        self._join(self._started(started))

    def _join(self, members: list[tuple[BThread, int]]) -> None:
        self._standing = [*self._standing, *members]
        for bthread, _ in self._standing:
            self._instances.setdefault(bthread.name, set()).add(instance(bthread))

    def _started(self, generations: Iterable[tuple[int, ...]]) -> list[tuple[BThread, int]]:
        locals_ = self._space.automaton.locals
        return [(locals_[local].paths[0].bthread, local) for local in chain.from_iterable(generations)]

    def _is_concerned(self, local: int, choice: Choice) -> bool:
        try:
            return self._space.advances(local, choice)
        except LocalFailure:  # it cannot tell: that is what the violation is about
            return True

    def _told(self, event: Event, advancing: int, concerned: list[tuple[BThread, int]]) -> Happened:
        instead, locals_ = set(bits(advancing)), self._space.automaton.locals
        requesting, hearing = list[BThread](), list[BThread]()
        for bthread, local in concerned:
            is_requester = local in instead or event in locals_[local].statement.requests
            (requesting if is_requester else hearing).append(bthread)
        requested_by, heard_by = (dict.fromkeys(by.name for by in bthreads) for bthreads in (requesting, hearing))
        requesters, hearers = (", ".join(dict.fromkeys(map(self._name, by))) for by in (requesting, hearing))
        text = f"requested by {requesters}" if requesters else "from outside"
        text += f"; waited for by {hearers}" if hearers else ""
        return Happened(event, tuple(requested_by), tuple(heard_by), text)

    def _name(self, bthread: BThread) -> str:
        return instance(bthread) if len(self._instances[bthread.name]) > 1 else bthread.name


def instance(bthread: BThread) -> str:
    """Return the name of a b-thread with its arguments, in short: `philosopher(0)`."""
    given = [*map(_argument, bthread.args), *(f"{name}={_argument(value)}" for name, value in bthread.kwargs.items())]
    return f"{bthread.name}({_shortened(', '.join(given), ARGUMENTS)})"


def shown(event: Event) -> str:
    """Return an event as reports show it: a plain one by its name, a long one shortened."""
    text = repr(event)
    return _shortened(event.name if text == f"event({event.name!r})" else text, WIDTH)


def shown_set(events: Any) -> str:
    """Return an event set as reports show it."""
    return shown(events) if isinstance(events, Event) else _shortened(getattr(events, "__name__", repr(events)), WIDTH)


def _argument(value: Any) -> str:
    return shown(value) if isinstance(value, Event) else getattr(value, "__name__", repr(value))


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width * 3 // 4]} ... {text[-width // 4 + 5 :]}"


def _held(blockers: Iterable[tuple[str, Any]]) -> str:
    told = [
        name if because is None else f"{name} (because {_shortened(repr(because), WIDTH)})"
        for name, because in blockers
    ]
    return ", ".join(told) or "no b-thread"


def _line_of(error: BaseException) -> str:
    """Return file, line and text of the statement that raised; nothing where the engine did."""
    raised = error.__cause__ if isinstance(error, PredicateError) and error.__cause__ is not None else error
    frames = traceback.extract_tb(raised.__traceback__)
    if not frames or os.path.abspath(frames[-1].filename).startswith(ENGINE + os.sep):
        return ""
    file, here = frames[-1].filename, os.getcwd() + os.sep
    line = f": {frames[-1].line}" if frames[-1].line else ""
    return f"{file.removeprefix(here)}:{frames[-1].lineno}{line}"


def _contains(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError as error:
        raise VerificationError(f"never={events!r}: {error}") from error


# Coverage: what a verification never came to, and so says nothing about.

MOST = 10  # of what is told in one line


@frozen
class Coverage:
    """The parts of a program that a verification never reached, by name and, for instances of a function, arguments.

    It is `complete` without the first two, which make a verdict vacuous; the others are for the reader to judge.

    silent: environment b-threads that promise an event and never took a step, and `possible=` where the program
    never rests. unreached: b-threads that never advanced and never met a candidate. never_advanced: other b-threads
    that never advanced. never_happened: events that are possible or promised. never_matched: event sets, with b-thread
    and word. withheld: promised events that are held back where nothing can come any more. reached: all b-threads that
    are neither silent nor unreached, so that several verifications can be compared.
    """

    silent: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    never_advanced: tuple[str, ...] = ()
    never_happened: tuple[Event, ...] = ()
    never_matched: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True when every b-thread was reached, and every promise of the environment was kept once at least."""
        return not self.silent and not self.unreached

    def __str__(self) -> str:
        """Tell it in a line for each field that is not empty."""
        lines = {
            "environment that never took a step": self.silent,
            "never reached": self.unreached,
            "never advanced": self.never_advanced,
            "never happened": tuple(map(shown, self.never_happened)),
            "never matched": self.never_matched,
            "promised and held back for ever": self.withheld,
        }
        return "\n".join(f"{what}: {_listed(found)}" for what, found in lines.items() if found)


class Question(NamedTuple):
    """A question: is one of `events` (a mask) a candidate while a b-thread stands at a local state?"""

    about: Any
    local: int
    events: int


class Requesters(NamedTuple):
    """The local states that request an event, as characters; `possible`: it may come from outside unrequested."""

    inside: set[str]
    outside: set[str]
    possible: bool


def coverage_of(
    space: StateSpace, states: Collection[str], never: Iterable[Any] = (), withheld: Iterable[str] = ()
) -> Coverage:
    """Return the coverage of the `states` of a space that were looked at."""
    if space.failures:
        return Coverage()
    space.masks.learn()
    candidates = Candidates(space, states)
    advanced = 0
    for concerned in space.advanced.values():
        advanced |= concerned
    members = _members(space)
    idle = {who: locals_ for who, locals_ in members.items() if not any(advanced >> at & 1 for at in locals_)}
    sets = _event_sets(space, candidates.visited)
    met = candidates.met([*_about_bthreads(space, idle), *_about_stops(space, sets)])
    heard = met | _heard(space, sets) | {("never", at) for at, each in enumerate(never) if candidates.ever_in(each)}
    silent = [who for who, locals_ in idle.items() if who[1] and any(space.masks.requests[at] for at in locals_)]
    unreached = [who for who in idle if not who[1] and who not in met]
    unmatched = [f"{name}: {word} {text}" for name, word, text in sets if (name, word, text) not in heard]
    return Coverage(
        (*(name for name, _ in silent), *candidates.unheard()),
        tuple(name for name, _ in unreached),
        tuple(name for name, environment in idle if (name, environment) not in (*silent, *unreached)),
        tuple(space.masks.events[event] for event in candidates.outside() if event not in space.advanced),
        (*unmatched, *(f"never= {shown_set(each)}" for at, each in enumerate(never) if ("never", at) not in heard)),
        tuple(withheld),
        tuple(name for name, environment in members if (name, environment) not in (*silent, *unreached)),
    )


def local_states(space: StateSpace) -> tuple[tuple[str, int], ...]:
    """Return how many local states the b-threads of each name have, most first."""
    return tuple(Counter(local.name for local in space.automaton.locals).most_common())


class Candidates:
    """The candidates of the states that were looked at."""

    def __init__(self, space: StateSpace, states: Collection[str]) -> None:
        """Note which local states request which event."""
        self.visited = _visited(space, states)
        self._space = space
        self._states = states
        self._requesters: defaultdict[int, Requesters] = defaultdict(lambda: Requesters(set(), set(), False))
        wanted = [(local, event) for local in self.visited for event in space.masks.requests[local]]
        for local, event in (*wanted, *space.selection.alternatives()):
            requesters = self._requesters[event]
            (requesters.outside if space.automaton.locals[local].environment else requesters.inside).add(chr(local))
        for event in space.selection.possible:
            self._requesters[event] = self._requesters[event]._replace(possible=True)

    def outside(self) -> list[int]:
        """Return the events that are possible or promised."""
        return sorted(event for event, found in self._requesters.items() if found.outside or found.possible)

    def unheard(self) -> tuple[str, ...]:
        """Return that no possible event can come, because something internal always can, if it is so."""
        possible = self._space.selection.possible
        if not possible or not self._space.advanced.keys().isdisjoint(possible):
            return ()
        return () if any(map(self._rests, self._states)) else ("possible= (the program never rests)",)

    def ever_in(self, events: Any) -> bool:
        """Return whether an event set contains an event that is ever requested or possible."""
        return any(_matches(events, self._space.masks.events[event]) for event in self._requesters)

    def met(self, questions: Iterable[Question]) -> set[Any]:
        """Return what those questions are about that are answered yes in some state."""
        waiting: dict[str, list[tuple[Any, Requesters]]] = defaultdict(list)
        anyone: dict[str, set[str]] = defaultdict(set)  # by character: all that request the events of its questions
        for about, local, events in questions:
            requesters = self._of_any(events)
            if any(requesters):
                waiting[chr(local)].append((about, requesters))
                anyone[chr(local)] |= requesters.inside | requesters.outside
                if requesters.possible:
                    anyone[chr(local)].add(chr(local))
        met: set[Any] = set()
        for state in self._states:
            if not anyone:
                break
            for character in anyone.keys() & state:
                if anyone[character].isdisjoint(state):
                    continue
                asked = waiting[character]
                met.update(about for about, requesters in asked if about not in met and self._is_met(state, requesters))
                waiting[character] = [question for question in asked if question[0] not in met]
                if not waiting[character]:
                    del anyone[character]
        return met

    def _of_any(self, events: int) -> Requesters:
        found = [self._requesters[event] for event in bits(events) if event in self._requesters]
        inside = set().union(*(requesters.inside for requesters in found))
        outside = set().union(*(requesters.outside for requesters in found))
        return Requesters(inside, outside, any(requesters.possible for requesters in found))

    def _is_met(self, state: str, requesters: Requesters) -> bool:
        if not requesters.inside.isdisjoint(state):
            return True
        return (requesters.possible or not requesters.outside.isdisjoint(state)) and self._rests(state)

    def _rests(self, state: str) -> bool:
        try:
            _, choices = self._space.selection.choices(state)
        except LocalFailure:
            return False
        return not choices or choices[0].origin != "internal"


Member = tuple[str, bool]  # name of a b-thread, and whether it is of the environment
Word = tuple[str, str, str]  # name of a b-thread, a word of `sync`, and its event set as text


def _visited(space: StateSpace, states: Iterable[str]) -> frozenset[int]:
    """Return the local states that occur in some states."""
    characters: set[str] = set()
    for state in states:
        characters.update(state)
        if len(characters) == len(space.automaton.locals):
            break
    return frozenset(map(ord, characters))


def _members(space: StateSpace) -> dict[Member, set[int]]:
    """Return the first local states of each b-thread: those that were given one by one, those started by name."""
    members: defaultdict[Member, set[int]] = defaultdict(set)
    alike: defaultdict[str, list[BThread]] = defaultdict(list)
    for begun in space.begun:
        alike[begun.bthread.name].append(begun.bthread)
    for begun in space.begun:
        first, *others = begun.generations or ((),)
        if first:  # else it was over at once
            members[_named(begun.bthread, alike), begun.environment].update(first)
        _join(space, members, (local for generation in others for local in generation))
    _join(space, members, space.started())
    return members


def _named(bthread: BThread, alike: dict[str, list[BThread]]) -> str:
    namesakes = alike[bthread.name]
    is_unique = len(namesakes) == 1 or len(set(map(instance, namesakes))) == 1
    return bthread.name if is_unique else instance(bthread)


def _join(space: StateSpace, members: defaultdict[Member, set[int]], started: Iterable[int]) -> None:
    for local in started:
        found = space.automaton.locals[local]
        members[found.name, found.environment].add(local)


def _event_sets(space: StateSpace, visited: Iterable[int]) -> dict[Word, list[tuple[int, Any]]]:
    """Return the event sets of the local states, each with where it is said."""
    found: dict[Word, list[tuple[int, Any]]] = {}
    for local in sorted(visited):
        name, statement = space.automaton.locals[local].name, space.automaton.locals[local].statement
        for word in ("wait_for", "block", "refuse", "interrupt"):
            events = getattr(statement, word)
            if events is not None:
                found.setdefault((name, word, shown_set(events)), []).append((local, events))
    return found


def _about_bthreads(space: StateSpace, idle: dict[Member, set[int]]) -> Iterable[Question]:
    """Ask whether the b-threads that never advanced were reached all the same."""
    for who, locals_ in idle.items():
        for local in locals_:
            concerning = mask_of(event for event, mask in enumerate(space.masks.concerned) if mask >> local & 1)
            own = mask_of(space.masks.requests[local])
            yield Question(who, local, (concerning & ~own) | space.masks.rows[local].stops)


def _about_stops(space: StateSpace, sets: dict[Word, list[tuple[int, Any]]]) -> Iterable[Question]:
    """Ask whether the sets that are blocked or refused ever have something to hold back."""
    masks = {"block": space.masks.blocks, "refuse": space.masks.refuses}
    for (name, word, text), places in sets.items():
        for local, _ in places if word in masks else ():
            yield Question((name, word, text), local, masks[word][local])


def _heard(space: StateSpace, sets: dict[Word, list[tuple[int, Any]]]) -> set[Word]:
    """Return the sets that were waited for, or interrupted, and contain an event that happened meanwhile."""
    heard = set()
    for key, places in sets.items():
        if key[1] in ("wait_for", "interrupt") and any(_happens(space, local, events) for local, events in places):
            heard.add(key)
    return heard


def _happens(space: StateSpace, local: int, events: Any) -> bool:
    numbers = (event for event, concerned in space.advanced.items() if concerned >> local & 1)
    return any(_matches(events, space.masks.events[event]) for event in numbers)


def _matches(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError:
        return False


def _listed(found: tuple[str, ...]) -> str:
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more
