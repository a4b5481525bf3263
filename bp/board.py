"""The board: the current statements of all b-threads, and what they offer for selection.

The board answers the two questions of a step: *which event can be selected?* and *which b-threads does it concern?* It
is updated by differences: when a b-thread moves on, only the changed parts of its statement are filed again.

Requests wait in a heap, by priority and age, and are judged when they come to its top. One that offers nothing is
*parked* outside of the heap, until one of the b-threads that hold its events back changes its statement. So blocked
requests cost nothing.

An `Index` files b-threads under the keys of their event sets (`bp/events.py`). An event is looked up under its own few
keys: itself, its kind, None, and its values in each combination of fields that is in use. So a thousand parked
`where(OrderPlaced, client=...)` cost nothing until their client orders.

`alternative_of` and `offers_of` are the rules by which a request is judged; the verifier judges by the same functions.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain, filterfalse
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from bp.errors import EventSetError
from bp.events import Event, EventKind, PredicateError, Test, check_kind
from bp.statements import BThreadBody, RareWords, Refusal, Refusals, Sync, sync

R = TypeVar("R")  # a request: an event, or the verifier's number for it
_rank = attrgetter("rank")

SILENT = sync()

# Members of an index, each with the tests of which one must accept the event; None: no test.
Filed = dict["Running", list[Test] | None]
NO_MEMBERS: dict[Any, Any] = {}


class Blocker(NamedTuple):
    """A b-thread that holds an event back: its name, and why it refuses; None if it blocks silently."""

    bthread: str
    because: Any = None


def alternative_of(
    statement: Sync, requests: Sequence[R], is_refused: Callable[[R], bool], otherwise: Callable[[], R]
) -> R | None:
    """Return the alternative of a statement: its `otherwise` event while every event of its request is refused."""
    if statement.rare.otherwise is None or not requests or not all(map(is_refused, requests)):
        return None
    return otherwise()


def offers_of(
    statement: Sync, requests: Sequence[R], alternative: R | None, is_free: Callable[[R], bool]
) -> Sequence[R]:
    """Return the offers of a statement: of a list the first free event, of `any_of` every free one.

    An alternative takes the place of the request, and can be blocked like any other event.
    """
    if alternative is not None:
        requests = (alternative,)
    if statement.any_of:
        return tuple(filter(is_free, requests))
    for request in requests:
        if is_free(request):
            return (request,)
    return ()


class Running:
    """A b-thread that was started: its generator, and its current synchronization statement."""

    __slots__ = (
        *("age", "alternative", "body", "name", "priority", "queued", "rank", "send", "statement"),
        *("answerable", "held_by", "holds"),
    )

    def __init__(self, name: str, priority: int, age: int, body: BThreadBody) -> None:
        self.name = name
        self.priority = priority
        self.age = age
        self.body = body
        self.send = body.send
        self.rank = age - priority * 2**64  # sort key: higher priority, then older
        self.statement = SILENT
        self.alternative: Event | None = None  # its current `otherwise` event, while all its requests are refused
        self.queued = False  # whether it stands in the board's heap
        self.answerable: Collection[Any] = ()  # the kinds of its request, if it has an `otherwise`
        self.held_by: Sequence[Running] = ()  # while it is parked: one holder for each requested event
        self.holds: dict[Running, None] = {}  # the requesters parked because of it


class Board:
    """The current statements of all b-threads, indexed.

    Invariants between steps: every living b-thread is filed under each word of its statement; each requester that
    offers something is in the heap; its alternative is current, or it is in `_stale`.
    """

    def __init__(self) -> None:
        self.kinds = kinds = Kinds()
        self._waits: Index = Index(kinds)
        self._blocks: Index = Index(kinds)
        self._refusals: Index = Index(kinds)
        self._interrupts: Index = Index(kinds)
        # By kind: few events have to be compared.
        self._requests: defaultdict[Any, dict[Event, dict[Running, None]]] = defaultdict(dict)
        self._answerable: dict[Any, dict[Running, None]] = {}  # requesters with an `otherwise`, by kind
        self.requesters: dict[Running, None] = {}
        self.hot: dict[Running, None] = {}
        self._stale: dict[Running, None] = {}  # whose alternative may have changed: see `_judge`
        self._heap: list[tuple[int, Running]] = []

    # Statements are filed by differences.

    def file(self, running: Running, new: Sync) -> None:
        """Replace the statement of `running` by `new`. Raises TypeError for an improper event kind."""
        old = running.statement
        running.statement = new
        if old.requests != new.requests:
            self._file_requests(running, old.requests, new.requests)
        if old.wait_for is not new.wait_for:
            self._waits.move(running, old.wait_for, new.wait_for)
        if old.block is not new.block:
            self._blocks.move(running, old.block, new.block)
            if running.holds:
                self._queue_held(running)
        before, after = old.rare, new.rare
        if before is after:
            return
        if before.otherwise is not None or after.otherwise is not None:
            self._file_otherwise(running, new)
        if before.refuse is not None or after.refuse is not None:
            self._file_refusal(running, before.refuse, after.refuse)
        if before.interrupt is not after.interrupt or before.hot is not after.hot:
            self._file_rarest_words(running, before, after)

    def _file_requests(self, running: Running, old: Sequence[Event], new: Sequence[Event]) -> None:
        for event in old:
            self._take_out(event, running)
        for event in new:
            self.kinds.meet(event._kind)
            self._requests[event._kind].setdefault(event, {})[running] = None
        if running.held_by:
            self._unpark(running)
        if new:
            self.requesters[running] = None
            if not running.queued:
                running.queued = True
                heappush(self._heap, (running.rank, running))
        else:
            del self.requesters[running]
            if len(self._heap) > 2 * len(self.requesters) + 8:
                self._clear_heap()

    def _take_out(self, event: Event, requester: Running) -> None:
        """Remove the entry of `requester` for `event`, if it is still there: one request may name an event twice."""
        requested = self._requests.get(event._kind, NO_MEMBERS)
        requesters = requested.pop(event, NO_MEMBERS)
        requesters.pop(requester, None)
        if requesters:
            requested[event] = requesters
        elif not requested:
            self._requests.pop(event._kind, None)

    def _file_rarest_words(self, running: Running, before: RareWords, after: RareWords) -> None:
        """File `interrupt` and `hot` again."""
        self._interrupts.move(running, before.interrupt, after.interrupt)
        if after.hot:
            self.hot[running] = None
        else:
            self.hot.pop(running, None)

    def _file_otherwise(self, running: Running, new: Sync) -> None:
        """File a requester by the kinds that it requests, since a refusal of these affects its `otherwise`."""
        if running.alternative is not None:
            self._stale[running] = None
        for kind in running.answerable:
            del self._answerable[kind][running]
            if not self._answerable[kind]:
                del self._answerable[kind]
        running.answerable = ()
        if new.rare.otherwise is not None:
            kinds = new.requests[0]._kinds
            for event in new.requests[1:]:
                kinds += event._kinds
            running.answerable = kinds if len(kinds) == 1 else (*dict.fromkeys(kinds),)
            for kind in running.answerable:
                self._answerable.setdefault(kind, {})[running] = None
            if not self._refusals.kinds.isdisjoint((None, *kinds)):
                self._stale[running] = None

    def _file_refusal(self, running: Running, old: Any, new: Any) -> None:
        """File a refusal again, and mark the requests whose alternative may change."""
        self._refusals.move(running, old, new)
        for events in (old, new):
            for _, kind, _, _ in () if events is None else events._rows:
                if kind in self._answerable:
                    self._stale |= self._answerable[kind]
                elif kind is None:
                    self._stale |= self.requesters
        if running.holds:
            self._queue_held(running)

    # Which event can be selected.

    def _queue_held(self, holder: Running) -> None:
        """Queue the requesters that were parked because of a b-thread whose statement has changed."""
        held, holder.holds = holder.holds, {}
        for running in held:
            if len(running.held_by) > 1:
                self._unpark(running)
            running.held_by = ()
            running.queued = True
            heappush(self._heap, (running.rank, running))

    def _unpark(self, running: Running) -> None:
        for holder in running.held_by:
            holder.holds.pop(running, None)  # it may hold two events back
        running.held_by = ()

    def first_offer(self) -> tuple[Event, Running] | None:
        """Return the first selectable event by priority, age and preference, with its requester.

        Raises EventSetError for a predicate or an `otherwise` that fails.
        """
        if self._stale:
            self._judge()
        heap = self._heap
        while heap:
            running = heap[0][1]
            alternative = running.alternative  # the first of `offers_of`, without judging the others of `any_of`
            requests = running.statement.requests if alternative is None else (alternative,)
            is_accepted = alternative is None and len(requests) == 1 if running.answerable else False  # see `_judge`
            holders: tuple[Running, ...] = ()
            for event in requests:
                holder = self.holder_of(event, is_accepted)
                if holder is None:
                    return event, running
                holders += (holder,)
            heappop(heap)
            running.queued = False
            running.held_by = holders
            for holder in holders:
                holder.holds[running] = None
        return None

    def offers(self) -> dict[Event, Running]:
        """Return the distinct selectable events, each with its first requester, by priority and age.

        Raises EventSetError.
        """
        if self._stale:
            self._judge()
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

    def holder_of(self, event: Event, is_accepted: bool = False) -> Running | None:
        """Return one of the b-threads that refuse or block `event`; `is_accepted`: known not to be refused."""
        kinds, refusals, blocks = event._kinds, self._refusals, self._blocks  # of most kinds nothing is filed there
        if refusals.filed and not is_accepted and (not refusals.kinds.isdisjoint(kinds) or None in refusals.filed):
            for holder in refusals.members(event):
                return holder
        if not blocks.kinds.isdisjoint(kinds) or None in blocks.filed:
            for holder in blocks.members(event):
                return holder
        return None

    def _is_refused(self, event: Event) -> bool:
        return bool(self._refusals.members(event))

    def _clear_heap(self) -> None:
        """Remove requesters without requests from the heap."""
        for _, running in self._heap:
            running.queued = bool(running.statement.requests)
        self._heap = [entry for entry in self._heap if entry[1].queued]
        heapify(self._heap)

    # `otherwise`, refusals and blockers.

    def _judge(self) -> None:
        """Update the alternatives of stale requesters. Raises EventSetError."""
        stale, self._stale = self._stale, {}
        for running in stale:
            statement, alternative = running.statement, None
            if statement.requests and self._refusals.members(statement.requests[0]):  # not all are refused
                ask = partial(self._ask_otherwise, running)
                alternative = alternative_of(statement, statement.requests, self._is_refused, ask)
            if alternative is not None or running.alternative is not None:
                self._set_alternative(running, alternative)
            if statement.requests and not running.queued:
                self._unpark(running)
                running.queued = True
                heappush(self._heap, (running.rank, running))

    def _ask_otherwise(self, running: Running) -> Event:
        statement = running.statement
        assert statement.otherwise is not None
        refusals = self.refusals_of(*statement.requests)
        try:
            alternative = statement.otherwise(refusals)
        except Exception as error:
            raise _otherwise_error(running, f"raised {type(error).__name__}: {error}") from error
        if not isinstance(alternative, Event):
            raise _otherwise_error(running, f"gave {alternative!r}; it must give an event")
        try:
            self.kinds.meet(alternative._kind)
        except TypeError as error:
            raise _otherwise_error(running, f"gave {alternative!r}: {error}") from error
        return alternative

    def _set_alternative(self, running: Running, alternative: Event | None) -> None:
        before, running.alternative = running.alternative, alternative
        if before is not None and before not in running.statement.requests:
            self._take_out(before, running)
        if alternative is not None:
            self._requests[alternative._kind].setdefault(alternative, {})[running] = None

    def refusals_of(self, *events: Event) -> Refusals:
        """Return one refusal for each b-thread that refuses any of `events`, by priority and age."""
        found: dict[Running, None] = {}
        for event in events:
            found.update(dict.fromkeys(self._refusals.members(event)))
        return Refusals(Refusal(by.name, by.statement.because) for by in sorted(found, key=_rank))

    def blockers_of(self, event: Event) -> tuple[Blocker, ...]:
        """Return the b-threads that block or refuse `event`, by priority and age."""
        refusing = dict.fromkeys(self._refusals.members(event))
        found = refusing | dict.fromkeys(self._blocks.members(event))
        return tuple(
            Blocker(by.name, by.statement.because if by in refusing else None) for by in sorted(found, key=_rank)
        )

    # Which b-threads a selected event concerns.

    def concerned(self, event: Event) -> tuple[list[Running], dict[Running, Any]]:
        """Return the b-threads that resume on `event`, by priority and age, and which of them it interrupts.

        They are those that request it, wait for it, are interrupted by it, or have it as their `otherwise` event.
        """
        found = self._waits.members(event)
        if event._kind in self._requests:
            found = found | self._requests[event._kind].get(event, NO_MEMBERS)
        interrupted = NO_MEMBERS
        if self._interrupts.filed:
            interrupted = {**self._interrupts.members(event)}  # they are removed while the event advances others
            found = found | interrupted
        in_turn = [*found]
        in_turn.sort(key=_rank)
        return in_turn, interrupted


def _otherwise_error(running: Running, finding: str) -> EventSetError:
    otherwise = running.statement.otherwise
    named = getattr(otherwise, "__name__", repr(otherwise))
    return EventSetError(
        f"b-thread {running.name!r}: its otherwise {named} {finding}", bthread=running.name, event_set=otherwise
    )


# The b-threads that an event concerns, found without asking the others.


class Kinds(dict[Any, Any]):
    """The event kinds that one program has met. None stands for every kind."""

    meet = dict.__getitem__  # fast lookup in C; a missing kind is checked

    def __init__(self) -> None:
        super().__init__({None: None})
        self._by_name: dict[str, Any] = {}

    def __missing__(self, kind: Any) -> Any:
        """Raise TypeError when `kind` is no proper kind, or a kind and a plain event share its name."""
        name = kind if isinstance(kind, str) else kind.name
        known = self._by_name.get(name)
        if known is not None and isinstance(known, str) is not isinstance(kind, str):
            raise TypeError(f"{name!r} is the name of an event kind and of a plain event; rename one of them")
        check_kind(kind)
        self._by_name.setdefault(name, kind)
        return self.setdefault(kind, kind)


@lru_cache(maxsize=1024)
def _values(fields: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a getter of the values of these fields: the value of one, a tuple of several."""
    return attrgetter(*fields)


