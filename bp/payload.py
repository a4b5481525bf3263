"""What an event may carry: values that are equal by content, hashable, and cannot change.

`freeze` turns what a person writes (dicts, lists, sets) into such values, and refuses what has no value of its
own (files, objects that are compared by identity, anything that could change later).
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

import attrs

__all__ = ["FrozenMapping", "freeze"]

K = TypeVar("K")
V = TypeVar("V", covariant=True)

ATOMS = frozenset({type(None), bool, int, float, str, bytes, FunctionType, BuiltinFunctionType})


class FrozenMapping(Mapping[K, V]):
    """A mapping that cannot change, equal to any mapping with the same items, and hashable."""

    __slots__ = ("_hash", "_items")

    _items: dict[K, V]

    def __init__(self, items: Mapping[K, V] | Sequence[tuple[K, V]] = ()) -> None:
        self._items = {freeze(key): freeze(value) for key, value in dict(items).items()}
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

    Raises TypeError for what is not a value: mutable objects, files, objects compared by identity.
    """
    if type(value) in ATOMS or isinstance(value, (FrozenMapping, Enum, str, int, float, bytes)):
        return value
    if isinstance(value, Mapping):
        return value if type(value).__hash__ is not None else FrozenMapping(value)
    if isinstance(value, (Sequence, Set)):
        return _freeze_elements(value)
    return _checked(value)


def _freeze_elements(value: Sequence[Any] | Set[Any]) -> Any:
    """Freeze what holds elements; a tuple whose elements are frozen already stays the same object."""
    elements = [freeze(element) for element in value]
    if isinstance(value, bytearray | memoryview):
        raise TypeError(f"{type(value).__name__} can change; use bytes")
    if isinstance(value, tuple | frozenset) and all(new is old for new, old in zip(elements, value, strict=True)):
        return value
    return frozenset(elements) if isinstance(value, Set) else tuple(elements)


def _checked(value: Any) -> Any:
    """Accept values that are frozen by their own class: event kinds and frozen attrs instances."""
    kind = type(value)
    if getattr(kind, "_is_event_kind", False):  # an event: frozen when it was made
        return value
    if isinstance(value, type) and getattr(type(value), "_is_event_kind_class", False):
        return value
    if not _is_frozen_attrs(kind):
        raise TypeError(
            f"{kind.__name__} {value!r} can change; use None, numbers, text, bytes, enums, frozen attrs values, "
            "or mappings, sequences and sets of these"
        )
    for field in attrs.fields(kind):
        inner = getattr(value, field.name)
        if freeze(inner) is not inner:
            raise TypeError(
                f"{kind.__name__}.{field.name} holds a {type(inner).__name__}, which can change; "
                "freeze it in the class, for example with `converter=freeze`"
            )
    return value


_FROZEN: dict[type, bool] = {}


def _is_frozen_attrs(kind: type) -> bool:
    known = _FROZEN.get(kind)
    if known is None:
        known = _FROZEN[kind] = attrs.has(kind) and kind.__hash__ is not None and attrs.inspect(kind).is_frozen
    return known
