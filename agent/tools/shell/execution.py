"""Where commands run: here, or wherever a `Commands` of your own takes them (S2)."""

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import frozen

from agent.tools.errors import CannotStart
from agent.tools.process import Finished, run_process
from agent.tools.retention import Collector

__all__ = ["Commands", "LocalCommands"]

LONGEST_ARGUMENT = 128 * 1024 - 1  # bytes of one argument that Linux takes, its end mark counted

_SCRIPT_FROM_STDIN = 'eval "$(cat)" </dev/null'  # the script is read before its own standard input is opened


class Commands(Protocol):
    """Runs a shell command to its end, and leaves nothing of it behind."""

    async def run(
        self,
        command: str,
        *,
        shell: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str],
        timeout: float | None,
        output: Collector,
        errors: Collector | None,
        progress: Callable[[str], None] | None,
    ) -> Finished:
        """Run `command` by `shell` in `cwd` with exactly `env`. `errors` gets the standard error, else `output` does.

        Raises CannotStart if nothing was started; ends everything when it is cancelled.
        """


@frozen
class LocalCommands:
    """Runs commands on this machine."""

    async def run(
        self,
        command: str,
        *,
        shell: tuple[str, ...],
        cwd: str,
        env: Mapping[str, str],
        timeout: float | None,
        output: Collector,
        errors: Collector | None,
        progress: Callable[[str], None] | None,
    ) -> Finished:
        """Run `command` as `Commands` says. One that is longer than an argument may be is read from a file."""
        argument, script = _as_script(command)
        return await run_process(
            (*shell, argument),
            cwd=cwd,
            env=env,
            timeout=timeout,
            output=output,
            errors=errors,
            progress=progress,
            stdin=script,
        )


def _as_script(command: str) -> tuple[str, bytes | None]:
    """Return the argument for the shell, and its standard input: a command too long for an argument goes in there."""
    try:
        encoded = command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CannotStart(f"command: a lone surrogate at position {error.start}; leave it out") from error
    if b"\0" in encoded:
        raise CannotStart(f"command: a NUL character at byte {encoded.index(0)}; leave it out")
    return (command, None) if len(encoded) < LONGEST_ARGUMENT else (_SCRIPT_FROM_STDIN, encoded)