class Index:
    """Members filed by their event sets, each under the keys of its rows.

    Only keys that were ever filed are looked up: `kinds`: of all rows; `_has_events`: single events; `_has_keys`: other
    keys; `_fields`: the fields of such keys and how to get them, by kind; `_asks`: the kinds of rows with a test.
    """

    __slots__ = ("_asks", "_fields", "_has_events", "_has_keys", "_met", "filed", "kinds")

    def __init__(self, met: "Kinds") -> None:
        """Make an empty index; `met`: the kinds of its program."""
        self.filed: dict[Any, Filed] = {}
        self.kinds: set[Any] = set()
        self._has_events = False
        self._has_keys = False
        self._fields: dict[Any, dict[tuple[str, ...], Callable[[Any], Any]]] = {}
        self._asks: set[Any] = set()
        self._met = met

    def move(self, member: Running, old: Any, new: Any) -> None:
        """File `member` under the set `new` instead of `old`; None: no set. Raises TypeError for improper kinds."""
        filed = self.filed
        if old is not None:
            if type(type(old)) is EventKind or type(old) is EventKind:  # an event or a kind is its own key
                members = filed[old]
                del members[member]
                if not members:
                    del filed[old]
            elif new is not None and type(new) is not EventKind and old._rows == new._rows:
                return
            else:
                self._remove(member, old)
        if new is not None:
            if type(type(new)) is EventKind:
                self._has_events = True
            elif type(new) is EventKind:
                self._has_keys = True
            else:
                self._add(member, new)
                return
            if new in filed:
                filed[new][member] = None
            else:
                if new._kind not in self.kinds:
                    self.kinds.add(self._met[new._kind])
                filed[new] = {member: None}

    def _remove(self, member: Running, events: Any) -> None:
        for key, _, _, _ in events._rows:
            members = self.filed.pop(key, NO_MEMBERS)
            members.pop(member, None)  # two rows of one set may have the same key
            if members:
                self.filed[key] = members

    def _add(self, member: Running, events: Any) -> None:
        for key, kind, fields, test in events._rows:
            self.kinds.add(self._met[kind])
            if fields is not None:
                self._fields.setdefault(kind, {})[fields] = _values(fields)
            is_key = fields is not None or key is kind
            self._has_events, self._has_keys = self._has_events or not is_key, self._has_keys or is_key
            members = self.filed.setdefault(key, {})
            if test is None:
                members[member] = None
            elif (tests := members.setdefault(member, [])) is not None:
                self._asks.add(kind)
                tests.append(test)

    def members(self, event: Event) -> Filed:
        """Return the members whose sets contain `event`, once each, in no particular order; not to be changed.

        Raises EventSetError if a required predicate fails.
        """
        filed, keyed = self.filed, self._fields
        if not self._has_keys:
            return filed.get(event, NO_MEMBERS)
        matching = [filed[event]] if self._has_events and event in filed else []
        if None in filed:
            matching.append(filed[None])
        for kind in event._kinds:
            if kind in filed:
                matching.append(filed[kind])
            if kind in keyed:
                for fields, values_of in keyed[kind].items():
                    members = filed.get((kind, fields, values_of(event)))
                    if members is not None:
                        matching.append(members)
        if not matching:
            return NO_MEMBERS
        if self._asks and (None in self._asks or not self._asks.isdisjoint(event._kinds)):
            return _with_accepting(matching, event)
        return matching[0] if len(matching) == 1 else dict.fromkeys(chain.from_iterable(matching))


def _with_accepting(matching: list[Filed], event: Event) -> Filed:
    """Return the members that accept an event. All tests of a member are asked, as by `contains`."""
    found: Filed = {}
    asked: dict[Running, list[Test]] = {}
    for filed in matching:
        for member, tests in filed.items():
            if tests is None:
                found[member] = None
            else:
                asked[member] = asked[member] + tests if member in asked else tests
    for member in [*filterfalse(found.__contains__, asked)]:
        try:
            for test in asked[member]:  # all tests, so that errors do not depend on their order
                if test(event):
                    found[member] = None
        except PredicateError as error:
            message, events = f"b-thread {member.name!r}: {error}", error.event_set
            raise EventSetError(message, bthread=member.name, event_set=events, event=event) from error.__cause__
    return found
