"""Plans as YAML; every error names file, line, column and the nearest known word.

    name: example
    settings: [repair, operations]          # or FILE.py:NAME
    models: {trusted: gpt-5-mini}           # for all policies
    policies: [honest, trusted, always, {name: real, models: {agent: gpt-5-mini}, attacks: true}]
    protocols:
      - none                                # not even the constitution
      - constitution_only
      - {use: blocking_monitor, budget: 0.05}
      - {name: both, use: [blocking_monitor, taint_flow], threshold: 0.9, disclosure: none}
    monitors: {watcher: {kind: simulated, alpha: 9, correlation: 0.5}}
    limits: {memory: 1 GiB, processes: 128, file_size: 256 MiB, cpu_time: 60, money: 5.00}
    seeds: 2
    deployments:
      - name: upfront
        rules: [{use: audit_first, episodes: 3}, shut_down_on_catch]
        episodes: 20
        attack_share: 0.2                   # or order: [honest, honest, always]
        instead: trusted                    # after a catch; nothing: those episodes are skipped

Each table below has the keys of one kind of mapping, with the readers of their values. An option that a protocol does
not accept is an error before any episode runs: an ignored budget would make a misleading row in the tables.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from attrs import evolve

from agent.lab.deployments.plan import Attacker, DeploymentPlan, RulePlan, Timing
from agent.lab.deployments.program import RULES, Instead
from agent.lab.episodes.red_team import attack_function
from agent.lab.episodes.treatment import bthreads_of, own_monitor
from agent.lab.experiments.model_plans import MODEL_ROLES, ModelPlan, own_model
from agent.lab.experiments.own_protocols import entry_of, short_name
from agent.lab.experiments.plan import (
    Knowledge,
    MonitorKind,
    MonitorPlan,
    Plan,
    Policy,
    Pooling,
    ProtocolPlan,
    forget_code,
)
from agent.lab.isolation.levels import LEVELS
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting import SPLITS, SettingError, needs_care
from agent.lab.settings.workers import LADDER
from agent.models.model import Price, read_prices
from agent.models.openai_model import Api
from agent.protocols import PROTOCOLS, is_own
from agent.tools.sandbox.sandbox import ResourceLimits
from agent.vocabulary.errors import AgentError, meant
from agent.vocabulary.reasons import Disclosure
from agent.vocabulary.yaml_nodes import Node, NodeError, Reader, fields, read_yaml

NAMES = ("none", *(entry.name for entry in PROTOCOLS))
POLICIES = ("honest", "trusted", *LADDER)
NOT_ATTACKING = ("honest", "trusted")
USUAL = "watcher"
"""The default monitor where there are several."""


class PlanError(AgentError):
    """A plan is invalid: the message names file, line and column, and the nearest valid word."""


def load_plan(path: Path) -> Plan:
    """Return the plan in the YAML file at `path`, with the code that is there now. Raises PlanError."""
    forget_code()
    try:
        return _plan(read_yaml(path), path)
    except NodeError as error:
        raise PlanError(str(error)) from error
    except RecursionError as error:
        raise PlanError(f"{path}: not a plan: values are nested too deeply, or within themselves") from error


# Readers: each returns the value of a node, or raises NodeError

T = TypeVar("T")


def list_of(read: Callable[[Node], T]) -> Callable[[Node], tuple[T, ...]]:
    """Return the reader of a non-empty list."""

    def read_all(node: Node) -> tuple[T, ...]:
        found = tuple(read(item) for item in node.items())
        if not found:
            raise node.wrong("this list is empty; name one or more")
        return found

    return read_all


def one_of(names: Sequence[str], what: str) -> Callable[[Node], str]:
    """Return the reader of one of these names; `what`: their kind, for the error."""

    def read(node: Node) -> str:
        text = node.text()
        if text not in names:
            raise node.wrong(f"there is no {what} {text!r}; {meant(text, names)}")
        return text

    return read


def checked(
    read: Callable[[Node], T], holds: Callable[[T], object], wanted: str, cure: str = ""
) -> Callable[[Node], T]:
    """Return the reader of values for which `holds`; the error tells what is wanted, what was found, and the cure."""

    def read_checked(node: Node) -> T:
        value = read(node)
        if not holds(value):
            raise node.wrong(f"expected {wanted}, found {value:g}{cure}")
        return value

    return read_checked


share = checked(Node.number, lambda value: value <= 1, "a share from 0 to 1")
at_least_one = checked(Node.count, bool, "a whole number from 1 on")


def above_zero(what: str) -> Reader:
    """Return the reader of a number above 0; `what`: the unit, for the error."""
    return checked(Node.number, bool, f"a number of {what} above 0", "; without the key there is no such limit")


def valid(check: Callable[[str], object], refusal: type[Exception] = ValueError) -> Callable[[Node], str]:
    """Return the reader of a text that `check` accepts; its errors get the position of the text."""

    def read(node: Node) -> str:
        try:
            check(node.text())
        except refusal as error:
            raise node.wrong(str(error)) from error
        return node.text()

    return read


def pairs(readers: Mapping[str, Reader]) -> Callable[[Node], tuple[tuple[str, Any], ...]]:
    """Return the reader of a mapping as pairs."""
    return lambda node: tuple(fields(node, readers).items())


def _stripped(node: Node) -> str:
    return node.text().strip()


def _names_of(items: Sequence[Any]) -> list[str]:
    return [item.name for item in items]


def _check_one(node: Node, given: Mapping[str, Any], first: str, second: str, told: str) -> None:
    """Raise if both of two keys are given."""
    if first in given and second in given:
        raise node.required(second).wrong(f"{told}; leave one of them out")


def _check_distinct(node: Node, names: Sequence[str], what: str) -> None:
    """Raise for equal names: their episodes would be confused."""
    for name, place in zip(names, node.items(), strict=True):
        if names.count(name) > 1:
            raise place.wrong(f"there are several {what} {name!r}; give each a name of its own, or leave one out")


# Models, policies and monitors


def _model_name(node: Node) -> str:
    name = _stripped(node)
    if not name:
        raise node.wrong("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    return valid(own_model)(node) if ModelPlan(name).is_own else name


def _price(node: Node) -> Price:
    try:
        return read_prices([f"it={node.text()}"])["it"]
    except ValueError as error:
        raise node.wrong("a price is INPUT/OUTPUT in US dollars for a million tokens, such as '0.25/2'") from error


MODEL: Mapping[str, Reader] = {
    "model": _model_name,
    "api": lambda node: node.one_of(get_args(Api)),
    "url": _stripped,
    "url_from": _stripped,
    "key_from": _stripped,
    "parameters": Node.json,
    "price": _price,
    "timeout": above_zero("seconds"),
    "system": _stripped,
}

Models = tuple[tuple[str, ModelPlan], ...]


def _model(node: Node) -> ModelPlan:
    if isinstance(node.value, str):
        return ModelPlan(_model_name(node))
    plan = ModelPlan(**fields(node, MODEL, "model"))
    address = node.get("url") or node.get("url_from")
    if address is not None and ("://" in plan.model or (plan.url and plan.url_from)):
        raise address.wrong("the address of the server is given twice; leave one of them out")
    return plan


def _prompt(text: str) -> None:
    if "{side_task}" not in text:
        raise ValueError("the prompt has no {side_task} in it, so the model would not learn what to do")


RED_TEAM: Mapping[str, Reader] = {
    "prompt": valid(_prompt),
    "attack": valid(attack_function),
    "knows": list_of(one_of(get_args(Knowledge), "knowledge")),
}

POLICY: Mapping[str, Reader] = {
    "name": Node.text,
    "models": pairs(dict.fromkeys(MODEL_ROLES, _model)),
    "attacks": Node.boolean,
    "turns": at_least_one,
    "tokens": at_least_one,
    **RED_TEAM,
}


def _policy(node: Node, shared: Models) -> Policy:
    """Return a policy with its models, and the shared models for its other roles."""
    if isinstance(node.value, str):
        name = one_of(POLICIES, "policy")(node)
        return Policy(name, name in LADDER, shared)
    given = fields(node, POLICY, "name", "models")
    policy = Policy(**{"attacks": given["name"] in LADDER, **given})
    _check_policy(node, policy, [key for key in RED_TEAM if key in given])
    return evolve(policy, models=tuple({**dict(shared), **dict(policy.models)}.items()))


def _check_policy(node: Node, policy: Policy, told: Sequence[str]) -> None:
    """Raise for an invalid policy of real models; `told`: its keys that only attackers have."""
    name, attacks = policy.name, policy.attacks
    _check_one(node, node.value, "prompt", "attack", "an attack is a prompt or a function")
    if told and not (policy.is_real and attacks):
        cure = "only a real agent that attacks is told this; give models: {agent: ...} and attacks: true"
        raise node.required(told[0]).wrong(cure)
    if policy.is_real and not attacks and name not in NOT_ATTACKING:
        raise node.wrong(f"{name!r} does not attack; call it 'honest' (usefulness, calibration), 'trusted', or let it")
    if not policy.is_real and name not in POLICIES:
        raise node.wrong(f"{name!r} has no model for the role 'agent', and is no scripted policy; name one of them")
    if not policy.is_real and attacks != (name in LADDER):
        raise node.wrong(f"whether the scripted policy {name!r} attacks is known; leave `attacks` out")


def _words(node: Node) -> tuple[tuple[str, float], ...]:
    return tuple((str(word), node.required(word).number()) for word in node.mapping(*node.value).value)


MONITOR: Mapping[str, Reader] = {
    "kind": one_of(get_args(MonitorKind), "kind"),
    "alpha": Node.number,
    "correlation": share,
    "attempts": share,
    "slips": share,
    "value": share,
    "model": _model,
    "prompt": Node.text,
    "words": _words,
    "use": valid(own_monitor),
}


def _monitors(node: Node) -> tuple[MonitorPlan, ...]:
    node.mapping(*node.value if hasattr(node.value, "keys") else (USUAL,))
    return tuple(_monitor(str(name), node.required(name)) for name in node.value)


def _monitor(name: str, node: Node) -> MonitorPlan:
    given = fields(node, MONITOR) if hasattr(node.value, "keys") else {"kind": MONITOR["kind"](node)}
    plan = MonitorPlan(name, **{"kind": "own" if "use" in given else "simulated", **given})
    if (plan.kind == "own") != bool(plan.use):
        raise node.wrong("a monitor of your own is {use: FILE.py:NAME}, and no other kind has the key 'use'")
    if plan.kind == "model" and not plan.model:
        raise node.wrong("a monitor of kind 'model' needs the key 'model'")
    return plan


# Protocols


OPTIONS: Mapping[str, Reader] = {
    "draws": at_least_one,
    "limit": at_least_one,
    "buckets": at_least_one,
    "runs": at_least_one,
    "audits": at_least_one,
    "near": share,
    "auditor": one_of(("auditor",), "auditor"),
}
"""Keys that hold arguments of a protocol."""

ARGUMENTS: Mapping[str, str] = {
    **{key: key for key in ("budget", "threshold", "monitor", *OPTIONS)},
    "budget": "threshold",
    "audits": "budget",
}
"""The argument of protocols that each key of a plan sets."""


def _protocol(node: Node, monitors: Sequence[str], usual: str, policies: Sequence[str]) -> ProtocolPlan:
    if isinstance(node.value, str):
        name = _entry(node, NAMES)
        use = () if name == "none" else (name,)
        return ProtocolPlan(short_name(name), use, _monitor_of(use, usual), judged=name != "none")
    readers: Mapping[str, Reader] = {
        "name": Node.text,
        "use": lambda given: (_entry(given),) if isinstance(given.value, str) else list_of(_entry)(given),
        "monitor": one_of(monitors, "monitor"),
        "budget": share,
        "threshold": share,
        "disclosure": one_of(get_args(Disclosure), "disclosure"),
        "against": list_of(one_of(policies, "policy")),
    }
    given = fields(node, {**readers, **OPTIONS}, "use")
    _check_options(node, given["use"])
    _check_one(node, given, "budget", "threshold", "a threshold is given, or follows from a budget")
    chosen = tuple((ARGUMENTS[key], given.pop(key)) for key in OPTIONS if key in given)
    name, monitor = "+".join(map(short_name, given["use"])), _monitor_of(given["use"], usual)
    return ProtocolPlan(**{"name": name, "monitor": monitor, "options": chosen, **given})


def _check_made(node: Node, plan: ProtocolPlan) -> None:
    """Raise if the b-threads of the user's own protocols cannot be made."""
    fixed = evolve(plan, threshold=0.5 if plan.threshold is None else plan.threshold)
    offered = {"monitor": plan.monitor, "monitors": (plan.monitor,) * 2, "is_critical": needs_care, "honeypots": ()}
    for name in filter(is_own, plan.use):
        try:
            bthreads_of(name, fixed, offered)
        except ValueError as error:
            raise node.wrong(str(error)) from error


