"""A preset: a bundle of options, one field each, with the b-threads and the policy that they choose."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen, validators

from agent.presets.judging import NOT_JUDGED, Judge, known_policy
from agent.presets.options import with_options
from agent.presets.prompts import DEFAULT, can_be_filled_in, fill_in
from agent.presets.rules import rules_of
from agent.presets.types import strictly_typed
from agent.threads import CORE
from agent.threads.limits import LIMIT_TEXT
from bp import BThread
from constitution import DENIED_PATHS, POLICIES, Action, Policy, Verdict

__all__ = ["Preset"]


def _texts(given: Any) -> Any:
    """Make a tuple of a list; a text is not taken for its letters."""
    return tuple(given) if isinstance(given, list) else given


def _at_least_one() -> Any:
    return validators.optional(validators.ge(1))


def _positive() -> Any:
    return validators.optional(validators.gt(0))


@frozen(field_transformer=strictly_typed)
class Preset:
    """One way to run the loop. None as a limit means no limit. Raises ValueError for what an option cannot be.

    The gate: `policy` is the name of a policy of the constitution, None: nothing is judged. In mode "cron" nobody is
    asked, and what does more than read is denied unless its tool is one of `allow` (S6.14). `bounded`: file tools keep
    to the workspace and `allowed_paths`; `denied_paths` win. `config_file` may set these paths, if it is there.

    Limits: `limit_text` is what is said when `max_iterations` are over; failures and empty answers count in a row.
    Stopping: what is typed stops the run if it has the word "stop" in it, or the letters anywhere; what was begun is
    finished, a call or a step of the loop.

    Tools: which collection, and how commands run. Times are in seconds, `output_limit` in bytes, `compact` in
    characters, of what the model is shown.
    """

    name: str
    # The gate.
    policy: str | None = field(default="default", validator=known_policy)
    mode: Literal["interactive", "cron"] = "interactive"
    allow: tuple[str, ...] = field(default=(), converter=_texts)
    bounded: bool = True
    allowed_paths: tuple[str, ...] = field(default=(), converter=_texts)
    denied_paths: tuple[str, ...] = field(default=DENIED_PATHS, converter=_texts)
    config_file: str | None = None
    # Limits.
    max_iterations: int | None = field(default=20, validator=_at_least_one())
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=_at_least_one())
    max_empty_answers: int | None = field(default=3, validator=_at_least_one())
    attempts: int = field(default=4, validator=validators.ge(1))
    # Order and stopping.
    sequential: bool = True
    stop_after: Literal["call", "step"] = "call"
    stop_text: Literal["word", "letters"] = "word"
    # Tools.
    tools: Literal["workspace", "terminal", "coding", "gated", "command"] = "workspace"
    unknown_tool: Literal["error", "nearest"] = "nearest"
    shell: Literal["bash -c", "bash -lc", "sh -c"] = "bash -c"
    timeout: float | None = field(default=120.0, validator=_positive())
    max_timeout: float | None = field(default=600.0, validator=_positive())
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    output_lines: int | None = field(default=None, validator=_at_least_one())
    output_keep: Literal["both", "head", "tail"] = "both"
    spill: bool = False
    compact: int | None = field(default=None, validator=_at_least_one())
    nonzero_is_error: bool = False
    result_form: Literal["text", "details", "envelope"] = "text"
    env: Literal["allowlist", "inherit"] = "allowlist"
    # Words.
    system_prompt: str = field(default=DEFAULT, validator=can_be_filled_in)

    def with_options(self, options: Mapping[str, str]) -> "Preset":
        """Return this preset with options given as text. Raises OptionError."""
        return with_options(self, options)

    def configuration(self) -> dict[str, Any]:
        """Return all options as plain data, for the header of a log."""
        return asdict(self)

    def bthreads(self) -> tuple[BThread, ...]:
        """Return the b-threads that this preset chooses, the core first."""
        return (*CORE, *self.rules())

    def rules(self, judge: Callable[[Action], Verdict] | None = None) -> tuple[BThread, ...]:
        """Return the rules that this preset chooses; `judge` stands in for its policy."""
        policy = self.judging_policy()
        return rules_of(self, None if policy is None else judge or Judge(policy))

    def judging_policy(self) -> Policy | None:
        """Return the policy of the constitution with this preset's paths and mode; None if nothing is judged."""
        if self.policy is None:
            return NOT_JUDGED.for_job(*self.allow) if self.mode == "cron" else None
        policy = evolve(
            POLICIES[self.policy],
            allowed_roots=self.allowed_paths,
            denied_paths=self.denied_paths,
            bounded=self.bounded,
        )
        return policy.for_job(*self.allow) if self.mode == "cron" else policy

    def prompt(self, *, workspace: str, tools: tuple[str, ...]) -> str:
        """Return the system prompt for an agent that has these tools in this workspace."""
        facts = {
            "workspace": workspace,
            "tools": ", ".join(tools) or "none",
            "timeout": "as long as it takes" if self.timeout is None else f"{self.timeout:g} seconds",
            "output_limit": str(self.output_limit),
            "max_iterations": str(self.max_iterations or "as many as it takes"),
        }
        return fill_in(self.system_prompt, facts)
