"""Parameters of tools: one description of a value gives its JSON Schema and its check, so that they cannot differ."""

import math
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from attrs import field, frozen

from agent.tools.patterns import TextPattern
from agent.vocabulary.errors import ToolError

Access = Literal["read", "write", "list", "delete", "execute"]


def _as_pattern(text: str | None) -> TextPattern | None:
    return None if text is None else TextPattern(text)


@frozen
class Limits:
    """Limits of a value beyond its type.

    `minimum` and `maximum` are inclusive, `above` is exclusive: for numbers. `max_length` counts characters of a text
    or elements of a list. `pattern` must match the whole text; it is one of RE2 (`agent.tools.patterns`): ValueError.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    max_length: int | None = None
    pattern: TextPattern | None = field(default=None, converter=_as_pattern)


@frozen
class Path:
    """Marks a parameter whose texts are paths, and what the tool does there."""

    access: Access


@frozen
class ShellCommand:
    """Marks the parameter that holds a shell command; `prefix` is put before it when it runs."""

    prefix: str = ""


@frozen
class Background:
    """Marks the parameter that says whether what is started stays after the call."""


@frozen
class Rights:
    """Marks the parameter that asks for what a command needs beyond the sandbox."""


@frozen
class Url:
    """Marks a parameter that holds the address of something that is fetched."""


@frozen
class Touch:
    """A path that a call names, and what the call would do to it."""

    path: str
    access: Access


# ruff: noqa: D102 - what the methods promise is said once, in `Shape`


Schema = dict[str, object]
ScalarKind = Literal["string", "integer", "number", "boolean", "null"]

_NO_LIMITS = Limits()
_SHOWN_CHARACTERS = 60


class Shape(Protocol):
    """The form of a value."""

    def schema(self) -> Schema:
        """Return the JSON Schema (2020-12) that accepts exactly the values without problems."""

    def problems(self, value: object, path: str) -> Iterator[str]:
        """Yield each thing that is wrong with `value`, as "path: expected ..., found ..."."""

    def build(self, value: Any) -> Any:
        """Return the Python value; `value` has no problems."""


@frozen
class Scalar:
    """A text, a number, a truth value, or null."""

    kind: ScalarKind
    limits: Limits = _NO_LIMITS

    def schema(self) -> Schema:
        limits = self.limits
        keywords = {
            "minimum": limits.minimum,
            "maximum": limits.maximum,
            "exclusiveMinimum": limits.above,
            "maxLength": limits.max_length,
            "pattern": limits.pattern and f"^(?:{limits.pattern.pattern})$",
        }
        return {"type": self.kind} | {key: value for key, value in keywords.items() if value is not None}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not _is_kind(self.kind, value):
            yield f"{path}: expected {_with_article(self.kind)}, found {shown(value)}"
        elif isinstance(value, str):
            yield from (f"{path}: {problem}" for problem in _text_problems(self.limits, value))
        elif isinstance(value, int | float):
            yield from (f"{path}: {problem}" for problem in _number_problems(self.limits, value))

    def build(self, value: Any) -> Any:
        return int(value) if self.kind == "integer" else value


@frozen
class Choice:
    """One of some fixed JSON values; `members` are what the function gets for them."""

    values: tuple[str | int | float | bool | None, ...]
    members: tuple[Any, ...]

    def schema(self) -> Schema:
        kind: Schema = {"type": "string"} if all(isinstance(value, str) for value in self.values) else {}
        return kind | {"enum": list(self.values)}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not any(_same(value, allowed) for allowed in self.values):
            yield f"{path}: expected one of {', '.join(map(shown, self.values))}; found {shown(value)}"

    def build(self, value: Any) -> Any:
        return next(member for allowed, member in zip(self.values, self.members, strict=True) if _same(value, allowed))


def shown(value: object) -> str:
    """Return how a message names a JSON value: short, on one line."""
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


def _is_kind(kind: ScalarKind, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    match kind:
        case "string":
            return isinstance(value, str) and not isinstance(value, Enum)
        case "integer":
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        case "number":
            return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        case _:
            return kind == "null" and value is None


def _same(value: object, allowed: object) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    return value == allowed


def _text_problems(limits: Limits, value: str) -> Iterator[str]:
    if limits.max_length is not None and len(value) > limits.max_length:
        yield f"expected at most {limits.max_length} characters, found {len(value)}"
    if limits.pattern is not None and not limits.pattern.matches(value):
        yield f"expected a text that matches {limits.pattern.pattern} as a whole, found {shown(value)}"


def _number_problems(limits: Limits, value: float) -> Iterator[str]:
    if limits.minimum is not None and value < limits.minimum:
        yield f"expected at least {limits.minimum}, found {shown(value)}"
    if limits.above is not None and value <= limits.above:
        yield f"expected more than {limits.above}, found {shown(value)}"
    if limits.maximum is not None and value > limits.maximum:
        yield f"expected at most {limits.maximum}, found {shown(value)}"


def _with_article(kind: ScalarKind) -> str:
    return {"integer": "an integer", "null": "null"}.get(kind, f"a {kind}")


_NULL = Scalar("null")


@frozen
class ArrayOf:
    """Any number of elements of one shape."""

    element: Shape
    into: Callable[[Iterator[Any]], Any] = list
    max_length: int | None = None

    def schema(self) -> Schema:
        limit: Schema = {} if self.max_length is None else {"maxItems": self.max_length}
        return {"type": "array", "items": self.element.schema()} | limit

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list | tuple):
            yield f"{path}: expected an array, found {shown(value)}"
            return
        if self.max_length is not None and len(value) > self.max_length:
            yield f"{path}: expected at most {self.max_length} elements, found {len(value)}"
        for index, element in enumerate(value):
            yield from self.element.problems(element, f"{path}[{index}]")

    def build(self, value: Any) -> Any:
        return self.into(self.element.build(element) for element in value)


@frozen
class TupleOf:
    """An array with a fixed number of elements, each with a shape of its own."""

    elements: tuple[Shape, ...]

    def schema(self) -> Schema:
        count = len(self.elements)
        first: Schema = {"prefixItems": [element.schema() for element in self.elements]} if self.elements else {}
        return {"type": "array"} | first | {"items": False, "minItems": count, "maxItems": count}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list | tuple) or len(value) != len(self.elements):
            yield f"{path}: expected an array of {len(self.elements)} elements, found {shown(value)}"
            return
        for index, (shape, element) in enumerate(zip(self.elements, value, strict=True)):
            yield from shape.problems(element, f"{path}[{index}]")

    def build(self, value: Any) -> Any:
        return tuple(shape.build(element) for shape, element in zip(self.elements, value, strict=True))


@frozen
class MappingOf:
    """An object with any keys, whose values have one shape."""

    element: Shape

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.element.schema()}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path}: expected an object, found {shown(value)}"
            return
        for key, element in value.items():
            if not isinstance(key, str):
                yield f"{path}: expected texts as keys, found {shown(key)}"
            yield from self.element.problems(element, _below(path, str(key)))

    def build(self, value: Any) -> Any:
        return {key: self.element.build(element) for key, element in value.items()}


@frozen
class Field:
    """A named part of a record. `extra` are schema keywords that say more and forbid nothing: description, default."""

    name: str
    shape: Shape
    required: bool = True
    extra: tuple[tuple[str, object], ...] = ()


@frozen
class Record:
    """An object with these fields and no others."""

    fields: tuple[Field, ...]
    into: Callable[..., Any] = dict

    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": {field.name: field.shape.schema() | dict(field.extra) for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'arguments'}: expected an object, found {shown(value)}"
            return
        for each in self.fields:
            if each.name in value:
                yield from each.shape.problems(value[each.name], _below(path, each.name))
            elif each.required:
                yield f"{_below(path, each.name)}: missing"
        yield from self._unknown(value, path)

    def build(self, value: Any) -> Any:
        return self.into(
            **{field.name: field.shape.build(value[field.name]) for field in self.fields if field.name in value}
        )

    def _unknown(self, value: Mapping[Any, object], path: str) -> Iterator[str]:
        known = [field.name for field in self.fields]
        cure = f"use {', '.join(known)}" if known else "there are none"
        for key in value:
            if key not in known:
                yield f"{_below(path, str(key))}: unknown; {cure}"


@frozen
class AnyOf:
    """A value that fits at least one of these shapes; the first one that fits builds it."""

    shapes: tuple[Shape, ...]

    def schema(self) -> Schema:
        return {"anyOf": [shape.schema() for shape in self.shapes]}

    def problems(self, value: object, path: str) -> Iterator[str]:
        found = [(shape, list(shape.problems(value, path))) for shape in self.shapes]
        if all(problems for _, problems in found):
            telling = [problems for shape, problems in found if shape != _NULL] or [found[0][1]]
            yield from telling[0] if len(telling) == 1 else [_either(path, telling)]

    def build(self, value: Any) -> Any:
        return next(shape.build(value) for shape in self.shapes if not any(shape.problems(value, "")))


def _below(path: str, name: str) -> str:
    shortened = name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}..."
    return f"{path}.{shortened}" if path else shortened


def _either(path: str, found: list[list[str]]) -> str:
    """Say in one problem what each shape of a union expected; what is wrong deeper inside is kept as it is."""
    choices = dict.fromkeys("; ".join(problems).removeprefix(f"{path}: ") for problems in found)
    return f"{path}: " + ", or ".join(choices)


_MOST_NAMED = 10  # problems that a message lists


@frozen(eq=False)
class ForeignShape:
    """A shape given as a JSON Schema, by an MCP server. Raises ToolError for what is no JSON Schema of an object."""

    written: Mapping[str, Any]
    validator: Any = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "validator", _validator(dict(self.written)))

    def schema(self) -> Schema:
        return dict(self.written)

    def problems(self, value: object, path: str) -> Iterator[str]:
        for number, error in enumerate(self.validator.iter_errors(plain(value))):
            if number == _MOST_NAMED:
                yield "and more"
                return
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
            yield f"{(path + where).lstrip('.') or 'arguments'}: {error.message[:300]}"

    def build(self, value: Any) -> Any:
        return plain(value)


def plain(value: Any) -> Any:
    """Return a value with plain dicts and lists in it: calls carry frozen ones."""
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


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


@frozen
class ToolSchema:
    """A tool as the model is told about it: name, description, and its parameters as a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object]


def render_tools(tools: tuple[ToolSchema, ...]) -> list[dict[str, Any]]:
    """Return the `tools` of a request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
