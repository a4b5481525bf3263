"""The tool `terminal(command, persistent, close)` (S1 6.1, 6.4, 6.5)."""

from collections.abc import Sequence
from typing import Annotated, Any

import anyio
from attrs import define, evolve, field

from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.errors import ToolError
from agent.tools.marks import Limits, ShellCommand
from agent.tools.process import Finished
from agent.tools.retention import Retained
from agent.tools.shell.answering import Answers, Asked
from agent.tools.shell.execution import How, LocalCommands
from agent.tools.shell.observation import Session as Observations
from agent.tools.shell.options import ShellOptions
from agent.tools.terminal.session import Session
from agent.tools.terminal.snapshot import Snapshot
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import ActionDescribed, CallAnswered
from bp import Event

__all__ = ["SESSION_IS_OPEN", "make_terminal"]

SESSION_IS_OPEN = (
    "a persistent session is open, in which single commands do not run; give persistent=true to run this in the "
    "session, or close=true to close the session first"
)


def make_terminal(cwd: str, options: ShellOptions | None = None) -> Tool:
    """Return the tool `terminal`, which starts in `cwd`. Its details: exit_code, cwd, terminal (open or closed)."""
    chosen, observed = options or ShellOptions(), Observations()
    terminal_of = _Terminal(cwd, chosen, Answers("terminal", chosen, observed))

    @tool(category="write")
    async def terminal(
        context: ToolContext,
        command: Annotated[str, ShellCommand(terminal_of.options.prefix)] | None = None,
        persistent: bool = False,
        close: bool = False,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, terminal_of.options.timeout_words] = None,
    ) -> ToolResult:
        """Run a command in a terminal: alone, or in a session that keeps the directory and plain variables.

        There is one session at most. The first call with persistent=true opens it; while it is open, every command
        needs persistent=true. Functions, aliases, options, and variables that change what commands do (PATH, HOME) hold
        for one command. Input is empty, and processes that outlive a command are ended.

        Args:
            command: the command, as bash understands it
            persistent: run it in the session
            close: close the session, after the command if there is one
        """
        async with terminal_of.lock:
            return await terminal_of.use(command, persistent, close, timeout, context)

    def hear(event: Event) -> None:
        terminal_of.hear(event)
        if terminal_of.answers.in_envelopes:
            observed.hear(event)

    return evolve(terminal, hears=hear, cwd=lambda: terminal_of.where)


@define(eq=False)
class _Terminal:
    """The one terminal of an agent, and its session while one is open.

    `judged` is where the commands of calls that are under way would begin when they were judged.
    """

    root: str
    options: ShellOptions
    answers: Answers
    session: Session | None = None
    lock: anyio.Lock = field(factory=anyio.Lock)
    judged: dict[str, str] = field(factory=dict)

    @property
    def where(self) -> str:
        """The directory in which the next command starts."""
        return self.root if self.session is None else self.session.snapshot.cwd

    def hear(self, event: Event) -> None:
        """Know where a command is judged, until its call is over."""
        if isinstance(event, ActionDescribed):
            self.judged[event.call.id] = event.facts.cwd
        elif isinstance(event, CallAnswered):
            self.judged.pop(event.call, None)

    async def use(
        self, command: str | None, persistent: bool, close: bool, asked: float | None, context: ToolContext
    ) -> ToolResult:
        if command is not None and not command.strip():
            raise ToolError("the command is empty; give one")
        if command is not None and self.session is not None and not (persistent or close):
            raise ToolError(SESSION_IS_OPEN)
        if command is not None and self.judged.get(context.call_id, self.where) != self.where:
            was = self.judged[context.call_id]
            raise ToolError(
                f"judged where the session was, in {was}; it is in {self.where} now; give the command again"
            )
        if command is None:
            return self._opened_or_closed(persistent, close)
        if persistent and self.session is None:
            self.session = Session(Snapshot(self.root))
        closing = close and self.session is not None
        told = await self._run(command, asked, context, ["[session closed]"] if closing else [])
        if closing:
            self.session = None
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

    async def _run(self, command: str, wanted: float | None, context: ToolContext, more: list[str]) -> ToolResult:
        seconds, note = self.options.seconds(wanted)
        asked = Asked(command, self.where, context.call_id, seconds)
        output = self.options.retention.collector()
        try:
            finished, lost = await self._finish(asked, output, context)
        except BaseException as error:
            output.drop()
            if self.answers.in_envelopes and isinstance(error, ToolError):
                return self.answers.of_problem(asked, str(error))
            raise
        notes = [*([note] if note else []), *(more or lost)]
        return self.answers.of(asked, finished, output, notes)

    async def _finish(self, asked: Asked, output: Retained, context: ToolContext) -> tuple[Finished, Sequence[str]]:
        text, env = self.options.prefix + asked.command, await self.options.environment(self.where)
        errors = self.options.retention.collector() if self.options.separate else None
        how: How = {
            "cwd": self.root, "env": env, "timeout": asked.seconds,
            "output": output, "errors": errors, "progress": context.progress,
        }  # fmt: skip
        if self.session is not None:
            return await self.session.run(text, **how)
        return await LocalCommands().run(text, shell=self.options.shell, **how), ()
