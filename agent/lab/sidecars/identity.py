"""Who said so: a digest of what a monitor or an auditor is, so that another prompt is another one.

Of one that ships it is what it was made with: prompt and model, words and their weights. Of your own it is the text of
its class besides. What hides elsewhere (a file that it reads, a server that changes) is not seen.
"""

import inspect
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import attrs

__all__ = ["identity_of"]


def identity_of(monitor: object) -> str:
    """Return the digest; the same in every process."""
    return blake2b(repr(_told(monitor)).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _told(value: Any) -> Any:
    """Return a value as something whose text is the same wherever it is made."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Mapping():
            return sorted((str(key), _told(item)) for key, item in value.items())
        case tuple() | list():
            return [_told(item) for item in value]
        case set() | frozenset():
            return sorted(repr(_told(item)) for item in value)
    if inspect.isroutine(value) or isinstance(value, type):
        return [_name(value), _source(value)]
    return [_name(type(value)), _source(type(value)), *_parts(value)]


def _parts(value: Any) -> list[Any]:
    """Return what an object was made with: its fields; of a model, its name."""
    if callable(getattr(value, "answer", None)) and isinstance(getattr(value, "name", None), str):
        return [value.name]
    if attrs.has(type(value)):
        return [[field.name, _told(getattr(value, field.name))] for field in attrs.fields(type(value))]
    return [_told(vars(value))] if hasattr(value, "__dict__") else []


def _name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def _source(kind: Any) -> str:
    """Return the text of what does not ship; what ships is known by its name."""
    if str(getattr(kind, "__module__", "")).partition(".")[0] in ("agent", "bp", "constitution", "builtins"):
        return ""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""
