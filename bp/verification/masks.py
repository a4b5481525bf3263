"""What local states say about events, as bit masks: numbers of events and of local states are positions in them.

Kept complete: every known local state was asked about every known event. Who blocks, refuses, requests or hears an
event in a global state is then a matter of `|` and `&`.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bp.event_sets import PredicateError, contains
from bp.events import Event
from bp.verification.fingerprint import fingerprint_of_value
from bp.verification.local_states import Automaton, LocalFailure
from bp.verification.purity import check_event

__all__ = ["Masks", "Row", "bits"]


class Row(NamedTuple):
    """What one local state adds to a global one.

    `stops`: the events that it blocks or refuses. `wants`: those that it requests, where it takes any of them and
    knows no `otherwise`; `promises`: the same of the environment. `bit`: itself.
    """

    stops: int
    wants: int
    promises: int
    bit: int


class Masks:
    """The events that a program has met, and what its local states say about them."""

    def __init__(self, automaton: Automaton) -> None:
        """Begin without events; `automaton` has the local states."""
        self.automaton = automaton
        self.events: list[Event] = []
        self.rows: list[Row] = []
        self.requests: list[tuple[int, ...]] = []
        self.blocks: list[int] = []  # by local state: events
        self.refuses: list[int] = []  # by local state: events
        self.concerned: list[int] = []  # by event: local states that it advances or interrupts
        self.choosy = 0  # the local states whose requests depend on more than being free: see `Row.wants`
        self.failures: dict[tuple[int, int], LocalFailure] = {}  # predicates that failed, by local state and event
        self.unsure: dict[tuple[int, int], LocalFailure] = {}  # the same, of wait_for and interrupt
        self._numbers: dict[Any, int] = {}

    def number(self, event: Event) -> int:
        """Return the number of an event. Raises VerificationError for one that carries what can change."""
        look = fingerprint_of_value(event)
        number = self._numbers.get(look)
        if number is None:
            check_event(event)
            number = self._numbers[look] = len(self.events)
            self.events.append(event)
            self.concerned.append(0)
            for local in range(len(self.rows)):
                self._mark(local, number)
        return number

    def learn(self) -> None:
        """Ask the local states that are new."""
        for local in range(len(self.rows), len(self.automaton.locals)):
            self.blocks.append(0)
            self.refuses.append(0)
            self.requests.append(())
            self.rows.append(Row(0, 0, 0, 1 << local))
            self.requests[local] = tuple(map(self.number, self.automaton.locals[local].statement.requests))
            self.rows[local] = self._row(local)
            for event in range(len(self.events)):
                self._mark(local, event)

    def advancing(self, event: int, among: int) -> int:
        """Return which of the local states `among` (a mask) an event advances or interrupts. Raises LocalFailure."""
        if self.unsure:
            self._raise_first(self.unsure, (event,), bits(among))
        return self.concerned[event] & among

    def check(self, events: Iterable[int], members: Iterable[int]) -> None:
        """Raise LocalFailure when the answer of a member about one of `events` is an error."""
        if self.failures:
            self._raise_first(self.failures, events, members)

    def _raise_first(
        self, failures: dict[tuple[int, int], LocalFailure], events: Iterable[int], members: Iterable[int]
    ) -> None:
        members = tuple(members)
        for event in events:
            for local in members:
                if (local, event) in failures:
                    raise failures[local, event]

    def _mark(self, local: int, event: int) -> None:
        """Ask a local state about an event."""
        statement = self.automaton.locals[local].statement
        bit = 1 << event
        if self._asked(self.failures, local, event, statement.block):
            self.blocks[local] |= bit
        if self._asked(self.failures, local, event, statement.refuse):
            self.refuses[local] |= bit
        requested = any(event == other or self.events[event] == self.events[other] for other in self.requests[local])
        waits = self._asked(self.unsure, local, event, statement.wait_for)  # asked in any case: `run` asks, too
        interrupted = self._asked(self.unsure, local, event, statement.interrupt)
        if requested or waits or interrupted:
            self.concerned[event] |= 1 << local
        stops = self.blocks[local] | self.refuses[local]
        if stops != self.rows[local].stops:
            self.rows[local] = self.rows[local]._replace(stops=stops)

    def _asked(self, failures: dict[tuple[int, int], LocalFailure], local: int, event: int, events: Any) -> bool:
        if events is None:
            return False
        name = self.automaton.locals[local].name
        try:
            if all(test is None for _, _, _, test in events._rows):
                return contains(events, self.events[event])  # no code of a b-thread: nothing to watch
            with self.automaton.purity.watched(name):
                return contains(events, self.events[event])
        except PredicateError as error:
            failures[local, event] = LocalFailure(name, error)
            return False

    def _row(self, local: int) -> Row:
        """Return what a new local state adds, which was not asked about any event yet."""
        found = self.automaton.locals[local]
        statement, requests = found.statement, self.requests[local]
        wants = 0
        if statement.otherwise is not None or (len(requests) > 1 and not statement.any_of):
            self.choosy |= 1 << local
        else:
            wants = sum(1 << event for event in dict.fromkeys(requests))
        promises, wants = (wants, 0) if found.environment else (0, wants)
        return Row(0, wants, promises, 1 << local)


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones in a mask, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
