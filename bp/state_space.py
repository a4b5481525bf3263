"""The global states of a program, and the steps between them, over small integers.

A global state is a text: one character for each living b-thread, whose code point numbers its local state. With
`order="any"` it is sorted (a multiset); with `order="run"` it stands by age. What a local state blocks, refuses and
requests is a bit mask over the events met so far; a step translates the text by the table of its event. The rules of
a step are those of `BProgram`: which events are selectable, which `otherwise` stands in, and who advances.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from bp.automaton import Automaton, LocalFailure, Move
from bp.bthreads import BThread
from bp.event_sets import PredicateError, contains
from bp.events import Event
from bp.fingerprint import VerificationError, fingerprint_of_value
from bp.statements import Refusal, Refusals

__all__ = ["Choice", "Selectable", "StateSpace"]

Origin = Literal["internal", "promised", "possible"]
NOBODY: frozenset[int] = frozenset()


class Choice(NamedTuple):
    """One event that can be selected in a state; `advancing` are the local states whose `otherwise` it is."""

    event: int
    origin: Origin
    advancing: frozenset[int]


class Selectable(NamedTuple):
    """What can be selected in a state: internal events if there are any, else promised and possible ones.

    `offering` are the local states that offer a selectable event, `blocked` those that request and cannot have it
    (the environment's left out).
    """

    choices: tuple[Choice, ...]
    offering: frozenset[int]
    blocked: frozenset[int]


class Table(dict[int, str | int]):
    """The moves on one event: which text takes the place of a local state. Filled as states are met."""

    def __init__(self, space: "StateSpace", event: int) -> None:
        super().__init__()
        self._space = space
        self._event = event

    def __missing__(self, local: int) -> str | int:
        """Find the place of `local` after the event. Raises LocalFailure."""
        replaced = self._space.replacement(local, self._event) if self._space.concerns(local, self._event) else local
        self[local] = replaced
        return replaced


class StateSpace:
    """The states of one program with its environment."""

    def __init__(
        self, bthreads: Sequence[BThread], environment: Sequence[BThread], possible: Iterable[Event], in_order: bool
    ) -> None:
        """Make the space. Raises LocalFailure for a b-thread that fails at its start, and VerificationError."""
        self.automaton = Automaton()
        self.events: list[Event] = []
        self._looks: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._in_order = in_order
        self._blocks: list[int] = []  # for each local state: a mask of the events it blocks
        self._refuses: list[int] = []
        self._poison: dict[tuple[int, int], LocalFailure] = {}  # predicates that failed, by local state and event
        self._requests: list[tuple[int, ...]] = []
        self._tables: list[Table] = []
        self._alternatives: dict[tuple[int, tuple[int, ...]], int] = {}
        self.possible = [self.number(event) for event in possible]
        start = self.automaton.begin([(bthread, 0) for bthread in bthreads], environment=False)
        promised = self.automaton.begin([(bthread, 0) for bthread in environment], environment=True)
        self.initial = self._joined("", (start, promised))

    def number(self, event: Event) -> int:
        """Return the number of an event."""
        look = fingerprint_of_value(event)
        number = self._numbers.get(look)
        if number is None:
            number = self._numbers[look] = len(self.events)
            self.events.append(event)
            self._looks.append(look)
            self._tables.append(Table(self, number))
            for local in range(len(self._blocks)):
                self._mark(local, number)
        return number

    def selectable(self, state: str) -> Selectable:
        """Return what can be selected in `state`. Raises LocalFailure for a predicate or `otherwise` that fails."""
        members = [ord(character) for character in state]
        blocked = refused = 0
        for local in members:
            if local >= len(self._blocks):
                self._learn_locals()
            blocked |= self._blocks[local]
            refused |= self._refuses[local]
        offers: dict[int, tuple[int, ...]] = {}
        alternatives: dict[int, set[int]] = {}
        for local in dict.fromkeys(members):
            if self._requests[local]:
                offers[local] = self._offers(local, members, blocked, refused, alternatives)
        return self._sorted_out(members, offers, alternatives, blocked | refused)

    def successor(self, state: str, choice: Choice) -> str:
        """Return the state after an event. Raises LocalFailure when a b-thread fails on it."""
        table = self._tables[choice.event]
        if not choice.advancing and not self._in_order:
            return "".join(sorted(state.translate(table)))
        kept, started = [], []
        for local in self._by_turn(state):
            concerned = local in choice.advancing or self.concerns(local, choice.event)
            move = self.move(local, choice.event) if concerned else Move(local)
            kept.append((local, move.local))
            started.append(move.started)
        return self._joined(self._survivors(state, dict(kept)), started)

    def _survivors(self, state: str, moved: dict[int, int | None]) -> str:
        places = (moved[ord(character)] for character in state)
        return "".join(chr(place) for place in places if place is not None)

    def _by_turn(self, state: str) -> list[int]:
        """Return the members in the order in which they resume: by priority, then by age."""
        members = [ord(character) for character in state]
        return sorted(members, key=lambda local: -self.automaton.locals[local].priority) if self._in_order else members

    def _joined(self, kept: str, started: Iterable[tuple[tuple[int, ...], ...]]) -> str:
        """Add started b-threads to those kept: generation by generation, in the order of their starters."""
        groups = list(started)
        deepest = max((len(generations) for generations in groups), default=0)
        new = "".join(
            chr(local)
            for depth in range(deepest)
            for generations in groups
            if depth < len(generations)
            for local in generations[depth]
        )
        return kept + new if self._in_order else "".join(sorted(kept + new))

    def concerns(self, local: int, event: int) -> bool:
        """Tell whether an event concerns a local state: requested, waited for, or interrupting."""
        found = self.automaton.locals[local]
        statement = found.statement
        if any(self.events[event] == self.events[requested] for requested in self._requests[local]):
            return True
        try:
            return any(
                events is not None and contains(events, self.events[event])
                for events in (statement.wait_for, statement.interrupt)
            )
        except PredicateError as error:
            raise LocalFailure(found.name, error) from error

    def move(self, local: int, event: int) -> Move:
        """Return where an event takes a local state that it concerns. Raises LocalFailure."""
        return self.automaton.move(local, self.events[event], self._looks[event])

    def replacement(self, local: int, event: int) -> str:
        """Return the text that takes the place of a local state."""
        move = self.move(local, event)
        started = "".join(chr(child) for generation in move.started for child in generation)
        return started if move.local is None else chr(move.local) + started

    def names(self, locals_: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the b-threads at local states."""
        return tuple(self.automaton.locals[local].name for local in locals_)

    def is_hot(self, local: int) -> bool:
        """Tell whether the b-thread must not stay at this local state."""
        return self.automaton.locals[local].statement.hot

    def blockers(self, state: str, event: Event) -> tuple[tuple[str, Any], ...]:
        """Return who blocks or refuses an event in a state, and why."""
        found = []
        for local in map(ord, state):
            statement, name = self.automaton.locals[local].statement, self.automaton.locals[local].name
            if statement.refuse is not None and contains(statement.refuse, event):
                found.append((name, statement.because))
            elif statement.block is not None and contains(statement.block, event):
                found.append((name, None))
        return tuple(dict.fromkeys(found))

    # What is selectable.

    def _offers(
        self, local: int, members: list[int], blocked: int, refused: int, alternatives: dict[int, set[int]]
    ) -> tuple[int, ...]:
        """Return the selectable events that a local state offers; note its `otherwise` while all is refused."""
        statement = self.automaton.locals[local].statement
        requests = self._requests[local]
        self._check_poison(members, requests)
        free = tuple(event for event in requests if not (blocked | refused) >> event & 1)
        if free:
            return free if statement.any_of else free[:1]
        if statement.otherwise is None or not all(refused >> event & 1 for event in requests):
            return ()
        alternative = self._alternative(local, members, requests)
        self._check_poison(members, (alternative,))
        alternatives.setdefault(alternative, set()).add(local)
        return (alternative,) if self._is_free(members, alternative) else ()

    def _is_free(self, members: list[int], event: int) -> bool:
        return not any((self._blocks[local] | self._refuses[local]) >> event & 1 for local in members)

    def _alternative(self, local: int, members: list[int], requests: tuple[int, ...]) -> int:
        """Return the event that an `otherwise` gives; it must be the same for every order of refusals."""
        refusing = tuple(by for by in members if any(self._refuses[by] >> event & 1 for event in requests))
        key = (local, refusing if self._in_order else tuple(sorted(refusing)))
        if key not in self._alternatives:
            found = self.automaton.locals[local]
            refusals = [Refusal(self.automaton.locals[by].name, self.automaton.locals[by].statement.because)
                        for by in self._by_turn_of(refusing)]  # fmt: skip
            one, other = self._asked(found, refusals), self._asked(found, refusals[::-1])
            if one != other:
                raise VerificationError(
                    f"b-thread {found.name!r}: its otherwise depends on the order of the refusals; "
                    "sort them, or take them as a set"
                )
            self._alternatives[key] = one
        return self._alternatives[key]

    def _by_turn_of(self, refusing: tuple[int, ...]) -> list[int]:
        return sorted(refusing, key=lambda local: -self.automaton.locals[local].priority)

    def _asked(self, found: Any, refusals: list[Refusal]) -> int:
        try:
            event = found.statement.otherwise(Refusals(refusals))
        except Exception as error:
            raise LocalFailure(found.name, error) from error
        if not isinstance(event, Event):
            raise LocalFailure(found.name, TypeError(f"its otherwise gave {event!r}; it must give an event"))
        return self.number(event)

    def _sorted_out(
        self, members: list[int], offers: dict[int, tuple[int, ...]], alternatives: dict[int, set[int]], stopped: int
    ) -> Selectable:
        locals_ = self.automaton.locals
        inside = [local for local in offers if offers[local] and not locals_[local].environment]
        if inside:
            choices = tuple(self._choices(self._selected(members, inside, offers), "internal", alternatives))
            return Selectable(choices, frozenset(inside), frozenset())
        promising = [local for local in offers if offers[local]]
        promised = list(
            self._choices((event for local in promising for event in offers[local]), "promised", alternatives)
        )
        free = [event for event in self.possible if self._is_free_unasked(members, event, stopped)]
        possible = list(self._choices(free, "possible", alternatives))
        blocked = frozenset(local for local in offers if not offers[local] and not locals_[local].environment)
        return Selectable((*promised, *possible), frozenset(promising), blocked)

    def _is_free_unasked(self, members: list[int], event: int, stopped: int) -> bool:
        self._check_poison(members, (event,))
        return not stopped >> event & 1

    def _selected(self, members: list[int], inside: list[int], offers: dict[int, tuple[int, ...]]) -> Iterator[int]:
        """Yield the internal events that may come: all of them, or the scheduler's one."""
        if self._in_order:
            yield offers[next(local for local in self._by_turn("".join(map(chr, members))) if local in inside)][0]
            return
        for local in inside:
            yield from offers[local]

    def _choices(self, events: Iterable[int], origin: Origin, alternatives: dict[int, set[int]]) -> Iterator[Choice]:
        for event in dict.fromkeys(events):
            yield Choice(event, origin, self._advancing(event, alternatives) if alternatives else NOBODY)

    def _advancing(self, event: int, alternatives: dict[int, set[int]]) -> frozenset[int]:
        """Return the local states whose `otherwise` an event is, by `==` as always."""
        matching = [locals_ for other, locals_ in alternatives.items() if self.events[other] == self.events[event]]
        return frozenset(local for locals_ in matching for local in locals_)

    # Masks, kept complete: every known local state against every known event.

    def _learn_locals(self) -> None:
        while len(self._blocks) < len(self.automaton.locals):
            local = len(self._blocks)
            statement = self.automaton.locals[local].statement
            self._blocks.append(0)
            self._refuses.append(0)
            self._requests.append(())
            self._requests[local] = tuple(self.number(event) for event in statement.requests)
            for event in range(len(self.events)):
                self._mark(local, event)

    def _mark(self, local: int, event: int) -> None:
        statement = self.automaton.locals[local].statement
        try:
            if statement.block is not None and contains(statement.block, self.events[event]):
                self._blocks[local] |= 1 << event
            if statement.refuse is not None and contains(statement.refuse, self.events[event]):
                self._refuses[local] |= 1 << event
        except PredicateError as error:
            self._poison[local, event] = LocalFailure(self.automaton.locals[local].name, error)

    def _check_poison(self, members: list[int], events: Iterable[int]) -> None:
        if self._poison:
            for event in events:
                for local in members:
                    if (local, event) in self._poison:
                        raise self._poison[local, event]
