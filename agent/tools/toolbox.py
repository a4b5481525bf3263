"""The tools of one agent by name: what is wrong with a call, and running it."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from attrs import evolve

from agent.tools.definition import Tool, ToolContext
from agent.tools.schemas import ToolSchema
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import Category, ToolCall, ToolResult
from agent.vocabulary.errors import nearest
from agent.vocabulary.events import ActionDescribed, ToolFinished
from bp import Event


def explain_unknown(name: str, names: Iterable[str]) -> str:
    """Return the answer to a call of a tool that is not there: "unknown tool 'bsh'; nearest: bash"."""
    names = tuple(names)
    near = nearest(name, names)
    if near:
        return f"unknown tool {name!r}; nearest: {', '.join(near)}"
    return f"unknown tool {name!r}; known: {', '.join(sorted(names)) or 'none'}"


class Toolbox:
    """Tools by name; a later tool takes the place of an earlier one of the same name (S3)."""

    def __init__(self, tools: Iterable[Tool], workspace: Workspace, *, suggests: bool = True) -> None:
        """Make a toolbox; `workspace` stands in for tools that have none of their own.

        suggests: who calls a tool that is not there is told the nearest names.
        """
        self._tools = {tool.name: tool for tool in tools}
        self._listeners = tuple(tool.hears for tool in self._tools.values() if tool.hears is not None)
        self.workspace = workspace
        self._suggests = suggests
        self.own: tuple[str, ...] = ()  # files and folders of the agent itself, beside those of every agent

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in order."""
        return tuple(self._tools)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in order."""
        return tuple(self._tools.values())

    @cached_property
    def home(self) -> str:
        """The user's home. Raises RuntimeError where it is not known."""
        return str(Path.home())

    @cached_property
    def categories(self) -> Mapping[str, Category]:
        """The category of each tool."""
        return {name: tool.category for name, tool in self._tools.items()}

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as a model is told about them."""
        return tuple(tool.schema() for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return a tool, or None."""
        return self._tools.get(name)

    def checked(self, call: ToolCall) -> ToolCall:
        """Return the call with its tool's flag, or with a flaw if its tool is unknown or its arguments do not fit."""
        if call.flaw is not None:
            return call
        tool = self._tools.get(call.tool)
        if tool is None:
            flaw = explain_unknown(call.tool, self.names) if self._suggests else f"unknown tool {call.tool!r}"
            return evolve(call, flaw=flaw)
        problems = tool.check(call.arguments)
        if problems:
            return evolve(call, flaw="invalid arguments: " + "; ".join(problems))
        if not tool.parallel and not tool.command_in and not tool.polls:
            return call
        return evolve(call, parallel=tool.parallel, command_in=tool.command_in, polls=tool.polls)

    @property
    def listens(self) -> bool:
        """Tell whether a tool wants to know of events."""
        return bool(self._listeners)

    def hear(self, event: Event) -> None:
        """Tell an event to the tools that want to know."""
        for hear in self._listeners:
            hear(event)

    def take_up(self, event: Event) -> None:
        """Tell a recorded event to the tools, so that they are as they were when the log ended."""
        if isinstance(event, ActionDescribed):  # a call that was judged and not started still can be
            self.hear(event)
        elif isinstance(event, ToolFinished):
            tool = self._tools.get(event.call.tool)
            if tool is not None and tool.restores is not None:
                tool.restores(event)

    async def run_over(self) -> None:
        """Tell the tools that a run has ended, or rests."""
        for tool in self._tools.values():
            if tool.run_over is not None:
                await tool.run_over()

    @property
    def sandbox(self) -> str:
        """The level at which commands are confined; empty where no tool is."""
        return next((tool.sandbox for tool in self._tools.values() if tool.sandbox), "")

    def confine(self, cwd: str) -> tuple[str, ...]:
        """Return the words that confine a program of ours as commands of the tools are. Raises CannotStart."""
        return next((tool.confine(cwd) for tool in self._tools.values() if tool.confine is not None), ())

    async def run(self, call: ToolCall, progress: Callable[[str], None], rights: tuple[str, ...] = ()) -> ToolResult:
        """Run a call with these rights and return its one result; whatever goes wrong is an error result."""
        tool = self._tools.get(call.tool)
        if tool is None or call.flaw is not None:
            return ToolResult(self.checked(call).flaw or "", is_error=True)
        return await tool.run(call.arguments, ToolContext(call.id, progress, rights, self.workspace.root))

    def changes_files(self, call: ToolCall) -> bool:
        """Tell whether a call runs a command, or writes or deletes files, as far as its arguments say."""
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
