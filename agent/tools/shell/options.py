"""How shell commands run and what is told of them: one value for every variant (S0, S2, S3, S4)."""

import inspect
import math
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from attrs import field, frozen, validators

from agent.tools.environment import tool_environment
from agent.tools.retention import Retention

__all__ = ["EnvironmentHook", "ShellOptions"]

EnvironmentHook = Callable[[str], Mapping[str, str] | Awaitable[Mapping[str, str]]]
"""Gets the working directory before each command, and gives variables to add: the hook `shell.env` of S2."""


def _positive() -> Any:
    return validators.optional(validators.gt(0))


@frozen
class ShellOptions:
    """How commands run. Times are in seconds, None is no limit.

    shell: the program and the options that a command follows. timeout: for calls that name none; more than
    longest_timeout is clamped, less than shortest_timeout raised, and said so. retention: what is kept of the output.
    separate: standard error on its own. nonzero_is_error: an exit code other than 0 is an error. inherit: commands see
    all of our environment, else the allowed variables; env: variables to add. prefix: put before every command. hook:
    asked for more variables. form: text; with details of what was left out (S2); or the envelope of S4. compact:
    characters of it, at most.
    """

    shell: tuple[str, ...] = ("bash", "-c")
    timeout: float | None = field(default=120.0, validator=_positive())
    longest_timeout: float | None = field(default=600.0, validator=_positive())
    shortest_timeout: float | None = field(default=None, validator=_positive())
    retention: Retention = Retention()
    separate: bool = False
    nonzero_is_error: bool = False
    inherit: bool = False
    env: Mapping[str, str] = field(factory=dict)
    prefix: str = ""
    hook: EnvironmentHook | None = None
    form: Literal["text", "details", "envelope"] = "text"
    compact: int | None = None

    @property
    def timeout_words(self) -> str:
        """What the model is told about the parameter `timeout`."""
        least = "" if self.shortest_timeout is None else f", at least {self.shortest_timeout:g}"
        most = "" if self.longest_timeout is None else f", at most {self.longest_timeout:g}"
        return f"seconds until the command is killed{least}{most}"

    async def environment(self, cwd: str) -> dict[str, str]:
        """Return what a command sees: ours or the allowed variables, then what was added, then what the hook gives."""
        env = {**os.environ, **self.env} if self.inherit else tool_environment(self.env)
        if self.hook is None:
            return env
        given = self.hook(cwd)
        found: Mapping[str, str] = await given if inspect.isawaitable(given) else given
        return {**env, **found}

    def seconds(self, asked: float | None) -> tuple[float | None, str]:
        """Return the time for a command for which `asked` was asked, and what to say when it is another."""
        if asked is None:
            return self.timeout, ""
        longest = None if self.longest_timeout is None else max(self.longest_timeout, self.timeout or 0)
        if longest is not None and asked > longest:
            return longest, f"[timeout of {asked:g} seconds clamped to {longest:g}, the longest there is]"
        shortest = min(self.shortest_timeout or 0, self.timeout or math.inf)
        if asked < shortest:
            return shortest, f"[timeout of {asked:g} seconds raised to {shortest:g}, the shortest there is]"
        return asked, ""
