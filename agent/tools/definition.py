"""Defines a tool: its schema for the model, the check of arguments, the facts for the gate, and its function.

    @tool(category="read")
    async def weather(city: str, days: Annotated[int, Limits(minimum=1, maximum=7)] = 1) -> str:
        \"\"\"Forecast the weather of a city.\"\"\"

`weather` is then a `Tool`. A synchronous function runs in a daemon thread, unless the tool is `quick`: then it blocks
the event loop while it runs. A `Toolbox` holds the tools of one agent.
"""

import inspect
import json
import os
import pathlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, overload
from weakref import WeakKeyDictionary

import anyio
from anyio.lowlevel import current_token
from attrs import evolve, frozen

from agent.tools.blocking import call_back, run_in_background
from agent.tools.schemas import (
    Background,
    Marks,
    Path,
    Rights,
    Schema,
    Shape,
    ShellCommand,
    ToolSchema,
    Touch,
    Url,
    read_signature,
)
from agent.tools.workspace import Workspace, expand
from agent.vocabulary.calls import Category, ToolCall
from agent.vocabulary.errors import nearest
from agent.vocabulary.events import ActionDescribed, ToolFinished
from agent.vocabulary.messages import ToolResult
from bp import Event

if TYPE_CHECKING:
    from agent.tools.sandbox.put_back import Guard

M = TypeVar("M")
S = TypeVar("S")

_RUNNING: ContextVar[Any] = ContextVar("the agent that runs", default=None)


@contextmanager
def running(agent: object) -> Iterator[None]:
    """Give the tools that are used in the block the state of this agent."""
    before = _RUNNING.set(agent)
    try:
        yield
    finally:
        _RUNNING.reset(before)


def running_agent() -> Any:
    """Return the agent whose tools run; None outside of runs."""
    return _RUNNING.get()


