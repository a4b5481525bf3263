"""The tool `bash` under any name: one shell command, run to its end (S0 6.2, S2, S3, S4)."""

import inspect
import os
from collections.abc import Mapping
from typing import Annotated, Any

from attrs import evolve, field, frozen

from agent.calls import ToolResult
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.environment import tool_environment
from agent.tools.errors import ToolError
from agent.tools.marks import Limits, ShellCommand
from agent.tools.process import Finished
from agent.tools.shell.execution import Commands, LocalCommands
from agent.tools.shell.interactive import is_interactive
from agent.tools.shell.observation import Session, compact
from agent.tools.shell.options import ShellOptions
from agent.tools.shell.telling import details_of, is_failure, tell

__all__ = ["make_shell_tool"]


def make_shell_tool(
    cwd: str,
    options: ShellOptions | None = None,
    *,
    name: str = "bash",
    commands: Commands | None = None,
    session: Session | None = None,
) -> Tool:
    """Return the tool `name`, which runs commands in `cwd`; `session` counts for the envelope of S4."""
    runner = _Runner(name, cwd, options or ShellOptions(), commands or LocalCommands(), session or Session())

    @tool(category="write", name=name)
    async def bash(
        command: Annotated[str, ShellCommand(runner.options.prefix)],
        context: ToolContext,
        timeout: Annotated[Annotated[float, Limits(above=0)] | None, runner.options.timeout_words] = None,
    ) -> ToolResult:
        """Run a shell command in the workspace and return its output, standard output and error together.

        Each call is a new shell; its input is empty. Processes that outlive the command are ended.

        Args:
            command: the command, as bash understands it
        """
        return await runner.run(command, timeout, context)

    return evolve(bash, description=_description(runner.options)) if options else bash


def _description(options: ShellOptions) -> str:
    """Say what holds with these options, for the model."""
    kept = {"both": "the first and the last", "head": "the first", "tail": "the last"}[options.retention.keep]
    lines = f" or {options.retention.lines} lines" if options.retention.lines else ""
    spill = ", and all of it goes to a file" if options.retention.spill else ""
    times = "as long as it takes" if options.timeout is None else f"at most {options.timeout:g} seconds"
    streams = "on their own" if options.separate else "together"
    return (
        f"Run a shell command in the workspace and return its output, standard output and error {streams}.\n\n"
        f"Each call is a new shell ({' '.join(options.shell)}); its input is empty. Processes that outlive the command "
        f"are ended. It may take {times}, unless you give a timeout in seconds. Of a long output you get {kept} "
        f"{options.retention.limit} bytes{lines}{spill}."
    )


@frozen(eq=False)
class _Runner:
    """Runs commands and tells of them."""

    name: str
    cwd: str
    options: ShellOptions
    commands: Commands
    session: Session = field(factory=Session)

    async def run(self, command: str, asked: float | None, context: ToolContext) -> ToolResult:
        self.session.steps += 1
        seconds, note = self.options.seconds(asked)
        output = self.options.retention.collector()
        errors = self.options.retention.collector() if self.options.separate else None
        try:
            if not command.strip():
                raise ToolError("the command is empty; give one")
            finished = await self.commands.run(
                self.options.prefix + command,
                shell=self.options.shell,
                cwd=self.cwd,
                env=await self._environment(),
                timeout=seconds,
                output=output,
                errors=errors,
                progress=context.progress,
            )
        except BaseException as error:
            output.drop()
            if self.options.form == "envelope" and isinstance(error, ToolError):
                return self._envelope(command, context, None, str(error), {})
            raise
        self.session.executed += 1
        more = output.details() if self.options.form == "details" else {}
        if self.options.form == "envelope":
            return self._envelope(command, context, finished, "", more)
        told = tell(finished, seconds, self.options, [note] if note else [])
        text = told.text if self.options.compact is None else compact(told.text, self.options.compact)
        return evolve(told, text=text, details={**told.details, **more})

    async def _environment(self) -> dict[str, str]:
        """Return what a command sees: ours or the allowed variables, then what was added, then what the hook gives."""
        env = {**os.environ, **self.options.env} if self.options.inherit else tool_environment(self.options.env)
        if self.options.hook is None:
            return env
        given = self.options.hook(self.cwd)
        found: Mapping[str, str] = await given if inspect.isawaitable(given) else given
        return {**env, **found}

    def _envelope(
        self, command: str, context: ToolContext, finished: Finished | None, problem: str, more: dict[str, Any]
    ) -> ToolResult:
        tool_part = {"tool": self.name, "call_id": context.call_id, "command": command, "workdir": self.cwd}
        interactive = is_interactive(command)
        text = self.session.observe(
            tool_part, finished, problem, interactive=interactive, compacted=self.options.compact
        )
        if finished is None:
            return ToolResult(text, is_error=True, details={"interactive": interactive})
        details = {**details_of(finished), "interactive": interactive, **more}
        return ToolResult(text, is_error=is_failure(finished, self.options), details=details)
