"""Sets of events as values: who may be waited for, blocked, refused, or interrupted by.

An event is the set of itself and an event kind the set of all its events; this module adds the combinations:
`where(Kind, field=value)`, `|`, `&`, `~`, `ALL` and `NONE`. Sets are equal by what they say, hashable, and frozen.

`selectors` breaks a set into rows that an index can file by kind, field and value, so that only the rows that could
contain an event are ever asked (`bp/index.py`).
"""

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
from attrs import field, frozen

from bp.errors import BProgramError
from bp.payload import freeze

if TYPE_CHECKING:
    from bp.events import Event

__all__ = [
    "ALL",
    "NONE",
    "Complement",
    "EventSet",
    "PredicateError",
    "Selector",
    "Test",
    "as_event_set",
    "contains",
    "intersection",
    "is_kind",
    "selectors",
    "union",
    "values_of",
    "where",
]

Test = Callable[["Event"], bool]


class EventSet:
    """Anything that contains events. Combine with `|`, `&` and `~`."""

    __slots__ = ()

    def __or__(self, other: Any) -> Any:
        return union(self, other)

    def __ror__(self, other: Any) -> Any:
        return union(other, self)

    def __and__(self, other: Any) -> Any:
        return intersection(self, other)

    def __rand__(self, other: Any) -> Any:
        return intersection(other, self)

    def __invert__(self) -> "EventSet":
        return Complement(self)

    def _contains(self, event: "Event") -> bool:
        raise NotImplementedError

    @property
    def _rows(self) -> "tuple[Selector, ...]":
        return (Selector(None, test=self._contains),)


class Selector(NamedTuple):
    """One row of a set: events of `kind` (None: any kind) whose `fields` equal `values`, and which pass `test`.

    `fields` is None for every event of the kind, and () for the single event `values`.
    """

    kind: Any
    fields: tuple[str, ...] | None = None
    values: Any = None
    test: Test | None = None


class PredicateError(BProgramError):
    """A predicate raised or gave no bool; the engine adds who asked and raises `EventSetError`."""

    def __init__(self, event_set: EventSet, finding: str) -> None:
        super().__init__(f"the predicate of {event_set!r} {finding}")
        self.event_set = event_set