def _monitor_of(use: Sequence[str], usual: str) -> str:
    """Return the default monitor of these protocols; irrelevant for those that use none."""
    return usual if any("monitor" in entry_of(name).takes for name in use) else USUAL


def _entry(node: Node, names: Sequence[str] = NAMES[1:]) -> str:
    """Return the name of an existing protocol, of the catalogue or of the user."""
    return valid(entry_of)(node) if is_own(node.text()) else one_of(names, "protocol")(node)


def _check_options(node: Node, use: Sequence[str]) -> None:
    """Raise for an option that none of the protocols `use` accepts."""
    takes = {argument for name in use for argument in entry_of(name).takes}
    for key, argument in ARGUMENTS.items():
        given = node.get(key)
        if given is not None and argument not in takes:
            has = ", ".join(each for each, needed in ARGUMENTS.items() if needed in takes) or "nothing"
            names = " and ".join(map(short_name, use))
            raise given.wrong(f"{key!r} is not an option of {names}; its options: {has}")


# Deployments

RULE_OPTIONS: Mapping[str, Reader] = {
    "episodes": at_least_one,
    "audits": at_least_one,
    "threshold": share,
    "share": share,
}


def _rule(node: Node) -> RulePlan:
    named = one_of(tuple(RULES), "rule over episodes")
    if isinstance(node.value, str):
        return RulePlan(named(node))
    name = named(node.mapping("use", *RULE_OPTIONS).required("use"))
    takes = set(inspect.signature(RULES[name]).parameters)
    takes |= {"share"} if "threshold" in takes else set()
    given = fields(node, {key: read for key, read in RULE_OPTIONS.items() if key in takes}, others=("use",))
    _check_one(node, given, "threshold", "share", "a threshold is given, or follows from a share of honest episodes")
    return RulePlan(name, tuple(given.items()))


