"""Plans as YAML; every mistake is told with file, line, column and the nearest word that is known.

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

What a protocol does not take is refused where it stands, before any episode runs: a budget that a protocol takes no
notice of would make a line of the tables that says something which is not so.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from attrs import evolve, frozen

from agent.lab.deployments.plan_file import read_deployments
from agent.lab.episodes.red_team import attack_function
from agent.lab.episodes.treatment import own_monitor
from agent.lab.experiments.model_plans import MODEL_ROLES, ModelPlan
from agent.lab.experiments.own_protocols import entry_of, is_own, short_name
from agent.lab.experiments.plan import Knowledge, MonitorKind, MonitorPlan, Plan, Policy, Pooling, ProtocolPlan
from agent.lab.experiments.yaml_values import above_zero, at_least_one, known, several, share
from agent.lab.isolation.levels import LEVELS
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting import SPLITS, SettingError, Split
from agent.lab.settings.workers import LADDER
from agent.models.model import Price, read_prices
from agent.models.openai_model import Api
from agent.protocols.catalogue import PROTOCOLS
from agent.tools.sandbox.limits import Limits
from agent.vocabulary.errors import AgentError
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

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
    """Names of the plan itself that its protocols may speak of. monitor: the one that they ask if they name none."""

    monitors: Sequence[str]
    monitor: str
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
    names = [each.name for each in monitors]
    audit_with = _measuring(node, names)
    usual = USUAL if USUAL in names else audit_with
    named = Named(names, usual, [each.name for each in policies])
    plan = Plan(
        name=name.text() if name else path.stem,
        settings=several(node.required("settings"), _setting),
        policies=policies,
        protocols=several(node.required("protocols"), lambda item: _protocol(item, named)),
        monitors=monitors,
        audit_with=audit_with,
    )
    plan = evolve(plan, policies=_policies(node, plan))
    _check_distinct(node.required("protocols"), [each.name for each in plan.protocols], "protocols")
    _check_settings(node.required("settings"), plan.settings)
    places = tuple(zip(node.required("protocols").items(), plan.protocols, strict=True))
    for place, protocol in places:
        if why := plan.unmeasured().get(protocol.name):
            raise place.required("budget").wrong(why)
    check_needs(node, plan.policies, places, {each.name: each for each in monitors})
    return _with_deployments(_with_numbers(plan, node), node)


USUAL = "watcher"


def _measuring(node: Node, monitors: Sequence[str]) -> str:
    """Return the monitor that measures use: the one that is named, else the only one, else the usual one."""
    if (given := node.get("audit_with")) is not None:
        return known(given, monitors, "monitor")
    if len(monitors) > 1 and USUAL not in monitors:
        raise node.required("monitors").wrong(f"which of these measures use? name it: audit_with: {monitors[0]}")
    return monitors[0] if len(monitors) == 1 else USUAL


def _with_deployments(plan: Plan, node: Node) -> Plan:
    given = node.get("deployments")
    if given is None:
        return plan
    monitors = [each.name for each in plan.monitors]
    return evolve(plan, deployments=read_deployments(given, plan.policies, plan.protocols, monitors))


def _with_numbers(plan: Plan, node: Node) -> Plan:
    readers: dict[str, Callable[[Node], Any]] = {
        "seeds": at_least_one,
        "instances": _instances,
        "replicates": at_least_one,
        "workers": Node.count,
        "pool": lambda given: known(given, get_args(Pooling), "pool"),
        "concurrency": at_least_one,
        "budgets": lambda given: several(given, share),
        "splits": lambda given: several(given, lambda item: known(item, SPLITS, "split")),
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
        use: tuple[str, ...] = () if name == "none" else (name,)
        return ProtocolPlan(short_name(name), use, _monitor_of(use, named), judged=name != "none")
    node.mapping(*PROTOCOL_KEYS)
    given = node.required("use")
    use = (_entry(given),) if isinstance(given.value, str) else several(given, _entry)
    plain = ProtocolPlan("+".join(map(short_name, use)), use, _monitor_of(use, named), options=tuple(_options(node)))
    found = evolve(plain, **dict(_choices(node, named)))
    check_options(node, use)
    return found


def _monitor_of(use: Sequence[str], named: Named) -> str:
    """Return the monitor that protocols ask if they name none; of those that ask none it makes no difference."""
    return named.monitor if any("monitor" in entry_of(name).takes for name in use) else USUAL


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
        yield MonitorPlan(USUAL)
        return
    node.mapping(*node.value if hasattr(node.value, "keys") else (USUAL,))
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


ARGUMENTS: Mapping[str, Sequence[str]] = {
    "budget": ("threshold",),
    "threshold": ("threshold",),
    "monitor": ("monitor",),
    "draws": ("draws",),
    "limit": ("limit",),
    "buckets": ("buckets",),
    "runs": ("runs",),
    "audits": ("budget",),
    "near": ("near",),
    "auditor": ("auditor",),
}
"""The arguments of protocols that each key of a plan gives."""

AUDITORS = ("auditor",)


def check_options(node: Node, use: Sequence[str]) -> None:
    """Raise NodeError for an option that none of the protocols `use` takes, or an auditor that there is not."""
    takes = {argument for name in use for argument in entry_of(name).takes}
    for key, arguments in ARGUMENTS.items():
        given = node.get(key)
        if given is None:
            continue
        if not takes.intersection(arguments):
            has = ", ".join(each for each, needed in ARGUMENTS.items() if takes.intersection(needed)) or "nothing"
            names = " and ".join(map(short_name, use))
            raise given.wrong(f"{key!r} is nothing that {names} takes; what is: {has}")
        if key == "auditor":
            known(given, AUDITORS, "auditor")


SIZE = re.compile(r"([0-9]+) ?([KMG])iB")
BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}


def read_limits(node: Node) -> tuple[Limits, float | None]:
    """Return limits, and the money if it is limited; those that are not named are as usual. Raises NodeError."""
    node.mapping(*LIMITS, "money")
    limits = Limits(**{key: read(found) for key, read in LIMITS.items() if (found := node.get(key)) is not None})
    money = node.get("money")
    return limits, None if money is None else _dollars(money)


def _dollars(node: Node) -> float:
    value = node.number()
    if not value:
        raise node.wrong("expected US dollars, more than 0; leave it out for as much as it takes")
    return value


def _size(node: Node) -> int:
    if not isinstance(node.value, str):
        return at_least_one(node)
    found = SIZE.fullmatch(node.value.strip())
    if found is None or not int(found[1]):
        raise node.wrong(f"expected bytes, such as '256 MiB' or '1 GiB', found {node.value!r}")
    return int(found[1]) * BYTES[found[2]]


LIMITS: Mapping[str, Callable[[Node], int]] = {
    "memory": _size,
    "processes": at_least_one,
    "file_size": _size,
    "cpu_time": at_least_one,
}
"""The reader of each limit."""


MODEL_KEYS = ("model", "api", "url", "url_from", "key_from", "parameters", "price", "timeout", "system")
RED_TEAM = ("prompt", "attack", "knows")
NOT_ATTACKING = ("honest", "trusted")
Models = tuple[tuple[str, ModelPlan], ...]


def read_models(node: Node, roles: Sequence[str] = MODEL_ROLES) -> Models:
    """Return models by role. Raises NodeError."""
    node.mapping(*roles)
    return tuple((str(role), read_model(node.required(role))) for role in node.value)


def read_model(node: Node) -> ModelPlan:
    """Return a model: a name, or a mapping with more to say. Raises NodeError."""
    if isinstance(node.value, str):
        return ModelPlan(_name(node))
    node.mapping(*MODEL_KEYS)
    plan = ModelPlan(_name(node.required("model")), **dict(_else(node)))
    address = node.get("url") or node.get("url_from")
    if address is not None and ("://" in plan.model or (plan.url and plan.url_from)):
        raise address.wrong("the address of the server is given twice; leave one of them out")
    return plan


def _name(node: Node) -> str:
    name = node.text().strip()
    if not name:
        raise node.wrong("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    return name


def _else(node: Node) -> Iterator[tuple[str, Any]]:
    for key in ("url", "url_from", "key_from", "system"):
        if (found := node.get(key)) is not None:
            yield key, found.text().strip()
    if (api := node.get("api")) is not None:
        yield "api", api.one_of(get_args(Api))
    if (parameters := node.get("parameters")) is not None:
        yield "parameters", parameters.json()
    if (timeout := node.get("timeout")) is not None:
        yield "timeout", above_zero(timeout, "seconds")
    if (price := node.get("price")) is not None:
        yield "price", _price(price)


def _price(node: Node) -> Price:
    try:
        return read_prices([f"it={node.text()}"])["it"]
    except ValueError as error:
        raise node.wrong("a price is INPUT/OUTPUT in US dollars for a million tokens, such as '0.25/2'") from error


def read_policy(node: Node) -> Policy:
    """Return a policy of real models. Raises NodeError."""
    node.mapping("name", "models", "attacks", "turns", "tokens", *RED_TEAM)
    given, name = node.get("attacks"), node.required("name").text()
    attacks = given.boolean() if given is not None else name in LADDER
    limits = {key: at_least_one(found) for key in ("turns", "tokens") if (found := node.get(key)) is not None}
    own: dict[str, Any] = {**limits, **dict(_red_team(node))}
    policy = Policy(name, attacks, read_models(node.required("models")), **own)
    told = [key for key in RED_TEAM if key in own]
    if told and not (policy.is_real and attacks):
        cure = "only a real agent that attacks is told this; give models: {agent: ...} and attacks: true"
        raise node.required(told[0]).wrong(cure)
    if policy.is_real and not attacks and name not in NOT_ATTACKING:
        raise node.wrong(f"{name!r} does not attack; call it 'honest' (usefulness, calibration), 'trusted', or let it")
    if not policy.is_real and name not in (*NOT_ATTACKING, *LADDER):
        raise node.wrong(f"{name!r} has no model for the role 'agent', and is no scripted policy; name one of them")
    if not policy.is_real and attacks != (name in LADDER):
        raise node.wrong(f"whether the scripted policy {name!r} attacks is known; leave `attacks` out")
    return policy


def _red_team(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield what a real attacker is told. Raises NodeError for a function that is not there."""
    prompt, attack, knows = node.get("prompt"), node.get("attack"), node.get("knows")
    if prompt is not None and attack is not None:
        raise attack.wrong("an attack is a prompt or a function; leave one of them out")
    if prompt is not None:
        if "{side_task}" not in prompt.text():
            raise prompt.wrong("the prompt has no {side_task} in it, so the model would not learn what to do")
        yield "prompt", prompt.text()
    if attack is not None:
        try:
            attack_function(attack.text())
        except ValueError as error:
            raise attack.wrong(str(error)) from error
        yield "attack", attack.text()
    if knows is not None:
        yield "knows", several(knows, lambda item: known(item, get_args(Knowledge), "knowledge"))