class PerAgent(Generic[S]):
    """State of tools, one for each agent that runs them; that of the first one is that of direct calls, too."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make, self._first, self._is_free = make, make(), True
        self._of_agents: WeakKeyDictionary[Any, S] = WeakKeyDictionary()

    @property
    def own(self) -> S:
        """The state of the agent that runs."""
        agent = running_agent()
        if agent is None:
            return self._first
        if agent not in self._of_agents:
            self._of_agents[agent] = self._first if self._is_free else self._make()
            self._is_free = False
        return self._of_agents[agent]


def ignore(_: object) -> None:
    """Drop a piece of text for which no listener was given."""


async def keep_nothing(_: str = "") -> None:
    """Take no snapshot."""


@frozen
class ToolContext:
    """The means of a running call: its id, and `progress` to show text while it runs.

    `progress` may be called from any thread and any number of times; listeners coalesce. `rights`: granted by the user
    beyond the sandbox (`agent.tools.sandbox.permissions`). `workspace`: the folder in which the gate assumed that
    commands start, empty outside of an agent. `keep`: takes a snapshot of the workspace, if the agent takes any.
    """

    call_id: str = ""
    progress: Callable[[str], None] = ignore
    rights: tuple[str, ...] = ()
    workspace: str = ""
    keep: Callable[[], Awaitable[None]] = keep_nothing


@frozen(eq=False)
class Tool:
    """A tool: name, description, category, whether its calls may run in parallel, and whether it `polls`.

    `parameters`: the schema for the model, from the shape that checks arguments. `timeout`: in seconds, None for no
    limit but the tool's own. `workspace`: its root and bounds for the gate; None for the agent's. `argv`: returns the
    program that a call starts without a shell, for the gate. `cwd`: returns where the next call starts, if not in the
    workspace's root. `before`: returns what its shell reads before the command. `hears`: gets the events of the agent's
    runs, for tools that react to stop requests. `restores`: gets its recorded results when a run is resumed.
    `run_over`: awaited when a run has ended, or rests. `quick`:
    `function` is synchronous, never waits, and returns within about a millisecond; it can be neither cancelled nor
    timed out. `source` says where the tool was declared, if not in Python. `sandbox` is the level at which what it
    starts is confined, empty for a tool that starts nothing, or not in a sandbox; `guard` keeps places that run later
    from it. `opaque`: nothing is known about what
    a call does, and the user is asked. Tools are compared by identity.
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
    marks: Marks = ()
    workspace: Workspace | None = None
    argv: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    cwd: Callable[[], str] | None = None
    before: Callable[[Mapping[str, Any]], str] | None = None
    hears: Callable[[Event], None] | None = None
    restores: Callable[[ToolFinished], None] | None = None
    run_over: Callable[[], Awaitable[None]] | None = None
    source: str = ""
    sandbox: str = ""
    guard: "Guard | None" = None
    opaque: bool = False
    body: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the tool's function directly, as in tests, without checks, judgement or bounds.

        Raises TypeError for a tool without a function; `await tool.run({...})` runs any.
        """
        if self.body is None:
            raise TypeError(f"the tool {self.name!r} is not made of a function; write `await tool.run({{...}})`")
        return self.body(*arguments, **named)

    @property
    def parameters(self) -> Schema:
        """The JSON Schema for the model."""
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
        """Return the tool's schema for the model."""
        return ToolSchema(self.name, self.description, self.parameters)

    def check(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return all errors in `arguments`, each as "path: problem"; empty if valid."""
        problems = self.shape.problems(arguments)
        if self.argv is not None and not problems:
            try:
                self.argv(arguments)
            except Exception as error:  # foreign code
                return (str(error) or type(error).__name__,)
        return problems

    def flaw(self, arguments: Mapping[str, Any]) -> str:
        """Return all errors in `arguments` as one text; empty if valid."""
        problems = self.check(arguments)
        return f"invalid arguments: {'; '.join(problems)}" if problems else ""

    def touches(self, arguments: Mapping[str, Any]) -> tuple[Touch, ...]:
        """Return the paths in `arguments`, as written there."""
        return tuple(Touch(path, mark.access) for mark, path in self._marked(arguments, Path))

    def command(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the shell command that a call with `arguments` would run, or None."""
        commands = [mark.prefix + text for mark, text in self._marked(arguments, ShellCommand)]
        before = "" if self.before is None else self.before(arguments)
        return before + "\n".join(commands) if commands else None

    def urls(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the addresses that a call with `arguments` would reach."""
        return tuple(text for _, text in self._marked(arguments, Url))

    def rights(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the rights beyond the sandbox that `arguments` request."""
        return tuple(text for _, text in self._marked(arguments, Rights))

    def _marked(self, arguments: Mapping[str, Any], kind: type[M]) -> Iterator[tuple[M, str]]:
        """Yield the texts of the parameters with a mark of this kind, each with its mark."""
        for name, mark, default in self.marks:
            if isinstance(mark, kind):
                yield from ((mark, text) for text in _texts(arguments.get(name, default)))

    @cached_property
    def command_in(self) -> str:
        """The parameter that holds the shell command; empty without one, or with several."""
        names = [name for name, mark, _ in self.marks if isinstance(mark, ShellCommand)]
        return names[0] if len(names) == 1 else ""

    def is_background(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call with `arguments` would leave a background process."""
        return any(isinstance(mark, Background) and bool(arguments.get(name)) for name, mark, _ in self.marks)

    def without(self, parameter: str) -> "Tool":
        """Return the tool without a parameter that has a default."""
        marks = tuple(mark for mark in self.marks if mark[0] != parameter)
        return self._with(lambda named: {name: part for name, part in named.items() if name != parameter}, marks)

    def with_rights(self, schema: Schema) -> "Tool":
        """Return the tool with a parameter `rights`, which its function does not get."""
        return self._with(lambda named: {**named, "rights": schema}, (*self.marks, ("rights", Rights(), ())))

    def _with(self, change: Callable[[Schema], Schema], marks: Marks) -> "Tool":
        written = self.shape.written
        shape = evolve(self.shape, written={**written, "properties": change(written["properties"])})
        return evolve(self, shape=shape, marks=marks)

    def in_workspace(self, workspace: Workspace) -> "Tool":
        """Return the tool with this workspace if it has none; its function gets absolute paths, as judged."""
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
        """Run the tool and return its one result; any failure is an error result (S0 5.2, S5.4).

        Only cancellation passes through.
        """
        if self.quick:
            return self.run_now(arguments, context)
        if flaw := self.flaw(arguments):
            return ToolResult(flaw, is_error=True)
        function: Any = self.function
        try:
            if self.timeout is None:
                return self._result(await function(context or ToolContext(), **self.shape.build(arguments)))
            with anyio.move_on_after(self.timeout):
                return self._result(await function(context or ToolContext(), **self.shape.build(arguments)))
        except BaseException as error:
            if is_cancellation(error):
                raise
            return _failure(error)
        runs_on = "" if inspect.iscoroutinefunction(self.body) else "it may still be running, and "
        text = f"timed out after {self.timeout:g} seconds; {runs_on}its outcome is unknown"
        return ToolResult(text, is_error=True)

    def run_now(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResult:
        """Like `run`, for a quick tool."""
        if flaw := self.flaw(arguments):
            return ToolResult(flaw, is_error=True)
        try:
            return self._result(self.function(context or ToolContext(), **self.shape.build(arguments)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _failure(error)

    def _result(self, returned: object) -> ToolResult:
        if not isinstance(returned, ToolResult):
            try:
                returned = ToolResult(returned if isinstance(returned, str) else _as_json(returned))
            except (TypeError, ValueError, RecursionError) as error:
                has_run = "the call has run, but "
                if inspect.isgenerator(returned) or inspect.isasyncgen(returned) or inspect.iscoroutine(returned):
                    has_run = "the call has not run: "
                text = f"{has_run}{self.name!r} returned no text, JSON or ToolResult: {error}"
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

    Raises TypeError for unsupported annotations, for an unknown category, and for a quick tool that is async or has a
    timeout.
    """

    def define(function: Callable[..., object]) -> Tool:
        if category not in get_args(Category):
            raise TypeError(f"@tool(category={category!r}): a category is one of {', '.join(get_args(Category))}")
        signature = read_signature(function, ToolContext)
        source = signature.source
        if inspect.isgeneratorfunction(source) or inspect.isasyncgenfunction(source):
            cure = "return all at once, and show pieces with ToolContext.progress"
            raise TypeError(f"tool {signature.name!r} is a generator, which would never run; {cure}")
        if quick and (inspect.iscoroutinefunction(inspect.unwrap(source)) or timeout is not None):
            raise TypeError(f"@tool(quick=True): {signature.name} must be synchronous, and cannot have a timeout")
        return Tool(
            name=name or signature.name,
            description=signature.description,
            shape=signature.parameters,
            function=_runner(function, signature.context, here=quick or inspect.iscoroutinefunction(source)),
            category=category,
            parallel=parallel,
            quick=quick,
            timeout=timeout,
            marks=signature.marks,
            body=function,
        )

    return define if function is None else define(function)


def _runner(function: Callable[..., Any], context_name: str | None, *, here: bool) -> Callable[..., object]:
    """Return `function` in the form of all tools: context first, arguments by name; in a thread unless `here`."""

    def run_here(context: ToolContext, /, **arguments: Any) -> object:
        return function(**arguments) if context_name is None else function(**arguments, **{context_name: context})

    async def run_in_thread(context: ToolContext, /, **arguments: Any) -> object:
        context = evolve(context, progress=call_back(context.progress, current_token()))
        return await run_in_background(lambda: run_here(context, **arguments))

    return run_here if here else run_in_thread


def is_cancellation(error: BaseException) -> bool:
    """Return whether an error is a cancellation or an interrupt by the user, or is a group with one."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_cancellation, error.exceptions))
    return isinstance(error, KeyboardInterrupt | anyio.get_cancelled_exc_class())


def _failure(error: BaseException) -> ToolResult:
    """Return an error as content; a group of errors is named by its parts."""
    if isinstance(error, BaseExceptionGroup):
        text = "; ".join(_failure(part).text for part in error.exceptions)
    else:
        text = str(error) or type(error).__name__
    return ToolResult(_encodable(text), is_error=True)


def _as_json(value: object) -> str:
    """Return plain data, attrs classes and dataclasses as JSON. Raises TypeError, ValueError and RecursionError."""
    from agent.vocabulary.encoding import plain  # a slow import that text tools do not need

    def as_plain(part: Any) -> Any:
        return asdict(part) if is_dataclass(part) and not isinstance(part, type) else plain(part)

    return json.dumps(value, ensure_ascii=False, default=as_plain)


def _encodable(text: str) -> str:
    """Return `text` with lone surrogates (from file names) replaced, which a log in UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _absolute(value: Any, root: str, home: str) -> Any:
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


def explain_unknown(name: str, names: Iterable[str]) -> str:
    """Return the answer to a call of an unknown tool: "unknown tool 'bsh'; nearest: bash"."""
    names = tuple(names)
    without_prefix = tuple(part for part in re.split(r"[.:/]", name) if part in names)  # "functions.bash"
    if near := without_prefix or nearest(name, names):
        return f"unknown tool {name!r}; nearest: {', '.join(near)}"
    return f"unknown tool {name!r}; known: {', '.join(sorted(names)) or 'none'}"


class Toolbox:
    """Tools by name; a later tool replaces an earlier one of the same name (S3)."""

    def __init__(self, tools: Iterable[Tool], workspace: Workspace, *, suggests: bool = True) -> None:
        """Make a toolbox; `workspace`: for tools without their own.

        suggests: answers to calls of unknown tools name the nearest ones.
        """
        self._tools = {tool.name: tool for tool in tools}
        self.tools = tuple(self._tools.values())
        self.names = tuple(self._tools)
        self._listeners = tuple(tool.hears for tool in self.tools if tool.hears is not None)
        self.workspace = workspace
        self._suggests = suggests
        self.own: tuple[str, ...] = ()  # files and folders of this agent, beside those of every agent
        self.keep: Callable[[str], Awaitable[None]] = keep_nothing  # takes a snapshot during a call
        self.kept: tuple[str, ...] = ()  # folders of which a snapshot is taken before each call that may change files
        self.unkept: tuple[str, ...] = ()  # names and paths that the user leaves out

    @cached_property
    def home(self) -> str:
        """The user's home. Raises RuntimeError if it is unknown."""
        return str(pathlib.Path.home())

    @cached_property
    def categories(self) -> Mapping[str, Category]:
        """The category of each tool."""
        return {tool.name: tool.category for tool in self.tools}

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools' schemas for a model."""
        return tuple(tool.schema() for tool in self.tools)

    def get(self, name: str) -> Tool | None:
        """Return a tool, or None."""
        return self._tools.get(name)

    def checked(self, call: ToolCall) -> ToolCall:
        """Return the call with its tool's flag, or with a flaw if the tool is unknown or the arguments are invalid."""
        if call.flaw is not None:
            return call
        tool = self._tools.get(call.tool)
        if tool is None:
            flaw = explain_unknown(call.tool, self.names) if self._suggests else f"unknown tool {call.tool!r}"
            return evolve(call, flaw=flaw)
        if flaw := tool.flaw(call.arguments):
            return evolve(call, flaw=flaw)
        if not tool.parallel and not tool.command_in and not tool.polls:
            return call
        return evolve(call, parallel=tool.parallel, command_in=tool.command_in, polls=tool.polls)

    @property
    def listens(self) -> bool:
        """Return whether a tool listens to events."""
        return bool(self._listeners)

    def hear(self, event: Event) -> None:
        """Pass an event to the tools that listen."""
        for hear in self._listeners:
            hear(event)

    def take_up(self, event: Event) -> None:
        """Pass a recorded event to the tools, to restore their state at the end of the log."""
        if isinstance(event, ActionDescribed):  # a judged call may still be started
            self.hear(event)
        elif isinstance(event, ToolFinished):
            tool = self._tools.get(event.call.tool)
            if tool is not None and tool.restores is not None:
                tool.restores(event)

    async def run_over(self) -> None:
        """Notify the tools that a run has ended, or rests."""
        for tool in self.tools:
            if tool.run_over is not None:
                await tool.run_over()

    @property
    def sandbox(self) -> str:
        """The level at which commands are confined; empty if no tool is."""
        return next((tool.sandbox for tool in self.tools if tool.sandbox), "")

    async def run(self, call: ToolCall, progress: Callable[[str], None], rights: tuple[str, ...] = ()) -> ToolResult:
        """Run a call with these rights and return its one result; any failure is an error result."""
        tool = self._tools.get(call.tool)
        if tool is None or call.flaw is not None:
            return ToolResult(self.checked(call).flaw or "", is_error=True)
        keep = partial(self.keep, call.id)
        result = await tool.run(call.arguments, ToolContext(call.id, progress, rights, self.workspace.root, keep))
        if not tool.sandbox:
            await self._accept(tool.touches(call.arguments), tool.workspace or self.workspace)
        return result

    async def _accept(self, touched: Iterable[Touch], workspace: Workspace) -> None:
        """Let what an approved call has written last, though processes of the run are looked after meanwhile."""
        paths = [workspace.resolve(touch.path) for touch in touched if touch.access != "read"]
        for guard in {tool.guard for tool in self.tools if tool.guard is not None and tool.guard.lasting}:
            if paths:
                await run_in_background(partial(guard.accept, *paths))

    def changes_files(self, call: ToolCall) -> bool:
        """Return whether a call runs a command, or writes or deletes files, by its arguments."""
        tool = self._tools.get(call.tool)
        if tool is None or not (tool.marks or tool.argv):
            return False
        if tool.argv is not None or tool.command(call.arguments) is not None:
            return True
        return any(touch.access in ("write", "delete") for touch in tool.touches(call.arguments))

    def quick(self, call: ToolCall) -> Tool | None:
        """Return the tool of a whole call if it is quick."""
        tool = self._tools.get(call.tool)
        return tool if tool is not None and tool.quick and call.flaw is None else None
