"""Real models in a plan: how they are written, and what an experiment needs where its agent is one.

models: {trusted: gpt-5-mini}                          # for all policies
policies:
  - {name: honest, models: {agent: gpt-5}}             # usefulness, and calibration
  - {name: real, models: {agent: {model: gpt-5, key_from: RED_KEY, parameters: {temperature: 1}}}, attacks: true}
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from attrs import evolve

from agent.lab.experiments.episodes.red_team import attack_function
from agent.lab.experiments.plan_files.words import above_zero, at_least_one, known, several
from agent.lab.experiments.plans.endpoints import MODEL_ROLES, ModelPlan
from agent.lab.experiments.plans.own_protocols import entry_of
from agent.lab.experiments.plans.plan import Knowledge, MonitorPlan, Policy, ProtocolPlan
from agent.lab.settings.ladder import LADDER
from agent.models.model import Price, read_prices
from agent.models.openai_model import Api
from agent.vocabulary.yaml_nodes import Node

__all__ = ["check_needs", "read_model", "read_models", "read_policy", "with_models"]

KEYS = ("model", "api", "url", "url_from", "key_from", "parameters", "price", "timeout", "system")
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
    node.mapping(*KEYS)
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
            told = f"the monitor {simulated[0]!r} is simulated, from the truth, which nobody knows of a real attacker"
            kinds = "keyword, constitution, constant or model"
            place = node.get("monitors") or node.required("policies")
            raise place.wrong(f"{told} (policy {policy.name!r}); take one of kind {kinds}")


def _missing(policy: Policy, protocol: ProtocolPlan, roles: set[str]) -> str:
    """Return a role that nobody has; nothing where none is missing."""
    for name in protocol.use:
        entry = entry_of(name)
        needed = [*entry.roles, *(["auditor"] if policy.attacks and entry.needs_auditor else [])]
        if lacking := [role for role in needed if role not in roles]:
            return lacking[0]
    return ""
