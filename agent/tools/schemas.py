"""Parameters of tools: one JSON Schema both for the model and for the check of its arguments."""

import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

from attrs import frozen

from agent.vocabulary.calls import thaw
from agent.vocabulary.errors import ToolError

Access = Literal["read", "write", "list", "delete", "execute"]
Schema = dict[str, Any]


@frozen
class Limits:
    """Limits of a value beyond its type.

    `minimum` and `maximum` are inclusive, `above` is exclusive: for numbers. `max_length` counts characters of a text
    or elements of a list. `pattern` must match the whole text, in RE2 syntax (see `compiled`).
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    max_length: int | None = None
    pattern: str | None = None

    def keywords(self, kind: str) -> Schema:
        """Return them as JSON Schema keywords. Raises TypeError for keywords of other types, and ValueError."""
        words = {
            "minimum": self.minimum,
            "maximum": self.maximum,
            "exclusiveMinimum": self.above,
            "maxItems" if kind == "array" else "maxLength": self.max_length,
            "pattern": self.pattern and f"{_BEFORE}{self.pattern}{_AFTER}",
        }
        if self.pattern is not None:
            matches(self.pattern, "")
        found = {word: limit for word, limit in words.items() if limit is not None}
        if not found.keys() <= _FITTING.get(kind, frozenset()):
            raise TypeError(
                f"its limits do not fit the type {kind}: max_length is for texts and arrays, pattern for texts, "
                "minimum, maximum and above for numbers"
            )
        return found


_BEFORE, _AFTER = "^(?:", ")$"  # around a pattern, which is about the whole text
_OF_NUMBERS = frozenset(["minimum", "maximum", "exclusiveMinimum"])
_FITTING = {
    "string": frozenset(["maxLength", "pattern"]),
    "array": frozenset(["maxItems"]),
    "integer": _OF_NUMBERS,
    "number": _OF_NUMBERS,
}


@frozen
class Path:
    """Marks a parameter whose texts are paths, with the tool's access to them."""

    access: Access


@frozen
class ShellCommand:
    """Marks the parameter with the shell command; `prefix` is put before it."""

    prefix: str = ""


@frozen
class Background:
    """Marks the parameter for background commands."""


@frozen
class Rights:
    """Marks the parameter for rights beyond the sandbox."""


@frozen
class Url:
    """Marks a parameter with an address that the tool fetches."""


@frozen
class Touch:
    """A path in a call, and the access of the call to it."""

    path: str
    access: Access


def problems(schema: Schema, value: object, path: str) -> Iterator[str]:
    """Yield each error of a value, by a schema with the supported keywords."""
    if "anyOf" in schema:
        yield from _problems_of_all(schema["anyOf"], value, path)
    elif "enum" in schema:
        if not any(is_same(value, allowed) for allowed in schema["enum"]):
            yield f"{path}: expected one of {', '.join(map(shown, schema['enum']))}; found {shown(value)}"
    elif not _TYPES[schema["type"]](value):
        kind = _WITH_ARTICLE.get(schema["type"], f"a {schema['type']}")
        yield f"{path or 'arguments'}: expected {kind}, found {shown(value)}"
    elif schema["type"] in _CHECKS:
        yield from _CHECKS[schema["type"]](schema, value, path)


def _problems_of_all(choices: list[Schema], value: object, path: str) -> Iterator[str]:
    """Yield the errors by every choice, without those of null if there are others."""
    found = [list(problems(choice, value, path)) for choice in choices]
    if all(found):
        telling = [each for choice, each in zip(choices, found, strict=True) if choice != _NULL] or found[:1]
        either = dict.fromkeys("; ".join(each).removeprefix(f"{path}: ") for each in telling)
        yield from telling[0] if len(telling) == 1 else [f"{path}: " + ", or ".join(either)]


