"""Counterexamples: the violations in a state space, each with a shortest trace and its story.

A state is a multiset of local states: a story follows the individual b-threads along its trace, so that instances of
one function are distinguished by their arguments.
"""

import os
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

from attrs import evolve, field, frozen

from bp.board import Blocker, held_by
from bp.errors import listed, shortened, shown
from bp.events import Event, PredicateError, Union, Where, as_event_set, contains
from bp.statements import BThread
from bp.verification.looks import VerificationError
from bp.verification.model import Choice, Failure, Model, State, bits, mask_of

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
    line and text of the statement that raised. count: how often the same b-threads do the same on the same last event.
    """

    kind: Kind
    trace: Trace
    message: str
    bthread: str | None = None
    blockers: tuple[tuple[str, Event, tuple[Blocker, ...]], ...] = ()
    cycle: Trace = ()
    story: tuple[Happened, ...] = field(default=(), repr=False)
    where: str = ""
    count: int = field(default=1, eq=False)

    def __str__(self) -> str:
        """Return the story in at most 15 lines, one for each event; the last lines describe the violation."""
        lines = [f"{number:>3}  {happened}" for number, happened in enumerate(self.story, start=1)]
        if self.cycle:
            lines.insert(len(self.trace), "     then again and again:")
        messages = self.message.split("\n") if self.kind == "deadlock" else [self.message]
        said = few((" ".join(message.split()) for message in messages), LINES // 2, "\n")
        told = listed(f"{self.kind}:", said.split("\n"))
        room = LINES - (self.count > 1) - len(told.split("\n"))
        if len(lines) > room:
            kept = (room - 1) // 2
            again = ", then again and again" * bool(self.cycle and kept <= len(self.trace) < len(lines) - kept)
            lines = [*lines[:kept], f"     ... {len(lines) - 2 * kept} more{again} ...", *lines[-kept:]]
        where = f" (at {self.where})" if self.where else ""
        return "\n".join([*lines, f"{told}{where}", *([f"  in {self.count:,} ways"] if self.count > 1 else [])])


class FirstFound(Exception):
    """The first violation was found, and ends the search."""


class Violations:
    """The violations of a program: one for each culprit and last event; the first is kept, with a shortest trace.

    Traces are given as functions, since most are not needed.
    """

    def __init__(self, model: Model, never: Any, *, first: bool = False) -> None:
        """Begin without violations; `never`: an event set, or a list of them.

        `first`: raise FirstFound at a violation.
        """
        self.found: dict[Any, Violation] = {}
        self.never = [as_event_set(events) for events in (never if isinstance(never, list | tuple) else (never,))]
        self.model = model
        self._counts: Counter[Any] = Counter()
        self._first = first

    def all(self) -> tuple[Violation, ...]:
        """Return the violations, each with its count."""
        return tuple(evolve(violation, count=self._counts[key]) for key, violation in self.found.items())

    def selected(self, event: int, trace: Callable[[], Trace]) -> None:
        """Check an event that can be selected after a trace against `never`."""
        happened = self.model.events[event]
        for position, events in enumerate(self.never):
            if _contains(events, happened):
                message = f"{shown(happened)} happens, which is never to happen"
                self._keep(("never", position), lambda: Violation("never", (*trace(), happened), message))  # noqa: B023

    def ended(self, state: State, trace: Callable[[], Trace], possible: tuple[Choice, ...]) -> None:
        """Check a state without internal and promised events for a deadlock or a hot end.

        Every request in it is held back. possible: events that can still come.
        """
        model = self.model
        blocked = [local for local in dict.fromkeys(state) if model.requests[local] and local not in model.outside]
        if blocked:
            events = trace()
            key = ("deadlock", frozenset(model.locals[local].name for local in blocked), events[-1:])
            self._keep(key, lambda: self._deadlock(state, events, blocked, possible))
            return
        for local in dict.fromkeys(state):
            if model.locals[local].statement.hot:
                self.hot(local, trace, ())

    def failed_on(self, state: State, choice: Choice, trace: Callable[[], Trace]) -> None:
        """Record each b-thread that fails when an event is selected in a state."""
        event = self.model.events[choice.event]
        for local, failure in self.model.failures_on(state, choice).items():
            self.failed(failure, lambda: (*trace(), event), local, choice.event)

    def failed(
        self, failure: Failure, trace: Callable[[], Trace], local: int | None = None, event: int | None = None
    ) -> None:
        """Record that a b-thread fails at the end of a trace, on its last event."""
        where = _line_of(failure.error)

        def violation() -> Violation:
            return Violation("error", trace(), str(failure), bthread=failure.name, where=where)

        self._keep(("error", failure.name, event), violation, local)

    def hot(self, local: int, trace: Callable[[], Trace], cycle: Trace) -> None:
        """Record that a b-thread stays hot, around a cycle or (without one) at an end."""
        name = self.model.locals[local].name
        message = f"b-thread {name!r} stays hot " + ("around a fair cycle" if cycle else "at an end")
        self._keep(("hot", name), lambda: Violation("hot", trace(), message, bthread=name, cycle=cycle), local)

    def endless(self, number: int, trace: Trace, cycle: Trace) -> None:
        """Record that internal events continue without end, from the state of this number on."""
        message = "internal events go on without end"
        self._keep(("endless", number), lambda: Violation("endless", trace, message, cycle=cycle))

    def _deadlock(self, state: State, trace: Trace, blocked: list[int], possible: tuple[Choice, ...]) -> Violation:
        model, wishes, told = self.model, [], []
        members = [(model.locals[local].name, local) for local in state]
        cast = Cast(model, trace)
        for local in blocked:
            for event in model.locals[local].statement.requests:
                wishes.append((model.locals[local].name, event, model.blockers(members, event)))
                held = f"requests {shown(event)}, {cast.holders(event)}"
                told += [f"{name!r} {held}" for name in cast.names_at(local)]
        if coming := few(shown(model.events[choice.event]) for choice in possible):
            told.append(f"only what is possible and not promised can come: {coming}")
        return Violation("deadlock", trace, "\n".join(told), blockers=tuple(wishes))

    def _keep(self, key: Any, make: Callable[[], Violation], culprit: int | None = None) -> None:
        """Count a violation; record a new one, with its story. `culprit`: the local state that fails or stays hot."""
        self._counts[key] += 1
        if key in self.found:
            return
        violation = make()
        cast = Cast(self.model, (*violation.trace, *violation.cycle))
        message = violation.message
        if culprit is not None and violation.bthread is not None:
            for name in cast.names_at(culprit, before=violation.kind == "error")[:1]:
                message = message.replace(repr(violation.bthread), repr(name), 1)
        self.found[key] = evolve(violation, message=message, story=cast.story())
        if self._first:
            raise FirstFound


Members = list[tuple[BThread, int]]  # b-threads, each with its local state


class Cast:
    """The individual b-threads of a program, each at its local state, along a trace."""

    def __init__(self, model: Model, events: Iterable[Event]) -> None:
        """Follow `events` from the start; on the last one b-threads may fail."""
        self._model = model
        self._standing: Members = []
        self._before = self._standing
        self._instances: dict[str, set[str]] = {}  # by name: simultaneous instances
        self._happened: list[tuple[Event, Choice, Members]] = []  # with the b-threads concerned
        for bthread, _, first in model.begun:
            self._join(self._members(bthread, first))
        for event in events:
            self._take(event)

    def story(self) -> tuple[Happened, ...]:
        """Return the events of the trace, each with the b-threads that requested or waited for it."""
        return tuple(self._told(*happened) for happened in self._happened)

    def names_at(self, local: int, *, before: bool = False) -> list[str]:
        """Return the names of the b-threads at a local state at the end of the trace, or `before` its last event."""
        members = self._before if before else self._standing
        return list(dict.fromkeys(self._name(bthread) for bthread, at in members if at == local))

    def holders(self, event: Event) -> str:
        """Return the names of the b-threads that block or refuse an event at the end, and why."""
        return held_by(self._model.blockers([(self._name(bthread), at) for bthread, at in self._standing], event))

    def _take(self, event: Event) -> None:
        model, number = self._model, self._model.number(event)
        choices = model.choices(tuple(sorted(local for _, local in self._standing)))
        choice = next(choice for choice in choices if choice.event == number)
        self._before, going, started = self._standing, Members(), Members()
        self._happened.append((event, choice, [each for each in self._before if self._is_concerned(each[1], choice)]))
        for bthread, local in self._before:
            with suppress(Failure):
                for member in self._members(bthread, model.after(local, choice)):
                    (going if member[0] is bthread else started).append(member)
        self._standing = []
        self._join([*going, *started])

    def _members(self, bthread: BThread, locals_: State) -> Members:
        """Return a b-thread at the first of its local states, if that is its own, and those that it started."""
        known = self._model.locals
        return [
            (bthread if known[local].name == bthread.name else known[local].paths[0][0], local) for local in locals_
        ]

    def _join(self, members: Members) -> None:
        self._standing = [*self._standing, *members]
        for bthread, _ in self._standing:
            self._instances.setdefault(bthread.name, set()).add(instance(bthread))

    def _is_concerned(self, local: int, choice: Choice) -> bool:
        try:
            return self._model.is_concerned(local, choice)
        except Failure:  # its predicate fails: the violation is about that
            return True

    def _told(self, event: Event, choice: Choice, concerned: Members) -> Happened:
        requesting, hearing, ending = cast = list[BThread](), list[BThread](), list[BThread]()
        for bthread, local in concerned:
            statement = self._model.locals[local].statement
            is_ended = statement.interrupt is not None and _matches(statement.interrupt, event)
            if local in choice.taking or event in statement.requests:
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

    silent: environment b-threads that promise an event and never took a step, and `possible=` where the program never
    rests. unreached: b-threads that never advanced and never met a candidate, and predicates (of `where`, also in a
    union) that accepted no event.
    """

    silent: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every b-thread was reached, and every promise of the environment was kept at least once."""
        return not self.silent and not self.unreached

    def __str__(self) -> str:
        """Return a line for each non-empty field."""
        lines = {"environment that never took a step": self.silent, "never reached": self.unreached}
        return "\n".join(f"{what}: {few(found, MOST, '; ')}" for what, found in lines.items() if found)


def coverage_of(model: Model) -> Coverage:
    """Return the coverage of the examined states of a program."""
    if model.failures:
        return Coverage()
    moved = {number for number, local in enumerate(model.locals) if local.moves or local.failures}
    idle = {member: locals_ for member, locals_ in _members(model).items() if not moved & locals_}
    silent = [by.name for by, locals_ in idle.items() if by.outside and any(model.requests[at] for at in locals_)]
    unreached = [
        by.name for by, locals_ in idle.items() if not by.outside and not any(_is_touched(model, at) for at in locals_)
    ]
    unheard = ("possible= (the program never rests)",) if model.possible and not model.rests else ()
    return Coverage((*silent, *unheard), (*unreached, *_unmet_predicates(model, unreached)))


def _is_touched(model: Model, local: int) -> bool:
    """Return whether a candidate met something that a local state blocks, refuses, waits for or is interrupted by."""
    statement = model.locals[local].statement
    sets = (statement.block, statement.refuse, statement.wait_for, statement.interrupt)
    met = [model.events[event] for event in bits(model.met[local])]
    return any(_matches(events, event) for events in sets if events is not None for event in met)


def _unmet_predicates(model: Model, unreached: Sequence[str]) -> list[str]:
    """Return the predicates, with b-thread, whose function accepted no event."""
    ever = [model.events[event] for event in bits(mask_of(chain.from_iterable(map(bits, model.met))))]
    met, unmet = set[Any](), dict[Any, str]()
    for local in (local for number, local in enumerate(model.locals) if model.met[number]):
        for events in chain.from_iterable(_with_predicate(getattr(local.statement, word)) for word in WORDS):
            key = (local.name, events.kinds, getattr(events.predicate, "__code__", type(events.predicate)))
            if key not in met and any(_matches(events, event) for event in ever):
                met.add(key)
            elif not local.outside and not any(name.startswith(local.name) for name in unreached):
                unmet.setdefault(key, f"{local.name}: {shown(events)}")
    return [said for key, said in unmet.items() if key not in met]


def _with_predicate(events: Any) -> list[Any]:
    """Return an event set, or the members of a union, that have a predicate."""
    sets = events.members if isinstance(events, Union) else (events,)
    return [one for one in sets if isinstance(one, Where) and one.predicate is not None]


def local_states(model: Model) -> tuple[tuple[str, int], ...]:
    """Return the number of local states of the b-threads of each name, most first."""
    return tuple(Counter(local.name for local in model.locals).most_common())


class Member(NamedTuple):
    """A b-thread in coverage: by name and, if several share it, arguments; started ones by name."""

    name: str
    outside: bool


def _members(model: Model) -> dict[Member, set[int]]:
    """Return the first local states of each b-thread."""
    alike: defaultdict[str, list[BThread]] = defaultdict(list)
    for bthread, _, _ in model.begun:
        alike[bthread.name].append(bthread)
    several = {name for name, bthreads in alike.items() if len(bthreads) > 1 and len(set(map(instance, bthreads))) > 1}
    members: defaultdict[Member, set[int]] = defaultdict(set)
    started = {new for local in model.locals for move in local.moves.values() for new in move.started}
    for bthread, outside, first in model.begun:
        own = [local for local in first[:1] if model.locals[local].name == bthread.name]
        for local in own:  # else it ended at once
            members[Member(instance(bthread) if bthread.name in several else bthread.name, outside)].add(local)
        started.update(first[len(own) :])
    for local in sorted(started):
        members[Member(model.locals[local].name, model.locals[local].outside)].add(local)
    return members


def _matches(events: Any, event: Event) -> bool:
    with suppress(BaseException):  # it may be the violation
        return contains(events, event)
    return False
