"""What a b-thread may say at a synchronization point, and the refusals that it may hear.

`sync` holds the four classic words of behavioral programming (request, wait for, block, interrupt: Harel, Marron and
Weiss 2012) and two more: `refuse` with `because` is a block that answers, `otherwise` is what a requester asks for
instead when it is refused.

A statement of plain words is *kept*: saying the same again gives the same object. That saves making it, and lets the
engine recognize by identity what a b-thread says again and again (`bp/habits.py`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from attrs import define, field, frozen

from bp.event_sets import NONE, EventSet, as_event_set
from bp.events import Event, EventKind, NamedEvent
from bp.payload import freeze

if TYPE_CHECKING:
    from bp.bthreads import BThread

__all__ = ["AnyOf", "Refusal", "Refusals", "Start", "Sync", "any_of", "start", "sync"]

Otherwise = Callable[["Refusals"], Event]
MOST_KEPT = 4096  # statements; when there are more, all are forgotten


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


@define(unsafe_hash=True)  # not frozen: one is made at every step, and a frozen one takes three times as long
class Sync:
    """One synchronization statement, checked and normal; made by `sync`. Absent event sets are None.

    `kept`: the same words give this very object again.
    """

    requests: tuple[Event, ...]
    any_of: bool
    wait_for: Any
    block: Any
    interrupt: Any
    refuse: Any
    because: Any
    otherwise: Otherwise | None
    hot: bool
    kept: bool = field(default=False, init=False, eq=False, repr=False)


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
    # Plain events are told apart right here: they are what small programs say, and nothing else is as cheap to look up.
    if (
        interrupt is None
        and refuse is None
        and because is None
        and otherwise is None
        and hot is False
        and (request is None or type(request) is NamedEvent)
        and (wait_for is None or type(wait_for) is NamedEvent)
        and (block is None or type(block) is NamedEvent)
    ):
        said = _KEPT.get((request, wait_for, block))
        if said is not None:
            return said
        return _keep((request, wait_for, block), _checked(request, wait_for, block, None, None, None, None, False))
    return _said(request, wait_for, block, interrupt, refuse, because, otherwise, hot)


def any_of(*events: Event) -> AnyOf:
    """Return a request of any of `events`, whichever the event selection strategy picks. Raises TypeError."""
    for event in events:
        _check_event(event)
    return AnyOf(events)


def start(*bthreads: "BThread") -> Start:
    """Return a statement that starts b-threads; `yield start(child())` returns at once, with None.

    They run to their first synchronization point after all b-threads that the current event resumed. Raises TypeError
    for anything but called b-threads.
    """
    from bp.bthreads import BThread

    for bthread in bthreads:
        if not isinstance(bthread, BThread):
            raise TypeError(f"start({bthread!r}): start takes called b-threads, for example start(guard())")
    return Start(bthreads)


_KEPT: dict[Any, Sync] = {}


def _said(
    request: Any, wait_for: Any, block: Any, interrupt: Any, refuse: Any, because: Any, otherwise: Any, hot: Any
) -> Sync:
    """Return the statement that was made of the same plain words before, else a new one."""
    key = None
    if (
        otherwise is None
        and type(request) in _MAY_BE_PLAIN
        and type(wait_for) in _MAY_BE_PLAIN
        and type(block) in _MAY_BE_PLAIN
    ):
        key = _plain_key(request, wait_for, block, interrupt, refuse, because, hot)
    said = _KEPT.get(key)
    if said is None:
        said = _checked(request, wait_for, block, interrupt, refuse, because, otherwise, hot)
        if key is not None:
            _keep(key, said)
    return said


def _keep(key: Any, said: Sync) -> Sync:
    if len(_KEPT) >= MOST_KEPT:
        _KEPT.clear()
    said.kept = True
    _KEPT[key] = said
    return said


def _plain_key(*words: Any) -> Any:
    """Return what plain words are looked up by: their objects, lists as tuples; None unless all are plain.

    Plain words are equal only where they are the same. `1` is no plain word, since it equals True.
    """
    key: list[Any] = []
    for word in words:
        sort = type(word)
        if sort is list or sort is tuple:
            if not _PLAIN_EVENTS.issuperset(map(type, word)):
                return None
            word = tuple(word)
        elif sort is AnyOf:
            if not _PLAIN_EVENTS.issuperset(map(type, word.events)):
                return None
            word = (AnyOf, word.events)
        elif sort not in _PLAIN_WORDS:
            return None
        key.append(word)
    return tuple(key)


_PLAIN_EVENTS = frozenset({NamedEvent, EventKind})
_PLAIN_WORDS = frozenset({NamedEvent, EventKind, str, bool, type(None)})
_MAY_BE_PLAIN = _PLAIN_WORDS | {list, tuple, AnyOf}


def _checked(
    request: Any, wait_for: Any, block: Any, interrupt: Any, refuse: Any, because: Any, otherwise: Any, hot: Any
) -> Sync:
    """Return a new statement. Raises TypeError for what cannot be said."""
    if (refuse is None) is not (because is None):
        raise TypeError("refuse= and because= go together: give both, since who is refused is told why")
    if otherwise is not None and not callable(otherwise):
        raise TypeError(f"otherwise={otherwise!r}: give a function from the refusals to an event")
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
    if type(value) is EventKind:
        return value
    events = as_event_set(value)
    return None if events is NONE else events


def _frozen_because(because: Any) -> Any:
    try:
        return freeze(because)
    except TypeError as error:
        raise TypeError(f"because=: {error}") from error


def _lonely_otherwise() -> Otherwise:
    raise TypeError("otherwise= without request=: give the request for which it stands in when that is refused")


def _no_flag(hot: Any) -> bool:
    raise TypeError(f"hot={hot!r}: give True or False")
