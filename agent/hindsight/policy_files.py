"""A policy as a YAML file: one that ships, with some of its rows changed.

base: default                       # which policy of the constitution
levels: {lose_work: deny}           # rules by name: allow, ask or deny
allowed_roots: [~/shared]           # the others are those of the base
denied_paths: [~/.ssh]
blocklist: [shutdown]
bounded: true
admin: ask
"""

from pathlib import Path
from typing import Any

from attrs import evolve

from agent.errors import AgentError
from agent.models.yaml_nodes import Node, NodeError, read_yaml
from agent.spelling import meant
from constitution import POLICIES, Level, Policy

__all__ = ["PolicyError", "load_policy"]

KEYS = ("base", "levels", "allowed_roots", "denied_paths", "blocklist", "bounded", "admin")
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
    return _with_levels(evolve(POLICIES[base], **changes), file.get("levels"))


def _with_levels(policy: Policy, levels: Node | None) -> Policy:
    if levels is None:
        return policy
    names = tuple(dict.fromkeys(rule.name for rule in policy.rules))
    levels.mapping(*names)
    chosen = {name: Level(node.one_of(LEVELS)) for name in names if (node := levels.get(name)) is not None}
    return evolve(policy, rules=tuple(evolve(rule, level=chosen.get(rule.name, rule.level)) for rule in policy.rules))
