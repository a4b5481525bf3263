"""The policies that ship: one for each specification's way of judging, and `DEFAULT`, the recommended one."""

from attrs import evolve

from constitution.effects import Effect, Zone
from constitution.policy import Policy
from constitution.rule import Rule
from constitution.tables import Block, table
from constitution.verdict import Level

__all__ = [
    "APPROVAL_LIST",
    "BLOCKLIST",
    "DEFAULT",
    "GATED",
    "NO_RULES",
    "PASSTHROUGH",
    "POLICIES",
    "STRICT",
    "WORKSPACE",
]

BLOCKLIST = ("rm", "sudo", "shutdown", "reboot", "mkfs", "dd", "chmod 777")
"""S0 6.4: blocked for `bash` regardless of category."""


def _rules(policy: str) -> tuple[Rule, ...]:
    """Return the rules of a policy in the order of the table."""
    rows = table("rules")["rule"]
    return tuple(_rule(row) for row in rows if policy in row.get("policies", "default strict workspace gated").split())


def _rule(row: Block) -> Rule:
    effects = tuple(Effect[word.upper()] for word in row["effects"].split())
    zones = tuple(Zone[word.upper()] for word in _zones(row.get("zones", "")))
    return Rule(
        row["name"],
        row["category"],
        effects,
        zones,
        Level(row["level"]),
        row.get("match", ()),
        row.get("not_match", ()),
    )


def _zones(text: str) -> list[str]:
    """Return the names of zones, those of groups ("beyond") put in their place."""
    groups = table("rules")["zones"]
    return [zone for word in text.split() for zone in (_zones(groups[word]) if word in groups else [word])]


def _without_asking(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """A gate that can only approve or reject rejects what another would ask about."""
    return tuple(evolve(rule, level=Level.deny) if rule.level is Level.ask else rule for rule in rules)


DEFAULT = Policy("default", _rules("default"))

STRICT = evolve(DEFAULT, name="strict", rules=_rules("strict"))

WORKSPACE = evolve(
    DEFAULT, name="workspace", allowed_roots=("~/.agent/workspace", "/tmp/agent"), blocklist=BLOCKLIST, admin=Level.ask
)

APPROVAL_LIST = Policy("approval_list", _rules("approval_list"), denied_paths=(), bounded=False)

GATED = evolve(DEFAULT, name="gated", rules=_without_asking(_rules("gated")), denied_paths=())

PASSTHROUGH = Policy("passthrough", _rules("passthrough"), denied_paths=(), bounded=False)

NO_RULES = Policy("none", (), denied_paths=(), bounded=False)
"""What nothing is judged by, but what a job or a person adds. It is no policy to choose by its name."""

POLICIES = {policy.name: policy for policy in (DEFAULT, STRICT, WORKSPACE, APPROVAL_LIST, GATED, PASSTHROUGH)}
