"""Partial-order reduction: of equivalent orders, one is tried.

Only the events between two external ones are reduced. In a state where internal events can be selected, a *stubborn
set* is computed (Valmari 1989): a set of events, at least one of them selectable, such that nothing outside of it can
change what its events do, or whether they can be selected. Only its selectable events are then tried; every other event
is still to come afterwards, and finds everything as it would have found it before. So a run to an end, which contains
an event of the set, can begin with it. docs/verification.md says what stays the same.

The later behavior of b-threads is known from their automata: before the search, each is unfolded alone, on every event
that any b-thread may ever request. That over-approximates the program.

An event that is not tried in a state can be postponed again in the next one. So that no event is postponed for ever
(the cycle proviso), `Search` checks itself at its end for components that no step leaves and in which an enabled event
is never tried; there it is tried after all.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
from operator import or_

from bp.verification.purity import LocalFailure
from bp.verification.states import Choice, Masks, StateSpace, bits, mask_of

MOST_STEPS = 300_000  # bound of the unfolding before the search; beyond it all orders are tried


class Irreducible(Exception):
    """This program cannot be reduced; the message gives the reason."""


class StubbornSets:
    """The stubborn sets of one program: the selectable events of a state that are enough to try.

    By local state, as masks of events: `moving` advance or interrupt it, `touching` it also stops; `future` it, and
    those that come after it, ever touch; `wishes` they ever request from inside.
    """

    def __init__(self, space: StateSpace) -> None:
        """Unfold the automata of a program. Raises Irreducible, and VerificationError."""
        self._space = space
        self._masks = space.masks
        self._after = _unfolded(space)
        masks, locals_ = space.masks, range(len(space.automaton.locals))
        self._moving = _turned(masks.concerned, len(locals_))
        self._stops = [row.stops for row in masks.rows]
        self._touching = [self._moving[local] | self._stops[local] for local in locals_]
        later = self._later()
        self._future = _closed(self._touching, later)
        self._wishes = _closed([self._wished(local) for local in locals_], later)
        self._behind = self._preferences()
        self._matters = _turned(self._future, len(masks.events))  # by event: the local states that may ever touch it
        self._known: tuple[dict[tuple[int, int], tuple[int, ...]], ...] = ({}, {})

    def ways(self, present: int, choices: tuple[Choice, ...]) -> Iterator[tuple[Choice, ...]]:
        """Yield sufficient choices, in a state whose local states are `present` (a mask) and `choices` internal.

        At most one for each seed choice, none with more choices than those before.
        """
        selectable = mask_of(choice.event for choice in choices)
        most = len(choices) - 1
        for choice in choices:
            found = self._stubborn(choice.event, present, selectable, most)
            if found:
                most = found.bit_count()
                yield tuple(choice for choice in choices if found >> choice.event & 1)

    def _stubborn(self, seed: int, present: int, selectable: int, most: int) -> int:
        """Return the selectable events of a stubborn set with this seed; 0 if they are more than `most`.

        Of several completions the one with the fewest new events is taken.
        """
        found = waiting = 1 << seed
        while waiting:
            lowest = waiting & -waiting
            ways = self._ways(lowest.bit_length() - 1, bool(selectable & lowest), present)
            missing = ways[0] & ~found
            for way in ways[1:]:
                if missing and (way & ~found).bit_count() < missing.bit_count():
                    missing = way & ~found
            waiting = (waiting ^ lowest) | missing
            found |= missing
            if missing & selectable and (found & selectable).bit_count() > most:
                return 0
        return found & selectable

    def _ways(self, event: int, is_selectable: bool, present: int) -> tuple[int, ...]:
        """Return the sets of events of which a stubborn set must hold one, because it holds `event`."""
        key = (event, present & self._matters[event])
        known = self._known[is_selectable]
        if key not in known:
            members = tuple(bits(key[1]))
            known[key] = (self._to_keep(event, members),) if is_selectable else self._to_prevent(event, members)
        return known[key]

    # A selectable event: nothing else may change what it does, and it may change nothing else.

    def _to_keep(self, event: int, members: tuple[int, ...]) -> int:
        """Return the events that move the local states that may touch a selectable event, and those they touch later.

        A requester's better choices move it too: while these are prevented, its choice is the same.
        """
        needed = 0
        for local in members:
            if self._future[local] >> event & 1:
                needed |= self._moving[local]
            if self._moving[local] >> event & 1:
                for after in self._after[local].get(event, ()):
                    needed |= self._touching[after]
                for lifted in bits(self._stops[local]):
                    needed |= self._behind[lifted]
        return needed

    # An event that cannot be selected now: what must happen before it can.

    def _to_prevent(self, event: int, members: tuple[int, ...]) -> tuple[int, ...]:
        """Return for each reason why an event cannot be selected all events that could end it."""
        reasons = [self._moving[local] for local in members if self._stops[local] >> event & 1]
        requesters = [local for local in members if self._wished(local) >> event & 1]
        if reasons and requesters:
            return tuple(reasons)
        needed = [self._moving[local] for local in members if self._wishes[local] >> event & 1]
        return (*reasons, reduce(or_, needed, 0))

    # What is known before the search.

    def _later(self) -> list[tuple[int, ...]]:
        return [tuple({after for locals_ in moves.values() for after in locals_}) for moves in self._after]

    def _wished(self, local: int) -> int:
        return 0 if self._space.automaton.locals[local].environment else mask_of(self._masks.requests[local])

    def _preferences(self) -> dict[int, int]:
        """Return for each event those requested after it in some preference list."""
        behind: dict[int, int] = defaultdict(int)
        for local in bits(self._masks.choosy):
            requests = self._masks.requests[local]
            for place, event in enumerate(requests):
                behind[event] |= mask_of(requests[place + 1 :])
        return behind


def _unfolded(space: StateSpace) -> list[dict[int, tuple[int, ...]]]:
    """Return the moves of each local state on each event, with started b-threads; failures have no target."""
    masks = space.masks
    masks.learn()
    _check(masks)
    after: dict[tuple[int, int], tuple[int, ...]] = {}
    waiting = _moves(masks, after)
    steps = 0
    while waiting:
        for local, event in waiting:
            steps += 1 + len(space.automaton.locals[local].paths[0].events)
            if steps > MOST_STEPS:
                raise Irreducible("its b-threads may have local states without end")
            after[local, event] = _led_to(space, local, event)
            masks.learn()
        _check(masks)
        waiting = _moves(masks, after)
    by_local: list[dict[int, tuple[int, ...]]] = [{} for _ in masks.rows]
    for (local, event), following in after.items():
        by_local[local][event] = following
    return by_local


def _moves(masks: Masks, known: dict[tuple[int, int], tuple[int, ...]]) -> list[tuple[int, int]]:
    """Return the moves, local state and event, that were not followed yet."""
    return [
        (local, event)
        for event, concerned in enumerate(masks.concerned)
        for local in bits(concerned)
        if (local, event) not in known
    ]


def _led_to(space: StateSpace, local: int, event: int) -> tuple[int, ...]:
    try:
        move = space.automaton.move(local, space.masks.events[event], event)
    except LocalFailure:
        return ()
    started = [child for generation in move.started for child in generation]
    return (*started,) if move.local is None else (move.local, *started)


def _check(masks: Masks) -> None:
    for local in masks.automaton.locals:
        if local.statement.otherwise is not None:
            raise Irreducible(f"b-thread {local.name!r} has an otherwise, which may depend on every b-thread")
        if local.statement.hot:
            raise Irreducible(f"b-thread {local.name!r} is hot, and fairness is a matter of all orders")
    if masks.failures or masks.unsure:
        raise Irreducible("a predicate fails")


def _closed(own: list[int], later: list[tuple[int, ...]]) -> list[int]:
    """Return for each local state the union of `own` over it and all later local states."""
    found = list(own)
    changed = True
    while changed:
        changed = False
        for local in reversed(range(len(found))):
            joined = found[local]
            for after in later[local]:
                joined |= found[after]
            if joined != found[local]:
                found[local] = joined
                changed = True
    return found


def _turned(masks: list[int], length: int) -> list[int]:
    """Return masks of events by local state, from masks of local states by event; or the other way round."""
    found = [0] * length
    for position, mask in enumerate(masks):
        for other in bits(mask):
            found[other] |= 1 << position
    return found
