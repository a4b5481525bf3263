"""Where every b-thread stands: one that runs, and the board of what all of them ask for at this moment.

The board answers the two questions of a step: *which event can be selected?* and *whom does it concern?* It is kept
up to date by differences: when a b-thread moves on, only the words that changed are filed anew, and only those
requests are judged again whose blocks or refusals came or went.
"""

from heapq import heapify, heappop, heappush
from operator import attrgetter, is_
from typing import Any, NamedTuple

from bp.bthreads import BThreadBody
from bp.errors import EventSetError
from bp.events import Event, NamedEvent
from bp.index import NOBODY, Index, Kinds, Register
from bp.statements import Refusal, Refusals, Sync

__all__ = ["SILENT", "Blocker", "Board", "Running"]

_rank = attrgetter("rank")

SILENT = Sync((), False, None, None, None, None, None, None, False)


class Blocker(NamedTuple):
    """Who holds an event back: a b-thread's name, and why it refuses; None when it blocks in silence."""

    bthread: str
    because: Any = None


class Running:
    """A b-thread that was started: its generator, and its current synchronization statement."""

    __slots__ = ("age", "alternative", "body", "name", "offers", "priority", "queued", "rank", "send", "statement")

    def __init__(self, name: str, priority: int, age: int, body: BThreadBody) -> None:
        self.name = name
        self.priority = priority
        self.age = age
        self.body = body
        self.send = body.send
        self.rank = (-priority, age)  # who goes first: higher priority, then older
        self.statement = SILENT
        self.offers: tuple[Event, ...] = ()  # what it requests and what can be selected, as of the last judgement
        self.alternative: Event | None = None  # its current `otherwise` event, while all it requests is refused
        self.queued = False  # whether it stands in the board's heap


