"""Events as plain data: what a record of the log holds.

A call stands in full where it is first told of (`inference_finished`, `answer_committed`, `proposed_action`), and as
its id in every later record.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Set
from enum import Enum
from math import isfinite
from types import FunctionType, NoneType
from typing import Any, NoReturn

import attrs

from agent.calls import ToolCall
from agent.events import ProposedAction
from agent.messages import IF_ANY, AssistantMessage, ToolMessage, UserMessage
from bp import Event, Refusal, Step

__all__ = ["FORMAT", "ROLES", "dump", "plain", "to_record"]

FORMAT = 1
"""The version of the format; a reader refuses newer ones."""

ROLES: dict[type, str] = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}
_FIELDS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}


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
    kind = type(value)
    return (_ENCODERS.get(kind) or _learn(kind))(value)


_ENCODERS: dict[type, Callable[[Any], Any]] = {}  # by type: every record asks for each of its values


def _learn(kind: type) -> Callable[[Any], Any]:
    """Find out once what values of `kind` look like."""
    encoder = _ENCODERS[kind] = _encoder(kind)
    return encoder


def _encoder(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, NoneType | str | bool | int):
        return _as_it_is
    if attrs.has(kind):
        return _fields_encoder(kind)
    return next((encoder for kinds, encoder in _FORMS if issubclass(kind, kinds)), _refuse)


def _fields_encoder(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """Encode values of an attrs class as their fields; messages say their role, too."""
    names, if_any = _names_of(kind), _names_if_any(kind)
    role = {"role": ROLES[kind]} if kind in ROLES else {}

    def encode(value: Any) -> dict[str, Any]:
        fields = {**role, **{name: plain(getattr(value, name)) for name in names}}
        for name in if_any:
            if found := getattr(value, name):
                fields[name] = plain(found)
        return fields

    return encode


def _as_it_is(value: Any) -> Any:
    return value


def _plain_atom(value: float | bytes | Enum) -> Any:
    """Return an atom for which JSON has no word as text: an infinity, bytes in base64, an enum by its name."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if isfinite(value) else str(value)


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} {value!r} has no form in the log")


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (  # the first that fits
    (float | bytes | Enum, _plain_atom),
    (Refusal, lambda refusal: {"bthread": refusal.bthread, "because": plain(refusal.because)}),
    (Mapping, lambda mapping: {str(key): plain(item) for key, item in mapping.items()}),
    (tuple | list, lambda items: [plain(item) for item in items]),
    (Set, lambda items: sorted(map(plain, items), key=dump)),
    (FunctionType | type, lambda named: f"{named.__module__}.{named.__qualname__}"),
    (Event, lambda event: {"event": event.name, "data": plain(event.data)}),
)


def dump(data: Any) -> str:
    """Return one line of JSON, without the line end; lone surrogates are escaped, so that it is valid UTF-8."""
    line = _LEGIBLE.encode(data)
    try:
        line.encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(data)
    return line


# Made once: `json.dumps` with these options would make one for every line.
_LEGIBLE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(separators=(",", ":"))


def _fields_of(event: Event) -> dict[str, Any]:
    kind = type(event)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = (_names_of(kind), _names_if_any(kind))
    fields = {name: getattr(event, name) for name in names[0]}
    for name in names[1]:
        if found := getattr(event, name):
            fields[name] = found
    return fields


def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the fields that every record of a kind has."""
    if not attrs.has(kind):
        return ("data",)
    return tuple(field.name for field in attrs.fields(kind) if field.metadata != IF_ANY)


def _names_if_any(kind: Any) -> tuple[str, ...]:
    """Return the fields that a record has unless they are empty."""
    return tuple(field.name for field in attrs.fields(kind) if field.metadata == IF_ANY) if attrs.has(kind) else ()
