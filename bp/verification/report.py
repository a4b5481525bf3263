"""Counterexamples: the violations in a state space, each with a shortest trace and its story.

A state is a multiset of local states: a story follows the individual b-threads along its trace, so that instances of
one function are distinguished by their arguments.
"""

import os
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial, reduce
from itertools import chain
from operator import or_
from typing import Any, Literal, NamedTuple

from attrs import evolve, field, frozen

from bp.errors import listed, shortened, shown
from bp.events import Event, PredicateError, Union, Where, as_event_set, contains
from bp.statements import BThread
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import Move
from bp.verification.purity import LocalFailure
from bp.verification.states import Choice, Masks, StateSpace, bits, mask_of

LINES = 15  # the most lines of a printed violation
ARGUMENTS = 40  # the most characters of arguments that distinguish instances
ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Kind = Literal["error", "never", "deadlock", "hot", "endless"]
Trace = tuple[Event, ...]


class Happened(NamedTuple):
    """One event of a trace, with the names of the b-threads that requested, waited for, or were interrupted by it.

    Without requesters it is external. `text`: the same in words, with arguments to distinguish instances of one
    function.
    """

    event: Event
    requested_by: tuple[str, ...]
    heard_by: tuple[str, ...]
    text: str
    ended: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{shown(self.event)}: {self.text}"


