"""Sets of events as values, for `wait_for`, `block`, `refuse` and `interrupt`.

An event is the set of itself and an event kind the set of all its events; this module adds the combinations:
`where(Kind, field=value)`, `|`, `&`, `~`, `ALL` and `NONE`. Sets are equal by content, hashable, and frozen.

Membership is defined once, by *rows*: every set has `_rows`, and an event is in the set when a row matches it. A row is
`(key, kind, fields, test)`, and its key says which events it could match at all:

    key                      matches                                       kind    fields
    an event                 this event                                    kind    None
    an event kind            every event of the kind, or of one below it   kind    None
    (kind, fields, values)   those of them with these values               kind    the names
    None                     every event                                   None    None

`test`, where it is not None, must accept the event as well; the row of a single event has none. An index files
b-threads by key (`bp/index.py`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from attrs import define, field, frozen

from bp.errors import BProgramError
from bp.payload import ATOMS, freeze

__all__ = [
    "ALL",
    "NONE",
    "EventSet",
    "PredicateError",
    "Row",
    "as_event_set",
    "contains",
    "intersection",
    "is_kind",
    "matches",
    "union",
    "values_of",
    "where",
]

Test = Callable[[Any], bool]  # of an event
Row = tuple[Any, Any, tuple[str, ...] | None, Test | None]


class EventSet:
    """Anything that contains events. Combine with `|`, `&` and `~`; `event in events` tests membership."""

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
    """A predicate raised or gave no bool; the engine adds the b-thread and raises `EventSetError`."""

    def __init__(self, event_set: EventSet, finding: str) -> None:
        super().__init__(f"the predicate of {event_set!r} {finding}")
        self.event_set = event_set


def values_of(event: Any, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of some fields of an event."""
    if len(fields) == 1:  # by far the most
        return (getattr(event, fields[0]),)
    return tuple([getattr(event, name) for name in fields])


def is_kind(value: object) -> bool:
    """Return whether `value` is an event kind: a class of events."""
    return isinstance(value, type) and getattr(type(value), "_is_event_kind_class", False)


def as_event_set(value: Any) -> Any:
    """Return `value` as an event, an event kind or an `EventSet`; a list or tuple is the union of its members.

    Raises TypeError for anything else.
    """
    if isinstance(value, EventSet) or getattr(type(value), "_is_event_kind_class", False):
        return value
    if isinstance(value, list | tuple):
        return union(*value)
    raise TypeError(
        f"{value!r} is no event set; use an event, an event kind, where(...), ALL, NONE, or a list of these"
    )


def contains(events: Any, event: Any) -> bool:
    """Return whether the event set `events` contains `event`.

    Raises TypeError for what is no event set or no event, and PredicateError for a predicate that fails.
    """
    if isinstance(event, type) or not hasattr(event, "_kinds"):
        raise TypeError(f"{event!r} is no event; only events are members of event sets")
    return matches(as_event_set(events)._rows, event)


def matches(rows: tuple[Row, ...], event: Any) -> bool:
    """Return whether one of `rows` matches `event`; as in an index, all its tests are asked unless none is needed.

    Raises PredicateError for a predicate that fails.
    """
    tests = []
    for key, kind, fields, test in rows:
        if kind is not None and key is not event:
            if kind not in event._kinds:
                continue
            if values_of(event, fields) != key[2] if fields is not None else key is not kind and key != event:
                continue
        if test is None:
            return True
        tests.append(test)
    return bool(tests) and True in [test(event) for test in tests]


@frozen(repr=False)
class Everything(EventSet):
    """Every event there is."""

    _rows = ((None, None, None, None),)

    def __repr__(self) -> str:
        return "ALL"


@frozen(repr=False)
class Nothing(EventSet):
    """No event."""

    _rows = ()

    def __repr__(self) -> str:
        return "NONE"


ALL = Everything()
NONE = Nothing()


