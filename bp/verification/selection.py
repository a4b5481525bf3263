"""Which events can be selected in a global state: the rules of `BProgram`, over bit masks.

Internal events come first; when there are none, those that the environment promises and those that are possible. An
event that somebody blocks or refuses is not selectable. A request that is refused as a whole is answered by its
`otherwise`.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from bp.events import Event
from bp.statements import Refusal, Refusals
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import LocalFailure
from bp.verification.masks import Masks, bits

__all__ = ["ORIGINS", "Choice", "Offers", "Origin", "Selection"]

Origin = Literal["internal", "promised", "possible"]
ORIGINS: tuple[Origin, ...] = ("internal", "promised", "possible")
PART = (1 << 16) - 1  # the choices of so many events are found at once


class Choice(NamedTuple):
    """One event that can be selected in a state; `advancing` (a mask) are the local states whose `otherwise` it is.

    `label` holds event and origin in one number.
    """

    event: int
    origin: Origin
    advancing: int
    label: int


class Offers(NamedTuple):
    """Who offers what in a state: `selectable` events by local state, and whose `otherwise` is which event."""

    selectable: dict[int, tuple[int, ...]]
    alternatives: dict[int, int]  # by event: the local states (a mask) whose current `otherwise` it is


class Selection:
    """What can be selected in the states of one program."""

    def __init__(self, masks: Masks, possible: Iterable[Event], in_order: bool) -> None:
        """Choose among all events, or, `in_order`, as the scheduler does."""
        self.masks = masks
        self.possible = tuple(map(masks.number, possible))
        self._possible = sum(1 << event for event in dict.fromkeys(self.possible))
        self._in_order = in_order
        self._choices: dict[Origin, dict[tuple[int, int], tuple[Choice, ...]]] = {origin: {} for origin in ORIGINS}
        self._alternatives: dict[tuple[int, tuple[int, ...]], int] = {}

    def choices(self, state: str) -> tuple[int, tuple[Choice, ...]]:
        """Return the local states of a state as a mask, and what can be selected.

        Raises LocalFailure for a predicate or an `otherwise` that fails.
        """
        masks = self.masks
        if len(masks.rows) < len(masks.automaton.locals):
            masks.learn()
        rows = masks.rows
        stopped = wanted = promised = present = 0
        for local in map(ord, state):
            stops, wants, promises, bit = rows[local]
            stopped |= stops
            wanted |= wants
            promised |= promises
            present |= bit
        if self._in_order or present & masks.choosy or masks.failures:
            return present, self._choices_in_detail(state)
        free = wanted & ~stopped
        if free:
            return present, self._found(free, "internal")
        outside = self._found(promised & ~stopped, "promised")
        return present, outside + self._found(self._possible & ~stopped, "possible")

    def _found(self, events: int, origin: Origin) -> tuple[Choice, ...]:
        """Return the choices of the events in a mask; remembered for each part of it."""
        found: tuple[Choice, ...] = ()
        known = self._choices[origin]
        at = 0
        while events:
            part = (at, events & PART)
            choices = known.get(part)
            if choices is None:
                choices = known[part] = _choices((at + bit for bit in bits(events & PART)), origin, {})
            found += choices
            events >>= PART.bit_length()
            at += PART.bit_length()
        return found

    def _choices_in_detail(self, state: str) -> tuple[Choice, ...]:
        members = tuple(map(ord, state))
        offers = self.offers(state)
        inside = [local for local in offers.selectable if not self._is_environment(local)]
        if inside:
            return _choices(self._internal(inside, offers), "internal", self._by_equality(offers))
        promised = [event for events in offers.selectable.values() for event in events]
        self.masks.check(self.possible, members)
        possible = [event for event in self.possible if self._is_free(members, event)]
        equal = self._by_equality(offers)
        return (*_choices(promised, "promised", equal), *_choices(possible, "possible", equal))

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

    def blocked(self, state: str) -> tuple[int, ...]:
        """Return the local states, of others than the environment, that request and can have nothing."""
        offers = self.offers(state).selectable
        return tuple(
            local
            for local in dict.fromkeys(map(ord, state))
            if self.masks.requests[local] and local not in offers and not self._is_environment(local)
        )

    def offers(self, state: str) -> Offers:
        """Return who offers what in a state, by age. Raises LocalFailure."""
        members = tuple(map(ord, state))
        masks = self.masks
        offers = Offers({}, {})
        stopped = refused = 0
        for local in members:
            stopped |= masks.rows[local].stops
            refused |= masks.refuses[local]
        for local in dict.fromkeys(members):
            if masks.requests[local]:
                events = self._offered(local, members, stopped, refused, offers.alternatives)
                if events:
                    offers.selectable[local] = events
        return offers

    # What one local state offers.

    def _offered(
        self, local: int, members: tuple[int, ...], stopped: int, refused: int, alternatives: dict[int, int]
    ) -> tuple[int, ...]:
        """Return the selectable events that a local state offers; note its `otherwise` while all is refused."""
        statement = self.masks.automaton.locals[local].statement
        requests = self.masks.requests[local]
        free = []
        for event in requests:
            if self.masks.failures:
                self.masks.check((event,), members)
            if not stopped >> event & 1:
                free.append(event)
                if not statement.any_of:
                    break
        if free or statement.otherwise is None or not all(refused >> event & 1 for event in requests):
            return tuple(free)
        alternative = self._alternative(local, members)
        alternatives[alternative] = alternatives.get(alternative, 0) | 1 << local
        return (alternative,) if self._is_free(members, alternative) else ()

    def _is_free(self, members: tuple[int, ...], event: int) -> bool:
        self.masks.check((event,), members)
        rows = self.masks.rows
        return not any(rows[local].stops >> event & 1 for local in members)

    def _is_environment(self, local: int) -> bool:
        return self.masks.automaton.locals[local].environment

    def _turn(self, local: int) -> int:
        return -self.masks.automaton.locals[local].priority

    # `otherwise`.

    def _alternative(self, local: int, members: tuple[int, ...]) -> int:
        """Return the event that an `otherwise` gives; it must be the same for every order of refusals."""
        wanted = sum(1 << event for event in dict.fromkeys(self.masks.requests[local]))
        refusing = tuple(by for by in members if self.masks.refuses[by] & wanted)
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

    def _by_equality(self, offers: Offers) -> dict[int, int]:
        """Return whose `otherwise` an event is, by `==` as always: by the number of each equal event."""
        events = self.masks.events
        equal: dict[int, int] = {}
        if not offers.alternatives:
            return equal
        for alternative, locals_ in offers.alternatives.items():
            for number in self._selectable_numbers(offers):
                if events[number] == events[alternative]:
                    equal[number] = equal.get(number, 0) | locals_
        return equal

    def _selectable_numbers(self, offers: Offers) -> set[int]:
        return {*self.possible, *(event for events in offers.selectable.values() for event in events)}


def _choices(events: Iterable[int], origin: Origin, advancing: dict[int, int]) -> tuple[Choice, ...]:
    at = ORIGINS.index(origin)
    return tuple(
        Choice(event, origin, advancing.get(event, 0), event * len(ORIGINS) + at) for event in dict.fromkeys(events)
    )
