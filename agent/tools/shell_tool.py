"""The tool `bash`: one shell command, run to its end in the workspace, told to the model in words (S0 6.2, 6.4)."""

import math
import signal
from collections.abc import Mapping, Sequence
from typing import Annotated

from agent.calls import ToolResult
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.environment import tool_environment
from agent.tools.errors import CannotStart
from agent.tools.marks import Limits, ShellCommand
from agent.tools.process import Finished, run_process

__all__ = ["make_shell_tool"]

LONGEST_ARGUMENT = 128 * 1024 - 1  # bytes of one argument that Linux takes, its end mark counted

_SCRIPT_FROM_STDIN = 'eval "$(cat)" </dev/null'  # the script is read before its own standard input is opened


def make_shell_tool(
    cwd: str,
    *,
    timeout: float | None = 120.0,
    max_timeout: float | None = 600.0,
    output_limit: int = 200 * 1024,
    env: Mapping[str, str] | None = None,
    inherits: bool = False,
    shell: Sequence[str] = ("bash", "-c"),
    nonzero_is_error: bool = False,
) -> Tool:
    """Return the tool `bash`, which runs commands in `cwd`.

    `timeout` is in seconds, for calls that name none; they may ask for `max_timeout`, or for that if it is longer;
    None is no limit. `output_limit` is in bytes. `env` is added to the allowed variables, or to all with `inherits`.
    `shell` is the program and options that a command follows. `nonzero_is_error`: another exit code than 0 is an
    error, and not only told.
    """

    default_timeout = timeout
    longest = math.inf if max_timeout is None else max(max_timeout, timeout or 0)

    @tool(category="write")
    async def bash(
        command: Annotated[str, ShellCommand()],
        context: ToolContext,
        timeout: Annotated[float, Limits(above=0)] | None = None,
    ) -> ToolResult:
        """Run a shell command in the workspace and return its output, standard output and error together.

        Each call is a new shell; its input is empty. Processes that outlive the command are ended.

        Args:
            command: the command, as bash understands it
            timeout: seconds until the command is killed; when that is longer than allowed, it is cut, and you are told
        """
        asked = default_timeout if timeout is None else timeout
        seconds = None if asked is None else min(asked, longest)
        argument, script = _as_script(command)
        finished = await run_process(
            (*shell, argument),
            cwd=cwd,
            env=tool_environment(env, inherits=inherits),
            timeout=seconds,
            output_limit=output_limit,
            progress=context.progress,
            stdin=script,
        )
        return tell(finished, seconds, _clamped(asked, seconds), nonzero_is_error=nonzero_is_error)

    return bash


def tell(
    finished: Finished, timeout: float | None, notes: Sequence[str] = (), *, nonzero_is_error: bool = False
) -> ToolResult:
    """Return what the model is told about a command that has ended.

    A timeout and a death by signal are errors; an exit code other than 0 is named, and an error if it counts as one.
    """
    output = finished.output if finished.output.strip() else "(no output)"
    ending = [*_ending(finished, timeout), *notes]
    text = "\n".join([output.rstrip("\n"), *ending]) if ending else output
    return ToolResult(
        text,
        is_error=finished.timed_out or finished.signal is not None or (nonzero_is_error and finished.exit_code != 0),
        details={
            "exit_code": finished.exit_code,
            "signal": finished.signal,
            "timed_out": finished.timed_out,
            "truncated": finished.truncated,
            "survivors": finished.survivors,
        },
    )


def _clamped(asked: float | None, seconds: float | None) -> list[str]:
    """Return what is said about a timeout that was cut."""
    if asked is None or seconds is None or seconds == asked:
        return []
    return [f"[timeout of {asked:g} seconds clamped to {seconds:g}, the longest there is]"]


def _ending(finished: Finished, timeout: float | None) -> list[str]:
    ending = []
    if finished.timed_out and timeout is not None:
        ending.append(f"[timed out after {timeout:g} seconds; the command was killed]")
    elif finished.signal is not None:
        ending.append(f"[killed by signal {finished.signal} ({_signal_name(finished.signal)})]")
    elif finished.exit_code:
        ending.append(f"[exit code {finished.exit_code}]")
    if finished.survivors and not finished.timed_out:
        processes = "1 process" if finished.survivors == 1 else f"{finished.survivors} processes"
        ending.append(f"[{processes} still running after the command had ended; killed]")
    return ending


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"


def _as_script(command: str) -> tuple[str, bytes | None]:
    """Return the argument for the shell, and its standard input: a command too long for an argument goes in there."""
    try:
        encoded = command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CannotStart(f"command: a lone surrogate at position {error.start}; leave it out") from error
    if b"\0" in encoded:
        raise CannotStart(f"command: a NUL character at byte {encoded.index(0)}; leave it out")
    return (command, None) if len(encoded) < LONGEST_ARGUMENT else (_SCRIPT_FROM_STDIN, encoded)
