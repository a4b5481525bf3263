"""The board: the current statements of all b-threads, and what they offer for selection.

The board answers the two questions of a step: *which event can be selected?* and *which b-threads does it concern?* It
is updated by differences: when a b-thread moves on, only the changed parts of its statement are filed again.

Each requested event is an `Offer`; offers are ordered by priority, age and preference, and the first one that no
b-thread holds back is selected. Offers stand in a queue for each kind of event; the board keeps a heap of the queues by
their first offers. One rule says what is held back: *what a b-thread blocks or refuses is set aside with it until it
changes its statement*, the whole queue if it blocks the kind, else the single offer. So a block comes and goes in
constant time, however many offers it holds, and blocked requests cost nothing.

An `Index` files b-threads under the keys of their event sets (`bp/events.py`). An event is looked up under its own few
keys: itself, its kinds, None, and its values in each combination of fields that is in use. So a thousand b-threads at
`where(OrderPlaced, client=...)` cost nothing until their client orders.

`alternative_of` and `offers_of` are the rules by which a request is judged; the verifier judges by the same functions.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from bp.errors import EventSetError, shortened
from bp.events import Event, PredicateError, Test, check_kind
from bp.statements import BThreadBody, Refusal, Refusals, Sync, sync

R = TypeVar("R")  # a request: an event, or the verifier's number for it
_rank = attrgetter("rank")

SILENT = sync()
NOTHING: dict[Any, Any] = {}


class Blocker(NamedTuple):
    """A b-thread that holds an event back: its name, and why it refuses; None if it blocks silently."""

    bthread: str
    because: Any = None

    def __str__(self) -> str:
        return self.bthread if self.because is None else f"{self.bthread} (because {shortened(repr(self.because))})"


def held_by(blockers: Iterable[Blocker]) -> str:
    """Return the b-threads that hold an event back in words, each once."""
    return f"held by {', '.join(dict.fromkeys(map(str, blockers))) or 'no b-thread'}"


def alternative_of(
    statement: Sync, requests: Sequence[R], is_refused: Callable[[R], object], otherwise: Callable[[], R]
) -> R | None:
    """Return the alternative of a statement: its `otherwise` event while every event of its request is refused."""
    if statement.otherwise is None or not all(map(is_refused, requests)):
        return None
    return otherwise()


def offers_of(
    statement: Sync, requests: Sequence[R], alternative: R | None, is_free: Callable[[R], bool]
) -> Sequence[R]:
    """Return the offers of a statement: of a list the first free event, of `any_of` every free one.

    An alternative takes the place of the request, and can be blocked like any other event.
    """
    free = filter(is_free, requests if alternative is None else (alternative,))
    if statement.any_of:
        return tuple(free)
    first = next(free, None)
    return () if first is None else (first,)


class Running:
    """A b-thread that was started: its generator, and its current synchronization statement.

    alternative: its current `otherwise` event, while all its requests are refused. version: of its offers; those of
    earlier versions are outdated. held_offers, held_queues: what is set aside because of it.
    """

    def __init__(self, name: str, priority: int, age: int, body: BThreadBody) -> None:
        self.name = name
        self.priority = priority
        self.age = age
        self.rank = (-priority, age)
        self.body = body
        self.statement = SILENT
        self.alternative: Event | None = None
        self.version = 0
        self.held_offers = Offers()
        self.held_queues: list[Queue] = []


class Offer(NamedTuple):
    """A requested event. Offers are in order: by the priority and age of the requester, then by its preference."""

    rank: tuple[int, int]
    position: int
    version: int
    event: Event
    requester: Running

    def is_current(self) -> bool:
        """Return whether its requester still says the statement that it is of."""
        return self.version == self.requester.version


class Offers(list[Offer]):
    """A heap of offers. Outdated ones are thrown out when they come first, and when the heap has doubled."""

    limit = 8

    def push(self, offer: Offer) -> None:
        """Add an offer."""
        if len(self) >= self.limit:
            self[:] = filter(Offer.is_current, self)
            heapify(self)
            self.limit = 2 * len(self) + 8
        heappush(self, offer)

    def first(self) -> Offer | None:
        """Return the first current offer, None if there is none."""
        while self:
            if (offer := self[0]).version == offer.requester.version:
                return offer
            heappop(self)
        return None


class Queue(Offers):
    """The offers of one kind. listed: the offer under which it stands in the board's heap, None if it does not."""

    listed: Offer | None = None
    is_held = False