@frozen
class Violation:
    """One violation, with a shortest trace.

    kind: "error" (a b-thread raised), "never" (a forbidden event), "deadlock", "hot" (a b-thread may stay hot for
    ever), or "endless" (internal events without end). trace: the events from the start. bthread: the name of the
    culprit, if there is one. blockers: at a deadlock, (name of the b-thread, event, its blockers). cycle: the events
    that repeat. story: the events of trace and cycle, with the b-threads that requested and heard them. where: file,
    line and text of the statement that raised.
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
        """Return the story in at most 15 lines, one for each event; the last lines describe the violation."""
        lines = [f"{number:>3}  {happened}" for number, happened in enumerate(self.story, start=1)]
        if self.cycle:
            lines.insert(len(self.trace), "     then again and again:")
        messages = self.message.split("\n") if self.kind == "deadlock" else [self.message]
        said = few((" ".join(message.split()) for message in messages), LINES // 2, "\n")
        told = listed(f"{self.kind}:", said.split("\n"))
        room = LINES - len(told.split("\n"))
        if len(lines) > room:
            kept = (room - 1) // 2
            again = ", then again and again" * bool(self.cycle and kept <= len(self.trace) < len(lines) - kept)
            lines = [*lines[:kept], f"     ... {len(lines) - 2 * kept} more{again} ...", *lines[-kept:]]
        where = f" (at {self.where})" if self.where else ""
        return "\n".join([*lines, f"{told}{where}"])


class FirstFound(Exception):
    """The first violation was found, and ends the search."""


class Violations:
    """Violations: one for each deadlock state, `never` argument, failing b-thread, hot b-thread, endless component.

    `found`: by subject; the first one is kept, with a shortest trace. `withheld`: by b-thread and event, promised
    events that are held back where no event can come. Traces are given as functions, since most are not needed.
    """

    def __init__(self, space: StateSpace, never: Any, *, first: bool = False) -> None:
        """Begin without violations; `never`: an event set, or a list of them.

        `first`: raise FirstFound at a violation.
        """
        self.found: dict[Any, Violation] = {}
        self.withheld: dict[tuple[str, Event], str] = {}
        self.never = [as_event_set(events) for events in (never if isinstance(never, list | tuple) else (never,))]
        self.space = space
        self._first = first

    def selected(self, event: int, trace: Callable[[], Trace]) -> None:
        """Check an event that can be selected after a trace against `never`."""
        happened = self.space.masks.events[event]
        for position, events in enumerate(self.never):
            if ("never", position) not in self.found and _contains(events, happened):
                message = f"{shown(happened)} happens, which is never to happen"
                self._keep(("never", position), Violation("never", (*trace(), happened), message))

    def ended(self, state: str, trace: Callable[[], Trace], possible: tuple[Choice, ...]) -> None:
        """Check a state without internal and promised events for a deadlock or a hot end.

        Every request in it is held back. possible: events that can still come.
        """
        automaton, masks = self.space.automaton, self.space.masks
        held = [local for local in dict.fromkeys(map(ord, state)) if masks.requests[local]]
        blocked = [local for local in held if not automaton.locals[local].environment]
        if not possible and len(held) > len(blocked):
            self._note_withheld(state, [local for local in held if local not in blocked])
        if blocked:
            self._deadlock(state, trace(), blocked, possible)
            return
        for local in dict.fromkeys(map(ord, state)):
            if automaton.locals[local].statement.hot:
                self.hot(local, trace(), ())

    def failed_on(self, state: str, choice: Choice, trace: Callable[[], Trace]) -> None:
        """Record each b-thread that fails when an event is selected in a state."""
        events = (*trace(), self.space.masks.events[choice.event])
        for local in dict.fromkeys(map(ord, state)):
            try:
                self.space.place_after(local, choice)
            except LocalFailure as failure:
                self.failed(failure, events, local)

    def failed(self, failure: LocalFailure, trace: Trace, local: int | None = None) -> None:
        """Record that a b-thread fails at the end of a trace."""
        where = _line_of(failure.error)
        violation = Violation("error", trace, str(failure), bthread=failure.name, where=where)
        self._keep(("error", failure.name), violation, local)

    def hot(self, local: int, trace: Trace, cycle: Trace) -> None:
        """Record that a b-thread stays hot, around a cycle or (without one) at an end."""
        name = self.space.automaton.locals[local].name
        message = f"b-thread {name!r} stays hot " + ("around a fair cycle" if cycle else "at an end")
        self._keep(("hot", name), Violation("hot", trace, message, bthread=name, cycle=cycle), local)

    def endless(self, number: int, trace: Trace, cycle: Trace) -> None:
        """Record that internal events continue without end, from the state of this number on."""
        message = "internal events go on without end"
        self._keep(("endless", number), Violation("endless", trace, message, cycle=cycle))

    def _deadlock(self, state: str, trace: Trace, blocked: list[int], possible: tuple[Choice, ...]) -> None:
        automaton, events = self.space.automaton, self.space.masks.events
        wishes, told = [], []
        members = [(automaton.locals[local].name, local) for local in map(ord, state)]
        cast = Cast(self.space, trace)
        for local in blocked:
            for event in automaton.locals[local].statement.requests:
                wishes.append((automaton.locals[local].name, event, self.space.blockers(members, event)))
                held = f"requests {shown(event)}, held by {cast.holders(event)}"
                told += [f"{name!r} {held}" for name in cast.names_at(local)]
        if coming := few(shown(events[choice.event]) for choice in possible):
            told.append(f"only what is possible and not promised can come: {coming}")
        self._keep(("deadlock", state), Violation("deadlock", trace, "\n".join(told), blockers=tuple(wishes)))

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
        """Record a new violation, with its story; `culprit`: the local state where its b-thread fails or stays hot."""
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
        self._instances: dict[str, set[str]] = {}  # by name: simultaneous instances
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
        """Return the events of the trace, each with the b-threads that requested or waited for it."""
        return tuple(self._told(*happened) for happened in self._happened)

    def names_at(self, local: int, *, before: bool = False) -> list[str]:
        """Return the names of the b-threads at a local state at the end of the trace, or `before` its last event."""
        members = self._before if before else self._standing
        return list(dict.fromkeys(self._name(bthread) for bthread, at in members if at == local))

    def holders(self, event: Event) -> str:
        """Return the names of the b-threads that block or refuse an event at the end, and why."""
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
                move = self._space.automaton.move(local, event, choice.event) if local in moved else Move(local, event)
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
        except LocalFailure:  # its predicate fails: the violation is about that
            return True

    def _told(self, event: Event, advancing: int, concerned: list[tuple[BThread, int]]) -> Happened:
        instead, locals_ = set(bits(advancing)), self._space.automaton.locals
        requesting, hearing, ending = cast = list[BThread](), list[BThread](), list[BThread]()
        for bthread, local in concerned:
            statement = locals_[local].statement
            is_ended = statement.interrupt is not None and _matches(statement.interrupt, event)
            if local in instead or event in statement.requests:
                requesting.append(bthread)
            elif not is_ended:
                hearing.append(bthread)
            ending += [bthread] * is_ended
        requested_by, heard_by, ended = (tuple(dict.fromkeys(by.name for by in part)) for part in cast)
        requesters, hearers, closed = (few(dict.fromkeys(map(self._name, part))) for part in cast)
        text = f"requested by {requesters}" if requesters else "from outside"
        text += (f"; waited for by {hearers}" if hearers else "") + (f"; ended: {closed}" if closed else "")
        return Happened(event, requested_by, heard_by, text, ended)

    def _name(self, bthread: BThread) -> str:
        return instance(bthread) if len(self._instances[bthread.name]) > 1 else bthread.name


def instance(bthread: BThread) -> str:
    """Return the name of a b-thread with its arguments, in short and without lambdas: `philosopher(0)`."""
    named = [("", value) for value in bthread.args] + [(f"{name}=", value) for name, value in bthread.kwargs.items()]
    given = [name + text for name, value in named if (text := _argument(value)) != "<lambda>"]
    return f"{bthread.name}({shortened(', '.join(given), ARGUMENTS)})"


def _argument(value: Any) -> str:
    if isinstance(value, partial):
        return _argument(value.func)
    return shown(value) if isinstance(value, Event) else getattr(value, "__name__", repr(value))


def few(texts: Iterable[str], most: int = 4, between: str = ", ") -> str:
    """Return the first `most` texts in a line, and the number of others."""
    first, more = (texts := list(texts))[:most], len(texts) - most
    return between.join([*first, f"and {more} more"] if more > 0 else first)


def _held(blockers: Iterable[tuple[str, Any]]) -> str:
    told = [name if because is None else f"{name} (because {shortened(repr(because))})" for name, because in blockers]
    return ", ".join(told) or "no b-thread"


def _line_of(error: BaseException) -> str:
    """Return file, line and text of the last statement outside of the engine; empty if there is none."""
    raised = error.__cause__ if isinstance(error, PredicateError) and error.__cause__ is not None else error
    frames = [frame for frame in traceback.extract_tb(raised.__traceback__) if not _is_of_engine(frame.filename)]
    if not frames:
        return ""
    file, here = frames[-1].filename, os.getcwd() + os.sep
    line = f": {frames[-1].line}" if frames[-1].line else ""
    return f"{file.removeprefix(here)}:{frames[-1].lineno}{line}"


def _is_of_engine(file: str) -> bool:
    return os.path.abspath(file).startswith(ENGINE + os.sep)


def _contains(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError as error:
        raise VerificationError(f"never={events!r}: {error}") from error


# Coverage: the parts of a program that a verification never reached.

WORDS = ("wait_for", "block", "refuse", "interrupt")  # parameters of a statement with event sets
MOST = 10  # items in one line


@frozen
class Coverage:
    """The parts of a program that a verification never reached, by name and, for instances of a function, arguments.

    It is `complete` if the first two are empty, since they make a verdict vacuous; the others are for information.

    silent: environment b-threads that promise an event and never took a step, and `possible=` where the program never
    rests. unreached: b-threads that never advanced and never met a candidate, and predicates (of `where`, also in a
    union) that accepted no event. never_advanced: other b-threads that never advanced. never_happened: events that are
    possible or promised. never_matched: event sets, with b-thread and word. withheld: promised events that are held
    back where no event can come.
    """

    silent: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    never_advanced: tuple[str, ...] = ()
    never_happened: tuple[Event, ...] = ()
    never_matched: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every b-thread was reached, and every promise of the environment was kept at least once."""
        return not self.silent and not self.unreached

    def __str__(self) -> str:
        """Return a line for each non-empty field."""
        lines = {
            "environment that never took a step": self.silent,
            "never reached": self.unreached,
            "never advanced": self.never_advanced,
            "never happened": tuple(map(shown, self.never_happened)),
            "never matched": self.never_matched,
            "promised and held back for ever": self.withheld,
        }
        return "\n".join(f"{what}: {few(found, MOST, '; ')}" for what, found in lines.items() if found)


