"""Parameters of tools: one JSON Schema, made of annotations, both for the model and for the check of its arguments.

Limits and marks stand in annotations. `problems` checks a value by a schema, `Shape` also builds it. Schemas come from
the signature of a function (`read_signature`), or from an MCP server (`foreign_shape`).
"""

import dataclasses
import inspect
import math
import operator
import pathlib
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import lru_cache, partial
from itertools import islice
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import attrs
from attrs import frozen

from agent.vocabulary.calls import thaw
from agent.vocabulary.errors import ToolError
from agent.vocabulary.messages import ToolResult

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
_BOUNDS = {
    "minimum": ("at least", operator.lt),
    "exclusiveMinimum": ("more than", operator.le),
    "maximum": ("at most", operator.gt),
}
"""Keywords of numbers: their words, and what a value beyond a bound is to it."""
_FITTING = {
    "string": frozenset(["maxLength", "pattern"]), "array": frozenset(["maxItems"]), "integer": frozenset(_BOUNDS),
    "number": frozenset(_BOUNDS),
}  # fmt: skip


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


Mark = Path | ShellCommand | Url | Background | Rights
Marks = tuple[tuple[str, Mark, object], ...]
"""The marks of parameters: (parameter, mark, default or None)."""


@frozen
class Touch:
    """A path in a call, and the access of the call to it."""

    path: str
    access: Access


# The check of a value.


def problems(schema: Schema, value: object, path: str) -> Iterator[str]:
    """Yield each error of a value, by a schema with the supported keywords."""
    if not schema:
        return
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
    if (form := schema.get("format")) is not None:
        read, example = next((read, example) for name, read, example in _TEXTS.values() if name == form)
        try:
            read(value)
        except ValueError:
            yield f"{path}: expected a {form} such as {example}, found {shown(value)}"


def _of_number(schema: Schema, value: float, path: str) -> Iterator[str]:
    for word, (told, is_beyond) in _BOUNDS.items():
        if word in schema and is_beyond(value, schema[word]):
            yield f"{path}: expected {told} {schema[word]}, found {shown(value)}"


