"""The tool `terminal(command, persistent, close)` (S1 6.1, 6.4, 6.5)."""

import os
from typing import Annotated, Any

import anyio
from attrs import define, evolve, field

from agent.calls import ToolResult
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.environment import tool_environment
from agent.tools.errors import ToolError
from agent.tools.marks import Limits, ShellCommand
from agent.tools.process import Finished
from agent.tools.retention import Retained
from agent.tools.shell.execution import LocalCommands
from agent.tools.shell.observation import compact
from agent.tools.shell.options import ShellOptions
from agent.tools.shell.telling import tell
from agent.tools.terminal.session import Session
from agent.tools.terminal.snapshot import Snapshot

__all__ = ["SESSION_IS_OPEN", "make_terminal"]

SESSION_IS_OPEN = (
    "a persistent session is open, in which single commands do not run; give persistent=true to run this in the "
    "session, or close=true to close the session first"
)
NOTHING_KEPT = "[the session is as it was before this command: directory and variables that it changed are lost]"


def make_terminal(cwd: str, options: ShellOptions | None = None) -> Tool:
    """Return the tool `terminal`, which starts in `cwd`. Its details: exit_code, cwd, terminal (open or closed)."""
    terminal_of = _Terminal(cwd, options or ShellOptions())

    @tool(category="write")
    async def terminal(
        context: ToolContext,
        command: Annotated[str, ShellCommand(terminal_of.options.prefix)] | None = None,
        persistent: bool = False,
        close: bool = False,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, terminal_of.options.timeout_words] = None,
    ) -> ToolResult:
        """Run a command in a terminal: alone, or in a session that keeps directory, variables and functions.

        There is one session at most. The first call with persistent=true opens it; while it is open, every command
        needs persistent=true. Input is empty, and processes that outlive a command are ended.

        Args:
            command: the command, as bash understands it
            persistent: run it in the session
            close: close the session, after the command if there is one
        """
        async with terminal_of.lock:
            return await terminal_of.use(command, persistent, close, timeout, context)

    return evolve(terminal, cwd=lambda: terminal_of.where)


@define(eq=False)
class _Terminal:
    """The one terminal of an agent, and its session while one is open."""

    root: str
    options: ShellOptions
    session: Session | None = None
    lock: anyio.Lock = field(factory=anyio.Lock)

    @property
    def where(self) -> str:
        """The directory in which the next command starts."""
        return self.root if self.session is None else self.session.snapshot.cwd

    async def use(
        self, command: str | None, persistent: bool, close: bool, asked: float | None, context: ToolContext
    ) -> ToolResult:
        if command is not None and not command.strip():
            raise ToolError("the command is empty; give one")
        if command is not None and self.session is not None and not (persistent or close):
            raise ToolError(SESSION_IS_OPEN)
        if command is None:
            return self._opened_or_closed(persistent, close)
        if persistent and self.session is None:
            self.session = Session(Snapshot(self.root))
        told = await self._run(command, asked, context)
        if close and self.session is not None:
            self.session = None
            told = evolve(told, text=told.text.rstrip("\n") + "\n[session closed]")
        return evolve(told, details={**told.details, **self._state()})

    def _opened_or_closed(self, persistent: bool, close: bool) -> ToolResult:
        if close:
            text = "[session closed]" if self.session is not None else "[no session is open]"
            self.session = None
        elif persistent:
            text = "[session is open already]" if self.session is not None else "[session opened]"
            self.session = self.session or Session(Snapshot(self.root))
        else:
            raise ToolError("give a command, persistent=true to open a session, or close=true to close it")
        return ToolResult(text, details=self._state())

    def _state(self) -> dict[str, Any]:
        return {"cwd": self.where, "terminal": "closed" if self.session is None else "open"}

    async def _run(self, command: str, asked: float | None, context: ToolContext) -> ToolResult:
        seconds, note = self.options.seconds(asked)
        output = self.options.retention.collector()
        errors = self.options.retention.collector() if self.options.separate else None
        try:
            finished, known = await self._finish(command, seconds, output, errors, context)
        except BaseException:
            output.drop()
            raise
        notes = [*([note] if note else []), *([] if known else [NOTHING_KEPT])]
        told = tell(finished, seconds, self.options, notes)
        text = told.text if self.options.compact is None else compact(told.text, self.options.compact)
        more = output.details() if self.options.form == "details" else {}
        return evolve(told, text=text, details={**told.details, **more})

    async def _finish(
        self,
        command: str,
        seconds: float | None,
        output: Retained,
        errors: Retained | None,
        context: ToolContext,
    ) -> tuple[Finished, bool]:
        text, env, shown = self.options.prefix + command, self._environment(), context.progress
        if self.session is not None:
            return await self.session.run(text, env=env, timeout=seconds, output=output, errors=errors, progress=shown)
        shell = self.options.shell
        finished = await LocalCommands().run(
            text, shell=shell, cwd=self.root, env=env, timeout=seconds, output=output, errors=errors, progress=shown
        )
        return finished, True

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.options.env} if self.options.inherit else tool_environment(self.options.env)
