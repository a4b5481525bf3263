"""A policy as a YAML file: one that ships, with some of its rows changed.

base: default                       # which policy of the constitution
levels: {lose_work: deny}           # rules by name: allow, ask or deny
rules: [deny upload name=stays]     # rows more, over effects and zones: they can only raise a verdict
allowed_roots: [~/shared]           # the others are those of the base
denied_paths: [~/.ssh]
blocklist: [shutdown]
bounded: true
admin: ask
"""

from pathlib import Path
from typing import Any

from attrs import evolve

from agent.vocabulary.errors import AgentError
from agent.vocabulary.spelling import meant
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml
from constitution import POLICIES, Level, Policy, Rule, read_rule

__all__ = ["PolicyError", "load_policy"]

KEYS = ("base", "levels", "rules", "allowed_roots", "denied_paths", "blocklist", "bounded", "admin")
LEVELS = tuple(level.value for level in Level)
LISTS = ("allowed_roots", "denied_paths", "blocklist")


class PolicyError(AgentError):
    """There is no such policy, or its file is not what it should be: the message says where, and what would do."""


def load_policy(name: str) -> Policy:
    """Return the policy that `name` names: one that ships, or a YAML file. Raises PolicyError."""
    if name in POLICIES:
        return POLICIES[name]
    path = Path(name).expanduser()
    if not path.is_file():
        raise PolicyError(f"there is no policy {name!r}; {meant(name, (*POLICIES, 'a YAML file'))}")
    try:
        return _read(read_yaml(path), path)
    except NodeError as error:
        raise PolicyError(str(error)) from error


def _read(file: Node, path: Path) -> Policy:
    file.mapping(*KEYS)
    base = file.required("base").one_of(tuple(POLICIES))
    changes: dict[str, Any] = {"name": path.stem}
    for key in LISTS:
        if (node := file.get(key)) is not None:
            changes[key] = tuple(item.text() for item in node.items())
    if (bounded := file.get("bounded")) is not None:
        changes["bounded"] = bounded.boolean()
    if (admin := file.get("admin")) is not None:
        changes["admin"] = Level(admin.one_of(LEVELS))
    policy = _with_levels(evolve(POLICIES[base], **changes), file.get("levels"))
    rows = file.get("rules")
    return policy if rows is None else policy.with_rules(*map(_row, rows.items()))


def _row(node: Node) -> Rule:
    try:
        return read_rule(node.text())
    except ValueError as error:
        raise error if isinstance(error, NodeError) else node.wrong(str(error)) from error


def _with_levels(policy: Policy, levels: Node | None) -> Policy:
    if levels is None:
        return policy
    names = tuple(dict.fromkeys(rule.name for rule in policy.rules))
    levels.mapping(*names)
    chosen = {name: Level(node.one_of(LEVELS)) for name in names if (node := levels.get(name)) is not None}
    return evolve(policy, rules=tuple(evolve(rule, level=chosen.get(rule.name, rule.level)) for rule in policy.rules))