def _of_array(schema: Schema, value: list[Any], path: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", math.inf):
        yield f"{path}: expected at most {schema['maxItems']} elements, found {len(value)}"
    for index, element in enumerate(value):
        yield from problems(schema["items"], element, f"{path}[{index}]")


def _of_object(schema: Schema, value: Mapping[Any, object], path: str) -> Iterator[str]:
    named, other = schema.get("properties", {}), schema["additionalProperties"]
    for name, part in named.items():
        if name in value:
            no_null = "; leave it out" if value[name] is None and name not in schema["required"] else ""
            yield from (f"{found}{no_null}" for found in problems(part, value[name], _below(path, name)))
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


# Patterns.

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
        reason = _decoded((*error.args, "")[0])
        raise ValueError(f"the pattern {_decoded(text)[:60]!r} is not supported: {reason}") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


_expression = lru_cache(maxsize=256)(compiled)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text; invalid Unicode never matches. Raises ValueError."""
    expression = _expression(pattern)
    try:
        return expression.fullmatch(text) is not None
    except UnicodeEncodeError:
        return False


# Schemas from annotations.


@frozen(eq=False)
class Shape:
    """A JSON Schema (2020-12), a function that yields a value's errors ("path: expected ..."), and its constructor."""

    written: Schema
    build: Callable[[Any], Any] = lambda value: value
    find: Callable[[Schema, object, str], Iterator[str]] = problems

    def problems(self, value: object) -> tuple[str, ...]:
        """Return the errors of a value."""
        return tuple(self.find(self.written, value, ""))


_SCALARS: dict[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", None: "null", type(None): "null",
}  # fmt: skip
_TEXTS: dict[Any, tuple[str, Callable[[str], Any], str]] = {
    date: ("date", date.fromisoformat, "2026-01-31"),
    datetime: ("date-time", datetime.fromisoformat, "2026-01-31T08:30:00Z"),
    UUID: ("uuid", UUID, "123e4567-e89b-12d3-a456-426614174000"),
}
"""Types that are texts of a format: its name, the function that reads it, an example."""
_NO_LIMITS = Limits()
_CURE = (
    "use str, int, float, bool, None, Any, date, datetime, UUID, Literal, an enum, list, set, tuple[..., ...], "
    "dict[str, ...], a union, a TypedDict, a dataclass or an attrs class"
)


def find_marks(annotation: Any) -> tuple[Mark, ...]:
    """Return the marks in `annotation`: of the whole, of members of a union, of elements of an array or mapping."""
    own = tuple(mark for mark in _metadata(annotation) if isinstance(mark, Mark))
    if typing.get_origin(annotation) is Literal:
        return own
    inner = typing.get_args(annotation)[:1] if _metadata(annotation) else typing.get_args(annotation)
    return own + tuple(mark for part in inner for mark in find_marks(part))


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if typing.get_origin(annotation) is Annotated else ()


def find_shape(annotation: Any, limits: Limits = _NO_LIMITS, inside: tuple[type, ...] = ()) -> Shape:
    """Return the shape of `annotation`, whose values have `limits`. Raises TypeError for an unsupported type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        own = next((mark for mark in annotation.__metadata__ if isinstance(mark, Limits)), limits)
        return find_shape(annotation.__origin__, own, inside)
    if origin in (Union, types.UnionType):
        return _union(arguments, limits, inside)
    if (origin or annotation) in (list, tuple, set, frozenset, Sequence):
        return _array(annotation, limits, inside)
    if (annotation is None or isinstance(annotation, type)) and annotation in _SCALARS:
        kind = _SCALARS[annotation]
        schema = {"type": kind, **limits.keywords(kind)}
        return Shape(schema, int) if kind == "integer" else Shape(schema)
    limits.keywords(repr(annotation))
    if (origin or annotation) in (dict, Mapping) and arguments[:1] in ((), (str,)):
        part = find_shape(arguments[1] if arguments else Any, inside=inside)
        schema = {"type": "object", "additionalProperties": part.written}
        return Shape(schema, lambda value: {key: part.build(each) for key, each in value.items()})
    return _choice(arguments, annotation) if origin is Literal else _class(annotation, inside)


def _class(annotation: Any, inside: tuple[type, ...]) -> Shape:
    """Return the shape of a class that is no scalar and no container. Raises TypeError for an unsupported one."""
    if annotation is Any:
        return Shape({}, thaw)
    if annotation in _TEXTS:
        form, read, _ = _TEXTS[annotation]
        return Shape({"type": "string", "format": form}, read)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(tuple(annotation), annotation)
    if isinstance(annotation, type) and (attrs.has(annotation) or is_dataclass(annotation)):
        return _record(_attributes(annotation, inside), annotation)
    if typing.is_typeddict(annotation):
        return _record(_keys(annotation, inside), dict)
    if isinstance(annotation, type) and issubclass(annotation, pathlib.PurePath):
        raise TypeError(f'{annotation!r}: say what the tool does there, as in Annotated[str, Path("read")]')
    raise TypeError(f"{annotation!r} has no JSON Schema here; {_CURE}")


def _union(members: tuple[Any, ...], limits: Limits, inside: tuple[type, ...]) -> Shape:
    """Return a union; limits apply to its members except null, and the first matching member builds the value."""
    parts = [find_shape(member, _NO_LIMITS if member is type(None) else limits, inside) for member in members]

    def build(value: Any) -> Any:
        return next(part.build(value) for part in parts if not any(problems(part.written, value, "")))

    return Shape({"anyOf": [part.written for part in parts]}, build)


def _array(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    kind, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if kind is tuple and annotation is not tuple and arguments[1:] != (Ellipsis,):
        raise TypeError(f"{annotation!r} has a length of its own; {_CURE}")
    part = find_shape(arguments[0] if arguments else Any, inside=inside)
    schema = {"type": "array", "items": part.written, **limits.keywords("array")}
    into = tuple if kind is Sequence else kind
    return Shape(schema, lambda value: into(part.build(each) for each in value))


def _choice(members: tuple[Any, ...], annotation: Any) -> Shape:
    values = [member.value if isinstance(member, Enum) else member for member in members]
    if not values or not all(value is None or type(value) in (str, int, float, bool) for value in values):
        raise TypeError(f"{annotation!r} must list texts, numbers, truth values or None")
    kind = {"type": "string"} if all(isinstance(value, str) for value in values) else {}

    def build(value: Any) -> Any:
        return next(member for allowed, member in zip(values, members, strict=True) if is_same(value, allowed))

    return Shape({**kind, "enum": values}, build)


Fields = dict[str, tuple[Shape, bool, Schema]]
"""The fields of a record by name: shape, whether it is required, and annotations such as description and default."""


def _record(fields: Fields, into: Callable[..., Any]) -> Shape:
    schema = {
        "type": "object",
        "properties": {name: {**shape.written, **words} for name, (shape, _, words) in fields.items()},
        "required": [name for name, (_, required, _) in fields.items() if required],
        "additionalProperties": False,
    }

    def build(value: Any) -> Any:
        return into(**{name: shape.build(value[name]) for name, (shape, _, _) in fields.items() if name in value})

    return Shape(schema, build)


def _attributes(kind: Any, inside: tuple[type, ...]) -> Fields:
    """Return the fields of an attrs class or a dataclass."""
    hints, found = typing.get_type_hints(kind, include_extras=True), Fields()
    for attribute in attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind):
        where, hint = f"{kind.__name__}.{attribute.name}", hints.get(attribute.name)
        if getattr(attribute, "validator", None) is not None:
            raise TypeError(f"{where} has a validator, which a schema cannot tell; use Limits")
        if attribute.name not in hints:
            raise TypeError(f"{where} has no annotation")
        if attribute.init:
            defaults = (attribute.default, getattr(attribute, "default_factory", dataclasses.MISSING))
            is_required = all(default in (attrs.NOTHING, dataclasses.MISSING) for default in defaults)
            name = getattr(attribute, "alias", None) or attribute.name
            found[name] = _inner(kind, where, hint, inside), is_required, _described(hint)
    return found


def _keys(kind: Any, inside: tuple[type, ...]) -> Fields:
    """Return the keys of a TypedDict."""
    found = Fields()
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            (hint,) = typing.get_args(hint)
        shape = _inner(kind, f"{kind.__name__}.{name}", hint, inside)
        found[name] = shape, name in kind.__required_keys__, _described(hint)
    return found


def _inner(kind: type, where: str, hint: Any, inside: tuple[type, ...]) -> Shape:
    """Return the shape of a part of a record."""
    if kind in inside:
        raise TypeError(f"{kind.__name__} contains itself; a tool's parameters have a fixed depth")
    if find_marks(hint):
        raise TypeError(f"{where}: marks belong on the tool's own parameters, where the gate looks")
    return find_shape(hint, inside=(*inside, kind))


def _described(hint: Any, text: str | None = None) -> Schema:
    """Return the annotations of a parameter in the schema: `text`, else from its type annotation."""
    description = text or next((text for text in _metadata(hint) if isinstance(text, str)), None)
    return {"description": description} if description else {}


# Schemas of functions, by their signatures.


@frozen
class Signature:
    """A function as a tool: its name and description, its parameters, their marks, and the parameter for the context.

    `source`: the function itself, where a partial or an object with `__call__` stands for it.
    """

    source: Callable[..., Any]
    name: str
    description: str
    parameters: Shape
    marks: Marks
    context: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read the signature and docstring of `function`.

    Raises TypeError, naming function and parameter, for an unsupported signature.
    """
    source, bound = _without_partials(function)
    name = getattr(source, "__name__", type(source).__name__)
    described = source if hasattr(source, "__name__") else type(source).__call__
    description, texts = _split_docstring(inspect.cleandoc(described.__doc__ or inspect.getdoc(source) or ""))
    if not description:
        raise TypeError(f"tool {name!r} has no docstring; say in one what it does, the model reads it")
    try:
        hints = typing.get_type_hints(described, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name!r}: {error}; annotations must name things of its module") from error
    _check_returned(name, hints.get("return"))
    context: str | None = None
    fields, marks = Fields(), list[tuple[str, Mark, object]]()
    for key, parameter in inspect.signature(function).parameters.items():
        if key in bound:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name!r}: parameter {key!r} cannot be given by name; a model gives names only")
        if hints.get(key) is context_type:
            context = key
            continue
        fields[key] = _field(name, parameter, hints, texts.pop(key, None))
        default = None if parameter.default is parameter.empty else parameter.default
        marks.extend((key, mark, default) for mark in find_marks(hints[key]))
    if strange := texts.keys() - inspect.signature(source).parameters.keys():
        raise TypeError(f"tool {name!r} describes {', '.join(sorted(strange))}, but has no such parameter")
    return Signature(described, name, description, _record(fields, dict), tuple(marks), context)


