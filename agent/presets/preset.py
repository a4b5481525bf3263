"""A preset: a bundle of options, one field each, with the b-threads and the policy that they choose.

A new rule is a line of `RULES`, and a field of `Preset` for each of its options.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import Attribute, asdict, evolve, field, fields, frozen, validators

from agent.models.model import Price, read_prices
from agent.presets.prompts import DEFAULT, can_be_filled_in, fill_in, finish_text
from agent.projections.conversation import Carried
from agent.threads.core import core
from agent.threads.endings import (
    LIMIT_TEXT,
    abort_on_request,
    at_most,
    budget_of_cost,
    budget_of_tokens,
    budget_per_turn,
    complete_to_finish,
    deadline,
    empty_answers,
    iterations_at_most,
    one_objective,
    only_whole_answers,
    retry,
    stop_on_request,
    stop_when_said,
    too_many_failures,
)
from agent.threads.judging import Judge, by_constitution
from agent.threads.snapshots import snapshot_before_change
from agent.threads.steering import MOST, continue_with_follow_ups, skip_when_steered
from agent.threads.summaries import recover_from_overflow, summarize_when_full
from agent.threads.tool_calls import (
    Together,
    answers_in_source_order,
    doom_loop,
    no_start_without_approval,
    one_at_a_time,
    only_whole_calls,
)
from agent.tools.definition import Tool
from agent.tools.snapshots.trees import MADE_AGAIN
from agent.tools.work import objective_tools
from agent.vocabulary.errors import AgentError, meant
from agent.vocabulary.reasons import Disclosure
from bp import BThread
from constitution import DENIED_PATHS, NO_RULES, POLICIES, Action, Policy, Verdict, read_command_rule, read_rule
from constitution.places import checked_path

IN_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    tuple: "a list of texts",
    NoneType: "none",
}
"""The types of options, for messages."""


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a union; anything else is its only part."""
    return (hint,) if get_origin(hint) in (tuple, Literal) else get_args(hint) or (hint,)


def _is_of(value: Any, part: Any) -> bool:
    """Return whether a value is of one part of a field's type; nothing is coerced, and 5 is a number."""
    if get_origin(part) is Literal:
        return value in get_args(part)
    if get_origin(part) is tuple:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if part is bool or isinstance(value, bool):
        return part is bool and isinstance(value, bool)
    if part is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, part)


def _of_its_type(_: object, field: "Attribute[Any]", value: object) -> None:
    parts = alternatives(field.type)
    if not any(_is_of(value, part) for part in parts):
        allowed = (
            [repr(word) for word in get_args(part)]
            if get_origin(part) is Literal
            else [IN_WORDS[get_origin(part) or part]]
            for part in parts
        )
        raise ValueError(f"expected {' or '.join(chain(*allowed))}, found {value!r:.60}")


def strictly_typed(_: type, fields: "list[Attribute[Any]]") -> "list[Attribute[Any]]":
    """Give each field a validator for its type, before its own. A field transformer of attrs."""
    return [
        field.evolve(validator=validators.and_(_of_its_type, field.validator) if field.validator else _of_its_type)
        for field in fields
    ]


class OptionError(AgentError):
    """A preset, an option or a policy does not exist, or is invalid; the message has the place and the cure."""


READERS: dict[Any, Callable[[str], object]] = {
    bool: lambda text: {"true": True, "false": False}[text.lower()],
    int: int,
    float: float,
}
"""Readers of an option's text, by its type. Options of other types stay text."""


def _parsed(text: str, hint: Any) -> Any:
    """Parse an option's text by its type; "none" is no limit, or an empty list, as in the table of presets."""
    kinds, is_none = alternatives(hint), text.lower() == "none"
    if NoneType in kinds and is_none:
        return None
    if any(get_origin(kind) is tuple for kind in kinds):
        return () if is_none else tuple(part for part in text.split(",") if part)
    with suppress(ValueError, KeyError):  # then it stays text, and the preset raises
        return next((READERS[kind](text) for kind in kinds if kind in READERS), text)
    return text


