"""Presets: which b-threads, which policy, which limits and texts. Plain data over the same parts.

Two presets differ in data only; every field is one option (`--option NAME=VALUE` on the command line).
"""

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import asdict, evolve, field, fields_dict, frozen, validators

from agent.errors import AgentError
from agent.threads import (
    CORE,
    abort_on_request,
    answers_in_source_order,
    at_most,
    by_constitution,
    empty_answers,
    no_start_without_approval,
    one_at_a_time,
    only_whole_calls,
    retry,
    stop_on_request,
    too_many_failures,
)
from agent.threads.limits import LIMIT_TEXT
from bp import BThread
from constitution import DENIED_PATHS, POLICIES, Action, Policy, Verdict
from constitution import judge as judge_action

__all__ = ["PRESETS", "OptionError", "Preset", "preset_named"]

SYSTEM_PROMPT = """\
You are an agent that works on a task with tools, in the workspace {workspace}.
Your tools: {tools}. Relative paths start at the workspace; paths outside the allowed ones are refused.
Every call is judged before it runs. A call that is rejected did not happen: read why, and find another way or say so.
A command ends after {timeout:g} seconds unless you give a timeout, and output is cut at {output_limit} bytes.
You may take {max_iterations} turns. When the task is done, answer in plain text without calling a tool."""

PLACEHOLDERS = ("workspace", "tools", "timeout", "output_limit", "max_iterations")
"""What a system prompt may hold in braces."""


class OptionError(AgentError):
    """A preset or an option does not exist, or has a value that it cannot have; the message says what would do."""


def _paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(paths)


def _known_policy(preset: object, attribute: object, name: str | None) -> None:
    if name is not None and name not in POLICIES:
        raise ValueError(f"there is no policy {name!r}; policies: {', '.join(POLICIES)}, none")


def _can_be_filled_in(preset: object, attribute: object, prompt: str) -> None:
    try:
        prompt.format_map(dict.fromkeys(PLACEHOLDERS, 1))
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        places = ", ".join(f"{{{place}}}" for place in PLACEHOLDERS)
        raise ValueError(f"a system prompt may hold {places}; write other braces twice") from error


def _optional_positive() -> Any:
    return validators.optional(validators.and_(validators.instance_of(int), validators.ge(1)))


@frozen
class Preset:
    """One way to run the loop. None as a limit means no limit.

    policy: the name of a policy of the constitution; None: nothing is judged. timeout: seconds for a command that
    names none. output_limit: bytes of a tool's output.
    """

    name: str
    policy: str | None = field(default="default", validator=_known_policy)
    max_iterations: int | None = field(default=20, validator=_optional_positive())
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=_optional_positive())
    max_empty_answers: int | None = field(default=3, validator=_optional_positive())
    attempts: int = field(default=4, validator=validators.ge(1))
    sequential: bool = True
    stop_after: Literal["call", "step"] = field(default="call", validator=validators.in_(("call", "step")))
    timeout: float = field(default=120.0, validator=validators.gt(0))
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    allowed_paths: tuple[str, ...] = field(default=(), converter=_paths)
    denied_paths: tuple[str, ...] = field(default=DENIED_PATHS, converter=_paths)
    system_prompt: str = field(default=SYSTEM_PROMPT, validator=_can_be_filled_in)

    def with_options(self, options: dict[str, str]) -> "Preset":
        """Return this preset with options given as text. Raises OptionError."""
        changed = self
        for name, text in options.items():
            changed = _with_option(changed, name, text)
        return changed

    def configuration(self) -> dict[str, Any]:
        """Return all options as plain data, for the header of a log."""
        return asdict(self)

    def bthreads(self) -> tuple[BThread, ...]:
        """Return the b-threads that this preset chooses, the core first."""
        return (*CORE, *self.rules())

    def rules(self, judge: Callable[[Action], Verdict] | None = None) -> tuple[BThread, ...]:
        """Return the rules that this preset chooses; `judge` stands in for its policy."""
        stopping = (stop_on_request(self.stop_after), abort_on_request())
        return (*self._guards(judge), *self._order(), *self._limits(), *stopping)

    def judging_policy(self) -> Policy | None:
        """Return the policy of the constitution with this preset's paths."""
        if self.policy is None:
            return None
        return evolve(POLICIES[self.policy], allowed_roots=self.allowed_paths, denied_paths=self.denied_paths)

    def _guards(self, judge: Callable[[Action], Verdict] | None) -> tuple[BThread, ...]:
        policy = self.judging_policy()
        judged = () if policy is None else (by_constitution(judge or Judge(policy)),)
        return (only_whole_calls(), *judged, no_start_without_approval())

    def _order(self) -> tuple[BThread, ...]:
        return (*((one_at_a_time(),) if self.sequential else ()), answers_in_source_order())

    def _limits(self) -> tuple[BThread, ...]:
        limits = (
            None if self.max_iterations is None else at_most(self.max_iterations, self.limit_text),
            None if self.max_failures is None else too_many_failures(self.max_failures),
            None if self.max_empty_answers is None else empty_answers(self.max_empty_answers),
            retry(self.attempts),
        )
        return tuple(limit for limit in limits if limit is not None)


@frozen
class Judge:
    """The constitution under one policy, as a pure function of an action."""

    policy: Policy

    def __call__(self, action: Action) -> Verdict:
        """Return the verdict on `action`."""
        return judge_action(action, self.policy)

    def __str__(self) -> str:
        return f"policy {self.policy.name}"


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("default"),
        Preset(
            "workspace",  # S0
            policy="workspace",
            max_failures=None,
            allowed_paths=("~/.agent/workspace", "/tmp/agent"),
        ),
    )
}


def preset_named(name: str) -> Preset:
    """Return a preset. Raises OptionError, naming the nearest, when there is none of this name."""
    if name not in PRESETS:
        raise OptionError(f"there is no preset {name!r}{_nearest(name, PRESETS)}; presets: {', '.join(PRESETS)}")
    return PRESETS[name]


def _with_option(preset: Preset, name: str, text: str) -> Preset:
    known = {option: attribute for option, attribute in fields_dict(Preset).items() if option != "name"}
    if name not in known:
        raise OptionError(f"there is no option {name!r}{_nearest(name, known)}; options: {', '.join(known)}")
    try:
        return evolve(preset, **{name: _parsed(text, known[name].type)})
    except (ValueError, TypeError) as error:
        raise OptionError(f"option {name}={text!r}: {_first_line(error)}") from error


def _parsed(text: str, hint: Any) -> Any:
    """Read an option's text by its type; "none" is no limit."""
    kinds = get_args(hint) or (hint,)
    if NoneType in kinds and text.lower() == "none":
        return None
    if get_origin(hint) is tuple:
        return tuple(part for part in text.split(",") if part)
    reader = next((READERS[kind] for kind in kinds if kind in READERS), None)
    if reader is None:
        return text
    read, wanted = reader
    try:
        return read(text)
    except (ValueError, KeyError) as error:
        raise ValueError(f"give {wanted}") from error


READERS: dict[Any, tuple[Callable[[str], object], str]] = {
    bool: (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    int: (int, "a whole number"),
    float: (float, "a number"),
}
"""How the text of an option is read, by its type, and what to ask for where that fails. Others stay text."""


def _first_line(error: Exception) -> str:
    return str(error.args[0]).splitlines()[0] if error.args else type(error).__name__


def _nearest(name: str, names: Any) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, list(names), n=1)
    return f"; the nearest is {close[0]!r}" if close else ""
