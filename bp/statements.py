"""What a b-thread may say at a synchronization point, and the refusals that it may hear.

`sync` holds the four classic words of behavioral programming (request, wait for, block, interrupt: Harel, Marron and
Weiss 2012) and two more: `refuse` with `because` is a block that answers, `otherwise` is what a requester asks for
instead when it is refused.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import define, frozen

from bp.event_sets import NONE, EventSet, as_event_set
from bp.events import Event, EventKind, NamedEvent
from bp.payload import freeze

if TYPE_CHECKING:
    from bp.bthreads import BThread

__all__ = ["AnyOf", "Refusal", "Refusals", "Start", "Sync", "any_of", "start", "sync"]

Otherwise = Callable[["Refusals"], Event]


class Refusal(NamedTuple):
    """Who refuses an event, and why: a b-thread's name, and the text or frozen value it gave as `because`."""

    bthread: str
    because: Any


class Refusals(tuple[Refusal, ...]):
    """The refusals of one request, ordered by priority and age, equal whatever their order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and frozenset(self) == frozenset(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self))


@define(
    slots=True, unsafe_hash=True
)  # not frozen: one is made at every step, and a frozen one takes three times as long
class Sync:
    """One synchronization statement, checked and normal; made by `sync`. Absent event sets are None."""

    requests: tuple[Event, ...]
    any_of: bool
    wait_for: Any
    block: Any
    interrupt: Any
    refuse: Any
    because: Any
    otherwise: Otherwise | None
    hot: bool


@frozen
class AnyOf:
    """Events of which any one may be selected; the choice is the strategy's."""

    events: tuple[Event, ...]


@frozen
class Start:
    """B-threads to start; made by `start`."""

    bthreads: "tuple[BThread, ...]"


def sync(
    *,
    request: Any = None,
    wait_for: Any = None,
    block: Any = None,
    interrupt: Any = None,
    refuse: Any = None,
    because: Any = None,
    otherwise: Otherwise | None = None,
    hot: bool = False,
) -> Sync:
    """Return a synchronization statement; `said = yield sync(...)` gives the selected event.

    request: an event, a list of events in order of preference, or `any_of(...)`.
    wait_for, block, interrupt: event sets; an event in `interrupt` closes this b-thread.
    refuse, because: an event set that is blocked with an answer, and the answer: a text or any frozen value.
    otherwise: a pure function from the refusals to the event requested instead while all of `request` is refused.
    hot: this b-thread must not stay here for ever (checked by `verify` and by the runner).

    Raises TypeError here, at the line that says it, for anything else.
    """
    if (refuse is None) is not (because is None):
        raise TypeError("refuse= and because= go together: who is refused is told why")
    if otherwise is not None and not callable(otherwise):
        raise TypeError(f"otherwise={otherwise!r}: give a function from the refusals to an event")
    # Plain events are told apart right here: a call less for each word is what a small program notices.
    return Sync(
        requests := () if request is None else request._alone if type(request) is NamedEvent else _requested(request),
        type(request) is AnyOf,
        wait_for if wait_for is None or type(wait_for) is NamedEvent else _event_set(wait_for),
        block if block is None or type(block) is NamedEvent else _event_set(block),
        interrupt if interrupt is None or type(interrupt) is NamedEvent else _event_set(interrupt),
        refuse if refuse is None or type(refuse) is NamedEvent else _event_set(refuse),
        because if because is None or type(because) is str else _frozen_because(because),
        otherwise if otherwise is None or requests else _lonely_otherwise(),
        hot if hot is False or hot is True else _no_flag(hot),
    )


def any_of(*events: Event) -> AnyOf:
    """Return a request of any of `events`, whichever the event selection strategy picks."""
    for event in events:
        _check_event(event)
    return AnyOf(events)


def start(*bthreads: "BThread") -> Start:
    """Return a statement that starts b-threads; `yield start(child())` returns at once, with None.

    They run to their first synchronization point after all b-threads that the current event resumed.
    """
    from bp.bthreads import BThread

    for bthread in bthreads:
        if not isinstance(bthread, BThread):
            raise TypeError(f"start({bthread!r}): start takes called b-threads, for example start(guard())")
    return Start(bthreads)


def _requested(request: Any) -> tuple[Event, ...]:
    if type(request) is NamedEvent:
        return request._alone
    if isinstance(request, Event):
        return (request,)
    if type(request) is AnyOf:
        return request.events
    if type(request) not in (list, tuple):
        raise _no_request(request)
    for event in request:
        _check_event(event)
    return tuple(request)


def _check_event(event: Any) -> None:
    if isinstance(event, Event):
        return
    raise _no_request(event)


def _no_request(found: Any) -> TypeError:
    if isinstance(found, EventKind | EventSet):
        return TypeError(f"request={found!r}: a set cannot be requested; request an event of it")
    return TypeError(f"request={found!r}: request an event, a list of events, or any_of(...); they do not nest")


def _event_set(value: Any) -> Any:
    events = as_event_set(value)
    return None if events is NONE else events


def _frozen_because(because: Any) -> Any:
    try:
        return freeze(because)
    except TypeError as error:
        raise TypeError(f"because=: {error}") from error


def _lonely_otherwise() -> Otherwise:
    raise TypeError("otherwise= without request=: it stands in for a refused request")


def _no_flag(hot: Any) -> bool:
    raise TypeError(f"hot={hot!r}: give True or False")
