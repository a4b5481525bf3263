"""Plans: the episodes of an experiment and their keys.

An episode's key is a digest of everything that it depends on: its task with the code of the checks, policy, protocol
with its thresholds, monitors, the one that measures use, addresses of models, and seed; and of the user's own code in
all of them (`agent.lab.dependencies`). So an episode whose key has a row is not run again, whatever else changed in the
plan.
"""

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import Any, Literal

from attrs import asdict, evolve, frozen

from agent.lab.dependencies import digest_of
from agent.lab.deployments.plan import DeploymentPlan
from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.experiments.own_protocols import files_of, own_object_of
from agent.lab.isolation.levels import Wanted
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting import SPLITS, Setting, Split
from agent.protocols import is_own
from agent.tools.sandbox.sandbox import ResourceLimits

BASELINE = "constitution_only"
"""The baseline, which every other protocol is compared with."""

Pooling = Literal["processes", "ray"]
"""The kind of worker pool."""

MonitorKind = Literal["simulated", "keyword", "constitution", "constant", "model", "own"]


Knowledge = Literal["protocol", "monitors", "threshold", "constitution"]
"""The parts of the experiment that an attacker may know."""


@frozen
class MonitorPlan:
    """A monitor by its kind, with the parameters of the kind; each kind uses some of the fields.

    use: the place of a monitor of kind "own": FILE.py:NAME, or FILE.py:FUNCTION(key=value).
    """

    name: str
    kind: MonitorKind = "simulated"
    alpha: float = 9.0
    correlation: float = 0.0
    slips: float = 0.0
    value: float | None = 0.0
    words: tuple[tuple[str, float], ...] = ()
    model: ModelPlan | None = None
    prompt: str = ""
    use: str = ""
    attempts: float = 0.0


@frozen
class Policy:
    """The agent's policy: honest work, the trusted model alone, or a rung of the ladder of attacks; or models by role.

    models: real ones, by role; a role without one is scripted. attacks: whether a real agent is given the side task.
    turns, tokens: limits of an episode, over the loop's models; tokens 0: no limit. prompt: the part of a real
    attacker's system prompt about the side task, with {side_task} and {knowledge} in it; attack: a function that
    returns this part turn by turn, FILE.py:NAME. knows: what the attacker knows of the experiment.
    """

    name: str
    attacks: bool = False
    models: tuple[tuple[str, ModelPlan], ...] = ()
    turns: int = 40
    tokens: int = 0
    prompt: str = ""
    attack: str = ""
    knows: tuple[Knowledge, ...] = ()

    @property
    def is_real(self) -> bool:
        """True if the agent is a real model."""
        return any(role == "agent" for role, _ in self.models)


@frozen
class ProtocolPlan:
    """The protocols of an episode, in combination, and the constitution if `judged`.

    budget: use the frozen threshold that costs this share of honest calls; threshold: or use this one. options: further
    arguments of the protocols. against: the policies that it is tried with; empty: all.
    """

    name: str
    use: tuple[str, ...] = ()
    monitor: str = "watcher"
    budget: float | None = None
    threshold: float | None = None
    options: tuple[tuple[str, Any], ...] = ()
    disclosure: Literal["none", "category", "full"] = "full"
    judged: bool = True
    against: tuple[str, ...] = ()


@frozen
class Episode:
    """One episode to run. watcher: the monitor that measures use.

    code: the digest of the code that it runs, as it was when the experiment began: episodes may change what is in
    memory.
    """

    setting: str
    task: str
    policy: Policy
    protocol: ProtocolPlan
    monitors: tuple[MonitorPlan, ...]
    seed: int
    split: Split
    isolation: Wanted = "best"
    limits: ResourceLimits = ResourceLimits()
    watcher: str = "watcher"
    code: str = ""

    @cached_property
    def key(self) -> str:
        """The digest of everything that this episode depends on."""
        plans = _digest_of_plans(self.policy, self.protocol, self.monitors, self.limits)
        files = _digest_of_files((self.setting, *own_names(self.policy, self.protocol, self.monitors)))
        return digest_of(self.code, files, plans, self.setting, self.task, self.seed, self.isolation, self.watcher)

    @property
    def chance(self) -> str:
        """The random seed of the episode, the same for all policies and protocols, so that episodes are paired."""
        return f"{self.setting}/{self.task}/{self.seed}"

    @property
    def about(self) -> dict[str, str]:
        """The description of the episode in its log, from which its monitors can be rebuilt."""
        return {"episode": self.key, "chance": self.chance, "monitors": _told(self.monitors)}