class Board:
    """The current statements of all b-threads, indexed.

    Invariants between steps: every living b-thread is filed under each word of its statement; each current offer is in
    the queue of its kind, or set aside; each queue that is not set aside is listed in the heap by its first offer, or
    by an earlier one; the alternative of a requester is current, or it is in `_stale`.
    """

    def __init__(self) -> None:
        self.kinds = Kinds()
        self.requesters: dict[Running, None] = {}
        self._requests: dict[Event, dict[Running, None]] = {}  # by requested event, or current `otherwise` event
        self._waits = Index(self.kinds)
        self._blocks = Index(self.kinds)
        self._refusals = Index(self.kinds)
        self._interrupts = Index(self.kinds)
        self._queues: defaultdict[Any, Queue] = defaultdict(Queue)
        self._heap: list[tuple[Offer, Queue]] = []
        self._answerable: dict[Running, None] = {}  # requesters with an `otherwise`
        self._stale: dict[Running, None] = {}  # those of them whose alternative may have changed

    # Statements are filed by differences.

    def file(self, running: Running, new: Sync) -> None:
        """Replace the statement of `running` by `new`. Raises TypeError for an improper event kind."""
        old, running.statement = running.statement, new
        if old.requests != new.requests:
            self._file_requests(running, old.requests, new.requests)
        if old.wait_for is not new.wait_for:
            self._waits.move(running, old.wait_for, new.wait_for)
        if old.interrupt is not new.interrupt:
            self._interrupts.move(running, old.interrupt, new.interrupt)
        if old.block is not new.block:
            self._blocks.move(running, old.block, new.block)
            self._release(running)
        if old.refuse is not None or new.refuse is not None:
            self._refusals.move(running, old.refuse, new.refuse)
            self._release(running)
            self._mark_stale(old.refuse, new.refuse)
        if old.otherwise is not None or new.otherwise is not None:
            self._stale[running] = None
            _mark(self._answerable, running, new.otherwise is not None)

    def _file_requests(self, running: Running, old: tuple[Event, ...], new: tuple[Event, ...]) -> None:
        self._drop_alternative(running)
        for event in old:
            _remove(self._requests, event, running)
        for event in new:
            self.kinds.meet(event._kind)
            _add(self._requests, event, running)
        _mark(self.requesters, running, bool(new))
        self._offer(running, new)

    def _drop_alternative(self, running: Running) -> None:
        before, running.alternative = running.alternative, None
        if before is not None and before not in running.statement.requests:
            _remove(self._requests, before, running)

    def _offer(self, running: Running, events: tuple[Event, ...]) -> None:
        """Make `events` the offers of a requester, instead of all earlier ones."""
        running.version += 1
        for position, event in enumerate(events):
            self._push(Offer(running.rank, position, running.version, event, running))

    def _push(self, offer: Offer) -> None:
        queue = self._queues[offer.event._kind]
        queue.push(offer)
        if not queue.is_held and (queue.listed is None or offer < queue.listed):
            self._list(queue)

    def _list(self, queue: Queue) -> None:
        queue.listed = queue.first()
        if queue.listed is not None:
            heappush(self._heap, (queue.listed, queue))

    # Which event can be selected.

    def first_offer(self) -> Offer | None:
        """Return the first selectable offer by priority, age and preference.

        Raises EventSetError for a predicate or an `otherwise` that fails.
        """
        if self._stale:
            self.update_alternatives()
        while (queue := self._first_queue()) is not None:
            event = queue[0].event
            if (holder := self.holder_of(event)) is None:
                return queue[0]
            if (holder_of_kind := self._refusals.first_of_kind(event) or self._blocks.first_of_kind(event)) is None:
                holder.held_offers.push(heappop(queue))
            else:
                queue.listed, queue.is_held = None, True
                holder_of_kind.held_queues.append(queue)
        return None

    def _first_queue(self) -> Queue | None:
        """Return the queue with the first offer of all that are not set aside."""
        while self._heap:
            offer, queue = self._heap[0]
            if queue.listed is offer is queue.first():
                return queue
            heappop(self._heap)
            if queue.listed is offer:
                self._list(queue)
        return None

    def _release(self, holder: Running) -> None:
        """Put back what was set aside because of a b-thread whose statement has changed."""
        queues, holder.held_queues = holder.held_queues, []
        for queue in queues:
            queue.is_held = False
            self._list(queue)
        if holder.held_offers:
            offers, holder.held_offers = holder.held_offers, Offers()
            for offer in filter(Offer.is_current, offers):
                self._push(offer)

    def offers(self) -> dict[Event, Running]:
        """Return the distinct selectable events, each with its first requester, by priority and age.

        Raises EventSetError.
        """
        self.update_alternatives()
        found: dict[Event, Running] = {}
        for running in sorted(self.requesters, key=_rank):
            for event in self.offered_by(running):
                found.setdefault(event, running)
        return found

    def offered_by(self, running: Running) -> Sequence[Event]:
        """Return what a requester offers now, its alternative if it has one. Raises EventSetError."""
        statement = running.statement
        return offers_of(statement, statement.requests, running.alternative, self.is_free)

    def is_free(self, event: Event) -> bool:
        """Return whether no b-thread blocks or refuses `event`. Raises EventSetError for a predicate that fails."""
        return self.holder_of(event) is None

    def holder_of(self, event: Event) -> Running | None:
        """Return one of the b-threads that refuse or block `event`. Raises EventSetError."""
        return next(iter(self._refusals.members(event) or self._blocks.members(event)), None)

    # `otherwise`, refusals and blockers.

    def _mark_stale(self, *refused: Any) -> None:
        """Mark the requests of which an event may be in one of these sets, and whose alternative may change."""
        kinds = {row[1] for events in refused if events is not None for row in events._rows}
        for running in self._answerable:
            requested = {kind for event in running.statement.requests for kind in (None, *event._kinds)}
            if not kinds.isdisjoint(requested):
                self._stale[running] = None

    def update_alternatives(self) -> None:
        """Judge the stale requests. Raises EventSetError."""
        stale, self._stale = self._stale, {}
        for running in stale:
            statement, ask = running.statement, partial(self._ask_otherwise, running)
            alternative = alternative_of(statement, statement.requests, self._refusals.members, ask)
            if alternative != running.alternative:
                self._drop_alternative(running)
                running.alternative = alternative
                if alternative is not None:
                    _add(self._requests, alternative, running)
                self._offer(running, statement.requests if alternative is None else (alternative,))

    def _ask_otherwise(self, running: Running) -> Event:
        otherwise: Any = running.statement.otherwise
        refusals = self.refusals_of(*running.statement.requests)
        try:
            alternative = otherwise(refusals)
        except Exception as error:
            raise _otherwise_error(running, f"raised {type(error).__name__}: {error}") from error
        if not isinstance(alternative, Event):
            raise _otherwise_error(running, f"gave {alternative!r}; it must give an event")
        try:
            self.kinds.meet(alternative._kind)
        except TypeError as error:
            raise _otherwise_error(running, f"gave {alternative!r}: {error}") from error
        return alternative

    def refusals_of(self, *events: Event) -> Refusals:
        """Return one refusal for each b-thread that refuses any of `events`, by priority and age."""
        found = {by: None for event in events for by in self._refusals.members(event)}
        return Refusals(Refusal(by.name, by.statement.because) for by in sorted(found, key=_rank))

    def blockers_of(self, event: Event) -> tuple[Blocker, ...]:
        """Return the b-threads that block or refuse `event`, by priority and age."""
        refusing = self._refusals.members(event)
        held = sorted({**refusing, **self._blocks.members(event)}, key=_rank)
        return tuple(Blocker(by.name, by.statement.because if by in refusing else None) for by in held)

    # Which b-threads a selected event concerns.

    def concerned(self, event: Event) -> tuple[list[Running], dict[Running, None]]:
        """Return the b-threads that resume on `event`, by priority and age, and which of them it interrupts.

        They are those that request it, wait for it, are interrupted by it, or have it as their `otherwise` event.
        """
        interrupted = self._interrupts.members(event)
        found = {**self._waits.members(event), **self._requests.get(event, NOTHING), **interrupted}
        return sorted(found, key=_rank), interrupted