def _without_partials(function: Callable[..., Any]) -> tuple[Callable[..., Any], frozenset[str]]:
    """Return the callable in a partial, and the parameters that are bound by name: a model cannot give these."""
    bound: frozenset[str] = frozenset()
    while isinstance(function, partial):
        bound |= function.keywords.keys()
        function = function.func
    return function, bound


def _check_returned(name: str, annotation: Any) -> None:
    """Raise TypeError if an annotation has a class whose objects no model can be shown."""
    for part in typing.get_args(annotation):
        _check_returned(name, part)
    if annotation not in (str, ToolResult, object) and type(annotation) is type and not is_dataclass(annotation):
        from agent.vocabulary.encoding import has_form  # a slow import that text tools do not need

        if not has_form(annotation):
            cure = "return text, a ToolResult (with images), plain data, or an attrs class or dataclass"
            raise TypeError(f"tool {name!r}: a model cannot be shown the {annotation.__name__} that it returns; {cure}")


def _field(
    tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], text: str | None
) -> tuple[Shape, bool, Schema]:
    key, default = parameter.name, parameter.default
    if key not in hints:
        raise TypeError(f"tool {tool!r}: parameter {key!r} has no annotation; write {key}: str or what it is")
    try:
        shape = find_shape(hints[key])
    except TypeError as error:
        raise TypeError(f"tool {tool!r}: parameter {key!r}: {error}") from error
    value = default.value if isinstance(default, Enum) else default
    told = {"default": value} if type(value) in (str, int, float, bool) else {}
    return shape, default is parameter.empty, {**_described(hints[key], text), **told}


