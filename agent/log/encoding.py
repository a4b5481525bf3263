"""Events as plain data: what a record of the log holds.

A call stands in full where it is first told of (`inference_finished`, `answer_committed`, `proposed_action`), and as
its id in every later record.
"""

import json
from collections.abc import Mapping, Set
from enum import Enum
from math import isfinite
from types import FunctionType
from typing import Any

import attrs

from agent.calls import ToolCall
from agent.events import ProposedAction
from agent.messages import AssistantMessage, ToolMessage, UserMessage
from bp import Event, Refusal, Step

__all__ = ["FORMAT", "dump", "to_record"]

FORMAT = 1
"""The version of the format; a reader refuses newer ones."""

ROLES: dict[type, str] = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}
_FIELDS: dict[type, tuple[str, ...]] = {}


def to_record(step: Step) -> dict[str, Any]:
    """Return the record of a step: step, super_step, name, data, origin, and the refusals that it answers."""
    record = {
        "step": step.number,
        "super_step": step.super_step,
        "name": step.event.name,
        "data": event_data(step.event),
        "origin": step.bthread or "outside",
    }
    if step.refusals is not None:
        record["refusals"] = plain(step.refusals)
    return record


def event_data(event: Event) -> Any:
    """Return the payload of an event as plain data."""
    data = _fields_of(event)
    if isinstance(data.get("call"), ToolCall) and not isinstance(event, ProposedAction):
        data["call"] = data["call"].id
    return {name: plain(value) for name, value in data.items()}


def plain(value: Any) -> Any:
    """Return a frozen value as what JSON can hold. Raises TypeError for what has no such form."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | bytes | Enum):
        return _plain_atom(value)
    if isinstance(value, Refusal):
        return {"bthread": value.bthread, "because": plain(value.because)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Set):
        return sorted((plain(item) for item in value), key=dump)
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, Event) and not attrs.has(type(value)):
        return {"event": value.name, "data": plain(getattr(value, "data", None))}
    if attrs.has(type(value)):
        role = ROLES.get(type(value))
        fields = {name: plain(item) for name, item in _fields_of(value).items()}
        return fields if role is None else {"role": role, **fields}
    raise TypeError(f"{type(value).__name__} {value!r} has no form in the log")


def _plain_atom(value: float | bytes | Enum) -> Any:
    """Return an atom for which JSON has no word as text: an infinity, bytes in hexadecimal, an enum by its name."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    return value if isfinite(value) else str(value)


def dump(data: Any) -> str:
    """Return one line of JSON, without the line end; lone surrogates are escaped, so that it is valid UTF-8."""
    line = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    try:
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(data, separators=(",", ":"))
    return line


def _fields_of(value: Any) -> dict[str, Any]:
    kind = type(value)
    names = _FIELDS.get(kind)
    if names is None:
        names = tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else ("data",)
        _FIELDS[kind] = names
    return {name: getattr(value, name) for name in names}