def _of_text(schema: Schema, value: str, path: str) -> Iterator[str]:
    longest, pattern = schema.get("maxLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield f"{path}: expected at most {longest} characters, found {len(value)}"
    if pattern is not None and not matches(text := pattern.removeprefix(_BEFORE).removesuffix(_AFTER), value):
        yield f"{path}: expected a text that matches {text} as a whole, found {shown(value)}"


def _of_number(schema: Schema, value: float, path: str) -> Iterator[str]:
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: expected at least {schema['minimum']}, found {shown(value)}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        yield f"{path}: expected more than {schema['exclusiveMinimum']}, found {shown(value)}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{path}: expected at most {schema['maximum']}, found {shown(value)}"


def _of_array(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", math.inf):
        yield f"{path}: expected at most {schema['maxItems']} elements, found {len(value)}"
    for index, element in enumerate(value):
        yield from problems(schema["items"], element, f"{path}[{index}]")


def _of_object(schema: Schema, value: Mapping[Any, object], path: str) -> Iterator[str]:
    named, other = schema.get("properties", {}), schema["additionalProperties"]
    for name, part in named.items():
        if name in value:
            yield from problems(part, value[name], _below(path, name))
        elif name in schema["required"]:
            yield f"{_below(path, name)}: missing"
    cure = f"use {', '.join(named)}" if named else "there are none"
    for key in value:
        if not isinstance(key, str):
            yield f"{path}: expected texts as keys, found {shown(key)}"
        elif key not in named:
            below = _below(path, key)
            yield from [f"{below}: unknown; {cure}"] if other is False else problems(other, value[key], below)


_NULL = {"type": "null"}
_WITH_ARTICLE = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str) and not isinstance(value, Enum),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": lambda value: _is_number(value) and math.isfinite(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}
_CHECKS: Mapping[str, Callable[[Schema, Any, str], Iterator[str]]] = {
    "string": _of_text, "integer": _of_number, "number": _of_number, "array": _of_array, "object": _of_object,
}  # fmt: skip


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_same(value: object, allowed: object) -> bool:
    """Return whether two values are equal as JSON: 1 is 1.0, and neither is true."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    return value == allowed


MOST_CHARACTERS = 100_000  # of a pattern


def compiled(text: str | bytes, *, literal: bool = False, ignore_case: bool = False) -> Any:
    """Return an expression of RE2, which takes time linear in the text. Raises ValueError for an invalid one.

    There are no look-arounds or back references; `\\d`, `\\w`, `\\s` and `\\b` mean ASCII.
    """
    import re2  # a large library, needed for patterns only

    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the pattern has {len(text)} characters; {MOST_CHARACTERS} are the most")
    options = re2.Options()
    options.log_errors, options.literal, options.case_sensitive = False, literal, not ignore_case
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise ValueError(f"the pattern {_shown(text)} is not supported: {_reason(error)}") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error


def _shown(text: str | bytes) -> str:
    return repr(text.decode("utf-8", "replace")[:60] if isinstance(text, bytes) else text[:60])


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


_expression = lru_cache(maxsize=256)(compiled)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text; invalid Unicode never matches. Raises ValueError."""
    expression = _expression(pattern)
    try:
        return expression.fullmatch(text) is not None
    except UnicodeEncodeError:
        return False


_SHOWN_CHARACTERS = 60


def shown(value: object) -> str:
    """Return a JSON value for a message: short, on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)} elements"
    if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
        return f"{value[:_SHOWN_CHARACTERS]!r}... ({len(value)} characters)"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large integer"
    return repr(value)[: 2 * _SHOWN_CHARACTERS]


def _below(path: str, name: str) -> str:
    shortened = name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}..."
    return f"{path}.{shortened}" if path else shortened


_MOST_NAMED = 10  # problems listed in a message


@frozen(eq=False)
class Shape:
    """A JSON Schema (2020-12), a function that yields a value's errors ("path: expected ..."), and its constructor."""

    written: Schema
    build: Callable[[Any], Any] = lambda value: value
    find: Callable[[Schema, object, str], Iterator[str]] = problems

    def problems(self, value: object) -> tuple[str, ...]:
        """Return the errors of a value."""
        return tuple(self.find(self.written, value, ""))


def foreign_shape(written: Mapping[str, Any]) -> Shape:
    """Return the shape of an MCP server's schema. Raises ToolError if it is not a schema of an object."""
    validator = _validator(dict(written))
    return Shape(dict(written), thaw, lambda _, value, path: islice(_told(validator, value, path), _MOST_NAMED + 1))


def _told(validator: Any, value: object, path: str) -> Iterator[str]:
    for number, error in enumerate(validator.iter_errors(thaw(value))):
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        told = f"{(path + where).lstrip('.') or 'arguments'}: {error.message[:300]}"
        yield told if number < _MOST_NAMED else "and more"


def _validator(schema: dict[str, Any]) -> Any:
    try:
        import jsonschema_rs
    except ImportError as error:
        raise ToolError("tools that exist as a schema only need the extra 'mcp': pip install 'bpagent[mcp]'") from error
    if schema.get("type") != "object":
        raise ToolError("the parameters of a tool are an object; its schema says something else")
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except ValueError as error:
        raise ToolError(f"no JSON Schema that can be used: {str(error)[:300]}") from error


def _refuse(address: str) -> Any:
    raise ValueError(f"the reference {address!r} leads to another document, which is not followed")


def encoded(text: str, name: str, kind: type[ToolError] = ToolError, *, holds_nul: bool = False) -> bytes:
    """Return a text as UTF-8. Raises an error of type `kind` for text that no file system or program accepts."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise kind(f"{name}: a lone surrogate at position {error.start}; leave it out") from error
    if b"\0" in content and not holds_nul:
        raise kind(f"{name}: a NUL character at byte {content.index(0)}; leave it out")
    return content


@frozen
class ToolSchema:
    """A tool as described to the model: name, description, and its parameters as a JSON Schema object."""

    name: str
    description: str
    parameters: Schema


def render_tools(tools: tuple[ToolSchema, ...]) -> list[dict[str, Any]]:
    """Return the `tools` of a request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