def _deployment(node: Node, plan: Plan) -> DeploymentPlan:
    names = [*dict.fromkeys(("honest", "trusted", *_names_of(plan.policies)))]
    attacks = [policy.name for policy in plan.policies if policy.attacks]
    readers: Mapping[str, Reader] = {
        "name": Node.text,
        "rules": lambda given: list_of(_rule)(given) if given.value else (),
        "episodes": at_least_one,
        "attack_share": share,
        "order": list_of(one_of(names, "policy")),
        "honest": one_of(names, "policy"),
        "attack": one_of(attacks, "policy that attacks"),
        "trusted": one_of(names, "policy"),
        "instead": one_of(get_args(Instead), "choice"),
        "attacker": one_of(get_args(Attacker), "attacker"),
        "how": one_of(get_args(Timing), "way"),
        "protocols": list_of(one_of(_names_of(plan.protocols), "protocol")),
        "seeds": at_least_one,
    }
    given = fields(node, readers, "name", "episodes")
    _check_one(node, given, "order", "attack_share", "who attacks is drawn at random, or follows an order")
    if given.get("attack_share") and not attacks:
        told = "none of the policies of this plan attacks; add one, for example always"
        raise node.required("attack_share").wrong(told)
    try:
        return DeploymentPlan(**{"attack": attacks[0] if attacks else "", **given})
    except ValueError as error:
        raise node.required("how").wrong(f"{error}; write how: in_order") from error


