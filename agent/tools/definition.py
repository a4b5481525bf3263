"""A tool as a value: what the model is told, what is accepted, what the gate may know, and how it runs.

    @tool(category="read")
    async def weather(city: str, days: Annotated[int, Limits(minimum=1, maximum=7)] = 1) -> str:
        \"\"\"Forecast the weather of a city.\"\"\"

`weather` is then a `Tool`. Its function may be async or not; one that is not runs in a daemon thread, unless the tool
is `quick`: then it runs where it is called, without a thread and without a task, and everything else waits for it.
"""

import inspect
import json
import os
import re
import types
import typing
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar, Union, overload

import anyio
import attrs
from anyio.lowlevel import current_token
from attrs import evolve, frozen

from agent.tools.blocking import call_back, run_in_background
from agent.tools.schemas import (
    Background,
    Limits,
    Path,
    Rights,
    Schema,
    Shape,
    ShellCommand,
    ToolSchema,
    Touch,
    Url,
    is_same,
    problems,
)
from agent.tools.workspace import Workspace, expand
from agent.vocabulary.calls import Category, ToolResult
from agent.vocabulary.events import ToolFinished
from bp import Event

_SCALARS: dict[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", None: "null", type(None): "null",
}  # fmt: skip
Mark = Path | ShellCommand | Url | Background | Rights
M = TypeVar("M")
_UNIONS = (Union, types.UnionType)
_NO_LIMITS = Limits()
_CURE = (
    "use str, int, float, bool, None, Literal, an enum, list, tuple[..., ...], dict[str, ...], a union or a frozen "
    "attrs class"
)


def find_marks(annotation: Any) -> tuple[Mark, ...]:
    """Return the marks in `annotation`: on the whole, on members of a union, on elements of an array or mapping."""
    own = tuple(mark for mark in _metadata(annotation) if isinstance(mark, Mark))
    if typing.get_origin(annotation) is Literal:
        return own
    inner = typing.get_args(annotation)[:1] if _metadata(annotation) else typing.get_args(annotation)
    return own + tuple(mark for part in inner for mark in find_marks(part))


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if typing.get_origin(annotation) is Annotated else ()