def _mark(marked: dict[Running, None], running: Running, is_marked: bool) -> None:
    if is_marked:
        marked[running] = None
    else:
        marked.pop(running, None)


def _add(filed: dict[Any, dict[Any, None]], key: Any, member: Any) -> None:
    if key in filed:
        filed[key][member] = None
    else:
        filed[key] = {member: None}


def _remove(filed: dict[Any, Any], key: Any, member: Any) -> None:
    """Remove an entry, if it is still there: an event, or a key, may stand in a statement twice."""
    members = filed.get(key, NOTHING)
    if len(members) > 1:
        members.pop(member, None)
    elif member in members:
        del filed[key]


def _otherwise_error(running: Running, finding: str) -> EventSetError:
    otherwise = running.statement.otherwise
    named = getattr(otherwise, "__name__", repr(otherwise))
    return EventSetError(
        f"b-thread {running.name!r}: its otherwise {named} {finding}", bthread=running.name, event_set=otherwise
    )


# The b-threads that an event concerns, found without asking the others.


class Kinds(set[Any]):
    """The event kinds that one program has met, and None: no kind in particular."""

    def __init__(self) -> None:
        super().__init__((None,))
        self._by_name: dict[str, Any] = {}

    def meet(self, kind: Any) -> None:
        """Raise TypeError when `kind` is no proper kind, or a kind and a plain event share its name."""
        check_kind(kind)
        name = kind if isinstance(kind, str) else kind.name
        known = self._by_name.setdefault(name, kind)
        if isinstance(known, str) is not isinstance(kind, str):
            raise TypeError(f"{name!r} is the name of an event kind and of a plain event; rename one of them")
        self.add(kind)


