"""Events: what happens in a behavioral program, as frozen values.

An event kind is a frozen attrs class below `Event`; its name is the class name in snake case (`GateApproved.name ==
"gate_approved"`). `event("hot")` is a plain named event for small programs. Two events are the same occurrence when
their kind and their data are equal.
"""

import re
from functools import lru_cache
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

import attrs

from bp.event_sets import Complement, EventSet, Row, contains, intersection, union
from bp.payload import FREEZERS, as_it_is, freeze

__all__ = ["Event", "EventKind", "NamedEvent", "check_kind", "event"]


def snake_case(class_name: str) -> str:
    """Return the name of an event kind from its class name: "GateApproved" gives "gate_approved"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()


class EventKind(type):
    """The class of event kinds: gives each its name, and lets kinds be combined like any event set."""

    _is_event_kind_class = True

    def __new__(
        mcls, class_name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "EventKind":
        """Make an event kind; raises TypeError when it has a field called `name`."""
        if any("name" in slots.get("__slots__", ()) for slots in (namespace, *map(vars, bases))):
            return super().__new__(mcls, class_name, bases, namespace, **options)  # plain events name themselves
        if bases != (EventSet,):
            _check_body(class_name, namespace)
        namespace |= {"name": snake_case(class_name), "_payload": None}
        kind = super().__new__(mcls, class_name, bases, namespace, **options)
        kind._kind = kind
        kind._kinds = tuple([base for base in kind.__mro__ if isinstance(base, EventKind)][:-1] or [kind])
        return kind

    def __setattr__(cls, name: str, value: object) -> None:
        if name == "__dataclass_fields__":
            raise TypeError(f"event kind {cls.__name__}: put attrs' @frozen on the class, not @dataclass")
        super().__setattr__(name, value)

    @property
    def _rows(cls) -> tuple[Row, ...]:
        return ((cls, cls, None, None),)

    def __contains__(cls, event: object) -> bool:
        return contains(cls, event)

    def __or__(cls, other: Any) -> Any:
        if isinstance(other, EventKind):
            return _either(cls, other)
        return union(cls, other) if _is_set(other) else type.__or__(cls, other)

    def __ror__(cls, other: Any) -> Any:
        return union(other, cls) if _is_set(other) else type.__ror__(cls, other)

    def __and__(cls, other: Any) -> Any:
        return intersection(cls, other)

    def __rand__(cls, other: Any) -> Any:
        return intersection(other, cls)

    def __invert__(cls) -> Any:
        return Complement(cls)


class Event(EventSet, metaclass=EventKind):
    """The base of all events. Make kinds of it with `@frozen class Ping(Event): value: int` (attrs)."""

    __slots__ = ()
    _is_event_kind: ClassVar[bool] = True
    _kind: ClassVar[Any]
    _kinds: ClassVar[tuple[Any, ...]]  # the event's own kind, and the kinds that this extends
    _payload: ClassVar[tuple[str, ...] | None] = None
    name: ClassVar[str]

    def __init__(self, *_: Any, **__: Any) -> None:
        """Raise TypeError: this kind is not made by attrs' @frozen, so its events have no values."""
        raise _not_frozen(type(self))

    def __attrs_post_init__(self) -> None:
        """Freeze the payload; raises TypeError naming the field when a value can change."""
        payload = self._payload
        for name in _learn(type(self)) if payload is None else payload:
            value = getattr(self, name)
            freezer = FREEZERS[type(value)]
            if freezer is as_it_is:
                continue
            try:
                frozen = freezer(value)
            except (TypeError, RecursionError) as error:
                raise TypeError(f"event {self._kind.__name__}: field {name!r}: {error}") from error
            if frozen is not value:
                object.__setattr__(self, name, frozen)

    @property
    def _rows(self) -> tuple[Row, ...]:
        return ((self, self._kind, None, None),)


class NamedEvent(Event):
    """A plain event: a name and nothing else. Its kind is its name. Make it with `event("hot")`.

    There is one object for each name, so that these events compare and hash by identity, at no cost.
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
    """Return a plain named event; as an event set it contains itself alone.

    Raises TypeError for a name that is no text, and for data that can change.
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
    if not isinstance(kind, str) and kind._payload is None:
        _learn(kind)


def _learn(kind: Any) -> tuple[str, ...]:
    """Check `kind` and find its fields, once; every later event of this kind, and every program, knows them."""
    if kind is Event:
        raise TypeError("Event is the base of all kinds and no kind itself; use ALL for every event, or a kind")
    if "__attrs_attrs__" not in vars(kind) or not attrs.inspect(kind).is_frozen:
        raise _not_frozen(kind)
    if kind.__eq__ is object.__eq__ or kind.__hash__ is None:
        raise TypeError(f"events of kind {kind.__name__} are not hashable values; leave eq and hash to @frozen")
    fields = attrs.fields(kind)
    for field in fields:
        if field.name == "name" or not field.eq or field.eq_key is not None:
            raise TypeError(f"event kind {kind.__name__}: field {field.name!r} must count as it is, and be no 'name'")
    kind._payload = names = tuple(field.name for field in fields)
    return names


def _not_frozen(kind: type) -> TypeError:
    return TypeError(f"event kind {kind.__name__} is not frozen; put attrs' @frozen on the class")


def _check_body(class_name: str, namespace: dict[str, Any]) -> None:
    """Raise TypeError when the body of an event kind says what the engine says about kinds."""
    own_name = snake_case(class_name)
    if "name" in namespace.get("__annotations__", ()) or namespace.get("name", own_name) != own_name:
        raise TypeError(
            f"event kind {class_name} may not have a field called 'name', which is the kind's own name; rename it"
        )
    if "__attrs_post_init__" in namespace:
        raise TypeError(f"event kind {class_name} may not define __attrs_post_init__, which freezes it; use validators")


@lru_cache(maxsize=1024)
def _either(one: EventKind, other: EventKind) -> Any:
    """Return the union of two kinds: b-threads say the same one at every turn, and get the same object."""
    return union(one, other)


def _is_set(value: Any) -> bool:
    return isinstance(value, EventSet | EventKind | list | tuple)