@frozen(repr=False)
class Union(EventSet):
    """The events of any member; the order of members does not count."""

    members: tuple[Any, ...] = field(eq=frozenset)
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_rows", tuple([row for member in self.members for row in member._rows]))

    def __instancecheck__(self, value: object) -> bool:
        """Let `isinstance(said, Ping | Pong)` mean what it says: `|` of kinds gives a set, not a union of types."""
        return getattr(type(value), "_is_event_kind", False) and contains(self, value)

    def __repr__(self) -> str:
        return "(" + " | ".join(_shown(member) for member in self.members) + ")"


@frozen(repr=False)
class Intersection(EventSet):
    """The events that every member contains; the order of members does not count."""

    members: tuple[Any, ...] = field(eq=frozenset)
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        sets = tuple([member._rows for member in self.members])
        test = partial(_all_match, sets)
        narrowest = min(sets, key=_breadth)
        rows = [(kind if fields is None else key, kind, fields, test) for key, kind, fields, _ in narrowest]
        object.__setattr__(self, "_rows", tuple(rows))

    def __repr__(self) -> str:
        return "(" + " & ".join(_shown(member) for member in self.members) + ")"


@frozen(repr=False)
class Complement(EventSet):
    """Every event that `excluded` does not contain."""

    excluded: Any
    _rows: tuple[Row, ...] = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_rows", ((None, None, None, partial(_match_none, self.excluded._rows)),))

    def __invert__(self) -> Any:
        return self.excluded

    def __repr__(self) -> str:
        return f"~{_shown(self.excluded)}"


@define(repr=False, unsafe_hash=True)  # not frozen, which takes three times as long: one is made at every step
class FieldsEqual(EventSet):
    """The events of some kinds whose fields have given values: `where(Kind, field=value)`; all of them without."""

    kinds: tuple[Any, ...] = field(eq=frozenset)
    fields: tuple[str, ...]
    values: tuple[Any, ...]
    _rows: tuple[Row, ...] = field(eq=False)

    def __repr__(self) -> str:
        values = [f"{name}={value!r}" for name, value in zip(self.fields, self.values, strict=True)]
        return f"where({', '.join([_shown_kinds(self.kinds), *values])})"


@frozen(repr=False)
class PredicateHolds(EventSet):
    """The events of some kinds that a pure function accepts: `where(Kind, predicate)`."""

    kinds: tuple[Any, ...] = field(eq=frozenset)
    predicate: Callable[[Any], bool]

    @property
    def _rows(self) -> tuple[Row, ...]:
        ask = self._ask  # a method: kept here, it would make a circle
        return tuple([(kind, kind, None, ask) for kind in self.kinds])

    def _ask(self, event: Any) -> bool:
        try:
            answer = self.predicate(event)
        except Exception as error:
            raise PredicateError(self, f"raised {type(error).__name__}: {error}") from error
        if type(answer) is not bool:
            raise PredicateError(self, f"gave {answer!r} for {event!r}; it must give True or False")
        return answer

    def __repr__(self) -> str:
        return f"where({_shown_kinds(self.kinds)}, {getattr(self.predicate, '__name__', self.predicate)})"


def union(*members: Any) -> Any:
    """Return the events of any member: flat, without repetitions; of none, `NONE`."""
    flat = _flat(members, Union)
    if ALL in flat:
        return ALL
    flat.pop(NONE, None)
    return NONE if not flat else next(iter(flat)) if len(flat) == 1 else Union(tuple(flat))


def intersection(*members: Any) -> Any:
    """Return the events that every member contains: flat, without repetitions; of none, `ALL`."""
    flat = _flat(members, Intersection)
    if NONE in flat:
        return NONE
    flat.pop(ALL, None)
    return ALL if not flat else next(iter(flat)) if len(flat) == 1 else Intersection(tuple(flat))


def _flat(members: tuple[Any, ...], sort: type[Union] | type[Intersection]) -> dict[Any, None]:
    """Return the members, those of a set of the same sort in its place."""
    found: dict[Any, None] = {}
    for member in map(as_event_set, members):
        found.update(dict.fromkeys(member.members if isinstance(member, sort) else (member,)))
    return found