_NAMED = re.compile(r"(\w+): *(.*)")


def _split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    description, _, section = f"\n{docstring}\n".partition("\nArgs:\n")
    texts: dict[str, str] = {}
    indent = len(section) - len(section.lstrip(" "))
    name = None
    for line in section.splitlines():
        if named := _NAMED.fullmatch(line[indent:]):
            name, texts[named[1]] = named[1], named[2]
        elif name is not None and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return description.strip(), texts


# Schemas of servers, and what models are given.

_MOST_NAMED = 10  # problems listed in a message


def foreign_shape(written: Mapping[str, Any]) -> Shape:
    """Return the shape of an MCP server's schema: values are checked by it, a model is given `schema_for_models`.

    Raises ToolError if it is not a schema of an object.
    """
    try:
        import jsonschema_rs
    except ImportError as error:
        raise ToolError("tools that exist as a schema only need the extra 'mcp': pip install 'bpagent[mcp]'") from error
    if written.get("type") != "object":
        raise ToolError("the parameters of a tool are an object; its schema says something else")
    schema = dict(written)
    is_older = "$schema" not in schema and not jsonschema_rs.meta.is_valid(schema)  # where none is named: the newest
    draft = jsonschema_rs.Draft7Validator if is_older else jsonschema_rs.validator_for
    try:
        validator = draft(schema, retriever=_refuse)
    except ValueError as error:
        raise ToolError(f"no JSON Schema that can be used: {' '.join(str(error).split())[:300]}") from error
    return Shape(
        schema_for_models(written), thaw, lambda _, value, path: islice(_told(validator, value, path), _MOST_NAMED + 1)
    )


