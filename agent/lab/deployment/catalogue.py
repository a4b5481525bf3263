"""The rules over episodes that ship: what each is for, and where it comes from. A new rule is a line of `RULES`."""

import inspect
from collections.abc import Callable

from attrs import frozen

from agent.lab.deployment.afterwards import audit_afterwards
from agent.lab.deployment.honeypots import distrust_monitor
from agent.lab.deployment.shutdown import shut_down_on_catch
from agent.lab.deployment.suspicion import audit_suspicious
from agent.lab.deployment.upfront import audit_first
from agent.vocabulary.errors import meant
from bp import BThread

__all__ = ["RULES", "Rule", "rule_named"]

AI_CONTROL = "Greenblatt et al. 2023, AI Control"


@frozen
class Rule:
    """A rule over episodes: its name, what it does, where it comes from, and what makes its b-thread."""

    name: str
    does: str
    source: str
    make: Callable[..., BThread]

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of what it leaves open."""
        return tuple(inspect.signature(self.make).parameters)


RULES = (
    Rule("audit_first", "audits the first episodes", "ControlArena", audit_first),
    Rule("audit_suspicious", "audits an episode above the threshold when it ends", AI_CONTROL, audit_suspicious),
    Rule("audit_afterwards", "audits the most suspicious when all are over", AI_CONTROL, audit_afterwards),
    Rule("shut_down_on_catch", "after a catch the agent runs no episode", "ControlArena", shut_down_on_catch),
    Rule("distrust_monitor", "after a missed honeypot the agent runs no episode", AI_CONTROL, distrust_monitor),
)
"""Every rule that ships."""


def rule_named(name: str) -> Rule:
    """Return the rule of this name. Raises ValueError that names the nearest one, or all."""
    known = {rule.name: rule for rule in RULES}
    if name not in known:
        raise ValueError(f"there is no rule {name!r} over episodes; {meant(name, known)}")
    return known[name]