def find_shape(annotation: Any, limits: Limits = _NO_LIMITS, inside: tuple[type, ...] = ()) -> Shape:
    """Return the shape of `annotation`, whose values have `limits`. Raises TypeError for what is not supported."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        own = next((mark for mark in annotation.__metadata__ if isinstance(mark, Limits)), limits)
        return find_shape(annotation.__origin__, own, inside)
    if origin in _UNIONS:
        return _union(annotation, limits, inside)
    if origin in (list, tuple, Sequence):
        return _array(annotation, limits, inside)
    if (annotation is None or isinstance(annotation, type)) and annotation in _SCALARS:
        kind = _SCALARS[annotation]
        schema = {"type": kind, **limits.keywords(kind)}
        return Shape(schema, int) if kind == "integer" else Shape(schema)
    limits.keywords(repr(annotation))
    return _unlimited(annotation, inside)


def _unlimited(annotation: Any, inside: tuple[type, ...]) -> Shape:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _choice(arguments, annotation)
    if origin in (dict, Mapping) and arguments[0] is str:
        part = find_shape(arguments[1], inside=inside)
        schema: Schema = {"type": "object", "additionalProperties": part.written}
        return Shape(schema, lambda value: {key: part.build(each) for key, each in value.items()})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(tuple(annotation), annotation)
    if isinstance(annotation, type) and attrs.has(annotation):
        return _record(list(_attributes(annotation, inside)), annotation)
    raise TypeError(f"{annotation!r} has no JSON Schema here; {_CURE}")


def _union(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    """Return a union, whose limits are for its members, except null; the first member that fits builds the value."""
    members = typing.get_args(annotation)
    parts = [find_shape(member, _NO_LIMITS if member is type(None) else limits, inside) for member in members]

    def build(value: Any) -> Any:
        return next(part.build(value) for part in parts if not any(problems(part.written, value, "")))

    return Shape({"anyOf": [part.written for part in parts]}, build)


def _array(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and arguments[1:] != (Ellipsis,):
        raise TypeError(f"{annotation!r} has a length of its own; {_CURE}")
    part, into = find_shape(arguments[0], inside=inside), list if origin is list else tuple
    schema = {"type": "array", "items": part.written, **limits.keywords("array")}
    return Shape(schema, lambda value: into(part.build(each) for each in value))


def _choice(members: tuple[Any, ...], annotation: Any) -> Shape:
    values = [member.value if isinstance(member, Enum) else member for member in members]
    if not values or not all(value is None or type(value) in (str, int, float, bool) for value in values):
        raise TypeError(f"{annotation!r} must list texts, numbers, truth values or None")
    kind = {"type": "string"} if all(isinstance(value, str) for value in values) else {}

    def build(value: Any) -> Any:
        return next(member for allowed, member in zip(values, members, strict=True) if is_same(value, allowed))

    return Shape({**kind, "enum": values}, build)


@frozen
class _Field:
    """A named part of a record. `words` of the schema say more and forbid nothing: description, default."""

    name: str
    shape: Shape
    required: bool
    words: Mapping[str, Any]


def _record(fields: Sequence[_Field], into: Callable[..., Any]) -> Shape:
    """Return an object with these fields and no others."""
    schema = {
        "type": "object",
        "properties": {each.name: {**each.shape.written, **each.words} for each in fields},
        "required": [each.name for each in fields if each.required],
        "additionalProperties": False,
    }

    def build(value: Any) -> Any:
        return into(**{each.name: each.shape.build(value[each.name]) for each in fields if each.name in value})

    return Shape(schema, build)


def _attributes(kind: type, inside: tuple[type, ...]) -> Iterator[_Field]:
    if not attrs.inspect(kind).is_frozen:
        raise TypeError(f"{kind.__name__} can change; use @attrs.frozen")
    hints = typing.get_type_hints(kind, include_extras=True)
    for attribute in attrs.fields(kind):
        if attribute.validator is not None:
            raise TypeError(f"{kind.__name__}.{attribute.name} has a validator, which a schema cannot tell; use Limits")
        if attribute.name not in hints:
            raise TypeError(f"{kind.__name__}.{attribute.name} has no annotation")
        if attribute.init:
            required = attribute.default is attrs.NOTHING
            yield _nested_field(attribute.alias or attribute.name, hints[attribute.name], required, kind, inside)


def _nested_field(name: str, hint: Any, required: bool, kind: type, inside: tuple[type, ...]) -> _Field:
    if kind in inside:
        raise TypeError(f"{kind.__name__} contains itself; a tool's parameters have a fixed depth")
    if find_marks(hint):
        raise TypeError(f"{kind.__name__}.{name}: marks belong on the tool's own parameters, where the gate looks")
    return _Field(name, find_shape(hint, inside=(*inside, kind)), required, describe(hint))


def describe(hint: Any, text: str | None = None) -> Schema:
    """Return the schema's words about a parameter: `text`, or else what its annotation says."""
    description = text or next((text for text in _metadata(hint) if isinstance(text, str)), None)
    return {"description": description} if description else {}


_NAMED = re.compile(r"(\w+): *(.*)")


@frozen
class Signature:
    """A function as a tool: its description, its parameters, their marks, and the parameter for the context."""

    description: str
    parameters: Shape
    marks: tuple[tuple[str, Mark, object], ...]
    context: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read what `function` says about itself. `marks` are (parameter, mark, default or None).

    Raises TypeError, naming function and parameter, for what cannot be described to a model.
    """
    name = getattr(function, "__name__", repr(function))
    description, texts = _split_docstring(inspect.getdoc(function) or "")
    if not description:
        raise TypeError(f"tool {name!r} has no docstring; say in one what it does, the model reads it")
    hints = _hints(function, name)
    parameters = _named_parameters(function, name)
    context = next((key for key in parameters if hints.get(key) is context_type), None)
    fields: list[_Field] = []
    marks: list[tuple[str, Mark, object]] = []
    for key, parameter in parameters.items():
        if key != context:
            fields.append(_field(name, parameter, hints, texts.pop(key, None)))
            default = None if parameter.default is parameter.empty else parameter.default
            marks.extend((key, mark, default) for mark in find_marks(hints[key]))
    if texts:
        raise TypeError(f"tool {name!r} describes {', '.join(texts)}, but has no such parameter")
    return Signature(description, _record(fields, dict), tuple(marks), context)


def _hints(function: Callable[..., Any], name: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name!r}: {error}; annotations must name things of its module") from error


def _named_parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    for key, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name!r}: parameter {key!r} cannot be given by name; a model gives names only")
    return parameters


def _field(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], text: str | None) -> _Field:
    key = parameter.name
    if key not in hints:
        raise TypeError(f"tool {tool!r}: parameter {key!r} has no annotation; write {key}: str or what it is")
    try:
        shape = find_shape(hints[key])
    except TypeError as error:
        raise TypeError(f"tool {tool!r}: parameter {key!r}: {error}") from error
    required = parameter.default is parameter.empty
    return _Field(key, shape, required, {**describe(hints[key], text), **_default(parameter)})


def _default(parameter: inspect.Parameter) -> Schema:
    value = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    return {"default": value} if type(value) in (str, int, float, bool) else {}


def _split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the texts of its parameters."""
    description, _, section = f"\n{docstring}\n".partition("\nArgs:\n")
    texts: dict[str, str] = {}
    indent = len(section) - len(section.lstrip(" "))
    name = None
    for line in section.splitlines():
        named = _NAMED.fullmatch(line[indent:])
        if named is not None:
            name = named[1]
            texts[name] = named[2]
        elif name is not None and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return description.strip(), texts


