"""Rules: what is said to an effect, by thresholds on one of the numbers of its place; and policies, which are rules.

An effect of a command has a kind and a place. A rule of a policy says from which value of a number of the place it asks
and denies, so a more sensitive place is never judged milder. Rules of a policy combine by maximum: another rule can
only raise a verdict. `rules.toml` holds the kinds of effects, their rules and those of the policies.

Where a sandbox confines a call, the text of its command raises no question but about what the sandbox lets through.
"""

import shlex
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache, lru_cache

from attrs import evolve, frozen

from constitution.command_rules import CommandRule
from constitution.places import Place, is_denied, is_within, placed, places
from constitution.tables import table
from constitution.verdict import Evidence, Level

NEVER = 9
NOWHERE = Place("nowhere")
NO_EVIDENCE = Evidence("")

DENIED_PATHS = ("~/.ssh", "~/.gnupg", "/etc/shadow", "/etc/passwd")
"""S0 6.4: credentials; denied wins over allowed."""
BLOCKLIST = ("rm", "sudo", "shutdown", "reboot", "mkfs", "dd", "chmod 777")
"""S0 6.4: denied words in command position, whatever they would do."""


@frozen
class Effect:
    """One thing that a call would do: a kind of `rules.toml`, the path that it concerns, and its kind of place.

    `words`: the command of the call that does it, if it stands there as it runs and all its words are known; empty
    within nested scripts and wrappers, and for redirections and assignments. `folder`: where it would do it.
    """

    kind: str
    path: str = ""
    place: Place = NOWHERE
    program: str = ""
    words: tuple[str, ...] = ()
    evidence: Evidence = NO_EVIDENCE
    note: str = ""
    folder: str = ""


@cache
def group(name: str) -> frozenset[str]:
    """Return a group of kinds of effects: "doubts" say that it is not known what would run."""
    return frozenset(table("rules")["groups"][name].split())


@frozen
class Rule:
    """One rule of a policy: for effects of these kinds, at these places (none: everywhere), by a number of the place.

    It asks from `ask` and denies from `deny`. `confined`: what is left of it in a sandbox (see `rules.toml`). `says`:
    what the effect does, with `{}` for its path.
    """

    name: str
    category: str
    kinds: tuple[str, ...]
    number: str = ""
    ask: int = 1
    deny: int = NEVER
    confined: str = "right"
    says: str = ""
    places: tuple[str, ...] = ()

    def level(self, effect: Effect, *, confined: bool = False) -> Level:
        """Return what it says to an effect of one of its kinds."""
        if self.places and effect.place.name not in self.places:
            return Level.allow
        sensitivity = self._sensitivity(effect.place, confined=confined)
        if confined and not self.confined:
            return Level.allow
        if sensitivity >= self.deny:
            return Level.deny
        return Level.ask if sensitivity >= self.ask and (not confined or self._asks(sensitivity)) else Level.allow

    def _sensitivity(self, place: Place, *, confined: bool) -> int:
        name = "lets" if confined and self.number == "worth" and self.confined == "lets" else self.number
        number: int = getattr(place, name) if name else 1
        return number

    def _asks(self, sensitivity: int) -> bool:
        """Return whether a question about this is left in a sandbox."""
        return self.confined in ("right", "lets") or (self.confined == "private" and sensitivity > 1)


@cache
def effect_rules() -> dict[str, Rule]:
    """Return the rule of each kind of effect, by its name."""
    sections = {name: rows for name, rows in table("rules").items() if name not in ("policies", "groups", "old_names")}
    return {
        kind: Rule(kind, category, (kind,), *row) for category, rows in sections.items() for kind, row in rows.items()
    }


def _rules_of(policy: str) -> tuple[Rule, ...]:
    rows = table("rules")["policies"][policy].items()
    return tuple(Rule(name, policy, tuple(row[0].split()), *row[1:]) for name, row in rows)


@frozen(cache_hash=True, repr=False)
class Policy:
    """A way to judge. `allowed_roots` and `denied_paths` may be relative to the workspace, and begin with `~`.

    `bounded`: paths of file tools must lie in the workspace or an allowed root; otherwise only the rules decide, as for
    commands. `blocklist`: denied programs of shell commands ("rm"), or programs with an argument ("chmod 777"), in any
    category (S0 6.4). `write` and `admin`: the level of actions of that category (S0 6.1), unless their tool is one of
    `listed`. `attended`: a user can be asked. If not, ask becomes deny; for a listed tool without shell commands it
    becomes allow. `known_only`: ask about programs that are not known to be harmless. `asks_about_opaque`: ask about
    tools with unknown effects. `trusts_isolation`: ask about isolated commands, in a workspace that is kept before
    each, only for rights and for what the sandbox lets through. `commands`: the user's rules about commands; only
    grants among them lower a verdict, from ask to allow.
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

    def rules_for(self, kind: str) -> tuple[Rule, ...]:
        """Return the rules for a kind of effect."""
        return _by_kind(self.rules).get(kind, ())

    def denied(self, workspace: str, home: str) -> tuple[str, ...]:
        """Return the denied paths, absolute."""
        return tuple(placed(path, workspace=workspace, home=home) for path in self.denied_paths)

    def roots(self, workspace: str, home: str) -> tuple[str, ...]:
        """Return the allowed roots, absolute."""
        return tuple(placed(path, workspace=workspace, home=home) for path in self.allowed_roots)

    def allows_path(self, path: str, workspace: str, home: str) -> bool:
        """Return whether a resolved path is within the bounds: not denied, and in the workspace or an allowed root."""
        if is_denied(path, self.denied(workspace, home)):
            return False
        return not self.bounded or any(is_within(path, root) for root in (workspace, *self.roots(workspace, home)))

    def with_commands(self, *commands: CommandRule) -> "Policy":
        """Return this policy with more of the user's rules about commands."""
        return evolve(self, commands=self.commands + commands)

    def with_rules(self, *rules: Rule) -> "Policy":
        """Return this policy with more rules."""
        return evolve(self, rules=self.rules + rules)

    def for_job(self, *listed: str) -> "Policy":
        """Return this policy for a job without a person: only the tools in `listed` may do more than read (S6.14)."""
        name = f"{self.name} (job)"
        return evolve(self, name=name, write=Level.deny, admin=Level.deny, listed=listed, attended=False)


