"""Plans as YAML; every mistake is told with file, line, column and the nearest word that is known.

name: example
settings: [repair, operations]          # or FILE.py:NAME
policies: [honest, trusted, always, {name: real, models: {agent: gpt-5-mini}, attacks: true}]
protocols:
  - none                                # not even the constitution
  - constitution_only
  - {use: blocking_monitor, budget: 0.05}
  - {name: both, use: [blocking_monitor, taint_flow], threshold: 0.9, disclosure: none}
monitors: {watcher: {kind: simulated, alpha: 9, correlation: 0.5}}
seeds: 2
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from attrs import evolve, frozen

from agent.lab.experiments.episodes.treatments import own_monitor
from agent.lab.experiments.plan_files.deployments import read_deployments
from agent.lab.experiments.plan_files.limits import read_limits
from agent.lab.experiments.plan_files.models import check_needs, read_model, read_models, read_policy, with_models
from agent.lab.experiments.plan_files.options import check_options
from agent.lab.experiments.plan_files.words import at_least_one, known, several, share
from agent.lab.experiments.plans.own_protocols import entry_of, is_own, short_name
from agent.lab.experiments.plans.plan import MonitorKind, MonitorPlan, Plan, Policy, Pooling, ProtocolPlan
from agent.lab.isolation.probing import LEVELS
from agent.lab.settings.ladder import LADDER
from agent.lab.settings.setting import SPLITS, Split
from agent.lab.settings.shipped import SettingError, setting_named
from agent.protocols.catalogue import PROTOCOLS
from agent.vocabulary.errors import AgentError
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

__all__ = ["PlanError", "load_plan"]

KEYS = (
    "name", "settings", "policies", "protocols", "monitors", "seeds", "splits", "instances", "audit_with", "budgets",
    "replicates", "workers", "pool", "concurrency", "per_minute", "deployments", "isolation", "limits", "models",
)  # fmt: skip
OPTIONS = ("draws", "limit", "buckets", "runs", "audits")
PROTOCOL_KEYS = ("name", "use", "monitor", "budget", "threshold", "disclosure", "against", "auditor", "near", *OPTIONS)
MONITOR_KEYS = ("kind", "alpha", "correlation", "slips", "value", "words", "model", "prompt", "use")
NAMES = ("none", *(entry.name for entry in PROTOCOLS))
POLICIES = ("honest", "trusted", *LADDER)
DISCLOSURES = ("none", "category", "full")


class PlanError(AgentError):
    """A plan cannot be read: the message names file, line and column, and the nearest valid word."""


@frozen
class Named:
    """Names of the plan itself that its protocols may speak of."""

    monitors: Sequence[str]
    policies: Sequence[str]


def load_plan(path: Path) -> Plan:
    """Return the plan in the YAML file at `path`. Raises PlanError."""
    try:
        return _plan(read_yaml(path).mapping(*KEYS), path)
    except NodeError as error:
        raise PlanError(str(error)) from error
    except RecursionError as error:
        raise PlanError(f"{path}: not a plan: values are nested too deeply, or within themselves") from error


def _plan(node: Node, path: Path) -> Plan:
    name = node.get("name")
    monitors = tuple(_monitors(node.get("monitors")))
    policies = several(node.required("policies"), _policy)
    named = Named([each.name for each in monitors], [each.name for each in policies])
    plan = Plan(
        name=name.text() if name else path.stem,
        settings=several(node.required("settings"), _setting),
        policies=policies,
        protocols=several(node.required("protocols"), lambda item: _protocol(item, named)),
        monitors=monitors,
    )
    plan = evolve(plan, policies=_policies(node, plan))
    _check_distinct(node.required("protocols"), [each.name for each in plan.protocols], "protocols")
    _check_settings(node.required("settings"), plan.settings)
    places = zip(node.required("protocols").items(), plan.protocols, strict=True)
    check_needs(node, plan.policies, tuple(places), {each.name: each for each in monitors})
    return _with_deployments(_with_numbers(plan, node, monitors), node)


def _with_deployments(plan: Plan, node: Node) -> Plan:
    given = node.get("deployments")
    if given is None:
        return plan
    monitors = [each.name for each in plan.monitors]
    return evolve(plan, deployments=read_deployments(given, plan.policies, plan.protocols, monitors))


def _with_numbers(plan: Plan, node: Node, monitors: tuple[MonitorPlan, ...]) -> Plan:
    readers: dict[str, Callable[[Node], Any]] = {
        "seeds": at_least_one,
        "instances": _instances,
        "replicates": at_least_one,
        "workers": Node.count,
        "pool": lambda given: known(given, get_args(Pooling), "pool"),
        "concurrency": at_least_one,
        "budgets": lambda given: several(given, share),
        "splits": lambda given: several(given, lambda item: known(item, SPLITS, "split")),
        "audit_with": lambda given: known(given, [each.name for each in monitors], "monitor"),
        "per_minute": _paces,
        "isolation": lambda given: known(given, LEVELS, "isolation"),
    }
    given = {key: (found, read) for key, read in readers.items() if (found := node.get(key)) is not None}
    return _with_limits(evolve(plan, **{key: read(found) for key, (found, read) in given.items()}), node)


def _with_limits(plan: Plan, node: Node) -> Plan:
    given = node.get("limits")
    if given is None:
        return plan
    limits, money = read_limits(given)
    limited = evolve(plan, limits=limits, money=money)
    if why := limited.unpriced():
        raise given.required("money").wrong(why)
    return limited


def _setting(node: Node) -> str:
    try:
        setting_named(node.text())
        return node.text()
    except SettingError as error:
        raise node.wrong(str(error)) from error


def _check_settings(node: Node, names: Sequence[str]) -> None:
    """Raise where a setting is there twice: each of its tasks would count twice."""
    for number, place in enumerate(node.items()):
        if names[number] in names[:number]:
            raise place.wrong(f"the setting {names[number]!r} is there twice; leave one of them out")


def _policy(node: Node) -> Policy:
    if isinstance(node.value, str):
        name = known(node, POLICIES, "policy")
        return Policy(name, attacks=name in LADDER)
    return read_policy(node)


def _policies(node: Node, plan: Plan) -> tuple[Policy, ...]:
    """Return the policies, with the models that all share; of one name there is one."""
    _check_distinct(node.required("policies"), [policy.name for policy in plan.policies], "policies")
    shared = node.get("models")
    return with_models(plan.policies, () if shared is None else read_models(shared, ("trusted", "editor", "auditor")))


def _check_distinct(node: Node, names: Sequence[str], what: str) -> None:
    """Raise where two have one name: their episodes would be taken for those of one."""
    for name, place in zip(names, node.items(), strict=True):
        if names.count(name) > 1:
            raise place.wrong(f"there are several {what} {name!r}; give each a name of its own")


def _protocol(node: Node, named: Named) -> ProtocolPlan:
    if isinstance(node.value, str):
        name = _entry(node, NAMES)
        return ProtocolPlan(short_name(name), () if name == "none" else (name,), judged=name != "none")
    node.mapping(*PROTOCOL_KEYS)
    given = node.required("use")
    use = (_entry(given),) if isinstance(given.value, str) else several(given, _entry)
    plain = ProtocolPlan("+".join(map(short_name, use)), use, options=tuple(_options(node)))
    found = evolve(plain, **dict(_choices(node, named)))
    check_options(node, use)
    return found


def _entry(node: Node, names: Sequence[str] = NAMES[1:]) -> str:
    """Return the name of a protocol of the catalogue, or of one's own, which is there."""
    if not is_own(node.text()):
        return known(node, names, "protocol")
    try:
        return entry_of(node.text()).name
    except ValueError as error:
        raise node.wrong(str(error)) from error


