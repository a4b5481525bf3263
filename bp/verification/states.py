"""Bit masks of the statements of local states: numbers of events and of local states are positions in them.

Invariant: every known local state was evaluated for every known event. The local states that block, refuse, request or
wait for an event in a global state are then found by `|` and `&`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, zip_longest
from operator import or_
from typing import Any, Literal, NamedTuple

from attrs import define, field

from bp.board import alternative_of, offers_of
from bp.events import Event, contains
from bp.statements import BThread, Refusal, Refusals
from bp.verification.fingerprint import VerificationError, fingerprint_of_value
from bp.verification.local_states import MOST_LOCALS, Automaton
from bp.verification.purity import LocalFailure, check_event


class Row(NamedTuple):
    """The contribution of one local state to a global one, as masks of events.

    `stops`: the events that it blocks or refuses. `wants`: those that it requests by `any_of` or alone, without
    `otherwise`; `promises`: the same of the environment. `bit`: itself. `asks`: all its requests; `announces`: the same
    of the environment.
    """

    stops: int
    wants: int
    promises: int
    bit: int
    asks: int = 0
    announces: int = 0


@define(eq=False)
class AskedSet:
    """An event set of one b-thread: the events that it contains, and those that its predicate fails on.

    A request is the set of the events equal to it.
    """

    name: str  # of the b-thread
    events: Any
    runs_code: bool
    users: dict[str, int] = field(factory=dict)  # by word: local states (a mask)
    contained: int = 0
    failures: dict[int, LocalFailure] = field(factory=dict)


class Masks:
    """The events that a program has met, with the statements of its local states about them."""

    def __init__(self, automaton: Automaton) -> None:
        """Begin without events; `automaton` has the local states."""
        self.automaton = automaton
        self.events: list[Event] = []
        self.rows: list[Row] = []
        self.changed = 0  # local states (a mask) with changed rows, since they stop a new event; see `Selection`
        self.requests: list[tuple[int, ...]] = []
        self.blocks: list[int] = []  # by local state: events
        self.refuses: list[int] = []  # by local state: events
        self.refusing = 0  # the local states (a mask) that refuse any event
        self.concerned: list[int] = []  # by event: local states that it advances or interrupts
        self.choosy = 0  # the local states whose requests depend on more than being free: see `Row.wants`
        self.failures: dict[tuple[int, int], LocalFailure] = {}  # predicates that failed, by local state and event
        self.unsure: dict[tuple[int, int], LocalFailure] = {}  # the same, of wait_for and interrupt
        self._numbers: dict[Any, int] = {}
        self._sets: dict[tuple[str, Any], AskedSet] = {}  # by b-thread and fingerprint
        self._sets_by_kind: defaultdict[Any, list[AskedSet]] = defaultdict(list)  # None: of all kinds
        self._events_by_kind: defaultdict[Any, list[int]] = defaultdict(list)

    def number(self, event: Event) -> int:
        """Return the number of an event. Raises VerificationError for one with a mutable value."""
        look = fingerprint_of_value(event)
        number = self._numbers.get(look)
        if number is None:
            check_event(event)
            number = self._numbers[look] = len(self.events)
            self.events.append(event)
            self.concerned.append(0)
            for kind in (None, *event._kinds):
                self._events_by_kind[kind].append(number)
            for asked in dict.fromkeys(chain.from_iterable(map(self._sets_by_kind.__getitem__, (None, *event._kinds)))):
                self._ask(asked, number)
                for word, users in asked.users.items():
                    self._say(word, users, 1 << number, asked)
        return number

    def learn(self) -> None:
        """Evaluate the statements of new local states."""
        for local in range(len(self.rows), len(self.automaton.locals)):
            found = self.automaton.locals[local]
            self.blocks.append(0)
            self.refuses.append(0)
            self.requests.append(())
            self.rows.append(Row(0, 0, 0, 1 << local))
            self.requests[local] = tuple(map(self.number, found.statement.requests))
            self.rows[local] = self._row(local)
            sets = [(word, getattr(found.statement, word)) for word in ("block", "refuse", "wait_for", "interrupt")]
            for word, events in (*(("request", event) for event in found.statement.requests), *sets):
                if events is not None:
                    asked = self._asked(found.name, events)
                    asked.users[word] = asked.users.get(word, 0) | 1 << local
                    self._say(word, 1 << local, -1, asked)

    def advancing(self, event: int, among: int) -> int:
        """Return which of the local states `among` (a mask) an event advances or interrupts. Raises LocalFailure."""
        if self.unsure:
            self._raise_first(self.unsure, (event,), bits(among))
        return self.concerned[event] & among

    def check(self, events: Iterable[int], members: Iterable[int]) -> None:
        """Raise LocalFailure if a predicate of a member failed on one of `events`."""
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

    def _say(self, word: str, users: int, events: int, asked: AskedSet) -> None:
        """Record the events in a parameter of local states (a mask)."""
        if word in ("request", "wait_for", "interrupt"):
            for event in bits(events & asked.contained):
                self.concerned[event] |= users
        failed = [event for event in asked.failures if events >> event & 1]
        failures = self.failures if word in ("block", "refuse") else self.unsure
        for local in bits(users):
            if word in ("block", "refuse") and events & asked.contained:
                stops = self.blocks if word == "block" else self.refuses
                stops[local] |= events & asked.contained
                self.refusing |= (word == "refuse") << local
                self.rows[local] = self.rows[local]._replace(stops=self.blocks[local] | self.refuses[local])
                self.changed |= 1 << local
            for event in failed:
                failures[local, event] = asked.failures[event]

    def _asked(self, name: str, events: Any) -> AskedSet:
        """Return an event set, evaluated for all known events."""
        key = (name, fingerprint_of_value(events))
        asked = self._sets.get(key)
        if asked is None:
            rows = events._rows
            asked = self._sets[key] = AskedSet(name, events, any(test is not None for _, _, _, test in rows))
            for kind in dict.fromkeys(kind for _, kind, _, _ in rows):
                self._sets_by_kind[kind].append(asked)
                for event in self._events_by_kind[kind]:
                    self._ask(asked, event)
        return asked

    def _ask(self, asked: AskedSet, number: int) -> None:
        """Evaluate an event set for an event; `wait_for` and `interrupt` always, as `run` does."""
        event = self.events[number]
        if not asked.runs_code:  # no predicate to watch
            asked.contained |= contains(asked.events, event) << number
            return
        try:
            asked.contained |= self.automaton.purity.call(asked.name, contains, asked.events, event) << number
        except LocalFailure as failure:
            asked.failures[number] = failure

    def _row(self, local: int) -> Row:
        """Return the row of a new local state, before any evaluation."""
        found = self.automaton.locals[local]
        statement, requests = found.statement, self.requests[local]
        wants = asks = mask_of(requests)
        if statement.otherwise is not None or (len(requests) > 1 and not statement.any_of):
            self.choosy |= 1 << local
            wants = 0
        return Row(0, 0, wants, 1 << local, 0, asks) if found.environment else Row(0, wants, 0, 1 << local, asks)


def mask_of(positions: Iterable[int]) -> int:
    """Return a mask with ones at some positions."""
    return sum(1 << position for position in set(positions))


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones in a mask, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


# Which events can be selected in a global state: the rules of `BProgram`, over bit masks.

Origin = Literal["internal", "promised", "possible"]
PART_OF_STATE = 6  # characters of a state looked up together
MOST_PARTS = 50_000
PART = 16  # events whose choices are found together: a power of 2


class Choice(NamedTuple):
    """One event that can be selected in a state; `advancing` (a mask) are the local states whose `otherwise` it is.

    `label` is its position in `Selection.met`.
    """

    event: int
    origin: Origin
    advancing: int
    label: int


Alternatives = tuple[tuple[int, int], ...]  # each an event, and the local states (a mask) whose `otherwise` it is


class ChoosyEvents(NamedTuple):
    """The events (masks) that choosy local states offer in a state, and the current alternatives."""

    inside: int
    outside: int
    alternatives: Alternatives


class Offers(NamedTuple):
    """The offers of a state: `selectable` events by local state, and the current alternatives."""

    selectable: dict[int, Sequence[int]]
    alternatives: dict[int, int]  # by event: the local states (a mask) whose current `otherwise` it is


class Selection:
    """Finds what can be selected in the states of one program."""

    def __init__(self, masks: Masks, possible: Iterable[Event], in_order: bool) -> None:
        """Choose among all events, or, `in_order`, as the scheduler does."""
        self.masks = masks
        self.possible = tuple(map(masks.number, possible))
        self._possible = mask_of(self.possible)
        self._in_order = in_order
        self.met: list[Choice] = []
        self._labels: dict[tuple[int, Origin, int], int] = {}
        self._known: defaultdict[tuple[Origin, Alternatives], dict[tuple[int, int], tuple[Choice, ...]]]
        self._known = defaultdict(dict)  # by part of what can be selected (position and mask)
        self._parts: dict[str, Row] = {}
        self._parts_with: defaultdict[int, set[str]] = defaultdict(set)  # by local state
        self._alternatives: dict[tuple[int, tuple[int, ...]], int] = {}
        self._wanted: dict[int, int] = {}  # by choosy local states (a mask): the events that they request (a mask)
        self._refusing: dict[tuple[int, int], set[str]] = {}  # by choosy and refusing local states: the refusers
        self._relevant: dict[tuple[int, str], int] = {}  # see `_choosy_events`
        self._choosy: dict[tuple[int, str, int], ChoosyEvents] = {}
        self.rested = False  # whether a state at rest was found
        self._candidates: defaultdict[str, int] = defaultdict(int)  # by part of a state: events (a mask)

    def choices(self, state: str) -> tuple[int, tuple[Choice, ...]]:
        """Return the local states of a state as a mask, and its choices.

        Raises LocalFailure for a predicate or an `otherwise` that fails.
        """
        masks = self.masks
        if len(masks.rows) < len(masks.automaton.locals):
            masks.learn()
        if masks.changed or len(self._parts) > MOST_PARTS:
            self._forget()
        stopped = wanted = promised = present = asked = announced = 0
        parts = [state[at : at + PART_OF_STATE] for at in range(0, len(state), PART_OF_STATE)]
        for part in parts:
            stops, wants, promises, bit, asks, announces = self._parts.get(part) or self._row(part)
            stopped |= stops
            wanted |= wants
            promised |= promises
            present |= bit
            asked |= asks
            announced |= announces
        if masks.failures:
            self._check(state)
        inside, outside = wanted & ~stopped, promised & ~stopped
        alternatives: Alternatives = ()
        if present & masks.choosy:
            more_inside, more_outside, alternatives = self._choosy_events(state, present, stopped)
            inside, outside = inside | more_inside, outside | more_outside
        if inside and self._in_order:
            found = self._choices((self._chosen(self.offers(state)),), "internal", alternatives)
        elif inside:
            found = self._found(inside, "internal", alternatives)
        else:
            possible = self._possible & ~stopped
            found = self._found(outside, "promised", alternatives) + self._found(possible, "possible", alternatives)
            asked |= announced | self._possible
            self.rested = True
        self._note_candidates(parts, asked | mask_of(event for event, _ in alternatives) if alternatives else asked)
        return present, found

    def _note_candidates(self, parts: list[str], events: int) -> None:
        for part in parts:
            if events & ~self._candidates[part]:
                self._candidates[part] |= events

    def candidates(self) -> dict[int, int]:
        """Return by local state the events (a mask) that were candidates while a b-thread was there."""
        found: defaultdict[int, int] = defaultdict(int)
        for part, events in self._candidates.items():
            for character in part:
                found[ord(character)] |= events
        return found

    def _forget(self) -> None:
        """Drop the cached parts with changed rows, and all if there are too many."""
        for local in bits(self.masks.changed):
            for part in self._parts_with.pop(local, ()):
                self._parts.pop(part, None)
        self.masks.changed = 0
        self._refusing.clear()
        if len(self._parts) > MOST_PARTS:
            self._parts.clear()
            self._parts_with.clear()

    def _choosy_events(self, state: str, present: int, stopped: int) -> "ChoosyEvents":
        """Return the offers of choosy local states.

        Cached: they depend on the choosy local states, on those that refuse their requests, in order, and on which of
        their requests and alternatives are stopped.
        """
        choosy, masks = present & self.masks.choosy, self.masks
        if choosy not in self._wanted:
            self._wanted[choosy] = reduce(or_, [mask_of(masks.requests[local]) for local in bits(choosy)])
        wanted, met = self._wanted[choosy], len(masks.events)
        refusing = self._refusing.get((choosy, present & masks.refusing))
        if refusing is None:
            refusing = {chr(local) for local in bits(present & masks.refusing) if masks.refuses[local] & wanted}
            self._refusing[choosy, present & masks.refusing] = refusing
        key = (choosy, "".join([at for at in state if at in refusing]) if refusing else "")
        found = self._choosy.get((*key, stopped & self._relevant.get(key, 0)))
        if found is None:
            offers = self.offers(state, choosy)
            inside = outside = 0
            for local, events in offers.selectable.items():
                for event in events:
                    if self._is_environment(local):
                        outside |= 1 << event
                    else:
                        inside |= 1 << event
            found = ChoosyEvents(inside, outside, tuple(offers.alternatives.items()))
            if met == len(masks.events):  # else `stopped` is older than an alternative
                self._relevant[key] = relevant = wanted | mask_of(offers.alternatives)
                self._choosy[(*key, stopped & relevant)] = found
        return found

    def _row(self, part: str) -> Row:
        """Return the row of a part of a state; cached while no row changes."""
        rows = [self.masks.rows[ord(character)] for character in part]
        found = rows[0] if len(rows) == 1 else Row(*(reduce(or_, column) for column in zip(*rows, strict=True)))
        self._parts[part] = found
        for character in part:
            self._parts_with[ord(character)].add(part)
        return found

    def _found(self, events: int, origin: Origin, alternatives: "Alternatives") -> tuple[Choice, ...]:
        """Return the choices of the events in a mask; cached for each part of it."""
        found: tuple[Choice, ...] = ()
        known = self._known[origin, alternatives]
        while events:
            at = ((events & -events).bit_length() - 1) & -PART
            part = events >> at & (1 << PART) - 1
            events ^= part << at
            choices = known.get((at, part))
            if choices is None:
                choices = known[at, part] = self._choices((at + bit for bit in bits(part)), origin, alternatives)
            found += choices
        return found

    def _check(self, state: str) -> None:
        """Raise LocalFailure if a predicate fails on an event that a step from a state evaluates."""
        if not self._inside(self.offers(state)):
            self.masks.check(self.possible, map(ord, state))

    def _inside(self, offers: Offers) -> list[int]:
        return [local for local in offers.selectable if not self._is_environment(local)]

    def _chosen(self, offers: Offers) -> int:
        """Return the internal event that the scheduler selects."""
        return offers.selectable[min(self._inside(offers), key=self._turn)][0]

    def offering(self, state: str) -> frozenset[int]:
        """Return the local states with a fairness obligation in a state: their offers can be selected.

        With `in_order`, only the scheduler's next one.
        """
        offers = self.offers(state)
        inside = self._inside(offers)
        if inside and self._in_order:
            chosen = self._chosen(offers)
            return frozenset(local for local in inside if chosen in offers.selectable[local])
        return frozenset(inside or offers.selectable)

    def offers(self, state: str, among: int = -1) -> Offers:
        """Return the offers of the local states of a state (those `among`, a mask), by age. Raises LocalFailure."""
        members = tuple(map(ord, state))
        masks = self.masks
        offers = Offers({}, {})
        refused = reduce(or_, [masks.refuses[local] for local in members], 0)
        stopped = self._stopped(members)
        for local in dict.fromkeys(members):
            if masks.requests[local] and among >> local & 1:
                events = self._offered(local, members, refused, stopped, offers.alternatives)
                if events:
                    offers.selectable[local] = events
        return offers

    # The offers of one local state.

    def _offered(
        self, local: int, members: tuple[int, ...], refused: int, stopped: int, alternatives: dict[int, int]
    ) -> Sequence[int]:
        """Return the selectable events that a local state offers; record its `otherwise` while all are refused."""
        statement = self.masks.automaton.locals[local].statement
        requests = self.masks.requests[local]

        def is_in(events: int, event: int) -> bool:
            self.masks.check((event,), members)
            return bool(events >> event & 1)

        alternative = alternative_of(
            statement, requests, partial(is_in, refused), lambda: self._alternative(local, members)
        )
        if alternative is not None:
            alternatives[alternative] = alternatives.get(alternative, 0) | 1 << local
            stopped = self._stopped(members)  # the alternative may be an event that was not met before
        return offers_of(statement, requests, alternative, lambda event: not is_in(stopped, event))

    def _stopped(self, members: tuple[int, ...]) -> int:
        return reduce(or_, [self.masks.rows[local].stops for local in members], 0)

    def _is_environment(self, local: int) -> bool:
        return self.masks.automaton.locals[local].environment

    def _turn(self, local: int) -> int:
        return -self.masks.automaton.locals[local].priority

    # `otherwise`.

    def _alternative(self, local: int, members: tuple[int, ...]) -> int:
        """Return the event of an `otherwise`; it must be the same for every order of refusals."""
        wanted = mask_of(self.masks.requests[local])
        refuses = self.masks.refuses
        refusing = tuple([by for by in members if refuses[by] & wanted])
        key = (local, refusing)
        if key not in self._alternatives:
            found = self.masks.automaton.locals
            refusals = [Refusal(found[by].name, found[by].statement.because) for by in sorted(refusing, key=self._turn)]
            one = self._asked(found[local], refusals)
            other = self._asked(found[local], refusals[::-1], watched=len(refusals) > 1)
            if one != other:
                raise VerificationError(
                    f"b-thread {found[local].name!r}: its otherwise depends on the order of the refusals, or on "
                    "hidden state; sort them, or take them as a set"
                )
            self._alternatives[key] = one
        return self._alternatives[key]

    def _asked(self, found: Any, refusals: list[Refusal], *, watched: bool = True) -> int:
        call = self.masks.automaton.purity.call
        event = call(found.name, found.statement.otherwise, Refusals(refusals), watched=watched)
        if not isinstance(event, Event):
            raise LocalFailure(found.name, TypeError(f"its otherwise gave {event!r}; it must give an event"))
        return self.masks.number(event)

    def _choices(self, events: Iterable[int], origin: Origin, alternatives: "Alternatives") -> tuple[Choice, ...]:
        """Return the one object for each choice, with those whose `otherwise` its event is, by `==` as always."""
        met, found = self.masks.events, []
        for event in events:
            advancing = reduce(or_, [by for other, by in alternatives if met[event] == met[other]], 0)
            label = self._labels.setdefault((event, origin, advancing), len(self.met))
            if label == len(self.met):
                self.met.append(Choice(event, origin, advancing, label))
            found.append(self.met[label])
        return tuple(found)


# The global states of a program, and the steps between them.


Generations = tuple[tuple[int, ...], ...]  # the local states of started b-threads, then of those that these start


class Started(NamedTuple):
    """The b-threads that one b-thread starts: by generation, and all in one text."""

    generations: Generations
    text: str


class Replacement(NamedTuple):
    """The effect of an event on some local states: `pairs` of characters to replace, one after the other.

    `pairs`: None if one would replace the result of another; then `table` replaces all at once. `spans`: by role, the
    local states (a mask) that a b-thread passes by: a state with one of them has to be sorted again. `starts`: by local
    state that starts b-threads, these.
    """

    pairs: tuple[tuple[str, str], ...] | None
    table: dict[int, str]
    spans: tuple[tuple[int, int], ...]
    starts: dict[str, Started]


class Places(dict[str, int]):
    """The positions of local states in a sorted state: those of one role (name and priority) stand together."""

    def __init__(self, automaton: Automaton) -> None:
        super().__init__()
        self._automaton = automaton
        self._roles: dict[tuple[str, int, bool], int] = {}
        self.members: list[int] = []  # by role: local states (a mask)

    def __missing__(self, character: str) -> int:
        local = self._automaton.locals[ord(character)]
        role = self._roles.setdefault((local.name, local.priority, local.environment), len(self._roles))
        self.members += [0] * (role == len(self.members))
        self.members[role] |= 1 << ord(character)
        place = self[character] = role * MOST_LOCALS + ord(character)
        return place

    def spans(self, table: dict[int, str]) -> tuple[tuple[int, int], ...]:
        """Return by role the local states (a mask) that b-threads may pass by which move as `table` says."""
        spans: dict[int, int] = {}
        for old, new in table.items():
            if new:
                role = self[new] // MOST_LOCALS
                low, high = sorted((old, ord(new)))
                between = (1 << high) - (2 << low)
                spans[role] = -1 if role in spans else between
        return tuple(spans.items())


class Begun(NamedTuple):
    """A b-thread that the program was given, and the first local states of it and of those that it starts."""

    bthread: BThread
    environment: bool
    generations: Generations


class StateSpace:
    """The states of one program with its environment."""

    def __init__(
        self, bthreads: Sequence[BThread], environment: Sequence[BThread], possible: Iterable[Event], in_order: bool
    ) -> None:
        """Make the space. Raises VerificationError; b-threads that fail at their start are in `failures`."""
        self.automaton = Automaton()
        self.masks = Masks(self.automaton)
        self._in_order = in_order
        self._places = Places(self.automaton)
        try:
            self.begin(bthreads, environment, possible)
        except VerificationError:
            self.automaton.close()
            raise

    def begin(self, bthreads: Sequence[BThread], environment: Sequence[BThread], possible: Iterable[Event]) -> None:
        """Set the program of the space. Results about b-threads from an earlier program are kept."""
        self.selection = Selection(self.masks, possible, self._in_order)
        self.failures: list[LocalFailure] = []
        self.begun: list[Begun] = []
        self.advanced: dict[int, int] = {}  # by event that was followed: all local states that it concerned (a mask)
        self._replacements: defaultdict[int, dict[int, Replacement]] = defaultdict(dict)  # by event, by concerned
        started = [self._begun(bthread, False) for bthread in bthreads]
        promised = [self._begun(bthread, True) for bthread in environment]
        self.initial = self._joined("", _by_generation((*started, *promised)))

    def _begun(self, bthread: BThread, environment: bool) -> Generations:
        try:
            generations = self.automaton.begin([(bthread, 0)], environment=environment)
        except LocalFailure as failure:
            self.failures.append(failure)
            return ()
        self.begun.append(Begun(bthread, environment, generations))
        return generations

    def started(self) -> set[int]:
        """Return the local states of b-threads started on the events followed so far."""
        replacements = [found for known in self._replacements.values() for found in known.values()]
        return {ord(new) for found in replacements for started in found.starts.values() for new in started.text}

    def successor(self, state: str, present: int, choice: Choice) -> str:
        """Return the state after an event. Raises LocalFailure when a b-thread fails on it."""
        event, masks = choice.event, self.masks
        concerned = masks.concerned[event] & present if not masks.unsure else masks.advancing(event, present)
        concerned |= choice.advancing
        known = self._replacements[event]
        pairs, table, spans, starts = known.get(concerned) or self._replacement(known, event, concerned)
        if pairs is None:
            after = state.translate(table)
        else:
            after = state
            for old, new in pairs:
                after = after.replace(old, new)
        if starts:
            return self._joined(after, self._started(state, starts))
        members = self._places.members
        for role, span in spans:
            if present & span & members[role]:
                return self._sorted(after)
        return after

    def _replacement(self, known: dict[int, Replacement], event: int, concerned: int) -> Replacement:
        self.advanced[event] = self.advanced.get(event, 0) | concerned
        moves = {local: self.automaton.move(local, self.masks.events[event], event) for local in bits(concerned)}
        table = {local: "" if move.local is None else chr(move.local) for local, move in moves.items()}
        table = {local: new for local, new in table.items() if new != chr(local)}
        collide = any(new and ord(new) in table for new in table.values())
        pairs = None if collide else tuple((chr(old), new) for old, new in table.items())
        spans = () if self._in_order else self._places.spans(table)
        started = {chr(local): move.started for local, move in moves.items() if move.started}
        starts = {starter: Started(new, _by_generation((new,))) for starter, new in started.items()}
        known[concerned] = found = Replacement(pairs, table, spans, starts)
        return found

    def _started(self, state: str, starts: dict[str, Started]) -> str:
        """Return the b-threads that an event starts, in the order of their starters: by priority, then by age."""
        if not self._in_order:
            return "".join([started.text * state.count(starter) for starter, started in starts.items()])
        starters = [character for character in state if character in starts]
        starters.sort(key=lambda starter: -self.automaton.locals[ord(starter)].priority)
        return _by_generation([starts[starter].generations for starter in starters])

    def _joined(self, kept: str, new: str) -> str:
        """Add started b-threads to those kept."""
        return kept + new if self._in_order else self._sorted(kept + new)

    def _sorted(self, state: str) -> str:
        return "".join(sorted(state, key=self._places.__getitem__))

    # Questions about a state.

    def advances(self, local: int, choice: Choice) -> bool:
        """Return whether an event concerns a local state."""
        return bool((self.masks.advancing(choice.event, 1 << local) | choice.advancing) >> local & 1)

    def place_after(self, local: int, choice: Choice) -> int | None:
        """Return the next local state of a b-thread after an event; None at its end. Raises LocalFailure."""
        if not self.advances(local, choice):
            return local
        return self.automaton.move(local, self.masks.events[choice.event], choice.event).local

    def blockers(self, members: Iterable[tuple[str, int]], event: Event) -> tuple[tuple[str, Any], ...]:
        """Return the names of the b-threads that block or refuse an event, and why, among names with local states."""
        number, masks = self.masks.number(event), self.masks
        found = []
        for name, local in members:
            if masks.rows[local].stops >> number & 1:
                is_refused = masks.refuses[local] >> number & 1
                found.append((name, self.automaton.locals[local].statement.because if is_refused else None))
        return tuple(dict.fromkeys(found))


def _by_generation(groups: Sequence[Generations]) -> str:
    """Return the local states of started b-threads: generation by generation, in the order of their starters."""
    generations = zip_longest(*groups, fillvalue=())
    return "".join([chr(local) for generation in generations for locals_ in generation for local in locals_])
