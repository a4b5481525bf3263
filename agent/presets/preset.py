"""A preset: a bundle of options, one field each, with the b-threads and the policy that they choose."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen, validators

from agent.presets.judging import Judge, known_policy
from agent.presets.options import with_options
from agent.presets.prompts import SYSTEM_PROMPT, can_be_filled_in
from agent.presets.rules import rules_of
from agent.threads import CORE
from agent.threads.follow_ups import MOST
from agent.threads.limits import LIMIT_TEXT
from agent.threads.order import Together
from bp import BThread
from constitution import DENIED_PATHS, POLICIES, Action, Policy, Verdict

__all__ = ["Preset"]


def _paths(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(paths)


def _optional_positive() -> Any:
    return validators.optional(validators.and_(validators.instance_of(int), validators.ge(1)))


@frozen
class Preset:
    """One way to run the loop. None as a limit means no limit.

    policy: the name of a policy of the constitution; None: nothing is judged. timeout: seconds for a command that
    names none. output_limit: bytes of a tool's output. together: which calls of an answer may run at the same time
    where their tools allow it; without `sequential` all do. follow_ups: how many are heard when a run would complete.
    """

    name: str
    policy: str | None = field(default="default", validator=known_policy)
    max_iterations: int | None = field(default=20, validator=_optional_positive())
    limit_text: str = LIMIT_TEXT
    max_failures: int | None = field(default=5, validator=_optional_positive())
    max_empty_answers: int | None = field(default=3, validator=_optional_positive())
    attempts: int = field(default=4, validator=validators.ge(1))
    sequential: bool = True
    together: Together = field(default="none", validator=validators.in_(("none", "neighbours", "all")))
    steering: bool = True
    follow_ups: Literal["none", "one", "all"] = field(default="one", validator=validators.in_(("none", "one", "all")))
    max_follow_ups: int = field(default=MOST, validator=validators.ge(1))
    stop_after: Literal["call", "step"] = field(default="call", validator=validators.in_(("call", "step")))
    timeout: float = field(default=120.0, validator=validators.gt(0))
    output_limit: int = field(default=200 * 1024, validator=validators.ge(1))
    allowed_paths: tuple[str, ...] = field(default=(), converter=_paths)
    denied_paths: tuple[str, ...] = field(default=DENIED_PATHS, converter=_paths)
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
