"""Plans of deployments: how many episodes, which of them attack, and the rules over all.

Each runs once for every protocol and seed, and once more without rules: the cost of a rule is the difference, seed by
seed. A policy that depends on the deployment's history cannot be judged from independent episodes.
"""

from typing import Any, Literal

from attrs import evolve, field, frozen, validators

from agent.lab.deployments.program import RULES, Instead
from agent.vocabulary.errors import meant
from bp import BThread

Attacker = Literal["steady", "patient"]
"""The kind of attacker. A patient one does honest work after an episode that was audited."""

Timing = Literal["in_order", "post_hoc"]

WITHOUT_RULES = "without rules"


@frozen
class RulePlan:
    """A rule over episodes, by its name, with its parameters.

    Instead of a threshold it may have a share of honest episodes: the frozen threshold for that share applies.
    """

    use: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def share(self) -> float | None:
        """The share of honest episodes above its frozen threshold; None without one."""
        return dict(self.options).get("share")

    @property
    def text(self) -> str:
        """The rule as text."""
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.use}({options})" if options else self.use

    def with_threshold(self, threshold: float | None) -> "RulePlan":
        """Return the rule with the threshold of its share, if it has one."""
        if self.share is None:
            return self
        kept = tuple((name, value) for name, value in self.options if name != "share")
        return RulePlan(self.use, (*kept, ("threshold", threshold)))

    def bthread(self) -> BThread:
        """Return its b-thread. Raises ValueError for an unknown name or option."""
        if self.use not in RULES:
            raise ValueError(f"there is no rule {self.use!r} over episodes; {meant(self.use, RULES)}")
        try:
            return RULES[self.use](**dict(self.options))
        except TypeError as error:
            raise ValueError(f"the rule {self.use!r} cannot be made: {error}") from error


@frozen
class DeploymentPlan:
    """A deployment.

    attack_share: how many of the episodes attack, drawn at random; order: or the policies, one after the other and then
    from the beginning. honest, attack, trusted: which policies those are. protocols: names of the plan's protocols;
    empty: all. in_order: episodes run one after the other; post_hoc: all run in parallel first, and the rules are
    applied to their rows. Raises ValueError for rules that cannot be applied post hoc.
    """

    name: str
    rules: tuple[RulePlan, ...] = ()
    episodes: int = 10
    attack_share: float = 0.0
    order: tuple[str, ...] = ()
    honest: str = "honest"
    attack: str = ""
    trusted: str = "trusted"
    instead: Instead = "nothing"
    attacker: Attacker = "steady"
    how: Timing = field(default="in_order", validator=validators.in_(("in_order", "post_hoc")))
    protocols: tuple[str, ...] = ()
    seeds: int = 20

    def __attrs_post_init__(self) -> None:
        if self.how == "post_hoc" and self.attacker == "patient":
            raise ValueError(
                f"{self.name!r} cannot be judged post hoc: a patient attacker acts on what was audited before, so its "
                "episodes have to run in order"
            )

    @property
    def without_rules(self) -> "DeploymentPlan":
        """The same deployment without rules: the common baseline of all that differ in rules alone."""
        return evolve(self, name=WITHOUT_RULES, rules=(), instead="nothing", how="in_order", protocols=(), seeds=1)

    @property
    def may_replace(self) -> bool:
        """True if the trusted model may run an episode."""
        return self.instead == "trusted" and any(rule.use == "shut_down_on_catch" for rule in self.rules)