def _ignore(_: str) -> None:
    """Drop progress that no listener asked for."""


@frozen
class ToolContext:
    """The means of a running call: its id, and `progress` to show text while it runs.

    `progress` may be called from the tool's own thread, any number of times; who listens coalesces. `rights`: what the
    call may do beyond the sandbox, as the user granted it (`agent.tools.sandbox.permissions`). `workspace`: the folder
    where the gate took commands to start, empty outside of an agent.
    """

    call_id: str = ""
    progress: Callable[[str], None] = _ignore
    rights: tuple[str, ...] = ()
    workspace: str = ""


@frozen(eq=False)
class Tool:
    """A tool: name, description, category, whether several calls of it may run at once, and whether it `polls`.

    `parameters`, what the model is told, comes from the same shape that checks. `timeout` is in
    seconds, None for no limit but the tool's own. `workspace` is where its relative paths start and its bounds lie,
    for the gate; None for the agent's. `argv` gives the program that a call starts without a shell, for the gate.
    `cwd` is where the next call starts, if not in the workspace's root. `hears` is told what happens in the agent's
    runs, for tools that have to know when the user asks to stop. `restores` is told its recorded results when a run is
    resumed. `run_over` is awaited when a run has ended, or rests. `quick`: `function` is synchronous, never waits for
    anything, and returns within a millisecond or so; it can be neither cancelled nor timed out.
    `source` says where the tool was declared, if not in Python. `sandbox` is the level at which what it starts is
    confined, empty for a tool that starts nothing, or not in a sandbox; `confine` gives the words before a program that
    starts in a folder, to confine it alike. `opaque`: nothing is known about what a call
    does, and the user is asked. Tools are compared by identity.
    """

    name: str
    description: str
    shape: Shape
    function: Callable[..., object]
    category: Category = "write"
    parallel: bool = False
    quick: bool = False
    polls: bool = False
    timeout: float | None = None
    marks: tuple[tuple[str, Mark, object], ...] = ()
    workspace: Workspace | None = None
    argv: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    cwd: Callable[[], str] | None = None
    hears: Callable[[Event], None] | None = None
    restores: Callable[[ToolFinished], None] | None = None
    run_over: Callable[[], Awaitable[None]] | None = None
    source: str = ""
    sandbox: str = ""
    confine: Callable[[str], tuple[str, ...]] | None = None
    opaque: bool = False
    body: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function that the tool was made of, as in a test of it; nothing is checked, judged or bounded.

        Raises TypeError for a tool that was made of none; `await tool.run({...})` runs any.
        """
        if self.body is None:
            raise TypeError(f"the tool {self.name!r} is not made of a function; write `await tool.run({{...}})`")
        return self.body(*arguments, **named)

    @property
    def parameters(self) -> Schema:
        """The JSON Schema that the model is told."""
        return self.shape.written

    @property
    def label(self) -> str:
        """The name that a user interface shows for the tool (S2)."""
        return self.name

    @property
    def place(self) -> str:
        """The file and the line of its function, or the source of a tool that was declared elsewhere."""
        code = getattr(self.body, "__code__", None)
        return self.source or "no function" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def schema(self) -> ToolSchema:
        """Return the tool as a model is told about it."""
        return ToolSchema(self.name, self.description, self.parameters)

    def check(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return everything that is wrong with `arguments`, each as "path: problem"; empty means valid."""
        problems = self.shape.problems(arguments)
        return problems if problems or self.argv is None else _argv_problems(self.argv, arguments)

    def touches(self, arguments: Mapping[str, Any]) -> tuple[Touch, ...]:
        """Return the paths that a call with `arguments` names, as they are written there."""
        return tuple(Touch(path, mark.access) for mark, path in self._marked(arguments, Path))

    def command(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the shell command that a call with `arguments` would run, or None."""
        commands = [mark.prefix + text for mark, text in self._marked(arguments, ShellCommand)]
        return "\n".join(commands) if commands else None

    def urls(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the addresses that a call with `arguments` would reach."""
        return tuple(text for _, text in self._marked(arguments, Url))

    def rights(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a call with `arguments` asks for beyond the sandbox."""
        return tuple(text for _, text in self._marked(arguments, Rights))

    def _marked(self, arguments: Mapping[str, Any], kind: type[M]) -> Iterator[tuple[M, str]]:
        """Yield the texts of the parameters that have a mark of a kind, with that mark."""
        for name, mark, default in self.marks:
            if isinstance(mark, kind):
                yield from ((mark, text) for text in _texts(arguments.get(name, default)))

    @cached_property
    def command_in(self) -> str:
        """The parameter that holds the shell command; empty without one, or with several."""
        names = [name for name, mark, _ in self.marks if isinstance(mark, ShellCommand)]
        return names[0] if len(names) == 1 else ""

    def is_background(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether what a call with `arguments` starts would stay after the call."""
        return any(isinstance(mark, Background) and bool(arguments.get(name)) for name, mark, _ in self.marks)

    def without(self, parameter: str) -> "Tool":
        """Return the tool without a parameter that has a default."""
        marks = tuple(mark for mark in self.marks if mark[0] != parameter)
        return self._with(lambda named: {name: part for name, part in named.items() if name != parameter}, marks)

    def with_rights(self, schema: Schema) -> "Tool":
        """Return the tool with a parameter `rights`, which its function does not get."""
        return self._with(lambda named: {**named, "rights": schema}, (*self.marks, ("rights", Rights(), ())))

    def _with(self, change: Callable[[Schema], Schema], marks: tuple[tuple[str, Mark, object], ...]) -> "Tool":
        written = self.shape.written
        shape = evolve(self.shape, written={**written, "properties": change(written["properties"])})
        return evolve(self, shape=shape, marks=marks)

    def in_workspace(self, workspace: Workspace) -> "Tool":
        """Return the tool with this workspace if it has none; its function gets paths as they are judged, absolute."""
        if self.workspace is not None:
            return self
        defaults = {name: default for name, mark, default in self.marks if isinstance(mark, Path)}
        home = os.path.expanduser("~")

        def run(context: ToolContext, /, **arguments: Any) -> object:
            paths = {name: arguments.get(name, default) for name, default in defaults.items()}
            return self.function(context, **{**arguments, **_absolute(paths, workspace.root, home)})

        function = run if defaults and self.body is not None else self.function
        return evolve(self, workspace=workspace, function=function)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResult:
        """Run the tool and return its one result. Whatever goes wrong is an error result (S0 5.2, S5.4).

        Only cancellation passes through.
        """
        if self.quick:
            return self.run_now(arguments, context)
        problems = self.check(arguments)
        if problems:
            return _invalid(problems)
        function: Any = self.function
        try:
            if self.timeout is None:
                return self._result(await function(context or ToolContext(), **self.shape.build(arguments)))
            with anyio.move_on_after(self.timeout):
                return self._result(await function(context or ToolContext(), **self.shape.build(arguments)))
        except (Exception, SystemExit) as error:
            return _failure(error)
        return ToolResult(f"timed out after {self.timeout:g} seconds", is_error=True)

    def run_now(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResult:
        """Do what `run` does, for a tool that is quick."""
        problems = self.check(arguments)
        if problems:
            return _invalid(problems)
        try:
            return self._result(self.function(context or ToolContext(), **self.shape.build(arguments)))
        except (Exception, SystemExit) as error:
            return _failure(error)

    def _result(self, returned: object) -> ToolResult:
        if not isinstance(returned, ToolResult):
            try:
                returned = ToolResult(returned if isinstance(returned, str) else _as_json(returned))
            except (TypeError, ValueError, RecursionError) as error:
                text = f"the call has run, but {self.name!r} returned no text, JSON or ToolResult: {error}"
                return ToolResult(text, is_error=True)
        text = _encodable(returned.text)
        return returned if text == returned.text else evolve(returned, text=text)


@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *,
    category: Category = "write",
    parallel: bool = False,
    quick: bool = False,
    name: str | None = None,
    timeout: float | None = None,
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    function: Callable[..., object] | None = None,
    /,
    *,
    category: Category = "write",
    parallel: bool = False,
    quick: bool = False,
    name: str | None = None,
    timeout: float | None = None,
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Make a `Tool` of an annotated function with a docstring.

    It returns text, a `ToolResult`, or plain data (numbers, lists, dictionaries, dataclasses), shown as JSON.

    quick: the function is synchronous, never waits, and runs without a thread. timeout: seconds.

    Raises TypeError for what a model cannot be told, and for a quick tool that is async or has a timeout.
    """

    def define(function: Callable[..., object]) -> Tool:
        signature = read_signature(function, ToolContext)
        if quick and (inspect.iscoroutinefunction(function) or timeout is not None):
            raise TypeError(f"@tool(quick=True): {function.__name__} must be synchronous, and cannot have a timeout")
        return Tool(
            name=name or function.__name__,
            description=signature.description,
            shape=signature.parameters,
            function=_runner(function, signature.context, quick=quick),
            category=category,
            parallel=parallel,
            quick=quick,
            timeout=timeout,
            marks=signature.marks,
            body=function,
        )

    return define if function is None else define(function)


def _argv_problems(argv: Callable[[Mapping[str, Any]], object], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        argv(arguments)
    except Exception as error:  # foreign code: what it cannot make a program of is no call, and no fault of the model
        return (str(error) or type(error).__name__,)
    return ()


def _invalid(problems: tuple[str, ...]) -> ToolResult:
    return ToolResult("invalid arguments: " + "; ".join(problems), is_error=True)


def _runner(function: Callable[..., Any], context_name: str | None, *, quick: bool) -> Callable[..., object]:
    """Return `function` as every tool is run: async unless it is quick, the context first, arguments by name."""

    def given(context: ToolContext) -> dict[str, ToolContext]:
        return {} if context_name is None else {context_name: context}

    def run_here(context: ToolContext, /, **arguments: Any) -> object:
        return function(**arguments, **given(context))

    async def run_in_thread(context: ToolContext, /, **arguments: Any) -> object:
        context = evolve(context, progress=call_back(context.progress, current_token()))
        return await run_in_background(lambda: function(**arguments, **given(context)))

    return run_here if quick or inspect.iscoroutinefunction(function) else run_in_thread


def _failure(error: BaseException) -> ToolResult:
    """Return an error as content; a group of errors is named by its parts."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(_failure(part).text for part in error.exceptions)
    else:
        text = str(error) or type(error).__name__
    return ToolResult(_encodable(text), is_error=True)


def _as_json(value: object) -> str:
    """Return plain data, attrs classes and dataclasses as JSON. Raises TypeError, ValueError and RecursionError."""
    from agent.vocabulary.encoding import plain  # with it comes much that tools of texts do without

    def as_plain(part: Any) -> Any:
        return asdict(part) if is_dataclass(part) and not isinstance(part, type) else plain(part)

    return json.dumps(value, ensure_ascii=False, default=as_plain)


def _encodable(text: str) -> str:
    """Return `text` with what no log can hold as UTF-8 (lone surrogates, from file names) replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _absolute(value: Any, root: str, home: str) -> Any:
    """Return the paths in the value of a parameter as they are judged."""
    if isinstance(value, str):
        return os.path.join(root, expand(value, home))
    if isinstance(value, Mapping):
        return {key: _absolute(part, root, home) for key, part in value.items()}
    return [_absolute(part, root, home) for part in value] if isinstance(value, list | tuple) else value


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return tuple(text for part in value for text in _texts(part)) if isinstance(value, list | tuple) else ()
