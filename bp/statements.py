"""B-threads, and the statements of their synchronization points.

`sync` has the four classic words of behavioral programming (request, wait for, block, interrupt: Harel, Marron and
Weiss 2012) and two more: `refuse` with `because` is a block that answers, and `otherwise` is what a requester requests
instead when refused.

`advance` is the only function that resumes a b-thread's generator; running, verifying and testing use it alike.
"""

from collections.abc import Callable, Generator, Iterable
from functools import partial
from inspect import CO_GENERATOR
from types import MethodType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

import attrs
from attrs import frozen

from bp.errors import shortened
from bp.events import NONE, Event, EventSet, as_event_set
from bp.payload import freeze

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
Otherwise = Callable[["Refusals"], Event]


class Refusal(NamedTuple):
    """A refusal of an event: the name of the b-thread that refuses, and the text or frozen value of its `because`."""

    bthread: str
    because: Any


class Refusals(tuple[Refusal, ...]):
    """The refusals of one request, by priority and age; equal in any order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and frozenset(self) == frozenset(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(frozenset(self))


class Sync(NamedTuple):
    """One synchronization statement, checked and normalized; `sync` makes it. Absent event sets are None.

    interrupt: the events that close this b-thread. refuse, because: the events that are blocked with an answer, and the
    answer. otherwise: the function from refusals to the event requested instead. hot: this b-thread must not stay here.
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


@frozen
class AnyOf:
    """Events of which any one may be selected; the event selection strategy chooses."""

    events: tuple[Event, ...]


class Start(tuple["BThread", ...]):
    """B-threads to start; made by `start`."""

    __slots__ = ()


