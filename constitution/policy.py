"""Policies: their type, and those that ship: one for each specification, and `DEFAULT`.

Rules of a policy combine by maximum: another rule can only raise a verdict. Only grants lower one.
"""

from functools import lru_cache

from attrs import evolve, frozen

from constitution.effects import Effect, Zone
from constitution.rules import CommandRule, Rule
from constitution.tables import without_examples
from constitution.verdict import Level
from constitution.zones import is_denied, is_within, placed

DENIED_PATHS = ("~/.ssh", "~/.gnupg", "/etc/shadow", "/etc/passwd")
"""S0 6.4: credentials; denied wins over allowed."""


@frozen(cache_hash=True, repr=False)
class Policy:
    """A way to judge. `allowed_roots` and `denied_paths` may be relative to the workspace, and begin with `~`.

    `bounded`: paths of file tools must lie in the workspace or an allowed root; otherwise only the rules decide, as for
    commands. `blocklist`: denied programs of shell commands ("rm"), or programs with an argument ("chmod 777"), in any
    category (S0 6.4). `write` and `admin`: the level of actions of that category (S0 6.1), unless their tool is one of
    `listed`. `attended`: a user can be asked. If not, ask becomes deny; for a listed tool without shell commands it
    becomes allow. `known_only`: ask about programs that are not known to be harmless. `asks_about_opaque`: ask about
    tools with unknown effects. `trusts_isolation`: ask about isolated commands, in a workspace that is kept before
    each, only for rights and for what they show. `commands`: the user's rules about commands; only grants among them
    lower a verdict, from ask to allow.
    """

    name: str
    rules: tuple[Rule, ...]
    allowed_roots: tuple[str, ...] = ()
    denied_paths: tuple[str, ...] = DENIED_PATHS
    blocklist: tuple[str, ...] = ()
    bounded: bool = True
    write: Level = Level.allow
    admin: Level = Level.allow
    commands: tuple[CommandRule, ...] = ()
    listed: tuple[str, ...] = ()
    attended: bool = True
    known_only: bool = False
    asks_about_opaque: bool = True
    trusts_isolation: bool = False

    def __repr__(self) -> str:
        return self.name

    def rules_for(self, effect: Effect, zone: Zone) -> tuple[Rule, ...]:
        """Return the rules for an effect in a zone, the strictest first."""
        return _rules_for(self, effect, zone)

    def denied(self, workspace: str, home: str) -> tuple[str, ...]:
        """Return the denied paths, absolute."""
        return tuple(placed(path, workspace=workspace, home=home) for path in self.denied_paths)

    def allows_path(self, path: str, workspace: str, home: str) -> bool:
        """Return whether a resolved path is within the bounds: not denied, and in the workspace or an allowed root."""
        if is_denied(path, self.denied(workspace, home)):
            return False
        return not self.bounded or any(is_within(path, root) for root in (workspace, *self.roots(workspace, home)))

    def roots(self, workspace: str, home: str) -> tuple[str, ...]:
        """Return the allowed roots, absolute."""
        return tuple(placed(path, workspace=workspace, home=home) for path in self.allowed_roots)

    def with_commands(self, *commands: CommandRule) -> "Policy":
        """Return this policy with more of the user's rules about commands."""
        return evolve(self, commands=self.commands + commands)

    def for_job(self, *listed: str) -> "Policy":
        """Return this policy for a job without a person: only the tools in `listed` may do more than read (S6.14)."""
        return evolve(
            self, name=f"{self.name} (job)", write=Level.deny, admin=Level.deny, listed=listed, attended=False
        )

    def with_rules(self, *rules: Rule) -> "Policy":
        """Return this policy with more rules; no verdict becomes weaker."""
        return evolve(self, rules=self.rules + rules)


@lru_cache(maxsize=4096)
def _rules_for(policy: Policy, effect: Effect, zone: Zone) -> tuple[Rule, ...]:
    fitting = [rule for rule in policy.rules if effect in rule.effects and (not rule.zones or zone in rule.zones)]
    return tuple(sorted(fitting, key=lambda rule: -rule.level.rank))


BLOCKLIST = ("rm", "sudo", "shutdown", "reboot", "mkfs", "dd", "chmod 777")
"""S0 6.4: blocked for `bash` regardless of category."""


def _rules(policy: str) -> tuple[Rule, ...]:
    rules = []
    for row in without_examples("rules")["rule"]:
        if policy in row.get("policies", "default strict workspace gated").split():
            effects = tuple(Effect[word.upper()] for word in row["effects"].split())
            zones = tuple(Zone[word.upper()] for word in _zones(row.get("zones", "")))
            rules.append(
                Rule(row["name"], row["category"], effects, zones, Level(row["level"]), row.get("undoable", False))
            )
    return tuple(rules)


def _zones(text: str) -> list[str]:
    groups = without_examples("rules")["zones"]
    return [zone for word in text.split() for zone in (_zones(groups[word]) if word in groups else [word])]


def _denying(rules: tuple[Rule, ...], names: set[str]) -> tuple[Rule, ...]:
    """Turn ask into deny in the rules with these names."""
    return tuple(evolve(rule, level=Level.deny) if rule.name in names else rule for rule in rules)


DEFAULT = Policy("default", _rules("default"), bounded=False, trusts_isolation=True)

STRICT = evolve(DEFAULT, name="strict", rules=_rules("strict"), known_only=True, trusts_isolation=False)

WORKSPACE = Policy(
    "workspace",
    _denying(_rules("workspace"), {row["name"] for row in without_examples("rules")["rule"] if row.get("bounds")}),
    allowed_roots=("~/.agent/workspace", "/tmp/agent"),
    blocklist=BLOCKLIST,
    admin=Level.ask,
)

APPROVAL_LIST = Policy("approval_list", _rules("approval_list"), denied_paths=(), bounded=False)

_DENYING = tuple(evolve(rule, level=Level.deny, undoable=False) for rule in _rules("gated"))

GATED = Policy("gated", _DENYING, denied_paths=())

PASSTHROUGH = Policy("passthrough", _rules("passthrough"), denied_paths=(), bounded=False, asks_about_opaque=False)

NO_RULES = Policy("none", (), denied_paths=(), bounded=False, asks_about_opaque=False)
"""The policy without rules, to which a job or the user adds some. It cannot be selected by name."""

POLICIES = {policy.name: policy for policy in (DEFAULT, STRICT, WORKSPACE, APPROVAL_LIST, GATED, PASSTHROUGH)}