class Board:
    """The current statements of all b-threads, indexed.

    Invariants between steps: every living b-thread is filed under each word of its statement; a requester is either
    judged (its `offers` and `alternative` are right) or in `stale`; whoever offers something is in the heap.
    """

    def __init__(self) -> None:
        kinds = Kinds()
        self.waits: Index[Running] = Index(kinds)
        self.blocks: Index[Running] = Index(kinds)
        self.refusals: Index[Running] = Index(kinds)
        self.interrupts: Index[Running] = Index(kinds)
        self.requests: Register[Running] = Register(kinds)
        self.alternatives: Register[Running] = Register(kinds)
        self.requesters: dict[Running, None] = {}
        self.hot: dict[Running, None] = {}
        self.stale: dict[Running, None] = {}
        self._heap: list[tuple[tuple[int, int], Running]] = []

    # What is asked for: filed by differences.

    def file(self, running: Running, new: Sync) -> None:
        """Put `new` in the place of the statement of `running`. Raises TypeError for an improper event kind."""
        old = running.statement
        if new is old:
            return
        running.statement = new
        if old.requests is not new.requests or old.otherwise is not new.otherwise:
            self._file_requests(running, old, new)
        if old.wait_for is not new.wait_for:
            self.waits.move(running, old.wait_for, new.wait_for)
        if old.interrupt is not new.interrupt:
            self.interrupts.move(running, old.interrupt, new.interrupt)
        if old.block is not new.block:
            self._refile_blocks(self.blocks, running, old.block, new.block)
        if old.refuse is not new.refuse or old.because is not new.because:
            self._refile_blocks(self.refusals, running, old.refuse, new.refuse)
        if old.hot is not new.hot:
            self._file_hot(running, new.hot)

    def _file_requests(self, running: Running, old: Sync, new: Sync) -> None:
        before, after = old.requests, new.requests
        if len(before) == len(after) and all(map(is_, before, after)):
            if old.otherwise is not new.otherwise or old.any_of is not new.any_of:
                self.stale[running] = None
            return
        for event in before:
            self.requests.remove(event, running)
        for event in after:
            self.requests.add(event, running)
        running.offers = ()
        if after:
            self.requesters[running] = self.stale[running] = None
        else:
            self._set_alternative(running, None)
            del self.requesters[running]
            self.stale.pop(running, None)

    def _file_hot(self, running: Running, hot: bool) -> None:
        if hot:
            self.hot[running] = None
        else:
            del self.hot[running]

    def _refile_blocks(self, index: Index[Running], running: Running, old: Any, new: Any) -> None:
        """File a block or refusal anew, and mark the requests that its coming or going concerns, to be judged again."""
        index.move(running, old, new)
        for events in (old, new):
            if type(events) is NamedEvent:
                self.stale.update(self.requests.by_event.get(events, NOBODY))
            elif events is not None and self.requesters:
                self.stale.update(self.requests.concerned(events))
            if events is not None and self.alternatives.by_event:
                self.stale.update(self.alternatives.concerned(events))

    # What can be selected: judged when a block came or went, remembered until then.

    def judge(self) -> None:
        """Judge the stale requests. Raises EventSetError for a predicate or an `otherwise` that fails."""
        stale, self.stale = self.stale, {}
        is_free = self.is_free if self.refusals.holds_sets() or self.blocks.holds_sets() else self._is_free_of_events
        for running in stale:
            statement = running.statement
            requests = statement.requests
            if len(requests) == 1 and statement.otherwise is None and running.alternative is None:
                running.offers = requests if is_free(requests[0]) else ()
            else:
                self._judge_requests(running, statement)
            if running.offers and not running.queued:
                running.queued = True
                heappush(self._heap, (running.rank, running))
        if len(self._heap) > 2 * len(self.requesters) + 8:
            self._clear_heap()

    def _clear_heap(self) -> None:
        """Take those out of the heap that offer nothing any more, but never came to its top."""
        for _, running in self._heap:
            running.queued = bool(running.offers)
        self._heap = [entry for entry in self._heap if entry[1].queued]
        heapify(self._heap)

    def _judge_requests(self, running: Running, statement: Sync) -> None:
        offers, refused = [], 0
        for event in statement.requests:
            if self.refusals.members(event):
                refused += 1
            elif not self.blocks.members(event):
                offers.append(event)
                if not statement.any_of:
                    break
        running.offers = tuple(offers)
        if statement.otherwise is not None or running.alternative is not None:
            self._judge_otherwise(running, refused == len(statement.requests))

    def _judge_otherwise(self, running: Running, all_refused: bool) -> None:
        alternative = None
        if all_refused and running.statement.otherwise is not None:
            alternative = self._ask_otherwise(running)
            if self.is_free(alternative):
                running.offers = (alternative,)
        self._set_alternative(running, alternative)

    def meet(self, event: Event) -> None:
        """Raise TypeError for an event of an improper kind, or with the name of an event of another sort."""
        self.requests.kinds.meet(event._kind)

    def is_free(self, event: Event) -> bool:
        """Tell whether nobody blocks or refuses `event`."""
        return not self.blocks.members(event) and not self.refusals.members(event)

    def _is_free_of_events(self, event: Event) -> bool:
        """Tell the same, while nobody blocks or refuses anything but single events."""
        return event not in self.blocks.by_event and event not in self.refusals.by_event

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
            self.meet(alternative)
        except TypeError as error:
            raise _otherwise_error(running, f"gave {alternative!r}: {error}") from error
        return alternative

    def _set_alternative(self, running: Running, alternative: Event | None) -> None:
        if running.alternative is not None:
            self.alternatives.remove(running.alternative, running)
        running.alternative = alternative
        if alternative is not None:
            self.alternatives.add(alternative, running)

    def refusals_of(self, *events: Event) -> Refusals:
        """Return one refusal for each b-thread that refuses any of `events`, by priority and age."""
        found: dict[Running, None] = {}
        for event in events:
            found.update(dict.fromkeys(self.refusals.members(event)))
        return Refusals(Refusal(by.name, by.statement.because) for by in sorted(found, key=_rank))

    def blockers_of(self, event: Event) -> tuple[Blocker, ...]:
        """Return who blocks or refuses `event`, by priority and age."""
        refusing = dict.fromkeys(self.refusals.members(event))
        found = refusing | dict.fromkeys(self.blocks.members(event))
        return tuple(
            Blocker(by.name, by.statement.because if by in refusing else None) for by in sorted(found, key=_rank)
        )

    def first_offer(self) -> tuple[Event, Running] | None:
        """Return the first selectable event by priority, age and preference, with its requester."""
        heap = self._heap
        while heap:
            running = heap[0][1]
            if running.offers:
                return running.offers[0], running
            heappop(heap)
            running.queued = False
        return None

    def offers(self) -> dict[Event, Running]:
        """Return the distinct selectable events, each with its first requester, by priority and age."""
        found: dict[Event, Running] = {}
        for running in sorted((r for r in self.requesters if r.offers), key=_rank):
            for event in running.offers:
                found.setdefault(event, running)
        return found

    # Whom a selected event concerns.

    def concerned(self, event: Event) -> tuple[list[Running], dict[Running, None]]:
        """Return who resumes on `event`, by priority and age, and which of them are interrupted by it."""
        interrupts, waits = self.interrupts, self.waits
        interrupted = interrupts.members(event) if interrupts.by_event or interrupts.holds_sets() else NOBODY
        found = waits.members(event) if waits.by_kind or waits.everywhere else waits.by_event.get(event, NOBODY)
        requesters = self.requests.by_event.get(event)
        if requesters:
            found = {**found, **requesters} if found else requesters
        if self.alternatives.by_event:
            found = {**found, **self.alternatives.by_event.get(event, {})}
        if interrupted:
            found = {**found, **interrupted}
        in_turn = list(found)
        if len(in_turn) > 2:
            in_turn.sort(key=_rank)
        elif len(in_turn) == 2 and in_turn[1].rank < in_turn[0].rank:
            in_turn.reverse()
        return in_turn, interrupted


def _otherwise_error(running: Running, finding: str) -> EventSetError:
    otherwise = running.statement.otherwise
    named = getattr(otherwise, "__name__", repr(otherwise))
    return EventSetError(
        f"b-thread {running.name!r}: its otherwise {named} {finding}", bthread=running.name, event_set=otherwise
    )