def values_of(event: "Event", fields: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of some fields of an event."""
    return tuple([getattr(event, name) for name in fields])


def is_kind(value: object) -> bool:
    """Tell whether `value` is an event kind: a class of events."""
    return isinstance(value, type) and getattr(type(value), "_is_event_kind_class", False)


def as_event_set(value: Any) -> Any:
    """Return `value` as an event, an event kind or an `EventSet`; a list or tuple is the union of its members.

    Raises TypeError for anything else.
    """
    if isinstance(value, EventSet) or is_kind(value):
        return value
    if isinstance(value, list | tuple):
        return union(*value)
    raise TypeError(
        f"{value!r} is no event set; use an event, an event kind, where(...), ALL, NONE, or a list of these"
    )


def contains(events: Any, event: "Event") -> bool:
    """Tell whether the event set `events` contains `event`. Raises PredicateError for a predicate that fails."""
    if isinstance(events, type):
        return event._kind is events
    return bool(events._contains(event))


def selectors(events: Any) -> tuple[Selector, ...]:
    """Return the rows of `events` for an index; an event is in the set when it is in any row."""
    rows: tuple[Selector, ...] = getattr(events, "_rows_of_kind", ()) if isinstance(events, type) else events._rows
    return rows


@frozen(repr=False)
class Everything(EventSet):
    """Every event there is."""

    def _contains(self, event: "Event") -> bool:
        return True

    @cached_property
    def _rows(self) -> tuple[Selector, ...]:
        return (Selector(None),)

    def __repr__(self) -> str:
        return "ALL"


@frozen(repr=False)
class Nothing(EventSet):
    """No event."""

    def _contains(self, event: "Event") -> bool:
        return False

    @cached_property
    def _rows(self) -> tuple[Selector, ...]:
        return ()

    def __repr__(self) -> str:
        return "NONE"


ALL = Everything()
NONE = Nothing()


@frozen(repr=False)
class Union(EventSet):
    """The events of any member; the order of members does not count."""

    members: tuple[Any, ...] = field(eq=frozenset)

    def __instancecheck__(self, value: object) -> bool:
        """Let `isinstance(said, Ping | Pong)` mean what it says: `|` of kinds gives a set, not a union of types."""
        return getattr(type(value), "_is_event_kind", False) and self._contains(value)  # type: ignore[arg-type]

    def _contains(self, event: "Event") -> bool:
        for member in self.members:  # noqa: SIM110 - asked at every step, and `any` takes twice as long
            if contains(member, event):
                return True
        return False

    @cached_property
    def _rows(self) -> tuple[Selector, ...]:
        return tuple(row for member in self.members for row in selectors(member))

    def __repr__(self) -> str:
        return "(" + " | ".join(_shown(member) for member in self.members) + ")"


@frozen(repr=False)
class Intersection(EventSet):
    """The events that every member contains; the order of members does not count."""

    members: tuple[Any, ...] = field(eq=frozenset)

    def _contains(self, event: "Event") -> bool:
        return _all_contain(self.members, event)

    @cached_property
    def _rows(self) -> tuple[Selector, ...]:
        narrowest = min(map(selectors, self.members), key=_breadth)
        test = partial(_all_contain, self.members)  # no method: kept here, it would make a circle
        return tuple(
            Selector(row.kind, test=test) if row.fields == () else row._replace(test=test) for row in narrowest
        )

    def __repr__(self) -> str:
        return "(" + " & ".join(_shown(member) for member in self.members) + ")"


@frozen(repr=False)
class Complement(EventSet):
    """Every event that `excluded` does not contain."""

    excluded: Any

    def _contains(self, event: "Event") -> bool:
        return not contains(self.excluded, event)

    def __invert__(self) -> EventSet:
        return self.excluded  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"~{_shown(self.excluded)}"


@frozen(repr=False)
class FieldsEqual(EventSet):
    """The events of some kinds whose fields have given values: `where(Kind, field=value)`."""

    kinds: tuple[Any, ...] = field(eq=frozenset)
    fields: tuple[str, ...]
    values: tuple[Any, ...]
    _rows: tuple[Selector, ...] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        rows = tuple([Selector(kind, self.fields, self.values) for kind in self.kinds])
        object.__setattr__(self, "_rows", rows)

    def _contains(self, event: "Event") -> bool:
        return event._kind in self.kinds and values_of(event, self.fields) == self.values

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self.fields, self.values, strict=True))
        return f"where({_shown_kinds(self.kinds)}, {values})"


@frozen(repr=False)
class PredicateHolds(EventSet):
    """The events of some kinds that a pure function accepts: `where(Kind, predicate)`."""

    kinds: tuple[Any, ...] = field(eq=frozenset)
    predicate: Callable[[Any], bool]

    def _contains(self, event: "Event") -> bool:
        return event._kind in self.kinds and self._ask(event)

    def _ask(self, event: "Event") -> bool:
        try:
            answer = self.predicate(event)
        except Exception as error:
            raise PredicateError(self, f"raised {type(error).__name__}: {error}") from error
        if type(answer) is not bool:
            raise PredicateError(self, f"gave {answer!r} for {event!r}; it must give True or False")
        return answer

    @property
    def _rows(self) -> tuple[Selector, ...]:
        ask = self._ask  # a method: kept here, it would make a circle
        return tuple([Selector(kind, test=ask) for kind in self.kinds])

    def __repr__(self) -> str:
        return f"where({_shown_kinds(self.kinds)}, {getattr(self.predicate, '__name__', self.predicate)})"


def union(*members: Any) -> Any:
    """Return the events of any member: flat, without repetitions; of none, `NONE`."""
    flat: dict[Any, None] = {}
    for member in map(as_event_set, members):
        flat.update(dict.fromkeys(member.members if isinstance(member, Union) else (member,)))
    if ALL in flat:
        return ALL
    flat.pop(NONE, None)
    return NONE if not flat else next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def intersection(*members: Any) -> Any:
    """Return the events that every member contains: flat, without repetitions; of none, `ALL`."""
    flat: dict[Any, None] = {}
    for member in map(as_event_set, members):
        flat.update(dict.fromkeys(member.members if isinstance(member, Intersection) else (member,)))
    if NONE in flat:
        return NONE
    flat.pop(ALL, None)
    return ALL if not flat else next(iter(flat)) if len(flat) == 1 else Intersection(tuple(flat))


def where(kinds: Any, predicate: Callable[[Any], bool] | None = None, /, **fields: Any) -> Any:
    """Return the events of one kind, or of a tuple of kinds, whose fields have these values and pass `predicate`.

    `where(Score, subject=call)` is filed by kind, field and value and costs nothing until such an event comes;
    a predicate is the way out: it is asked about every event of its kinds, and must be a pure function that gives
    True or False. A plain event's kind is its name: `where("temperature", data=21)`.

    Raises TypeError for an unknown field, for something that is no event kind, and for a value that can change.
    """
    chosen = kinds if isinstance(kinds, tuple) else (kinds,)
    for kind in chosen:
        _check_fields(kind, fields)
    if predicate is not None and not callable(predicate):
        raise TypeError(f"where({_shown_kinds(chosen)}, {predicate!r}): a predicate is a function of the event")
    parts: list[Any] = [PredicateHolds(chosen, predicate)] if predicate is not None else []
    if fields:
        names = tuple(sorted(fields))
        parts.insert(0, FieldsEqual(chosen, names, tuple(freeze(fields[name]) for name in names)))
    if len(parts) == 1:
        return parts[0]
    return intersection(*parts) if parts else union(*map(_whole_kind, chosen))


def _whole_kind(kind: Any) -> Any:
    return PredicateHolds((kind,), _always) if isinstance(kind, str) else kind


def _always(event: "Event") -> bool:
    return True


def _check_fields(kind: Any, fields: dict[str, Any]) -> None:
    if isinstance(kind, str):
        known: tuple[str, ...] = ("data",)
    elif is_kind(kind):
        known = _field_names(kind)
    else:
        raise TypeError(f"where({kind!r}, ...): this is no event kind; use a class of events, or a tuple of them")
    for name in fields:
        if name not in known:
            raise TypeError(f"{_shown(kind)} has no field {name!r}; it has {', '.join(known) or 'none'}")


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in attrs.fields(kind)) if attrs.has(kind) else ()


def _all_contain(members: tuple[Any, ...], event: "Event") -> bool:
    for member in members:  # noqa: SIM110 - as above
        if not contains(member, event):
            return False
    return True


def _breadth(rows: tuple[Selector, ...]) -> tuple[bool, bool, int]:
    """Order the members of an intersection by how much their rows let through: narrow ones first."""
    return (any(row.kind is None for row in rows), any(row.fields is None for row in rows), len(rows))


def _shown(member: Any) -> str:
    return member.__name__ if isinstance(member, type) else repr(member)


def _shown_kinds(kinds: tuple[Any, ...]) -> str:
    shown = ", ".join(_shown(kind) for kind in kinds)
    return shown if len(kinds) == 1 else f"({shown})"
