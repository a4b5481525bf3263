"""A tool as a value: what the model is told, what is accepted, what the gate may know, and how it runs.

    @tool(category="read")
    async def weather(city: str, days: Annotated[int, Limits(minimum=1, maximum=7)] = 1) -> str:
        \"\"\"Forecast the weather of a city.\"\"\"

`weather` is then a `Tool`. Its function may be async or not; one that is not runs in a daemon thread, unless the tool
is `quick`: then it runs where it is called, without a thread and without a task, and everything else waits for it.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, overload

import anyio
from anyio.lowlevel import current_token
from attrs import evolve, frozen

from agent.tools.blocking import call_back, run_in_background
from agent.tools.schemas import Background, Path, Record, Rights, Shape, ShellCommand, ToolSchema, Touch, Url
from agent.tools.signature import Mark, read_signature
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import Category, ToolResult
from agent.vocabulary.events import ToolFinished
from bp import Event


def _ignore(_: str) -> None:
    """Take progress that nobody wants to see."""


@frozen
class ToolContext:
    """What a running call may use: its id, and `progress` to show text while it runs.

    `progress` may be called from the tool's own thread, any number of times; who listens coalesces. `rights`: what the
    call may do beyond the sandbox, as the user granted it (`agent.tools.sandbox.rights`).
    """

    call_id: str = ""
    progress: Callable[[str], None] = _ignore
    rights: tuple[str, ...] = ()


@frozen(eq=False)
class Tool:
    """A tool: name, description, category, whether several calls of it may run at once, and whether it `polls`.

    `parameters`, what the model is told, comes from the same shape that checks. `timeout` is in
    seconds, None for no limit but the tool's own. `workspace` is where its relative paths start and its bounds lie,
    for the gate; None for the agent's. `argv` gives the program that a call starts without a shell, for the gate.
    `cwd` is where the next call starts, if not in the workspace's root. `hears` is told what happens in the agent's
    runs, for tools that have to know when somebody asks to stop. `restores` is told its recorded results when a run is
    resumed. `run_over` is awaited when a run has ended, or rests. `quick`: `function` is synchronous, never waits for
    anything, and returns within a millisecond or so; it can be neither cancelled nor timed out.
    `source` says where the tool was declared, if not in Python. `sandbox` is the level at which what it starts is
    confined, empty for a tool that starts nothing, or not in a sandbox. `opaque`: nothing is known about what a call
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
    opaque: bool = False
    body: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function that the tool was made of, as in a test of it; nothing is checked, judged or bounded.

        Raises TypeError for a tool that was made of none; `await tool.run({...})` runs any.
        """
        if self.body is None:
            raise TypeError(f"the tool {self.name!r} is not made of a function; write `await tool.run({{...}})`")
        return self.body(*arguments, **named)

    @cached_property
    def parameters(self) -> dict[str, object]:
        """The JSON Schema that the model is told."""
        return self.shape.schema()

    @property
    def label(self) -> str:
        """What people are shown for the tool (S2): its name."""
        return self.name

    def schema(self) -> ToolSchema:
        """Return the tool as a model is told about it."""
        return ToolSchema(self.name, self.description, self.parameters)

    def check(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return everything that is wrong with `arguments`, each as "path: problem"; empty means valid."""
        problems = tuple(self.shape.problems(arguments, ""))
        return problems or self._argv_problems(arguments)

    def touches(self, arguments: Mapping[str, Any]) -> tuple[Touch, ...]:
        """Return the paths that a call with `arguments` names, as they are written there."""
        return tuple(
            Touch(path, mark.access)
            for name, mark, default in self.marks
            if isinstance(mark, Path)
            for path in _texts(arguments.get(name, default))
        )

    def command(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the shell command that a call with `arguments` would run, or None."""
        commands = [
            mark.prefix + text
            for name, mark, default in self.marks
            if isinstance(mark, ShellCommand)
            for text in _texts(arguments.get(name, default))
        ]
        return "\n".join(commands) if commands else None

    @cached_property
    def command_in(self) -> str:
        """The parameter that holds the shell command; empty without one, or with several."""
        names = [name for name, mark, _ in self.marks if isinstance(mark, ShellCommand)]
        return names[0] if len(names) == 1 else ""

    def is_background(self, arguments: Mapping[str, Any]) -> bool:
        """Return whether what a call with `arguments` starts would stay after the call."""
        return any(isinstance(mark, Background) and bool(arguments.get(name)) for name, mark, _ in self.marks)

    def rights(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a call with `arguments` asks for beyond the sandbox."""
        named = (name for name, mark, _ in self.marks if isinstance(mark, Rights))
        return tuple(right for name in named for right in _texts(arguments.get(name)))

    def without(self, parameter: str) -> "Tool":
        """Return the tool without a parameter that has a default."""
        assert isinstance(self.shape, Record)
        left = tuple(each for each in self.shape.fields if each.name != parameter)
        marks = tuple(mark for mark in self.marks if mark[0] != parameter)
        return evolve(self, shape=evolve(self.shape, fields=left), marks=marks)

    def urls(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the addresses that a call with `arguments` would reach."""
        return tuple(
            text
            for name, mark, default in self.marks
            if isinstance(mark, Url)
            for text in _texts(arguments.get(name, default))
        )

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

    def _argv_problems(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        try:
            if self.argv is not None:
                self.argv(arguments)
        except (
            Exception
        ) as error:  # foreign code: what it cannot make a program of is no call, and no fault of the model
            return (str(error) or type(error).__name__,)
        return ()

    def _result(self, returned: object) -> ToolResult:
        if isinstance(returned, str):
            returned = ToolResult(returned)
        if not isinstance(returned, ToolResult):
            kind = type(returned).__name__
            return ToolResult(f"tool {self.name!r} returned {kind}; return str or ToolResult", is_error=True)
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


def _encodable(text: str) -> str:
    """Return `text` with what no log can hold as UTF-8 (lone surrogates, from file names) replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return tuple(text for part in value for text in _texts(part)) if isinstance(value, list | tuple) else ()