# The whole plan


UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def _size(node: Node) -> int:
    if not isinstance(node.value, str):
        return at_least_one(node)
    found = re.fullmatch(r"([0-9]+) ?([KMG])iB", node.value.strip())
    if found is None or not int(found[1]):
        raise node.wrong(f"expected bytes, such as '256 MiB' or '1 GiB', found {node.value!r}")
    return int(found[1]) * UNITS[found[2]]


LIMITS: Mapping[str, Reader] = {
    "memory": _size,
    "processes": at_least_one,
    "file_size": _size,
    "cpu_time": at_least_one,
}


OF_SPLITS: Reader = pairs(dict.fromkeys(SPLITS, at_least_one))

PLAN: Mapping[str, Reader] = {
    "name": Node.text,
    "settings": list_of(valid(setting_named, SettingError)),
    "monitors": _monitors,
    "seeds": at_least_one,
    "splits": list_of(one_of(SPLITS, "split")),
    "instances": lambda node: (OF_SPLITS if hasattr(node.value, "keys") else at_least_one)(node),
    "budgets": list_of(share),
    "replicates": at_least_one,
    "workers": Node.count,
    "pool": one_of(get_args(Pooling), "pool"),
    "concurrency": at_least_one,
    "per_minute": pairs(dict.fromkeys((*MODEL_ROLES, "monitor"), above_zero("requests a minute"))),
    "isolation": one_of(LEVELS, "isolation"),
}
NEED_OTHERS = ("models", "policies", "protocols", "audit_with", "limits", "deployments")
"""Keys whose readers need the values of other keys."""