def coverage_of(space: StateSpace, never: Iterable[Any] = (), withheld: Iterable[str] = ()) -> Coverage:
    """Return the coverage of the examined states of a space."""
    if space.failures:
        return Coverage()
    masks, selection = space.masks, space.selection
    masks.learn()
    candidates = selection.candidates()
    advanced = reduce(or_, space.advanced.values(), 0)
    idle = {member: tuple(bits(firsts)) for member, firsts in _members(space).items() if not firsts & advanced}
    silent = [by for by, locals_ in idle.items() if by.environment and any(masks.requests[at] for at in locals_)]
    unreached = [
        by
        for by, locals_ in idle.items()
        if not by.environment and not any(_touched(masks, at) & candidates.get(at, 0) for at in locals_)
    ]
    unheard = ("possible= (the program never rests)",) if selection.possible and not selection.rested else ()
    outside = {*selection.possible, *(event for at in candidates for event in bits(masks.rows[at].announces))}
    ever = [masks.events[event] for event in bits(reduce(or_, candidates.values(), 0))]
    forbidden = [f"never= {shown(each)}" for each in never if not any(_matches(each, event) for event in ever)]
    return Coverage(
        silent=(*(by.name for by in silent), *unheard),
        unreached=(*(by.name for by in unreached), *_unmet_predicates(space, candidates, ever, unreached)),
        never_advanced=tuple(by.name for by in idle if by not in silent and by not in unreached),
        never_happened=tuple(masks.events[event] for event in sorted(outside) if event not in space.advanced),
        never_matched=(*_unmatched_sets(space, candidates), *forbidden),
        withheld=tuple(withheld),
    )