def where(kinds: Any, predicate: Callable[[Any], bool] | None = None, /, **fields: Any) -> Any:
    """Return the events of one kind, or of a tuple of kinds, whose fields have these values and pass `predicate`.

    `where(Score, subject=call)` is filed by kind, field and value and costs nothing until such an event comes;
    a predicate is asked about every event of its kinds, and must be a pure function that gives True or False.
    A plain event's kind is its name: `where("temperature", data=21)`.

    Raises TypeError for an unknown field, for something that is no event kind, and for a value that can change.
    """
    if predicate is None and len(fields) == 1 and isinstance(kinds, type) and kinds in _FIELDS:  # by far the most
        ((name, value),) = fields.items()
        if name in _FIELDS[kinds]:
            value = value if type(value) in ATOMS else freeze(value)
            return FieldsEqual((kinds,), (name,), (value,), (((kinds, (name,), (value,)), kinds, (name,), None),))
    chosen = kinds if type(kinds) is tuple else (kinds,)
    for kind in chosen:
        if not isinstance(kind, type) or kind not in _FIELDS or not fields.keys() <= _FIELDS[kind]:
            _check_fields(kind, fields)
    if predicate is not None:
        if not callable(predicate):
            raise TypeError(f"where({_shown_kinds(chosen)}, {predicate!r}): a predicate is a function of the event")
        holds = PredicateHolds(chosen, predicate)
        return intersection(where(kinds, **fields), holds) if fields else holds
    if not fields:
        return union(*[_fields_equal((kind,), (), ()) if isinstance(kind, str) else kind for kind in chosen])
    names = tuple(fields) if len(fields) == 1 else tuple(sorted(fields))
    values = tuple([value if type(value := fields[name]) in ATOMS else freeze(value) for name in names])
    return _fields_equal(chosen, names, values)


def _fields_equal(kinds: tuple[Any, ...], names: tuple[str, ...], values: tuple[Any, ...]) -> FieldsEqual:
    if names:
        return FieldsEqual(kinds, names, values, tuple([((kind, names, values), kind, names, None) for kind in kinds]))
    return FieldsEqual(kinds, names, values, tuple([(kind, kind, None, None) for kind in kinds]))


_FIELDS: dict[Any, set[str]] = {}  # of the event kinds that `where` was given


def _check_fields(kind: Any, fields: dict[str, Any]) -> None:
    """Learn the fields of a kind. Raises TypeError for what is no event kind, and for a field that it does not have."""
    if not isinstance(kind, str) and not is_kind(kind):
        raise TypeError(f"where({kind!r}, ...): this is no event kind; use a class of events, or a tuple of them")
    known = ["data"]
    if not isinstance(kind, str):
        known = [attribute.name for attribute in attrs.fields(kind)] if attrs.has(kind) else []
        _FIELDS[kind] = set(known)
    for name in fields:
        if name not in known:
            raise TypeError(f"{_shown(kind)} has no field {name!r}; it has {', '.join(known) or 'none'}")


def _all_match(sets: tuple[tuple[Row, ...], ...], event: Any) -> bool:
    for rows in sets:  # noqa: SIM110 - a generator would be resumed for each
        if not matches(rows, event):
            return False
    return True


def _match_none(rows: tuple[Row, ...], event: Any) -> bool:
    return not matches(rows, event)


def _breadth(rows: tuple[Row, ...]) -> tuple[bool, bool, int]:
    """Order the members of an intersection by how many events their rows could match: narrow ones first."""
    of_all, of_kinds = False, False
    for key, kind, _, _ in rows:
        of_all |= kind is None
        of_kinds |= key is kind
    return of_all, of_kinds, len(rows)


def _shown(member: Any) -> str:
    return member.__name__ if isinstance(member, type) else repr(member)


def _shown_kinds(kinds: tuple[Any, ...]) -> str:
    shown = ", ".join(_shown(kind) for kind in kinds)
    return shown if len(kinds) == 1 else f"({shown})"