def _plan(node: Node, path: Path) -> Plan:
    given = {"name": path.stem, **fields(node, PLAN, "settings", "policies", "protocols", others=NEED_OTHERS)}
    monitors = given.setdefault("monitors", (MonitorPlan(USUAL),))
    shared = node.get("models")
    models = () if shared is None else pairs(dict.fromkeys(MODEL_ROLES[1:], _model))(shared)
    policies = list_of(partial(_policy, shared=models))(node.required("policies"))
    names = _names_of(monitors)
    audit_with = _measuring(node, names)
    usual = USUAL if USUAL in names else audit_with
    named = partial(_protocol, monitors=names, usual=usual, policies=_names_of(policies))
    protocols = list_of(named)(node.required("protocols"))
    limits = (
        {} if (found := node.get("limits")) is None else fields(found, {**LIMITS, "money": above_zero("US dollars")})
    )
    given |= {"money": limits.pop("money", None), "limits": ResourceLimits(**limits)}
    plan = Plan(policies=policies, protocols=protocols, audit_with=audit_with, **given)
    _check_whole(node, plan)
    if (deployed := node.get("deployments")) is None:
        return plan
    deployments = list_of(partial(_deployment, plan=plan))(deployed)
    _check_distinct(deployed, _names_of(deployments), "deployments")
    return evolve(plan, deployments=deployments)


def _measuring(node: Node, monitors: Sequence[str]) -> str:
    """Return the monitor that measures use: the named one, else the only one, else the default."""
    if (given := node.get("audit_with")) is not None:
        return one_of(monitors, "monitor")(given)
    if len(monitors) > 1 and USUAL not in monitors:
        raise node.required("monitors").wrong(f"which of these measures use? name it: audit_with: {monitors[0]}")
    return monitors[0] if len(monitors) == 1 else USUAL


def _check_whole(node: Node, plan: Plan) -> None:
    """Raise for parts of a plan that contradict each other."""
    _check_distinct(node.required("policies"), _names_of(plan.policies), "policies")
    _check_distinct(node.required("protocols"), _names_of(plan.protocols), "protocols")
    _check_distinct(node.required("settings"), plan.settings, "settings")
    for place, setting in zip(node.required("settings").items(), plan.settings, strict=True):
        if why := plan.without_tasks().get(setting):
            raise place.wrong(why)
    for place, protocol in zip(node.required("protocols").items(), plan.protocols, strict=True):
        _check_made(place, protocol)
        if why := plan.unmeasured().get(protocol.name):
            raise place.required("budget").wrong(why)
    for policy in plan.policies:
        if policy.is_real:
            _check_real(node, plan, policy)
    if why := plan.unpriced():
        raise node.required("limits").required("money").wrong(why)


def _check_real(node: Node, plan: Plan, policy: Policy) -> None:
    """Raise if a real agent is combined with parts for scripted workers: trusted drafts and simulated monitors."""
    for place, protocol in zip(node.required("protocols").items(), plan.protocols, strict=True):
        if missing := _missing_role(policy, protocol):
            told = f"{' and '.join(protocol.use)!r} needs a model for the role {missing!r} where the agent is real"
            raise place.wrong(f"{told} (policy {policy.name!r}); give one: models: {{{missing}: NAME}}")
    simulated = [monitor.name for monitor in plan.monitors if monitor.kind == "simulated"]
    if policy.attacks and simulated:
        told = f"the monitor {simulated[0]!r} is simulated, from the truth, which is unknown of a real attacker"
        place = node.get("monitors") or node.required("policies")
        kinds = "keyword, constitution, constant or model"
        raise place.wrong(f"{told} (policy {policy.name!r}); take one of kind {kinds}")


def _missing_role(policy: Policy, protocol: ProtocolPlan) -> str:
    entries, roles = [entry_of(name) for name in protocol.use], {role for role, _ in policy.models}
    needed = [role for entry in entries for role in entry.roles]
    needed += ["auditor"] if policy.attacks and any(entry.needs_auditor for entry in entries) else []
    return next((role for role in needed if role not in roles), "")
