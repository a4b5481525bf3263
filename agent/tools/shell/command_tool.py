"""The tool `bash` under any name: one shell command, run to its end (S0 6.2, S2, S3, S4)."""

from typing import Annotated

from attrs import evolve, frozen

from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.errors import ToolError
from agent.tools.marks import Limits, ShellCommand
from agent.tools.process import Finished
from agent.tools.retention import Retained
from agent.tools.shell.answering import Answers, Asked
from agent.tools.shell.execution import Commands, LocalCommands
from agent.tools.shell.observation import Session
from agent.tools.shell.options import ShellOptions
from agent.vocabulary.calls import ToolResult

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
    chosen, shared = options or ShellOptions(), session or Session()
    runner = _Runner(cwd, chosen, commands or LocalCommands(), Answers(name, chosen, shared))

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

    heard = evolve(bash, hears=shared.hear) if runner.answers.in_envelopes else bash
    return evolve(heard, description=_description(runner.options)) if options else heard


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

    cwd: str
    options: ShellOptions
    commands: Commands
    answers: Answers

    async def run(self, command: str, wanted: float | None, context: ToolContext) -> ToolResult:
        seconds, note = self.options.seconds(wanted)
        asked = Asked(command, self.cwd, context.call_id, seconds)
        output = self.options.retention.collector()
        try:
            finished = await self._finish(asked, output, context)
        except BaseException as error:
            output.drop()
            if self.answers.in_envelopes and isinstance(error, ToolError):
                return self.answers.of_problem(asked, str(error))
            raise
        return self.answers.of(asked, finished, output, [note] if note else [])

    async def _finish(self, asked: Asked, output: Retained, context: ToolContext) -> Finished:
        if not asked.command.strip():
            raise ToolError("the command is empty; give one")
        return await self.commands.run(
            self.options.prefix + asked.command,
            shell=self.options.shell,
            cwd=self.cwd,
            env=await self.options.environment(self.cwd),
            timeout=asked.seconds,
            output=output,
            errors=self.options.retention.collector() if self.options.separate else None,
            progress=context.progress,
        )