_PARTS_BY_NAME = frozenset(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"])
_LISTS_OF_PARTS = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
_PARTS = frozenset(["items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"])
"""Keywords whose values are schemas, by name, in a list, or alone."""
_ALTERNATIVES = ("$ref", "allOf", "anyOf", "oneOf", "if", "then", "else")
_NOT_AT_THE_TOP = frozenset([*_ALTERNATIVES, "not", "enum", "const", "$schema"])


def schema_for_models(written: Mapping[str, Any]) -> Schema:
    """Return a schema of an object as strict providers take it, which is never narrower.

    Objects have `properties`, arrays `items`; alternatives of the whole are given as one set of properties.
    """
    sent: Schema = {word: value for word, value in _completed(written).items() if word not in _NOT_AT_THE_TOP}
    return {**sent, "properties": _properties_of(written, written, frozenset())}


def _properties_of(part: Any, whole: Mapping[str, Any], seen: frozenset[str]) -> Schema:
    """Return the properties of an object and of its alternatives."""
    if not isinstance(part, Mapping):
        return {}
    found: Schema = {}
    for word in _ALTERNATIVES:
        inner = part.get(word)
        if isinstance(inner, str) and inner not in seen:
            found |= _properties_of(_referred(inner, whole), whole, seen | {inner})
        for each in inner if isinstance(inner, list) else [inner]:
            found |= _properties_of(each, whole, seen)
    return {**found, **_completed(part).get("properties", {})}


def _referred(reference: str, whole: Mapping[str, Any]) -> Any:
    """Return the part of a schema that a local reference names."""
    part: Any = whole
    for step in reference.removeprefix("#").split("/")[1:]:
        part = part.get(step) if isinstance(part, Mapping) else None
    return part


def _completed(part: Any) -> Any:
    """Return a schema with `properties` in each object and `items` in each array."""
    if not isinstance(part, Mapping):
        return {} if part is True else {"not": {}} if part is False else part
    sent = {word: _completed_value(word, value) for word, value in part.items()}
    kind = part.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    needed: Schema = {"properties": {}} if "object" in kinds else {}
    return {**needed, **({"items": {}} if "array" in kinds else {}), **sent}


def _completed_value(word: str, value: Any) -> Any:
    if word in _PARTS_BY_NAME and isinstance(value, Mapping):
        return {name: _completed(part) for name, part in value.items()}
    if word in _LISTS_OF_PARTS and isinstance(value, list):
        return [_completed(part) for part in value]
    if word == "items" and isinstance(value, list):  # of the elements, one by one, in older drafts
        return {"anyOf": [_completed(part) for part in value]} if value else {}
    if word == "additionalProperties" and isinstance(value, bool):
        return value
    return _completed(value) if word in _PARTS else value


def _told(validator: Any, value: object, path: str) -> Iterator[str]:
    for number, error in enumerate(validator.iter_errors(thaw(value))):
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        told = f"{(path + where).lstrip('.') or 'arguments'}: {error.message[:300]}"
        yield told if number < _MOST_NAMED else "and more"


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
