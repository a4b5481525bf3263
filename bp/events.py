"""Events and sets of events.

An event is a frozen value. An event kind is a frozen attrs class below `Event`; its name is the class name in snake
case (`OrderPlaced.name == "order_placed"`). `event("hot")` is a plain named event for small programs. Two events are
the same occurrence when their kind and their data are equal.

A set of events is a value too, for `wait_for`, `block`, `refuse` and `interrupt`: an event is the set of itself, a kind
the set of all its events, and `where(Kind, field=value)`, `|`, `&`, `~`, `ALL` and `NONE` make others. Sets are equal
by content, hashable, and frozen.

Membership is defined once, by *rows*: every set has `_rows`, and an event is in the set when a row matches it. A row is
`(key, kind, fields, test)`, and its key says which events it could match at all:

    key                      matches                                       kind    fields
    an event                 this event                                    kind    None
    an event kind            every event of the kind                       kind    None
    (kind, fields, values)   those of them with these values               kind    the names
    None                     every event                                   None    None

`test`, where it is not None, must accept the event as well; the row of a single event has none. An index files
b-threads by key (`bp/board.py`).
"""

import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

import attrs
from attrs import field, frozen

from bp.errors import BProgramError
from bp.payload import freeze

Test = Callable[[Any], bool]  # of an event
Row = tuple[Any, Any, tuple[str, ...] | None, Test | None]


class EventSet:
    """A set of events. Combine with `|`, `&` and `~`; `event in events` tests membership."""

    __slots__ = ()

    _rows: Any  # tuple[Row, ...]

    def __or__(self, other: Any) -> Any:
        return union(self, other)

    def __ror__(self, other: Any) -> Any:
        return union(other, self)

    def __and__(self, other: Any) -> Any:
        return intersection(self, other)

    def __rand__(self, other: Any) -> Any:
        return intersection(other, self)

    def __invert__(self) -> Any:
        return Complement(self)

    def __contains__(self, event: object) -> bool:
        return contains(self, event)


class PredicateError(BProgramError):
    """A predicate raised or returned no bool; the engine adds the b-thread and raises `EventSetError`."""

    def __init__(self, event_set: EventSet, finding: str) -> None:
        super().__init__(f"the predicate of {event_set!r} {finding}")
        self.event_set = event_set


def snake_case(class_name: str) -> str:
    """Return the name of an event kind from its class name: "OrderPlaced" gives "order_placed"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


class EventKind(EventSet, type):
    """The metaclass of event kinds, each of which is the set of its events; it gives them their names."""

    _is_value = True  # for `freeze`: events are frozen at construction, kinds are constants

    def __new__(
        mcls, class_name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "EventKind":
        """Make an event kind. Raises TypeError if it has a field called `name`."""
        if any("name" in slots.get("__slots__", ()) for slots in (namespace, *map(vars, bases))):
            return super().__new__(mcls, class_name, bases, namespace, **options)  # plain events name themselves
        if bases != (EventSet,):
            _check_body(class_name, namespace)
        namespace |= {"name": snake_case(class_name), "_payload": None}
        kind = super().__new__(mcls, class_name, bases, namespace, **options)
        kind._kind = kind
        # A kind contains its subkinds: its events are looked up under each kind that it extends, too.
        kind._kinds = tuple(base for base in kind.__mro__ if isinstance(base, EventKind))[:-1]
        return kind

    def __setattr__(cls, name: str, value: object) -> None:
        if name == "__dataclass_fields__":
            raise TypeError(f"event kind {cls.__name__}: put attrs' @frozen on the class, not @dataclass")
        super().__setattr__(name, value)

    @property
    def _rows(cls) -> tuple[Row, ...]:
        return ((cls, cls, None, None),)

    def __or__(cls, other: Any) -> Any:
        return union(cls, other) if _is_set(other) else type.__or__(cls, other)

    def __ror__(cls, other: Any) -> Any:
        return union(other, cls) if _is_set(other) else type.__ror__(cls, other)


class Event(EventSet, metaclass=EventKind):
    """The base of all events. Make kinds of it with `@frozen class Ping(Event): value: int` (attrs)."""

    __slots__ = ()
    _kind: ClassVar[Any]
    _kinds: ClassVar[tuple[Any, ...]]
    _payload: ClassVar[tuple[str, ...] | None] = None
    name: ClassVar[str]

    def __init__(self, *_: Any, **__: Any) -> None:
        """Raise TypeError: this kind lacks attrs' @frozen, so its events have no values."""
        raise _not_frozen(type(self))

    def __attrs_post_init__(self) -> None:
        """Freeze the payload. Raises TypeError, naming the field, if a value can change."""
        if self._payload is None:
            check_kind(self._kind)
        for name in self._payload or ():
            value = getattr(self, name)
            try:
                frozen = freeze(value)
            except (TypeError, RecursionError) as error:
                raise TypeError(f"event {self._kind.__name__}: field {name!r}: {error}") from error
            if frozen is not value:
                object.__setattr__(self, name, frozen)

    @property
    def _rows(self) -> tuple[Row, ...]:
        return ((self, self._kind, None, None),)


