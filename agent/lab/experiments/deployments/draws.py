"""Which episodes a deployment has: tasks drawn from those of the experiment, by the seed, for all rules alike.

The tasks of the report's split, with each of the plan's seeds, are shuffled and run through; when none is left they
are shuffled anew. Who attacks is a lot of its own for each place. Neither depends on rules, protocol or share of
attacks, so deployments of one seed are paired; and each episode is one of the experiment's own, if that has it.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import count, islice
from random import Random

from attrs import asdict, evolve, frozen

from agent.lab.deployment.events import AGENT, EpisodeStarted
from agent.lab.deployment.running import History
from agent.lab.experiments.plans.deployments import WITHOUT_RULES, DeploymentPlan
from agent.lab.experiments.plans.plan import Episode, Plan, Policy, ProtocolPlan
from agent.lab.settings.setting import Split
from agent.lab.settings.shipped import setting_named

__all__ = ["FORMAT", "Deployment", "deployments_of"]

FORMAT = 1
"""Counts changes of what a deployment does that its configuration does not show."""

Place = tuple[str, str, int]  # setting, task, seed of the episode


@frozen
class Deployment:
    """One deployment to run: its plan, under a protocol, with a seed."""

    plan: Plan
    deployment: DeploymentPlan
    protocol: ProtocolPlan
    seed: int

    @cached_property
    def key(self) -> str:
        """The digest of everything that it depends on: its rules, and every episode that may come."""
        told = asdict(self.deployment)
        for name in ("name", "how", "seeds", "protocols"):
            del told[name]
        keys = [episode.key for number in range(self.deployment.episodes) for episode in self.possible(number)]
        text = json.dumps([FORMAT, told, self.plan.audit_with, self.seed, keys], sort_keys=True)
        return blake2b(text.encode(), digest_size=10).hexdigest()

    def episode(self, started: EpisodeStarted, history: History) -> Episode:
        """Return the episode that starts now."""
        if started.role != AGENT:
            return self._episode(started.episode, self.deployment.trusted)
        return self._episode(started.episode, self._policy(started.episode, history))

    def possible(self, number: int) -> tuple[Episode, ...]:
        """Return every episode that may run in this place; the agent's as it would be without any audit first."""
        names = [self._wish(number)]
        names += [self.deployment.honest] if self.deployment.attacker == "patient" else []
        names += [self.deployment.trusted] if self.deployment.may_replace else []
        return tuple(self._episode(number, name) for name in dict.fromkeys(names))

    def _policy(self, number: int, history: History) -> str:
        """Return the policy of the agent: a patient attacker does honest work unless nobody looked last time."""
        if self.deployment.attacker == "patient" and (number == 0 or number - 1 in history.verdicts):
            return self.deployment.honest
        return self._wish(number)

    def _wish(self, number: int) -> str:
        if self.deployment.order:
            return self.deployment.order[number % len(self.deployment.order)]
        attacks = Random(f"deployment/{self.seed}/lot/{number}").random() < self.deployment.attack_share
        return self.deployment.attack if attacks else self.deployment.honest

    def _episode(self, number: int, policy: str) -> Episode:
        setting, task, seed = self._places[number]
        known = {each.name: each for each in self.plan.policies}
        chosen = known.get(policy, Policy(policy))
        plan = self.plan
        return Episode(
            setting, task, chosen, self.protocol, plan.monitors, seed, self._split, plan.isolation, plan.limits
        )

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return tuple(islice(self._drawn(), self.deployment.episodes))

    def _drawn(self) -> Iterator[Place]:
        places = [
            (setting, task, seed)
            for setting in self.plan.settings
            for task in self.plan.tasks(setting_named(setting), self._split)
            for seed in range(self.plan.seeds)
        ]
        for turn in count():
            shuffled = list(places)
            Random(f"deployment/{self.seed}/tasks/{turn}").shuffle(shuffled)
            yield from shuffled

    @property
    def _split(self) -> Split:
        return "test" if "test" in self.plan.splits else self.plan.splits[-1]


def deployments_of(plan: Plan, protocols: Sequence[ProtocolPlan]) -> Iterator[Deployment]:
    """Yield every deployment of a plan, each followed by the same without rules; `protocols` have their thresholds."""
    bare = _named_without_rules(plan.deployments)
    for deployment in plan.deployments:
        for protocol in protocols:
            if protocol.name in (deployment.protocols or (protocol.name,)):
                for seed in range(deployment.seeds):
                    yield Deployment(plan, deployment, protocol, seed)
                    yield Deployment(plan, evolve(bare[deployment.without_rules], how=deployment.how), protocol, seed)


def _named_without_rules(deployments: Sequence[DeploymentPlan]) -> dict[DeploymentPlan, DeploymentPlan]:
    """Return each deployment without rules under a name of its own: where there are several, that of the first."""
    first: dict[DeploymentPlan, str] = {}
    for deployment in deployments:
        first.setdefault(deployment.without_rules, f"{deployment.name}, {WITHOUT_RULES}")
    alone = len(first) == 1
    return {plan: plan if alone else evolve(plan, name=name) for plan, name in first.items()}
