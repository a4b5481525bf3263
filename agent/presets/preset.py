"""A preset: a bundle of options, one field each, with the b-threads and the policy that they choose."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen, validators

from agent.models.prices import Price, read_prices
from agent.presets.judging import Judge, known_policy, legible_commands, legible_rules
from agent.presets.options import OptionError, with_options
from agent.presets.prompts import DEFAULT, can_be_filled_in, fill_in, finish_text
from agent.presets.rules import rules_of
from agent.presets.types import strictly_typed
from agent.projections.carrying import Carried
from agent.threads import core
from agent.threads.follow_ups import MOST
from agent.threads.limits import LIMIT_TEXT
from agent.threads.order import Together
from agent.tools.definition import Tool
from agent.tools.objective import objective_tools
from agent.vocabulary.reasons import Disclosure
from bp import BThread
from constitution import DENIED_PATHS, NO_RULES, POLICIES, Action, Policy, Verdict, read_command_rule, read_rule

__all__ = ["Preset"]

SUMMARY_FROM = 0.8
"""How full the context is when a summary is made: what comes meanwhile still has room."""


def _texts(given: Any) -> Any:
    """Make a tuple of a list; a text is not taken for its letters."""
    return tuple(given) if isinstance(given, list) else given


def _at_least(least: int = 1) -> Any:
    return validators.optional(validators.ge(least))


def _legible(preset: object, attribute: object, rows: tuple[str, ...]) -> None:
    read_prices(rows)


def _positive() -> Any:
    return validators.optional(validators.gt(0))


@frozen(field_transformer=strictly_typed)
class Preset:
    """One way to run the loop. None as a limit means no limit. Raises ValueError for what an option cannot be.

    The gate: `policy` is the name of a policy of the constitution, None: nothing is judged. In mode "cron" nobody is
    asked, and what does more than read is denied unless its tool is one of `allow` (S6.14). `policy_rules` are rows
    that make it stricter ("deny upload network in outside"), `commands` what the user said about commands ("deny --
    make deploy"). `bounded`: file tools keep to the workspace and `allowed_paths`; `denied_paths` win. `config_file`
    may set these paths, if it is there. `disclosure`: what the model is told of the reasons why a call was refused.

    Limits: `limit_text` is what is said when `max_iterations` are over; failures and empty answers count in a row.
    Order: with `sequential` one call at a time, but those `together` that their tools allow: neighbours in an answer,
    or all of it; without it all run at once. `steering` skips the rest of an answer; `follow_ups` says how many are
    heard when a run would complete.

    Stopping: what is typed stops the run if it has the word "stop" in it, or the letters anywhere; what was begun is
    finished, a call or a step of the loop.

    Limits of a run: `max_tokens`, `max_cost` (US dollars, by `prices`: MODEL=INPUT/OUTPUT for a million tokens) and
    `deadline`. `doom_loop`: the same call so often in a row ends it. `context_tokens`: how much the model is shown,
    system prompt and tools included; the older part of a longer conversation is left out ("trim") or summed up by the
    model ("summary"). `images` and `reasoning` of the conversation are sent to the model, or dropped.

    Ending: with `complete_tool` only `complete` ends a run; with `objective_tool` only once `pursue_objective` was
    called.

    Tools: which collection, which file declares more (`tools_file`), and how commands run. Times are in seconds,
    `output_limit` in bytes, `compact` in characters, of what the model is shown.
    """

    name: str
    # The gate.
    policy: str | None = field(default="default", validator=known_policy)
    mode: Literal["interactive", "cron"] = "interactive"
    allow: tuple[str, ...] = field(default=(), converter=_texts)
    policy_rules: tuple[str, ...] = field(default=(), converter=_texts, validator=legible_rules)
    commands: tuple[str, ...] = field(default=(), converter=_texts, validator=legible_commands)
    bounded: bool = True
    allowed_paths: tuple[str, ...] = field(default=(), converter=_texts)
    denied_paths: tuple[str, ...] = field(default=DENIED_PATHS, converter=_texts)
    config_file: str | None = None
    disclosure: Disclosure = "full"
    # Limits.
    max_iterations: int | None = field(default=20, validator=_at_least())
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=_at_least())
    max_empty_answers: int | None = field(default=3, validator=_at_least())
    doom_loop: int | None = field(default=3, validator=_at_least(2))
    max_tokens: int | None = field(default=None, validator=_at_least())
    max_tokens_per_iteration: int | None = field(default=None, validator=_at_least())
    max_cost: float | None = field(default=None, validator=_positive())
    prices: tuple[str, ...] = field(default=(), converter=_texts, validator=_legible)
    deadline: float | None = field(default=None, validator=_positive())
    context_tokens: int | None = field(default=None, validator=_at_least())
    compaction: Literal["trim", "summary"] = "trim"
    images: Literal["send", "drop"] = "send"
    reasoning: Literal["send", "drop"] = "send"
    attempts: int = field(default=4, validator=validators.ge(1))
    # Order, stopping and ending.
    sequential: bool = True
    together: Together = "none"
    steering: bool = True
    follow_ups: Literal["none", "one", "all"] = "one"
    max_follow_ups: int = field(default=MOST, validator=validators.ge(1))
    stop_after: Literal["call", "step"] = "call"
    stop_text: Literal["word", "letters"] = "word"
    complete_tool: bool = False
    objective_tool: bool = False
    # Tools.
    tools: Literal["workspace", "terminal", "coding", "gated", "command"] = "workspace"
    tools_file: str | None = None
    unknown_tool: Literal["error", "nearest"] = "nearest"
    shell: Literal["bash -c", "bash -lc", "sh -c"] = "bash -c"
    timeout: float | None = field(default=120.0, validator=_positive())
    max_timeout: float | None = field(default=600.0, validator=_positive())
    min_timeout: float | None = field(default=None, validator=_positive())
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    output_lines: int | None = field(default=None, validator=_at_least())
    output_keep: Literal["both", "head", "tail"] = "both"
    spill: bool = False
    compact: int | None = field(default=None, validator=_at_least())
    streams: Literal["merged", "separate"] = "merged"
    nonzero_is_error: bool = False
    result_form: Literal["text", "envelope"] = "text"
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
        """Return the b-threads that this preset chooses, the core first; the same values every time."""
        return self._bthreads

    @cached_property
    def _bthreads(self) -> tuple[BThread, ...]:
        return (*core(self.disclosure), *self.rules())

    def rules(self, judge: Callable[[Action], Verdict] | None = None) -> tuple[BThread, ...]:
        """Return the rules that this preset chooses; `judge` stands in for its policy."""
        policy = self.judging_policy()
        return rules_of(self, None if policy is None else judge or Judge(policy))

    def judging_policy(self) -> Policy | None:
        """Return the policy of the constitution with this preset's paths and mode; None if nothing is judged."""
        if self.policy is None:
            return NO_RULES.for_job(*self.allow) if self.mode == "cron" else None
        policy = evolve(
            POLICIES[self.policy],
            allowed_roots=self.allowed_paths,
            denied_paths=self.denied_paths,
            bounded=self.bounded,
        ).with_rules(*map(read_rule, self.policy_rules))
        policy = policy.with_commands(*map(read_command_rule, self.commands))
        return policy.for_job(*self.allow) if self.mode == "cron" else policy

    def own_tools(self) -> tuple[Tool, ...]:
        """Return the tools that the rules of this preset need; given ones of the same name take their place."""
        return objective_tools(complete_tool=self.complete_tool, objective_tool=self.objective_tool)

    def prompt(self, *, workspace: str, tools: tuple[str, ...]) -> str:
        """Return the system prompt for an agent that has these tools in this workspace."""
        facts = {
            "workspace": workspace,
            "tools": ", ".join(tools) or "none",
            "timeout": "as long as it takes" if self.timeout is None else f"{self.timeout:g} seconds",
            "output_limit": str(self.output_limit),
            "max_iterations": str(self.max_iterations or "as many as it takes"),
            "finish": finish_text(complete_tool=self.complete_tool, objective_tool=self.objective_tool),
        }
        return fill_in(self.system_prompt, facts)

    @property
    def finishes_by_tool(self) -> bool:
        """Whether `complete` is what ends a run as completed."""
        return self.complete_tool or self.objective_tool

    @property
    def carried(self) -> Carried:
        """What of images and reasoning goes to the model."""
        return Carried(images=self.images == "send", reasoning=self.reasoning == "send")

    @property
    def summary_from(self) -> int | None:
        """The tokens of an inference from which on a summary is made before the next one; None: none is made."""
        if self.context_tokens is None or self.compaction != "summary":
            return None
        return max(1, int(self.context_tokens * SUMMARY_FROM))

    @property
    def counts_tokens(self) -> bool:
        """Whether something depends on how many tokens an inference takes."""
        return any((self.max_tokens, self.max_tokens_per_iteration, self.max_cost, self.summary_from))

    def room_beside(self, frame: int) -> int | None:
        """Return the tokens that messages may take beside system prompt and tools. Raises OptionError for no room."""
        if self.context_tokens is None:
            return None
        if self.context_tokens <= frame:
            raise OptionError(
                f"context_tokens={self.context_tokens} leaves no room for messages: system prompt and tools take about "
                f"{frame:,}"
            )
        return self.context_tokens - frame

    def price_of(self, model: str) -> Price | None:
        """Return what a model costs. Raises OptionError when the cost is limited and nobody knows the price."""
        price = read_prices(self.prices).get(model)
        if price is None and self.max_cost is not None:
            raise OptionError(
                f"max_cost needs the price of {model!r}; give it as an option: prices={model}=INPUT/OUTPUT, in US "
                f"dollars for a million tokens"
            )
        return price