class NamedEvent(Event):
    """A plain event: a name and nothing else. Its kind is its name. Make it with `event("hot")`.

    There is one object for each name, so these events compare and hash by identity.
    """

    __slots__ = ("__weakref__", "_kind", "_kinds", "name")

    name: str  # type: ignore[misc]
    data: Any = None
    _kind: str  # type: ignore[misc]
    _kinds: tuple[str]  # type: ignore[misc]

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_kind", name)
        object.__setattr__(self, "_kinds", (name,))

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise attrs.exceptions.FrozenInstanceError

    def __repr__(self) -> str:
        return f"event({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (event, (self.name, self.data))


class DataEvent(NamedEvent):
    """A plain event with data. Make it with `event("temperature", data=21)`."""

    __slots__ = ("data",)

    def __init__(self, name: str, data: Any) -> None:
        super().__init__(name)
        object.__setattr__(self, "data", data)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataEvent) and self.name == other.name and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.name, self.data))

    def __repr__(self) -> str:
        return f"event({self.name!r}, data={self.data!r})"


_NAMED: WeakValueDictionary[str, NamedEvent] = WeakValueDictionary()


def event(name: str, /, data: Any = None) -> NamedEvent:
    """Return a plain named event; as an event set it contains only itself.

    Raises TypeError for a name that is not a text, and for mutable data.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"event({name!r}): the name of an event is a text that is not empty")
    if data is None:
        return _NAMED.get(name) or _NAMED.setdefault(name, NamedEvent(name))
    try:
        return DataEvent(name, freeze(data))
    except (TypeError, RecursionError) as error:
        raise TypeError(f"event {name!r}: data: {error}") from error


def check_kind(kind: Any) -> None:
    """Raise TypeError unless `kind` is a proper event kind: a frozen attrs class compared by value, or a plain name."""
    if isinstance(kind, str) or kind._payload is not None:
        return
    if "__attrs_attrs__" not in vars(kind) or not attrs.inspect(kind).is_frozen:
        raise _not_frozen(kind)
    if kind.__eq__ is object.__eq__ or kind.__hash__ is None:
        raise TypeError(f"events of kind {kind.__name__} are not hashable values; leave eq and hash to @frozen")
    fields = attrs.fields(kind)
    for found in fields:
        if found.name == "name" or not found.eq or found.eq_key is not None:
            raise TypeError(f"event kind {kind.__name__}: field {found.name!r} must count as it is, and be no 'name'")
    kind._payload = tuple(found.name for found in fields)


def _not_frozen(kind: type) -> TypeError:
    if kind is Event:
        return TypeError(
            "Event is the base of all kinds; use ALL for every event, event('a') for a plain one, or a kind"
        )
    return TypeError(f"event kind {kind.__name__} is not frozen; put attrs' @frozen on the class")


def _check_body(class_name: str, namespace: dict[str, Any]) -> None:
    """Raise TypeError if the body of an event kind defines names that the engine sets."""
    own_name = snake_case(class_name)
    if "name" in _annotations(namespace) or namespace.get("name", own_name) != own_name:
        raise TypeError(
            f"event kind {class_name} may not have a field called 'name', which is the kind's own name; rename it"
        )
    if "__attrs_post_init__" in namespace:
        raise TypeError(f"event kind {class_name} may not define __attrs_post_init__, which freezes it; use validators")


def _annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations in the body of a class, which are evaluated lazily from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace

        annotate = get_annotate_from_class_namespace(namespace)
        return call_annotate_function(annotate, Format.STRING) if annotate else {}
    annotations: dict[str, Any] = namespace.get("__annotations__", {})
    return annotations


def _is_set(value: Any) -> bool:
    return isinstance(value, EventSet | list | tuple)


# Sets of events.


def as_event_set(value: Any) -> Any:
    """Return `value` as an event, an event kind or an `EventSet`; a list or tuple is the union of its members.

    Raises TypeError for anything else.
    """
    if isinstance(value, EventSet):
        return value
    if isinstance(value, list | tuple):
        return union(*value)
    raise TypeError(
        f"{value!r} is no event set; use an event, an event kind, where(...), ALL, NONE, or a list of these"
    )


def contains(events: Any, event: Any) -> bool:
    """Return whether the event set `events` contains `event`.

    Raises TypeError for an invalid event set or event, and PredicateError for a predicate that fails.
    """
    if not isinstance(event, Event):
        raise TypeError(f"{event!r} is no event; only events are members of event sets")
    return matches(as_event_set(events)._rows, event)


def matches(rows: tuple[Row, ...], event: Any) -> bool:
    """Return whether one of `rows` matches `event`; as in an index, all tests are called unless none is needed.

    Raises PredicateError for a predicate that fails.
    """
    tests = [test for key, kind, fields, test in rows if _fits(key, kind, fields, event)]
    return None in tests or True in [test(event) for test in tests if test]


def _fits(key: Any, kind: Any, fields: tuple[str, ...] | None, event: Any) -> bool:
    if fields is not None:
        return kind in event._kinds and key == (kind, fields, attrgetter(*fields)(event))
    return key is None or key == event or key in event._kinds


@frozen(repr=False)
class Union(EventSet):
    """The events of any member, equal in any order; `NONE` has no members."""

    members: tuple[Any, ...] = field(eq=frozenset)
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    @_rows.default
    def _rows_of_members(self) -> tuple[Row, ...]:
        return tuple([row for member in self.members for row in member._rows])

    def __instancecheck__(self, value: object) -> bool:
        """Support `isinstance(event, Ping | Pong)`: `|` of kinds gives an event set, not a union of types."""
        return isinstance(value, Event) and contains(self, value)

    def __repr__(self) -> str:
        return f"({' | '.join(map(_shown, self.members))})" if self.members else "NONE"


@frozen(repr=False)
class Intersection(EventSet):
    """The events in every member, equal in any order; `ALL` has no members."""

    members: tuple[Any, ...] = field(eq=frozenset)
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    @_rows.default
    def _rows_of_narrowest(self) -> tuple[Row, ...]:
        """Return the rows of one member, with a test that asks the others."""
        of_members = [member._rows for member in self.members]
        narrowest = min(of_members, key=_is_broad, default=((None, None, None, None),))
        others = [rows for rows in of_members if rows is not narrowest or any(test for *_, test in rows)]
        test = partial(_all_match, others) if others else None
        return tuple([(key, kind, fields, test) for key, kind, fields, _ in narrowest])

    def __repr__(self) -> str:
        return f"({' & '.join(map(_shown, self.members))})" if self.members else "ALL"


def _is_broad(rows: tuple[Row, ...]) -> tuple[bool, bool]:
    """Sort key of an intersection's members: rows of any kind, then those of whole kinds, are filed last."""
    return any(row[1] is None for row in rows), any(row[0] is row[1] for row in rows)