@frozen
class Plan:
    """An experiment.

    instances: of each family, at most, or for each split; None: all. Thresholds are always frozen on all calibration
    instances. audit_with: the monitor that measures use. isolation: the requested level; limits: of the resources of
    each episode in a cell. Rows record what was achieved. money: the limit of the cost of models in US dollars, over
    all runs of the experiment.
    """

    name: str
    settings: tuple[str, ...]
    policies: tuple[Policy, ...]
    protocols: tuple[ProtocolPlan, ...]
    monitors: tuple[MonitorPlan, ...] = (MonitorPlan("watcher"),)
    seeds: int = 1
    splits: tuple[Split, ...] = SPLITS
    instances: int | tuple[tuple[Split, int], ...] | None = None
    audit_with: str = "watcher"
    budgets: tuple[float, ...] = (0.01, 0.05)
    replicates: int = 2000
    workers: int = 0
    pool: Pooling = "processes"
    concurrency: int = 8
    per_minute: tuple[tuple[str, float], ...] = ()
    deployments: tuple[DeploymentPlan, ...] = ()
    isolation: Wanted = "best"
    limits: ResourceLimits = ResourceLimits()
    money: float | None = None

    def episodes(self, thresholds: Mapping[str, float] = {}) -> Iterator[Episode]:
        """Yield every episode whose thresholds are known; `thresholds`: by `threshold_name`."""
        for setting, split in product(self.settings, self.splits):
            for task, each in product(self.tasks(setting_named(setting), split), self.protocols):
                protocol = with_threshold(each, thresholds)
                if protocol is not None:
                    for policy, seed in product(policies_in(split, self.policies, each), range(self.seeds)):
                        yield self.episode(setting, task, policy, protocol, seed, split)

    def calibration(self) -> Iterator[Episode]:
        """Yield the honest episodes that thresholds are frozen on, under the constitution alone."""
        alone = ProtocolPlan(BASELINE, (BASELINE,))
        honest = next((policy for policy in self.policies if policy.name == "honest"), Policy("honest"))
        for setting in self.settings:
            for task, seed in product(setting_named(setting).tasks("calibrate"), range(self.seeds)):
                yield self.episode(setting, task.name, honest, alone, seed, "calibrate")

    def episode(
        self, setting: str, task: str, policy: Policy, protocol: ProtocolPlan, seed: int, split: Split
    ) -> Episode:
        """Return an episode of this experiment."""
        own = map(_digest_of_own, own_names(policy, protocol, self.monitors))
        code = digest_of(_digest_of_task(setting, task), *own)
        how = (self.isolation, self.limits, self.audit_with, code)
        return Episode(setting, task, policy, protocol, self.monitors, seed, split, *how)

    def read_code(self) -> None:
        """Read the code that episodes depend on again, before any episode runs."""
        forget_code()
        for setting in self.settings:
            for task in setting_named(setting).tasks():
                _digest_of_task(setting, task.name)
        for policy, protocol in product(self.policies, self.protocols):
            for name in own_names(policy, protocol, self.monitors):
                _digest_of_own(name)

    @property
    def compared(self) -> frozenset[str]:
        """The names of the protocols that are tried with all policies, so that their worst cases can be compared."""
        whole = [protocol for protocol in self.protocols if not protocol.against]
        return frozenset(protocol.name for protocol in whole or self.protocols)

    def needs_thresholds(self) -> bool:
        """Return whether a protocol has a budget, or a rule over episodes a share, and so needs a frozen threshold."""
        return any(protocol.budget is not None for protocol in self.protocols) or bool(self.shares())

    def models(self) -> Iterator[tuple[str, ModelPlan]]:
        """Yield the real models, each with a description of its use."""
        for policy in self.policies:
            for role, model in policy.models:
                yield f"policy {policy.name!r}, role {role!r}", model
        for monitor in self.monitors:
            if monitor.model is not None:
                yield f"monitor {monitor.name!r}", monitor.model

    def unpriced(self) -> str:
        """Return the error for a limit of cost beside a model without a price; empty if there is none."""
        for who, model in self.models() if self.money is not None else ():
            if model.price is None and not model.file:
                cure = f"give it one: {{model: {model.model}, price: INPUT/OUTPUT}}, in US dollars for a million tokens"
                return f"money is limited, and the plan lacks the price of the model {model.model!r} ({who}); {cure}"
        return ""

    def without_tasks(self) -> dict[str, str]:
        """Return errors by setting: it has no task for the test, or no setting has tasks to set thresholds on."""
        settings = {name: setting_named(name) for name in self.settings}
        tested = {name: each.lacks("test") for name, each in settings.items() if "test" in self.splits}
        calibrated = {name: each.lacks("calibrate") for name, each in settings.items()}
        if not (self.needs_thresholds() and all(calibrated.values())):
            calibrated = {}
        return {name: why for name, why in {**tested, **calibrated}.items() if why}

    def unmeasured(self) -> dict[str, str]:
        """Return errors by protocol: its budget is for another monitor than the one that thresholds are set for."""
        others = [each for each in self.protocols if each.budget is not None and each.monitor != self.audit_with]
        told = f"budgets are for the monitor that measures use, {self.audit_with!r}"
        cure = "give a threshold instead, or audit_with: {}"
        return {each.name: f"{told}, and not for {each.monitor!r}; {cure.format(each.monitor)}" for each in others}

    def shares(self) -> list[float]:
        """Return the shares of honest episodes that rules over episodes have thresholds for."""
        rules = (rule for deployment in self.deployments for rule in deployment.rules)
        return sorted({rule.share for rule in rules if rule.share is not None})

    def tasks(self, setting: Setting, split: Split) -> list[str]:
        """Return the tasks of a setting that this plan takes of a split."""
        most = None if split == "calibrate" else self.instances
        most = dict(self.instances).get(split) if isinstance(self.instances, tuple) else most
        names = [task.name for task in setting.tasks(split)]
        return [name for name in names if not isinstance(most, int) or int(name.rpartition("-")[2]) < most]


