"""The values that an event may carry: equal by content, hashable, immutable.

`freeze` turns dicts, lists and sets into such values, and refuses other objects (files, objects compared by identity,
anything mutable). Types of the standard library must match exactly: a subclass may hold more than it compares, and is
refused.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from operator import is_
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import attrs

K = TypeVar("K")
V = TypeVar("V", covariant=True)

VALUES = frozenset(
    {type(None), bool, int, float, str, bytes, FunctionType, BuiltinFunctionType}
    | {date, timedelta, timezone, Fraction, UUID, PurePosixPath, PureWindowsPath, PosixPath, WindowsPath}
)


class FrozenMapping(Mapping[K, V]):
    """An immutable, hashable mapping, equal to any mapping with the same items."""

    __slots__ = ("_hash", "_items")

    _items: dict[K, V]

    def __init__(self, items: Mapping[K, V] | Sequence[tuple[K, V]] = ()) -> None:
        self._items = {freeze(key): freeze(value) for key, value in dict(items).items()} if items else {}
        self._hash: int | None = None

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMapping):
            return self._items == other._items
        return isinstance(other, Mapping) and self._items == dict(other)

    def __repr__(self) -> str:
        return f"FrozenMapping({self._items!r})"

    def __reduce__(self) -> tuple[type, tuple[dict[K, V]]]:
        return (type(self), (self._items,))


def freeze(value: Any) -> Any:
    """Return an immutable, hashable equal of `value`: itself, a tuple, a frozenset or a `FrozenMapping`.

    Raises TypeError for other objects: mutable ones, files, objects compared by identity.
    """
    kind: Any = type(value)
    return value if kind in VALUES else _freezer(kind)(value)


@cache  # every event needs one for each of its values
def _freezer(kind: Any) -> Callable[[Any], Any]:
    """Return the function that freezes values of a type."""
    if issubclass(kind, FrozenMapping | Enum | str | int | float | bytes):
        return _unchanged
    if kind in (datetime, time):
        return _refuse_named_zones
    if kind in (complex, Decimal):
        return _refuse_nan
    if issubclass(kind, Mapping):
        can_change = kind.__hash__ is None or issubclass(kind, MutableMapping | MappingProxyType)
        return FrozenMapping if can_change else _unchanged
    if issubclass(kind, Sequence | Set):
        return _freeze_elements
    if getattr(kind, "_is_value", False):
        return _unchanged  # events are frozen at construction; kinds are constants
    names = _frozen_fields(kind)
    return _refuse if names is None else _field_checker(kind, names)


def _unchanged(value: Any) -> Any:
    """Return `value` itself: an immutable value needs no freezing."""
    return value


def _freeze_elements(value: Sequence[Any] | Set[Any]) -> Any:
    """Freeze a collection; a tuple of frozen elements stays the same object."""
    if isinstance(value, bytearray | memoryview):
        raise TypeError(f"{type(value).__name__} can change; use bytes")
    elements = [freeze(element) for element in value]
    if isinstance(value, tuple | frozenset) and all(map(is_, elements, value)):
        return value
    return frozenset(elements) if isinstance(value, Set) else tuple(elements)


def _refuse_named_zones(value: Any) -> Any:
    if type(value.tzinfo) not in (type(None), timezone):
        raise TypeError(
            f"{value!r}: its time zone is no fixed offset, and may change; use value.astimezone(datetime.UTC)"
        )
    return value


def _refuse_nan(value: Any) -> Any:
    if value != value if isinstance(value, complex) else value.is_nan():
        raise TypeError(f"{value!r} equals nothing, itself included; use None")
    return value


def _field_checker(kind: Any, names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a function that accepts values of a frozen class with frozen fields."""

    def checked(value: Any) -> Any:
        for name in names:
            inner = getattr(value, name)
            if freeze(inner) is not inner:
                raise TypeError(
                    f"{kind.__name__}.{name} holds a {type(inner).__name__}, which can change; "
                    "freeze it in the class: with `converter=freeze` (attrs), or in `__post_init__` (dataclass)"
                )
        return value

    return checked


def _frozen_fields(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a frozen attrs class or dataclass that is compared by them, None for any other class."""
    own = vars(kind)
    if kind.__hash__ in (None, object.__hash__):
        return None
    if "__attrs_attrs__" in own and attrs.inspect(kind).is_frozen:
        return tuple(field.name for field in attrs.fields(kind))
    if "__dataclass_params__" in own and own["__dataclass_params__"].frozen:
        return tuple(field.name for field in fields(kind))
    return None


def _refuse(value: Any) -> NoReturn:
    raise TypeError(
        f"{type(value).__name__} {value!r} can change; use None, numbers, text, bytes, dates, paths, enums, frozen "
        "classes of attrs or dataclasses, or mappings, sequences and sets of these"
    )