NONE = Union(())
ALL = Intersection(())


@frozen(repr=False)
class Complement(EventSet):
    """Every event that `excluded` does not contain."""

    excluded: Any

    @property
    def _rows(self) -> tuple[Row, ...]:
        return ((None, None, None, partial(_matches_none, self.excluded._rows)),)

    def __invert__(self) -> Any:
        return self.excluded

    def __repr__(self) -> str:
        return f"~{_shown(self.excluded)}"


@frozen(repr=False)
class Where(EventSet):
    """The events of some kinds with given field values that a pure function accepts; see `where`."""

    kinds: tuple[Any, ...] = field(eq=frozenset)
    fields: tuple[str, ...]
    values: tuple[Any, ...]
    predicate: Callable[[Any], bool] | None
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    @_rows.default
    def _rows_of_kinds(self) -> tuple[Row, ...]:
        test = None if self.predicate is None else partial(_ask, self.kinds, self.predicate)
        if not self.fields:
            return tuple([(kind, kind, None, test) for kind in self.kinds])
        values = self.values if len(self.values) > 1 else self.values[0]  # as `attrgetter` gives them
        return tuple([((kind, self.fields, values), kind, self.fields, test) for kind in self.kinds])

    def __repr__(self) -> str:
        predicate = [] if self.predicate is None else [str(getattr(self.predicate, "__name__", self.predicate))]
        values = [f"{name}={value!r}" for name, value in zip(self.fields, self.values, strict=True)]
        return f"where({', '.join([_shown_kinds(self.kinds), *predicate, *values])})"