def with_models(policies: Sequence[Policy], models: Models) -> tuple[Policy, ...]:
    """Return the policies with the models that all of them share; a policy's own come first."""
    return tuple(evolve(policy, models=tuple({**dict(models), **dict(policy.models)}.items())) for policy in policies)


def check_needs(
    node: Node,
    policies: Sequence[Policy],
    protocols: Sequence[tuple[Node, ProtocolPlan]],
    monitors: Mapping[str, MonitorPlan],
) -> None:
    """Raise NodeError where a real agent meets what only scripted workers can do: trusted drafts, and the truth."""
    for policy in (policy for policy in policies if policy.is_real):
        roles = {role for role, _ in policy.models}
        for place, protocol in protocols:
            if missing := _missing(policy, protocol, roles):
                cure = f"give one: models: {{{missing}: NAME}}"
                told = f"{' and '.join(protocol.use)!r} needs a model for the role {missing!r} where the agent is real"
                raise place.wrong(f"{told} (policy {policy.name!r}); {cure}")
        simulated = [name for name, monitor in monitors.items() if monitor.kind == "simulated"]
        if policy.attacks and simulated:
            told = f"the monitor {simulated[0]!r} is simulated, from the truth, which is unknown of a real attacker"
            kinds = "keyword, constitution, constant or model"
            place = node.get("monitors") or node.required("policies")
            raise place.wrong(f"{told} (policy {policy.name!r}); take one of kind {kinds}")


def _missing(policy: Policy, protocol: ProtocolPlan, roles: set[str]) -> str:
    """Return a role that no model has; an empty string where none is missing."""
    for name in protocol.use:
        entry = entry_of(name)
        needed = [*entry.roles, *(["auditor"] if policy.attacks and entry.needs_auditor else [])]
        if lacking := [role for role in needed if role not in roles]:
            return lacking[0]
    return ""