def _touched(masks: Masks, local: int) -> int:
    """Return the events that a local state blocks, refuses, waits for, or is interrupted by."""
    concerning = mask_of(event for event, concerned in enumerate(masks.concerned) if concerned >> local & 1)
    return (concerning & ~mask_of(masks.requests[local])) | masks.rows[local].stops


def _unmatched_sets(space: StateSpace, candidates: dict[int, int]) -> list[str]:
    """Return the event sets, with b-thread and parameter, that contained no candidate."""
    masks = space.masks
    stops = {"block": masks.blocks, "refuse": masks.refuses}
    matched: dict[str, bool] = {}
    for local in sorted(candidates):
        found = space.automaton.locals[local]
        for word in WORDS:
            events = getattr(found.statement, word)
            if events is not None:
                said = f"{found.name}: {word} {shown(events)}"
                is_met = stops[word][local] & candidates[local] if word in stops else _happens(space, local, events)
                matched[said] = matched.get(said, False) or bool(is_met)
    return [said for said, is_matched in matched.items() if not is_matched]


def _unmet_predicates(
    space: StateSpace, reached: Iterable[int], ever: Sequence[Event], unreached: Iterable["Member"]
) -> list[str]:
    """Return the predicates, with b-thread, whose function accepted no event."""
    known = [by.name for by in unreached]
    met, unmet = set[Any](), dict[Any, str]()
    for local in map(space.automaton.locals.__getitem__, sorted(reached)):
        for events in chain.from_iterable(_with_predicate(getattr(local.statement, word)) for word in WORDS):
            key = (local.name, events.kinds, getattr(events.predicate, "__code__", type(events.predicate)))
            if key not in met and any(_matches(events, event) for event in ever):
                met.add(key)
            elif not local.environment and not any(name.startswith(local.name) for name in known):
                unmet.setdefault(key, f"{local.name}: {shown(events)}")
    return [said for key, said in unmet.items() if key not in met]


def _with_predicate(events: Any) -> list[Any]:
    """Return an event set, or the members of a union, that have a predicate."""
    sets = events.members if isinstance(events, Union) else (events,)
    return [one for one in sets if isinstance(one, Where) and one.predicate is not None]


def local_states(space: StateSpace) -> tuple[tuple[str, int], ...]:
    """Return the number of local states of the b-threads of each name, most first."""
    return tuple(Counter(local.name for local in space.automaton.locals).most_common())


class Member(NamedTuple):
    """A b-thread in coverage: by name and, if several share it, arguments; started ones by name."""

    name: str
    environment: bool


def _members(space: StateSpace) -> dict[Member, int]:
    """Return the first local states (a mask) of each b-thread."""
    alike: defaultdict[str, list[BThread]] = defaultdict(list)
    for begun in space.begun:
        alike[begun.bthread.name].append(begun.bthread)
    several = {name for name, bthreads in alike.items() if len(bthreads) > 1 and len(set(map(instance, bthreads))) > 1}
    members: defaultdict[Member, int] = defaultdict(int)
    started = space.started()
    for bthread, environment, generations in space.begun:
        first, *others = generations or ((),)
        if first:  # else it ended at once
            name = instance(bthread) if bthread.name in several else bthread.name
            members[Member(name, environment)] |= mask_of(first)
        started.update(chain.from_iterable(others))
    for local in sorted(started):
        found = space.automaton.locals[local]
        members[Member(found.name, found.environment)] |= 1 << local
    return members


def _happens(space: StateSpace, local: int, events: Any) -> bool:
    numbers = (event for event, concerned in space.advanced.items() if concerned >> local & 1)
    return any(_matches(events, space.masks.events[event]) for event in numbers)


def _matches(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError:
        return False
