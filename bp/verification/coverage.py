"""Coverage: what a verification never came to, and so says nothing about.

A program that never rests never hears its environment; a rule that waits for an event which no b-thread ever requests
is never asked. Nothing is wrong with such a program, and nothing was verified. A *candidate* in a state is an event
that a b-thread requests there, selectable or not; what comes from outside is one only where nothing internal can be
selected. A b-thread is *reached* when it advances, or when a candidate is in one of its event sets: so a guard is
reached when it has an event to block, and a monitor of an event that must not happen when a b-thread requests it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from attrs import frozen

from bp.event_sets import PredicateError, contains
from bp.events import Event
from bp.statements import BThread
from bp.verification.counterexamples import instance, shown, shown_set
from bp.verification.local_states import LocalFailure
from bp.verification.masks import bits
from bp.verification.state_space import StateSpace

__all__ = ["Coverage", "coverage_of", "local_states"]

MOST = 10  # of what is told in one line


@frozen
class Coverage:
    """What a verification never came to, by name; instances of one function are told apart by their arguments.

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
    """Who requests an event, as characters of states; `possible`: it may come from outside unrequested."""

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
    counted: dict[str, int] = defaultdict(int)
    for local in space.automaton.locals:
        counted[local.name] += 1
    return tuple(sorted(counted.items(), key=lambda item: -item[1]))


class Candidates:
    """The candidates of the states that were looked at."""

    def __init__(self, space: StateSpace, states: Collection[str]) -> None:
        """Note who requests which event."""
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
        """Tell whether an event set contains an event that is ever requested or possible."""
        return any(_contains(events, self._space.masks.events[event]) for event in self._requesters)

    def met(self, questions: Iterable[Question]) -> set[Any]:
        """Return what those questions are about that are answered yes in some state."""
        waiting: dict[str, list[tuple[Any, Requesters]]] = defaultdict(list)
        anyone: dict[str, set[str]] = defaultdict(set)  # by character: all who request what its questions are about
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


Who = tuple[str, bool]  # name of a b-thread, and whether it is of the environment
Word = tuple[str, str, str]  # name of a b-thread, a word of `sync`, and its event set as text


def _visited(space: StateSpace, states: Iterable[str]) -> frozenset[int]:
    """Return the local states that occur in some states."""
    characters: set[str] = set()
    for state in states:
        characters.update(state)
        if len(characters) == len(space.automaton.locals):
            break
    return frozenset(map(ord, characters))


def _members(space: StateSpace) -> dict[Who, set[int]]:
    """Return the first local states of each b-thread: those that were given one by one, those started by name."""
    members: defaultdict[Who, set[int]] = defaultdict(set)
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


def _join(space: StateSpace, members: defaultdict[Who, set[int]], started: Iterable[int]) -> None:
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


def _about_bthreads(space: StateSpace, idle: dict[Who, set[int]]) -> Iterable[Question]:
    """Ask whether the b-threads that never advanced were reached all the same."""
    for who, locals_ in idle.items():
        for local in locals_:
            concerning = sum(1 << event for event, mask in enumerate(space.masks.concerned) if mask >> local & 1)
            own = sum(1 << event for event in dict.fromkeys(space.masks.requests[local]))
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
    return any(_contains(events, space.masks.events[event]) for event in numbers)


def _contains(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError:
        return False


def _listed(found: tuple[str, ...]) -> str:
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more
