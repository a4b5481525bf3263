"""Which events can be selected in a global state: the rules of `BProgram`, over bit masks.

Internal events come first; when there are none, those that the environment promises and those that are possible. An
event that somebody blocks or refuses is not selectable. A request that is refused as a whole is answered by its
`otherwise`.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, Literal, NamedTuple

from bp.board import alternative_of, offers_of
from bp.events import Event
from bp.statements import Refusal, Refusals
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import LocalFailure
from bp.verification.masks import Masks, Row, bits

__all__ = ["ORIGINS", "Choice", "Offers", "Origin", "Selection"]

Origin = Literal["internal", "promised", "possible"]
ORIGINS: tuple[Origin, ...] = ("internal", "promised", "possible")
PART_OF_STATE = 8  # characters of a state that are looked up at once
MOST_PARTS = 50_000
PART = (1 << 16) - 1  # the choices of so many events are found at once


class Choice(NamedTuple):
    """One event that can be selected in a state; `advancing` (a mask) are the local states whose `otherwise` it is.

    `label` is its position in `Selection.met`.
    """

    event: int
    origin: Origin
    advancing: int
    label: int


class Offers(NamedTuple):
    """Who offers what in a state: `selectable` events by local state, and whose `otherwise` is which event."""

    selectable: dict[int, Sequence[int]]
    alternatives: dict[int, int]  # by event: the local states (a mask) whose current `otherwise` it is


class Selection:
    """What can be selected in the states of one program."""

    def __init__(self, masks: Masks, possible: Iterable[Event], in_order: bool) -> None:
        """Choose among all events, or, `in_order`, as the scheduler does."""
        self.masks = masks
        self.possible = tuple(map(masks.number, possible))
        self._possible = sum(1 << event for event in dict.fromkeys(self.possible))
        self._in_order = in_order
        self.met: list[Choice] = []
        self._labels: dict[tuple[int, Origin, int], int] = {}
        self._known: dict[Origin, dict[tuple[int, int], tuple[Choice, ...]]] = {origin: {} for origin in ORIGINS}
        self._parts: dict[str, Row] = {}
        self._events_met = 0  # the number of events for which `_parts` holds
        self._alternatives: dict[tuple[int, tuple[int, ...]], int] = {}

    def choices(self, state: str) -> tuple[int, tuple[Choice, ...]]:
        """Return the local states of a state as a mask, and what can be selected.

        Raises LocalFailure for a predicate or an `otherwise` that fails.
        """
        masks = self.masks
        if len(masks.rows) < len(masks.automaton.locals):
            masks.learn()
        if self._events_met != len(masks.events) or len(self._parts) > MOST_PARTS:
            self._events_met = len(masks.events)
            self._parts.clear()
        stopped = wanted = promised = present = 0
        for at in range(0, len(state), PART_OF_STATE):
            part = state[at : at + PART_OF_STATE]
            stops, wants, promises, bit = self._parts.get(part) or self._row(part)
            stopped |= stops
            wanted |= wants
            promised |= promises
            present |= bit
        if self._in_order or masks.failures:
            return present, self._choices_in_detail(state)
        inside, outside = wanted & ~stopped, promised & ~stopped
        alternatives: dict[int, int] = {}
        if present & masks.choosy:
            more_inside, more_outside = self._choosy_events(state, present, alternatives)
            inside, outside = inside | more_inside, outside | more_outside
            if masks.failures:  # of an event that was met just now
                return present, self._choices_in_detail(state)
        if inside:
            found = self._found(inside, "internal")
        else:
            found = self._found(outside, "promised") + self._found(self._possible & ~stopped, "possible")
        return present, self._with_alternatives(found, alternatives) if alternatives else found

    def _choosy_events(self, state: str, present: int, alternatives: dict[int, int]) -> tuple[int, int]:
        """Return as masks the events that choosy local states offer, internal and promised; note `alternatives`."""
        members = tuple(map(ord, state))
        refused = self._refused(members)
        inside = outside = 0
        for local in bits(present & self.masks.choosy):
            offered = self._offered(local, members, refused, alternatives)
            events = sum(1 << event for event in dict.fromkeys(offered))
            if self._is_environment(local):
                outside |= events
            else:
                inside |= events
        return inside, outside

    def _row(self, part: str) -> Row:
        """Return what a part of a state adds, which is remembered as long as no new event is met."""
        rows = [self.masks.rows[ord(character)] for character in part]
        self._parts[part] = found = Row(*(reduce(or_, column) for column in zip(*rows, strict=True)))
        return found

    def _found(self, events: int, origin: Origin) -> tuple[Choice, ...]:
        """Return the choices of the events in a mask; remembered for each part of it."""
        found: tuple[Choice, ...] = ()
        known = self._known[origin]
        at = 0
        while events:
            part = (at, events & PART)
            choices = known.get(part)
            if choices is None:
                choices = known[part] = self._choices((at + bit for bit in bits(events & PART)), origin)
            found += choices
            events >>= PART.bit_length()
            at += PART.bit_length()
        return found

    def _choices_in_detail(self, state: str) -> tuple[Choice, ...]:
        members = tuple(map(ord, state))
        offers = self.offers(state)
        inside = [local for local in offers.selectable if not self._is_environment(local)]
        if inside:
            return self._with_alternatives(
                self._choices(self._internal(inside, offers), "internal"), offers.alternatives
            )
        promised = [event for events in offers.selectable.values() for event in events]
        self.masks.check(self.possible, members)
        possible = [event for event in self.possible if self._is_free(members, event)]
        found = (*self._choices(promised, "promised"), *self._choices(possible, "possible"))
        return self._with_alternatives(found, offers.alternatives)

    def _refused(self, members: tuple[int, ...]) -> int:
        refuses = self.masks.refuses
        return reduce(or_, [refuses[local] for local in members], 0)

    def _internal(self, inside: list[int], offers: Offers) -> list[int]:
        """Return the internal events that may come: all of them, or the scheduler's one."""
        if self._in_order:
            return [offers.selectable[min(inside, key=self._turn)][0]]
        return [event for local in inside for event in offers.selectable[local]]

    def offering(self, state: str) -> frozenset[int]:
        """Return the local states that are owed something in a state: what they offer can be selected.

        The scheduler owes nothing to those whose turn it is not.
        """
        offers = self.offers(state).selectable
        inside = [local for local in offers if not self._is_environment(local)]
        if inside and self._in_order:
            chosen = offers[min(inside, key=self._turn)][0]
            return frozenset(local for local in inside if chosen in offers[local])
        return frozenset(inside or offers)

    def alternatives(self) -> set[tuple[int, int]]:
        """Return the events that were met as an `otherwise`, each as (local state, event)."""
        return {(local, event) for (local, _), event in self._alternatives.items()}

    def offers(self, state: str) -> Offers:
        """Return who offers what in a state, by age. Raises LocalFailure."""
        members = tuple(map(ord, state))
        masks = self.masks
        offers = Offers({}, {})
        refused = self._refused(members)
        for local in dict.fromkeys(members):
            if masks.requests[local]:
                events = self._offered(local, members, refused, offers.alternatives)
                if events:
                    offers.selectable[local] = events
        return offers

    # What one local state offers.

    def _offered(
        self, local: int, members: tuple[int, ...], refused: int, alternatives: dict[int, int]
    ) -> Sequence[int]:
        """Return the selectable events that a local state offers; note its `otherwise` while all is refused."""
        statement = self.masks.automaton.locals[local].statement
        requests = self.masks.requests[local]

        def is_refused(event: int) -> bool:
            self.masks.check((event,), members)
            return bool(refused >> event & 1)

        alternative = alternative_of(statement, requests, is_refused, lambda: self._alternative(local, members))
        if alternative is not None:
            alternatives[alternative] = alternatives.get(alternative, 0) | 1 << local
        return offers_of(statement, requests, alternative, lambda event: self._is_free(members, event))

    def _is_free(self, members: tuple[int, ...], event: int) -> bool:
        self.masks.check((event,), members)
        rows, bit = self.masks.rows, 1 << event
        return not any(rows[local].stops & bit for local in members)

    def _is_environment(self, local: int) -> bool:
        return self.masks.automaton.locals[local].environment

    def _turn(self, local: int) -> int:
        return -self.masks.automaton.locals[local].priority

    # `otherwise`.

    def _alternative(self, local: int, members: tuple[int, ...]) -> int:
        """Return the event that an `otherwise` gives; it must be the same for every order of refusals."""
        wanted = sum(1 << event for event in dict.fromkeys(self.masks.requests[local]))
        refuses = self.masks.refuses
        refusing = tuple([by for by in members if refuses[by] & wanted])
        key = (local, refusing)
        if key not in self._alternatives:
            found = self.masks.automaton.locals
            refusals = [Refusal(found[by].name, found[by].statement.because) for by in sorted(refusing, key=self._turn)]
            one, other = self._asked(found[local], refusals), self._asked(found[local], refusals[::-1])
            if one != other:
                raise VerificationError(
                    f"b-thread {found[local].name!r}: its otherwise depends on the order of the refusals, or on what "
                    "nobody can see: hidden state; sort them, or take them as a set"
                )
            self._alternatives[key] = one
        return self._alternatives[key]

    def _asked(self, found: Any, refusals: list[Refusal]) -> int:
        try:
            with self.masks.automaton.purity.watched(found.name):
                event = found.statement.otherwise(Refusals(refusals))
        except VerificationError:
            raise
        except Exception as error:
            raise LocalFailure(found.name, error) from error
        if not isinstance(event, Event):
            raise LocalFailure(found.name, TypeError(f"its otherwise gave {event!r}; it must give an event"))
        return self.masks.number(event)

    def _with_alternatives(self, choices: tuple[Choice, ...], alternatives: dict[int, int]) -> tuple[Choice, ...]:
        """Add whose `otherwise` the events of some choices are, by `==` as always."""
        events = self.masks.events
        found = []
        for choice in choices:
            advancing = 0
            for alternative, locals_ in alternatives.items():
                if events[choice.event] == events[alternative]:
                    advancing |= locals_
            found.append(self._choice(choice.event, choice.origin, advancing) if advancing else choice)
        return tuple(found)

    def _choices(self, events: Iterable[int], origin: Origin) -> tuple[Choice, ...]:
        return tuple(self._choice(event, origin, 0) for event in dict.fromkeys(events))

    def _choice(self, event: int, origin: Origin, advancing: int) -> Choice:
        """Return the one object for a choice."""
        key = (event, origin, advancing)
        if key not in self._labels:
            self._labels[key] = len(self.met)
            self.met.append(Choice(event, origin, advancing, len(self.met)))
        return self.met[self._labels[key]]