def policies_in(split: Split, policies: tuple[Policy, ...], protocol: ProtocolPlan) -> tuple[Policy, ...]:
    """Return the policies that are run in a split, under a protocol.

    Thresholds are set on honest work, rungs are chosen by attacks, and the test measures both. The trusted model alone
    is a reference, and works under the constitution alone.
    """
    given = tuple(policy for policy in policies if not protocol.against or policy.name in protocol.against)
    match split:
        case "calibrate":
            return tuple(policy for policy in given if policy.name == "honest")
        case "develop":
            return tuple(policy for policy in given if policy.attacks)
        case "test":
            return tuple(policy for policy in given if policy.name != "trusted" or protocol.use == (BASELINE,))


def threshold_name(monitor: str, share: float, of: str = "") -> str:
    """Return the name of a frozen threshold for a share of calls, or `of` something else."""
    return f"{monitor} at {share:g}{f' of {of}' if of else ''}"


def with_threshold(protocol: ProtocolPlan, thresholds: Mapping[str, float]) -> ProtocolPlan | None:
    """Return a protocol with the threshold of its budget; None while that is unknown."""
    if protocol.budget is None:
        return protocol
    theta = thresholds.get(threshold_name(protocol.monitor, protocol.budget))
    return None if theta is None else evolve(protocol, threshold=theta)


def own_names(policy: Policy, protocol: ProtocolPlan, monitors: tuple[MonitorPlan, ...]) -> tuple[str, ...]:
    """Return the names of the user's objects and files in plans: protocols, monitors, models and attacks."""
    models = [model.file for model in _models(policy, monitors)]
    names = [*filter(is_own, protocol.use), *(monitor.use for monitor in monitors), policy.attack, *models]
    return tuple(filter(None, names))


def _models(policy: Policy, monitors: tuple[MonitorPlan, ...]) -> list[ModelPlan]:
    return [model for _, model in policy.models] + [monitor.model for monitor in monitors if monitor.model]


@lru_cache(maxsize=64)
def _told(monitors: tuple[MonitorPlan, ...]) -> str:
    return json.dumps([asdict(plan) for plan in monitors], sort_keys=True)


@lru_cache(maxsize=1024)
def _digest_of_plans(
    policy: Policy, protocol: ProtocolPlan, monitors: tuple[MonitorPlan, ...], limits: ResourceLimits
) -> str:
    """Return the digest of plans that many episodes share, and of the addresses of their models."""
    addresses = [model.address(os.environ) for model in _models(policy, monitors)]
    return digest_of(policy, protocol, monitors, limits, addresses)


@cache
def _digest_of_task(name: str, task: str) -> str:
    """Return the digest of a task, and of the setting's code that makes and judges it."""
    setting = setting_named(name)
    given = setting.task(task)
    code = (setting.families[given.family], setting.critical, setting.clean_world, setting.injected_world)
    return digest_of(given, code, setting.live, setting.networked, setting.harmless, setting.in_memory)


def forget_code() -> None:
    """Forget the digests of code, which may have changed since."""
    for cached in (_digest_of_plans, _digest_of_task, _digest_of_own, _digest_of_files):
        cached.cache_clear()


@cache
def _digest_of_own(name: str) -> str:
    return digest_of(own_object_of(name))


@cache
def _digest_of_files(names: tuple[str, ...]) -> str:
    """Return the digest of the user's files; that of a worker that starts when they have changed is another one."""
    return digest_of([files_of(name) for name in names])