def known_policy(preset: object, attribute: object, name: str | None) -> None:
    """Raise ValueError for the name of no policy. A validator of attrs."""
    if name is not None and name not in POLICIES:
        raise ValueError(f"there is no policy {name!r}; {meant(name, (*POLICIES, 'none'))}")


def _each(read: Callable[[str], object]) -> Any:
    """Return a validator of attrs that raises ValueError for a row that cannot be read."""

    def validate(preset: object, attribute: object, rows: tuple[str, ...]) -> None:
        for row in rows:
            read(row)

    return validate


SUMMARY_FROM = 0.8
"""The part of the context at which a summary is made: messages that come meanwhile still have room."""


def _texts(given: Any) -> Any:
    """Make a tuple of a list; a text is not split into letters."""
    return tuple(given) if isinstance(given, list) else given


AT_LEAST_ONE: Any = validators.optional(validators.ge(1))
AT_LEAST_TWO: Any = validators.optional(validators.ge(2))
POSITIVE: Any = validators.optional(validators.gt(0))


Judgement = Callable[[Action], Verdict]


@frozen(field_transformer=strictly_typed)
class Preset:
    """One way to run the loop. None as a limit means no limit. Raises ValueError for an invalid value.

    The gate: `policy` is the name of a policy of the constitution, None: nothing is judged. In mode "cron" no user is
    asked, and all but reading is denied unless its tool is one of `allow` (S6.14). `policy_rules` are rows that make it
    stricter ("deny upload network in outside"), `commands` the user's rules about commands ("deny -- make deploy").
    `bounded`: file tools keep to the workspace and `allowed_paths`; `denied_paths` win. `config_file` may set these
    paths, if it is there. `disclosure`: how much the model is told about the reasons of a refusal.

    Limits: `limit_text` is the final text when `max_iterations` are over; failures and empty answers count in a row.
    Order: with `sequential` one call at a time, but those `together` that their tools allow: neighbours in an answer,
    or all of it; without it all run at once. `steering` skips the rest of an answer; `follow_ups` says how many are
    heard when a run would complete.

    Stopping: a typed line stops the run if it is "stop" or "/stop" (`stop_text` "word"), or has the letters anywhere
    ("letters"); what was begun is finished, a call or a step of the loop.

    Limits of a run: `max_tokens`, `max_cost` (US dollars, by `prices`: MODEL=INPUT/OUTPUT for a million tokens) and
    `deadline`. `doom_loop`: the same call so often in a row ends it. `context_tokens`: the size of the model's context,
    system prompt and tools included; the older part of a longer conversation is left out ("trim") or summarized by the
    model ("summary"). `images` and `reasoning` of the conversation are sent to the model, or dropped.

    Ending: with `complete_tool` only `complete` ends a run; with `objective_tool` only once `pursue_objective` was
    called.

    Tools: the collection ("all": "workspace" and the others of "coding"), the file that declares more (`tools_file`),
    and how commands run. Times are in seconds, `output_limit` in bytes, `compact` in characters that the model is
    shown. `background`: commands may stay, until the run ends or as long as the program runs. `sandbox`: "on" confines
    commands if the machine can, and a yes lifts the rights in the question; with "required" no run begins where nothing
    confines, or where secrets in the workspace could be read; "strict" also lifts nothing. `snapshots`: the workspace
    is kept before each call that may change files; if not, each such call is asked about; none: neither, for files that
    are thrown away. `snapshot_exclude`: names or paths that are left out; usual names only where git ignores them and
    their tool's mark is there.
    """

    name: str
    # The gate.
    policy: str | None = field(default="default", validator=known_policy)
    mode: Literal["interactive", "cron"] = "interactive"
    allow: tuple[str, ...] = field(default=(), converter=_texts)
    policy_rules: tuple[str, ...] = field(default=(), converter=_texts, validator=_each(read_rule))
    commands: tuple[str, ...] = field(default=(), converter=_texts, validator=_each(read_command_rule))
    bounded: bool = True
    allowed_paths: tuple[str, ...] = field(default=(), converter=_texts, validator=_each(checked_path))
    denied_paths: tuple[str, ...] = field(
        default=DENIED_PATHS, converter=_texts, validator=_each(partial(checked_path, patterns=True))
    )
    config_file: str | None = None
    disclosure: Disclosure = "full"
    # Limits.
    max_iterations: int | None = field(default=20, validator=AT_LEAST_ONE)
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=AT_LEAST_ONE)
    max_empty_answers: int | None = field(default=3, validator=AT_LEAST_ONE)
    doom_loop: int | None = field(default=3, validator=AT_LEAST_TWO)
    max_tokens: int | None = field(default=None, validator=AT_LEAST_ONE)
    max_tokens_per_iteration: int | None = field(default=None, validator=AT_LEAST_ONE)
    max_cost: float | None = field(default=None, validator=POSITIVE)
    prices: tuple[str, ...] = field(default=(), converter=_texts, validator=_each(lambda row: read_prices([row])))
    deadline: float | None = field(default=None, validator=POSITIVE)
    context_tokens: int | None = field(default=None, validator=AT_LEAST_ONE)
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
    tools: Literal["all", "workspace", "terminal", "coding", "gated", "command"] = "workspace"
    tools_file: str | None = None
    unknown_tool: Literal["error", "nearest"] = "nearest"
    shell: Literal["bash -c", "bash -lc", "sh -c"] = "bash -c"
    timeout: float | None = field(default=120.0, validator=POSITIVE)
    max_timeout: float | None = field(default=600.0, validator=POSITIVE)
    min_timeout: float | None = field(default=None, validator=POSITIVE)
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    output_lines: int | None = field(default=None, validator=AT_LEAST_ONE)
    output_keep: Literal["both", "head", "tail"] = "both"
    spill: bool = False
    background: Literal["none", "run", "program"] = "none"
    compact: int | None = field(default=None, validator=AT_LEAST_ONE)
    streams: Literal["merged", "separate"] = "merged"
    nonzero_is_error: bool = False
    result_form: Literal["text", "envelope"] = "text"
    env: Literal["allowlist", "inherit"] = "allowlist"
    sandbox: Literal["off", "on", "required", "strict"] = "on"
    snapshots: bool | None = True
    snapshot_exclude: tuple[str, ...] = field(default=tuple(MADE_AGAIN), converter=_texts)
    # Texts.
    system_prompt: str = field(default=DEFAULT, validator=can_be_filled_in)

    def with_options(self, options: Mapping[str, object]) -> "Preset":
        """Return this preset with options given as values, or as text. Raises OptionError, for an unknown name with the
        nearest.
        """
        preset = self
        for name, given in options.items():
            if name not in OPTIONS:
                raise OptionError(f"there is no option {name!r}; {meant(name, OPTIONS)}")
            value = _parsed(given, OPTIONS[name]) if isinstance(given, str) else given
            try:
                preset = preset.with_value(name, value)
            except ValueError as error:
                raise OptionError(f"option {name}={given!r}: {error}") from error
        return preset

    def with_value(self, name: str, value: object) -> "Preset":
        """Return this preset with one option set. Raises ValueError for an invalid value."""
        try:
            return evolve(self, **{name: value})  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            raise ValueError(str(error.args[0]).splitlines()[0]) from error  # attrs gives more than the sentence

    def configuration(self) -> dict[str, Any]:
        """Return all options as plain data, for the header of a log."""
        return asdict(self)

    def bthreads(self) -> tuple[BThread, ...]:
        """Return the b-threads that this preset chooses, the core first; the same values every time."""
        return self._bthreads

    @cached_property
    def _bthreads(self) -> tuple[BThread, ...]:
        return (*core(self.disclosure), *self.rules())

    def rules(self, judge: Judgement | None = None) -> tuple[BThread, ...]:
        """Return the rules that this preset chooses; `judge` stands in for its policy."""
        policy = self.judging_policy()
        judging = None if policy is None else judge or Judge(policy, self.snapshots is not False)
        return tuple(rule for choose in RULES if (rule := choose(self, judging)) is not None)

    def judging_policy(self) -> Policy | None:
        """Return the policy of the constitution with this preset's paths and mode; None if nothing is judged."""
        if self.policy is None:
            is_judged = self.sandbox != "off" or self.snapshots is False  # rights beyond the sandbox, or each change
            return NO_RULES.for_job(*self.allow) if self.mode == "cron" else NO_RULES if is_judged else None
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
        """Return whether only `complete` completes a run."""
        return self.complete_tool or self.objective_tool

    @property
    def carried(self) -> Carried:
        """The rule about the images and the reasoning that are sent to the model."""
        return Carried(images=self.images == "send", reasoning=self.reasoning == "send")

    @property
    def summary_from(self) -> int | None:
        """The tokens of an inference after which a summary is made; None: never."""
        if self.context_tokens is None or self.compaction != "summary":
            return None
        return max(1, int(self.context_tokens * SUMMARY_FROM))

    @property
    def counts_tokens(self) -> bool:
        """Return whether an option depends on the tokens of an inference."""
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
        """Return the price of a model. Raises OptionError when the cost is limited and the price is unknown."""
        price = read_prices(self.prices).get(model)
        if price is None and self.max_cost is not None:
            raise OptionError(
                f"max_cost needs the price of {model!r}; give it as an option: prices={model}=INPUT/OUTPUT, in US "
                f"dollars for a million tokens"
            )
        return price


