"""Deployments in a plan file; every mistake is told with file, line, column and the nearest word that is known.

deployments:
  - name: upfront
    rules: [{use: audit_first, episodes: 3}, shut_down_on_catch]
    episodes: 20
    attack_share: 0.2                     # or order: [honest, honest, always]
    instead: trusted                      # after a catch; nothing: those episodes are skipped
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

from agent.lab.deployments.plan import HONEYPOTS_FROM, Attacker, DeploymentPlan, RulePlan, Timing
from agent.lab.deployments.program import Instead
from agent.lab.deployments.rules import RULES, rule_named
from agent.lab.experiments.plan import Policy, ProtocolPlan
from agent.lab.experiments.yaml_values import at_least_one, known, several, share
from agent.vocabulary.yaml_nodes import Node

KEYS = (
    "name", "rules", "episodes", "attack_share", "order", "honest", "attack", "trusted", "instead", "attacker", "how",
    "protocols", "seeds",
)  # fmt: skip

OPTIONS: dict[str, Callable[[Node], Any]] = {
    "episodes": at_least_one,
    "audits": at_least_one,
    "threshold": share,
    "share": share,
    "monitor": Node.text,
}


def read_deployments(
    node: Node, policies: Sequence[Policy], protocols: Sequence[ProtocolPlan], monitors: Sequence[str]
) -> tuple[DeploymentPlan, ...]:
    """Return the deployments of a plan with these policies, protocols and monitors. Raises NodeError."""
    found = several(node, lambda item: _deployment(item.mapping(*KEYS), policies, protocols, monitors))
    names = [deployment.name for deployment in found]
    for number, item in enumerate(node.items()):
        if names[number] in names[:number]:
            raise item.wrong(f"there are two deployments {names[number]!r}; give each a name of its own")
    return found


def _deployment(
    node: Node, policies: Sequence[Policy], protocols: Sequence[ProtocolPlan], monitors: Sequence[str]
) -> DeploymentPlan:
    names = [*{"honest": 0, "trusted": 0, **{policy.name: 0 for policy in policies}}]
    attacks = [policy.name for policy in policies if policy.attacks]
    readers: dict[str, Callable[[Node], Any]] = {
        "name": Node.text,
        "rules": lambda given: several(given, lambda item: _rule(item, monitors)) if given.value else (),
        "episodes": at_least_one,
        "attack_share": share,
        "order": lambda given: several(given, lambda item: known(item, names, "policy")),
        "honest": lambda given: known(given, names, "policy"),
        "attack": lambda given: known(given, attacks, "policy that attacks"),
        "trusted": lambda given: known(given, names, "policy"),
        "instead": lambda given: known(given, get_args(Instead), "choice"),
        "attacker": lambda given: known(given, get_args(Attacker), "attacker"),
        "how": lambda given: known(given, get_args(Timing), "way"),
        "protocols": lambda given: several(
            given, lambda item: known(item, [each.name for each in protocols], "protocol")
        ),
        "seeds": at_least_one,
    }
    for key in ("name", "episodes"):
        node.required(key)
    given = {key: read(found) for key, read in readers.items() if (found := node.get(key)) is not None}
    _check_who_attacks(node, given, attacks)
    plan = _made(node, {"attack": attacks[0] if attacks else "", **given})
    _check_honeypots(node, plan, protocols)
    return plan


def _check_who_attacks(node: Node, given: dict[str, Any], attacks: Sequence[str]) -> None:
    order, chance = node.get("order"), node.get("attack_share")
    if order is not None and chance is not None:
        raise chance.wrong("who attacks is drawn by lot, or follows an order; leave one of them out")
    if chance is not None and given["attack_share"] and not attacks:
        raise chance.wrong("none of the policies of this plan attacks; add one, for example always")


def _made(node: Node, given: dict[str, Any]) -> DeploymentPlan:
    try:
        return DeploymentPlan(**given)
    except ValueError as error:
        raise node.required("how").wrong(f"{error}; write how: in_order") from error


def _check_honeypots(node: Node, plan: DeploymentPlan, protocols: Sequence[ProtocolPlan]) -> None:
    if not plan.looks_for_honeypots:
        return
    chosen = [each for each in protocols if each.name in (plan.protocols or [each.name])]
    without = [each.name for each in chosen if HONEYPOTS_FROM not in each.use]
    if without:
        told = f"distrust_monitor needs honeypots, which only {HONEYPOTS_FROM} plants, and {without[0]!r} is without"
        raise node.required("rules").wrong(f"{told}; name others under protocols")


def _rule(node: Node, monitors: Sequence[str]) -> RulePlan:
    if isinstance(node.value, str):
        return RulePlan(known(node, [rule.name for rule in RULES], "rule over episodes"))
    given = node.mapping("use", *OPTIONS).required("use")
    name = known(given, [rule.name for rule in RULES], "rule over episodes")
    takes = [key for key in rule_named(name).takes if key in OPTIONS]
    takes += ["share"] if "threshold" in takes else []
    fixed, costs = node.mapping("use", *takes).get("threshold"), node.get("share")
    if fixed is not None and costs is not None:
        raise costs.wrong("a threshold is given, or follows from a share of honest episodes; leave one of them out")
    return RulePlan(name, tuple(_options(node, takes, monitors)))


def _options(node: Node, takes: Sequence[str], monitors: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for key in takes:
        if (found := node.get(key)) is not None:
            yield key, known(found, monitors, "monitor") if key == "monitor" else OPTIONS[key](found)