def _ask(kinds: tuple[Any, ...], predicate: Callable[[Any], bool], event: Any) -> bool:
    try:
        answer = predicate(event)
    except Exception as error:
        raise PredicateError(where(kinds, predicate), f"raised {type(error).__name__}: {error}") from error
    if type(answer) is not bool:
        raise PredicateError(where(kinds, predicate), f"gave {answer!r} for {event!r}; it must give True or False")
    return answer


def union(*members: Any) -> Any:
    """Return the union: flat, without repetitions; of no members, `NONE`."""
    return _combined(Union, members, NONE, ALL)


def intersection(*members: Any) -> Any:
    """Return the intersection: flat, without repetitions; of no members, `ALL`."""
    return _combined(Intersection, members, ALL, NONE)


def _combined(sort: type[Union] | type[Intersection], members: tuple[Any, ...], empty: Any, absorbing: Any) -> Any:
    """Return a set of the members, with those of nested sets of the same sort."""
    flat: dict[Any, None] = {}
    for member in map(as_event_set, members):
        flat.update(dict.fromkeys(member.members if isinstance(member, sort) else (member,)))
    if absorbing in flat:
        return absorbing
    return sort(tuple(flat)) if len(flat) > 1 else next(iter(flat), empty)


def where(kinds: Any, predicate: Callable[[Any], bool] | None = None, /, **fields: Any) -> Any:
    """Return the events of one kind, or of a tuple of kinds, whose fields have these values and pass `predicate`.

    `where(OrderPlaced, client=1)` is filed by kind, field and value and costs nothing until such an event comes; a
    predicate is called for every event of its kinds, and must be a pure function that returns True or False. A plain
    event's kind is its name: `where("temperature", data=21)`.

    Raises TypeError for an unknown field, for an invalid event kind, and for a mutable value.
    """
    chosen = kinds if type(kinds) is tuple else (kinds,)
    for kind in chosen:
        _check_fields(kind, fields)
    if predicate is None and not fields and str not in map(type, chosen):
        return union(*chosen)
    if predicate is not None and not callable(predicate):
        raise TypeError(f"where({_shown_kinds(chosen)}, {predicate!r}): a predicate is a function of the event")
    names = tuple(sorted(fields))
    return Where(chosen, names, tuple([freeze(fields[name]) for name in names]), predicate)


def _check_fields(kind: Any, fields: Iterable[str]) -> None:
    """Check that a kind has these fields. Raises TypeError, also for an invalid event kind."""
    if not isinstance(kind, str | EventKind):
        raise TypeError(f"where({kind!r}, ...): this is no event kind; use a class of events, or a tuple of them")
    known = ["data"]
    if not isinstance(kind, str):
        known = [attribute.name for attribute in attrs.fields(kind)] if attrs.has(kind) else []
    for name in fields:
        if name not in known:
            has = ", ".join(known) or "none; is it decorated with @frozen?"
            raise TypeError(f"{_shown(kind)} has no field {name!r}; it has {has}")


def _all_match(of_members: list[tuple[Row, ...]], event: Any) -> bool:
    return all(matches(rows, event) for rows in of_members)


def _matches_none(rows: tuple[Row, ...], event: Any) -> bool:
    return not matches(rows, event)


def _shown(member: Any) -> str:
    return member.__name__ if isinstance(member, type) else repr(member)


def _shown_kinds(kinds: tuple[Any, ...]) -> str:
    shown = ", ".join(_shown(kind) for kind in kinds)
    return shown if len(kinds) == 1 else f"({shown})"
