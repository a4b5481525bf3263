"""A preset: a bundle of options, one field each, with the b-threads and the policy that they choose."""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen, validators

from agent.models.prices import Price, read_prices
from agent.presets.judging import Judge, known_policy
from agent.presets.options import OptionError, with_options
from agent.presets.prompts import SYSTEM_PROMPT, can_be_filled_in
from agent.presets.rules import rules_of
from agent.threads import CORE
from agent.threads.limits import LIMIT_TEXT
from bp import BThread
from constitution import DENIED_PATHS, POLICIES, Action, Policy, Verdict

__all__ = ["Preset"]

SUMMARY_FROM = 0.8
"""How full the context is when a summary is made: what comes meanwhile still has room."""


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(texts)


def _optional_positive(least: int = 1) -> Any:
    return validators.optional(validators.and_(validators.instance_of(int), validators.ge(least)))


def _optional_amount() -> Any:
    return validators.optional(validators.and_(validators.gt(0), validators.lt(inf)))


def _legible(preset: object, attribute: object, rows: tuple[str, ...]) -> None:
    read_prices(rows)


@frozen
class Preset:
    """One way to run the loop. None as a limit means no limit.

    policy: the name of a policy of the constitution; None: nothing is judged. timeout: seconds for a command that
    names none. output_limit: bytes of a tool's output.

    max_tokens, max_cost (US dollars, by `prices`: MODEL=INPUT/OUTPUT for a million tokens), deadline (seconds): of a
    run. complete_tool: only `complete` ends a run; objective_tool: only once `pursue_objective` was called.
    stop_text: whether "stop" has to be a word to stop. context_tokens: how much the model is shown, system
    prompt and tools included; of a longer conversation the older part is left out ("trim") or summed up ("summary").
    """

    name: str
    policy: str | None = field(default="default", validator=known_policy)
    max_iterations: int | None = field(default=20, validator=_optional_positive())
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=_optional_positive())
    max_empty_answers: int | None = field(default=3, validator=_optional_positive())
    doom_loop: int | None = field(default=3, validator=_optional_positive(2))
    max_tokens: int | None = field(default=None, validator=_optional_positive())
    max_tokens_per_iteration: int | None = field(default=None, validator=_optional_positive())
    max_cost: float | None = field(default=None, validator=_optional_amount())
    prices: tuple[str, ...] = field(default=(), converter=_texts, validator=_legible)
    deadline: float | None = field(default=None, validator=_optional_amount())
    attempts: int = field(default=4, validator=validators.ge(1))
    sequential: bool = True
    stop_after: Literal["call", "step"] = field(default="call", validator=validators.in_(("call", "step")))
    stop_text: Literal["word", "letters"] = field(default="word", validator=validators.in_(("word", "letters")))
    complete_tool: bool = False
    objective_tool: bool = False
    context_tokens: int | None = field(default=None, validator=_optional_positive())
    compaction: Literal["trim", "summary"] = field(default="trim", validator=validators.in_(("trim", "summary")))
    timeout: float = field(default=120.0, validator=validators.gt(0))
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    allowed_paths: tuple[str, ...] = field(default=(), converter=_texts)
    denied_paths: tuple[str, ...] = field(default=DENIED_PATHS, converter=_texts)
    system_prompt: str = field(default=SYSTEM_PROMPT, validator=can_be_filled_in)

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
        """Return the policy of the constitution with this preset's paths."""
        if self.policy is None:
            return None
        return evolve(POLICIES[self.policy], allowed_roots=self.allowed_paths, denied_paths=self.denied_paths)

    @property
    def finishes_by_tool(self) -> bool:
        """Whether `complete` is what ends a run as completed."""
        return self.complete_tool or self.objective_tool

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