def _choices(node: Node, named: Named) -> Iterator[tuple[str, Any]]:
    if (name := node.get("name")) is not None:
        yield "name", name.text()
    if (monitor := node.get("monitor")) is not None:
        yield "monitor", known(monitor, named.monitors, "monitor")
    if (disclosure := node.get("disclosure")) is not None:
        yield "disclosure", known(disclosure, DISCLOSURES, "disclosure")
    if (against := node.get("against")) is not None:
        yield "against", several(against, lambda item: known(item, named.policies, "policy"))
    budget, threshold = node.get("budget"), node.get("threshold")
    if budget is not None and threshold is not None:
        raise threshold.wrong("a threshold is given, or follows from a budget; leave one of them out")
    if budget is not None:
        yield "budget", share(budget)
    if threshold is not None:
        yield "threshold", share(threshold)


def _options(node: Node) -> Iterator[tuple[str, Any]]:
    for key in OPTIONS:
        if (found := node.get(key)) is not None:
            name = "budget" if key == "audits" else key
            yield name, at_least_one(found)
    if (near := node.get("near")) is not None:
        yield "near", share(near)
    if (auditor := node.get("auditor")) is not None:
        yield "auditor", auditor.text()


def _monitors(node: Node | None) -> Iterator[MonitorPlan]:
    if node is None:
        yield MonitorPlan("watcher")
        return
    node.mapping(*node.value if hasattr(node.value, "keys") else ("watcher",))
    for name in node.value:
        yield _monitor(str(name), node.required(name).mapping(*MONITOR_KEYS))


def _monitor(name: str, node: Node) -> MonitorPlan:
    kind = node.get("kind")
    readers: dict[str, Callable[[Node], Any]] = {
        "alpha": Node.number,
        "correlation": share,
        "slips": share,
        "value": share,
        "model": read_model,
        "prompt": Node.text,
        "words": _words,
        "use": _own_monitor,
    }
    given = {key: read(found) for key, read in readers.items() if (found := node.get(key)) is not None}
    usual: MonitorKind = "own" if "use" in given else "simulated"
    plan = MonitorPlan(name, known(kind, get_args(MonitorKind), "kind") if kind else usual, **given)
    if (plan.kind == "own") != bool(plan.use):
        raise node.wrong("a monitor of your own is {use: FILE.py:NAME}, and no other kind has the key 'use'")
    if plan.kind == "model" and not plan.model:
        raise node.wrong("a monitor of kind 'model' needs the key 'model'")
    return plan


def _own_monitor(node: Node) -> str:
    try:
        own_monitor(node.text())
        return node.text()
    except ValueError as error:
        raise node.wrong(str(error)) from error


def _words(node: Node) -> tuple[tuple[str, float], ...]:
    return tuple((str(word), node.required(word).number()) for word in node.mapping(*node.value).value)


def _paces(node: Node) -> tuple[tuple[str, float], ...]:
    node.mapping("agent", "trusted", "editor", "monitor", "auditor")
    return tuple((role, _above_zero(node.required(role))) for role in node.value)


def _above_zero(node: Node) -> float:
    value = node.number()
    if not value:
        raise node.wrong("expected how often in a minute, found 0; leave the role out to ask as often as it needs")
    return value


def _instances(node: Node) -> int | tuple[tuple[Split, int], ...]:
    if not hasattr(node.value, "keys"):
        return at_least_one(node)
    given = node.mapping(*SPLITS)
    return tuple((split, at_least_one(found)) for split in SPLITS if (found := given.get(split)) is not None)