BThreadBody = Generator[Sync | Start, Any, Any]


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
    wait_for, block, interrupt: event sets, or lists of them; an event in `interrupt` closes this b-thread.
    refuse, because: an event set that is blocked with an answer, and the answer: a text or any frozen value.
    otherwise: a pure function from the refusals to the event requested instead while all of `request` is refused.
    hot: this b-thread must not stay here for ever (checked by `verify` and by the runner).

    Raises TypeError here, at the line of the mistake, for anything else.
    """
    requests = () if request is None else _requested(request)
    if (refuse is None) is not (because is None):
        raise TypeError("refuse= and because= go together: give both, since a requester is told why it is refused")
    if otherwise is not None and not callable(otherwise):
        raise TypeError(f"otherwise={otherwise!r}: give a function from the refusals to an event")
    if otherwise is not None and not requests:
        raise TypeError("otherwise= without request=: give the request for which it stands in when that is refused")
    if hot is not True and hot is not False:
        raise TypeError(f"hot={hot!r}: give True or False")
    return Sync(
        requests,
        isinstance(request, AnyOf),
        None if wait_for is None else _event_set(wait_for),
        None if block is None else _event_set(block),
        None if interrupt is None else _event_set(interrupt),
        None if refuse is None else _event_set(refuse),
        None if because is None else _answer(because),
        otherwise,
        hot,
    )


def _answer(because: Any) -> Any:
    try:
        return freeze(because)
    except TypeError as error:
        raise TypeError(f"because=: {error}") from error


def any_of(*events: Event) -> AnyOf:
    """Return a request of any of `events`; the event selection strategy chooses. Raises TypeError."""
    _requested(events)
    return AnyOf(events)


def _cure(error: TypeError) -> str:
    """Return the cure for a call of `sync` with invalid parameters."""
    from difflib import get_close_matches

    words = list(sync.__kwdefaults__ or ())
    meant = get_close_matches(str(error).partition("'")[2].partition("'")[0], words, 1)
    return f"did you mean {meant[0]}=?" if meant else f"its words are {'=, '.join(words)}="


def _requested(request: Any) -> tuple[Event, ...]:
    if isinstance(request, AnyOf):
        return request.events
    events = request if isinstance(request, list | tuple) else (request,)
    for event in events:
        if not isinstance(event, Event):
            raise _no_request(event)
    return tuple(events)


def _no_request(found: Any) -> TypeError:
    if isinstance(found, EventSet):
        return TypeError(f"request={found!r}: a set cannot be requested; request an event of it")
    return TypeError(f"request={found!r}: request an event, a list of events, or any_of(...); they do not nest")


def _event_set(value: Any) -> Any:
    events = as_event_set(value)
    return None if events is NONE else events


@frozen
class BThread:
    """A b-thread that can be started: equal to another with the same function, arguments, name and priority.

    One that was made by a module-level `@bthread` function can be pickled, if its arguments can.
    """

    function: Callable[..., BThreadBody]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = attrs.field(factory=dict, hash=False)
    name: str = ""
    priority: int | None = None
    made_by: "BThreadFunction[Any] | None" = attrs.field(default=None, eq=False, repr=False)

    def begin(self) -> BThreadBody:
        """Return a new generator. Raises TypeError if the function returns none."""
        body = self.function(*self.args, **self.kwargs)
        if not isinstance(body, Generator):
            raise TypeError(f"b-thread {self.name!r}: {_no_generator(body)}{_at(self.function)}")
        return body

    def named(self, name: str) -> "BThread":
        """Return this b-thread under another name."""
        return attrs.evolve(self, name=name)

    def at_priority(self, priority: int) -> "BThread":
        """Return this b-thread with another priority; higher goes first. Raises TypeError unless it is an integer."""
        _check_priority("at_priority(", priority)
        return attrs.evolve(self, priority=priority)

    def __reduce__(self) -> tuple[Any, ...]:
        function: Any = self.made_by or self.function
        return (_called, (function, self.args, self.kwargs, self.name, self.priority))


def _at(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f" (at {code.co_filename}:{code.co_firstlineno})" if code else ""


def _called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, priority: int | None) -> BThread:
    """Return a b-thread of a `@bthread` function, or of a plain one."""
    made_by = function if isinstance(function, BThreadFunction) else None
    return BThread(made_by.function if made_by else function, args, kwargs, name, priority, made_by)


class BThreadFunction(Generic[P]):
    """A function decorated with `@bthread`; calling it returns a `BThread` without running it."""

    def __init__(self, function: Callable[P, BThreadBody], name: str | None, priority: int | None) -> None:
        named: Any = function.func if isinstance(function, partial) else function
        self.function = function
        self.name = name or named.__name__
        self.priority = priority
        self.__doc__ = named.__doc__
        self.__name__ = named.__name__
        self.__qualname__ = named.__qualname__
        self.__module__ = named.__module__
        self.__wrapped__ = function
        self._generates = bool(function.__code__.co_flags & CO_GENERATOR) if hasattr(function, "__code__") else False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> BThread:
        """Return the b-thread with these arguments. Raises TypeError if they do not fit the function."""
        if self._generates:
            self.function(*args, **kwargs)  # a generator that never runs, to check the arguments
        return BThread(self.function, args, kwargs, self.name, self.priority, self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """Bind like a function: a `@bthread` method gets its object."""
        if owner is None:
            return self
        return BThreadFunction(MethodType(self.function, owner), self.name, self.priority)

    def __reduce__(self) -> Any:
        if isinstance(self.function, MethodType):
            return (getattr, (self.function.__self__, self.__name__))
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<b-thread function {self.__qualname__}>"


@overload
def bthread(function: Callable[P, BThreadBody], /) -> BThreadFunction[P]: ...
@overload
def bthread(
    *, name: str | None = None, priority: int | None = None
) -> Callable[[Callable[P, BThreadBody]], BThreadFunction[P]]: ...
def bthread(
    function: Callable[P, BThreadBody] | None = None, /, *, name: str | None = None, priority: int | None = None
) -> Any:
    """Make a generator function a b-thread: `@bthread`, `@bthread(priority=5)` or `@bthread(name="guard")`.

    Higher priority goes first; a b-thread without one inherits its starter's, and 0 at the top.

    Raises TypeError for a priority that is not an integer, and for anything but a function.
    """
    if priority is not None:
        _check_priority("@bthread(priority=", priority)
    if function is None:
        return lambda decorated: BThreadFunction(decorated, name, priority)
    if not callable(function):
        raise TypeError(f"@bthread({function!r}): decorate a generator function")
    return BThreadFunction(function, name, priority)


def _no_generator(returned: object) -> str:
    if hasattr(returned, "__anext__"):
        return "a b-thread is not async; have an effect wait"
    return f"its function returned {returned!r}; it must yield sync(...)"


def _check_priority(said: str, priority: int) -> None:
    if type(priority) is not int:
        raise TypeError(f"{said}{priority!r}): a priority is an integer; higher goes first")


def start(*bthreads: BThread) -> Start:
    """Return a statement that starts b-threads; `yield start(child())` returns at once, with None.

    They run to their first synchronization point after all b-threads that the current event resumed. Raises TypeError
    for anything but called b-threads.
    """
    check_bthreads("start", bthreads)
    return Start(bthreads)


def check_bthreads(user: str, bthreads: Iterable[Any]) -> None:
    """Raise TypeError for anything but called b-threads; `user`: the function that takes them."""
    for bthread in bthreads:
        if not isinstance(bthread, BThread):
            is_list = isinstance(bthread, list | tuple)
            cure = "one by one: unpack a list with *" if is_list else "for example guard()"
            raise TypeError(f"{user} takes called b-threads, {cure}; found {bthread!r}")


def as_list(option: str, given: Iterable[T]) -> tuple[T, ...]:
    """Return the list given for an option. Raises TypeError for a single value, such as a b-thread or an event set."""
    if isinstance(given, BThread | EventSet) or not isinstance(given, Iterable):
        raise TypeError(f"{option}={shortened(repr(given))}: give a list, {option}=[...]")
    return tuple(given)


def advance(
    send: Callable[[Any], Any], event: Event | None, starts: Callable[[S, Start], None], starter: S
) -> Sync | None:
    """Resume a b-thread with `event`; return its next statement, or None when it is over.

    send: of its generator. starts: called with `starter` and each `start(...)` on the way. Raises exceptions of the
    b-thread, and TypeError for an invalid statement.
    """
    try:
        said = send(event)
        while type(said) is not Sync:
            if type(said) is not Start:
                raise TypeError(f"it yielded {said!r}; yield sync(...) instead")
            starts(starter, said)
            said = send(None)
    except StopIteration:
        return None
    except TypeError as error:
        if str(error).startswith("sync() "):
            error.args = (f"{error}; {_cure(error)}",)
        raise
    return said