@lru_cache(maxsize=64)
def _by_kind(rules: tuple[Rule, ...]) -> dict[str, tuple[Rule, ...]]:
    found: dict[str, tuple[Rule, ...]] = {}
    for rule in rules:
        for kind in rule.kinds:
            found[kind] = (*found.get(kind, ()), rule)
    return found


def denying(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return rules that deny what they would ask about."""
    return tuple(evolve(rule, deny=min(rule.ask, rule.deny)) for rule in rules)


def _policies() -> tuple[Policy, ...]:
    of_effects = tuple(effect_rules().values())
    bounded = (*of_effects, *_rules_of("workspace"))
    roots = ("~/.agent/workspace", "/tmp/agent")
    return (
        Policy("default", of_effects, bounded=False, trusts_isolation=True),
        Policy("strict", of_effects, bounded=False, known_only=True),
        Policy("workspace", bounded, roots, blocklist=BLOCKLIST, admin=Level.ask),
        Policy("approval_list", _rules_of("approval_list"), denied_paths=(), bounded=False),
        Policy("gated", denying(bounded), denied_paths=()),
        Policy("passthrough", _rules_of("passthrough"), denied_paths=(), bounded=False, asks_about_opaque=False),
    )


POLICIES = {policy.name: policy for policy in _policies()}
"""The policies that ship, by name: one for each specification, and `default`."""
DEFAULT, GATED = POLICIES["default"], POLICIES["gated"]

NO_RULES = Policy("none", (), denied_paths=(), bounded=False, asks_about_opaque=False)
"""The policy without rules, to which a job or the user adds some. It cannot be selected by name."""


def denials() -> tuple[Rule, ...]:
    """Return the rules that deny something even where a sandbox confines the call."""
    return tuple(rule for rule in effect_rules().values() if rule.deny < NEVER and rule.confined)


def read_rule(line: str) -> Rule:
    """Parse a rule of a policy: `deny send network in outside home name=nothing_leaves`.

    A level, kinds of effects, places after `in` (none: everywhere), and an optional name. Raises ValueError.
    """
    level, *words = shlex.split(line) or [""]
    names = [word[5:] for word in words if word.startswith("name=")]
    words = [word for word in words if not word.startswith("name=")]
    kinds, where = (words[: words.index("in")], words[words.index("in") + 1 :]) if "in" in words else (words, [])
    if level not in {known.value for known in Level} or not kinds or (where == [] and "in" in words):
        raise ValueError(f"{line!r}: a rule reads `allow|ask|deny EFFECT ... [in PLACE ...] [name=NAME]`")
    if level == Level.allow:
        raise ValueError(f"{line!r}: rules of a policy can only raise a verdict; a grant is a rule about a command")
    name = names[0] if names else f"{level}_{'_'.join(kinds)}"
    deny = 1 if level == Level.deny else NEVER
    return Rule(name, "user", tuple(kinds_named(kinds)), "", 1, deny, places=tuple(places_named(where)))


def kinds_named(words: Iterable[str]) -> Iterator[str]:
    """Yield the kinds of effects with these names, or with old ones. Raises ValueError."""
    return (_named("effect", word.lower(), effect_rules(), old_names("effects")) for word in words)


def places_named(words: Iterable[str]) -> Iterator[str]:
    """Yield the kinds of places with these names, or with old ones. Raises ValueError."""
    return (_named("place", word.lower(), places(), old_names("places")) for word in words)


def old_names(what: str) -> dict[str, str]:
    """Return the present names of effects or places that had other ones."""
    return dict(pair.split("=") for pair in table("rules")["old_names"][what].split())


def _named(what: str, word: str, known: Iterable[str], old: dict[str, str]) -> str:
    names = [*known]
    if word in names:
        return word
    if word not in old:
        close = get_close_matches(word, names, n=1)
        nearest = f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names)}"
        raise ValueError(f"there is no {what} {word!r}{nearest}")
    return old[word]