OPTIONS = {option.name: option.type for option in fields(Preset) if option.name != "name"}
"""The options of a preset, with their types."""

Choice = Callable[["Preset", Judgement | None], BThread | None]

RULES: tuple[Choice, ...] = (
    lambda preset, judge: only_whole_calls(),
    lambda preset, judge: by_constitution(judge) if judge else None,
    lambda preset, judge: no_start_without_approval(),
    lambda preset, judge: snapshot_before_change() if preset.snapshots else None,
    lambda preset, judge: one_at_a_time(preset.together) if preset.sequential else None,
    lambda preset, judge: answers_in_source_order(),
    lambda preset, judge: skip_when_steered() if preset.steering else None,
    lambda preset, judge: (
        continue_with_follow_ups(preset.follow_ups == "all", preset.max_follow_ups)
        if preset.follow_ups != "none"
        else None
    ),
    lambda preset, judge: (
        (iterations_at_most if preset.objective_tool else at_most)(preset.max_iterations, preset.limit_text)
        if preset.max_iterations
        else None
    ),
    lambda preset, judge: too_many_failures(preset.max_failures) if preset.max_failures else None,
    lambda preset, judge: empty_answers(preset.max_empty_answers) if preset.max_empty_answers else None,
    lambda preset, judge: only_whole_answers(),
    lambda preset, judge: doom_loop(preset.doom_loop) if preset.doom_loop else None,
    lambda preset, judge: budget_of_tokens(preset.max_tokens) if preset.max_tokens else None,
    lambda preset, judge: budget_per_turn(preset.max_tokens_per_iteration) if preset.max_tokens_per_iteration else None,
    lambda preset, judge: budget_of_cost(preset.max_cost) if preset.max_cost else None,
    lambda preset, judge: deadline(preset.deadline) if preset.deadline else None,
    lambda preset, judge: complete_to_finish(preset.objective_tool) if preset.finishes_by_tool else None,
    lambda preset, judge: one_objective() if preset.objective_tool else None,
    lambda preset, judge: summarize_when_full(preset.summary_from) if preset.summary_from else None,
    lambda preset, judge: recover_from_overflow(preset.compaction == "summary"),
    lambda preset, judge: retry(preset.attempts),
    lambda preset, judge: stop_on_request(preset.stop_after),
    lambda preset, judge: stop_when_said() if preset.stop_text == "letters" else None,
    lambda preset, judge: abort_on_request(),
)
"""Each line returns the b-thread for a preset's options, or None."""
