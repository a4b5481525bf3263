"""Where commands run: here, or wherever a `Commands` of your own takes them (S2)."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypedDict, Unpack

from agent.tools.errors import CannotStart
from agent.tools.process import Finished, run_process
from agent.tools.retention import Collector

__all__ = ["SCRIPT_FROM_STDIN", "Commands", "How", "LocalCommands", "encoded"]

LONGEST_ARGUMENT = 128 * 1024 - 1  # bytes of one argument that Linux takes, its end mark counted

SCRIPT_FROM_STDIN = 'eval "$(cat)" </dev/null'  # the script is read before its own standard input is opened


class How(TypedDict):
    """How a command runs: where, with exactly which variables, for how many seconds, and who gets what it writes.

    `errors` gets the standard error, else `output` does; `progress` gets all of it as it comes.
    """

    cwd: str
    env: Mapping[str, str]
    timeout: float | None
    output: Collector
    errors: Collector | None
    progress: Callable[[str], None] | None


class Commands(Protocol):
    """Runs a shell command to its end, and leaves nothing of it behind."""

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` by `shell`.

        Raises CannotStart if nothing was started; ends everything when it is cancelled.
        """


class LocalCommands:
    """Runs commands on this machine."""

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` as `Commands` says. One that is longer than an argument may be is read from a file."""
        argument, script = _as_script(command)
        return await run_process((*shell, argument), stdin=script, **how)


def encoded(command: str) -> bytes:
    """Return a command as bytes. Raises CannotStart for what no process can be given."""
    try:
        content = command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CannotStart(f"command: a lone surrogate at position {error.start}; leave it out") from error
    if b"\0" in content:
        raise CannotStart(f"command: a NUL character at byte {content.index(0)}; leave it out")
    return content


def _as_script(command: str) -> tuple[str, bytes | None]:
    """Return the argument for the shell, and its standard input: a command too long for an argument goes in there."""
    content = encoded(command)
    return (command, None) if len(content) < LONGEST_ARGUMENT else (SCRIPT_FROM_STDIN, content)