class Index:
    """B-threads filed by their event sets, each under the keys of its rows: `filed`, or `asked` for rows with a test.

    fields: the combinations of fields in use, by kind, each with the function that gets their values.
    """

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty index; `kinds`: those of its program."""
        self.filed: dict[Any, dict[Running, None]] = {}
        self.asked: dict[Any, dict[Running, list[Test]]] = {}
        self.fields: dict[Any, dict[tuple[str, ...], Callable[[Event], Any]]] = {}
        self._kinds = kinds

    def move(self, member: Running, old: Any, new: Any) -> None:
        """File `member` under the set `new` instead of `old`; None: no set. Raises TypeError for improper kinds."""
        for key, _, _, test in () if old is None else old._rows:
            _remove(self.filed if test is None else self.asked, key, member)
        for key, kind, fields, test in () if new is None else new._rows:
            if kind not in self._kinds:
                self._kinds.meet(kind)
            if fields is not None:
                self.fields.setdefault(kind, {})[fields] = attrgetter(*fields)
            if test is None:
                _add(self.filed, key, member)
            else:
                self.asked.setdefault(key, {}).setdefault(member, []).append(test)

    def first_of_kind(self, event: Event) -> Running | None:
        """Return a member whose set has every event of this event's kind, None if there is none."""
        for key in (*event._kinds, None):
            if key in self.filed:
                return next(iter(self.filed[key]))
        return None

    def members(self, event: Event) -> dict[Running, None]:
        """Return the members whose sets contain `event`, once each, in no particular order.

        Raises EventSetError if a required predicate fails.
        """
        if not self.filed and not self.asked:
            return NOTHING
        keys = [event, None, *event._kinds]
        for kind in event._kinds if self.fields else ():
            for fields, values_of in self.fields.get(kind, NOTHING).items():
                keys.append((kind, fields, values_of(event)))
        found: dict[Running, None] = {}
        filed = self.filed
        for key in keys:
            if key in filed:
                found.update(filed[key])
        if self.asked:
            found |= self._accepting(keys, event, found)
        return found

    def _accepting(self, keys: list[Any], event: Event, known: Collection[Running]) -> dict[Running, None]:
        """Return the members, without those known, of whose tests under these keys one accepts an event."""
        asked: dict[Running, list[Test]] = {}
        for key in keys:
            for member, tests in self.asked.get(key, NOTHING).items():
                asked.setdefault(member, []).extend(tests)
        return {member: None for member in asked if member not in known and _is_accepted(event, asked[member], member)}


def _is_accepted(event: Event, tests: list[Test], member: Running) -> bool:
    """Return whether a test accepts an event. All are asked, as by `contains`: errors do not depend on their order."""
    try:
        return True in [test(event) for test in tests]
    except PredicateError as error:
        message, events = f"b-thread {member.name!r}: {error}", error.event_set
        raise EventSetError(message, bthread=member.name, event_set=events, event=event) from error.__cause__
