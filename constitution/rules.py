"""Rules: those of a policy, about effects in zones, and those of the user, about commands.

A rule of a policy is an effect, the zones in which it matters, a level, and the examples that show it:

    Rule("delete_outside_workspace", "destruction", DELETE_TREE, OUTSIDE_ALL, deny)

Its examples (`Rule.match`) are in the table. A test judges every one in `/ws`, with the home folder `/home/me`.

A rule of the user is an argv prefix with allow, ask or deny. One that asks or denies applies to a command at any depth:
inside wrappers and nested scripts. A *grant* (allow) is narrower. It applies to a command as written in the call
itself, started from the one file it is bound to; it lowers an ask, never a deny, a doubt about what would run, or the
effects of redirections and variables.
"""

from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import TypeVar

from attrs import field, frozen

from constitution.action import Action
from constitution.effects import Effect, Zone
from constitution.tables import table, without_examples
from constitution.verdict import Level

K = TypeVar("K", bound=Enum)


def _effects(value: "Effect | tuple[Effect, ...]") -> tuple[Effect, ...]:
    return (value,) if isinstance(value, Effect) else value


def _tuple(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(words)  # a bare `tuple` saves 4 ms of attrs at import


@frozen
class Rule:
    """One rule of a policy. No zones: it applies in all of them. `undoable`: not where a snapshot is taken first."""

    name: str
    category: str
    effects: tuple[Effect, ...] = field(converter=_effects)
    zones: tuple[Zone, ...]
    level: Level
    undoable: bool = False

    @property
    def match(self) -> tuple[str, ...]:
        """Commands that this rule judges; none for a rule of the user."""
        return self._examples("match")

    @property
    def not_match(self) -> tuple[str, ...]:
        """Commands that resemble them and are allowed."""
        return self._examples("not_match")

    def _examples(self, key: str) -> tuple[str, ...]:
        rows = (row for row in table("rules")["rule"] if row["name"] == self.name)
        effects = {effect.name.lower() for effect in self.effects}
        return tuple(example for row in rows if set(row["effects"].split()) == effects for example in row.get(key, ()))


def read_rule(line: str) -> Rule:
    """Parse a rule of a policy: `deny upload network in outside home name=nothing_leaves`.

    A level, effects, zones after `in` (none: all zones), and an optional name. Raises ValueError.
    """
    import shlex  # with the first rule of a user

    level, *words = shlex.split(line) or [""]
    names = [word[5:] for word in words if word.startswith("name=")]
    words = [word for word in words if not word.startswith("name=")]
    effects, zones = (words[: words.index("in")], words[words.index("in") + 1 :]) if "in" in words else (words, [])
    if level not in {known.value for known in Level} or not effects or (zones == [] and "in" in words):
        raise ValueError(f"{line!r}: a rule reads `allow|ask|deny EFFECT ... [in ZONE ...] [name=NAME]`")
    if level == Level.allow:
        raise ValueError(f"{line!r}: rules of a policy can only raise a verdict; a grant is a rule about a command")
    name = names[0] if names else f"{level}_{'_'.join(effects)}"
    return Rule(name, "user", tuple(_named(Effect, word) for word in effects), _zones(zones), Level(level))


def _zones(words: list[str]) -> tuple[Zone, ...]:
    return tuple(_named(Zone, word) for word in words)


def _named(kind: type[K], word: str) -> K:
    from difflib import get_close_matches

    known = {member.name.lower(): member for member in kind}
    if word not in known:
        close = get_close_matches(word, known, n=1)
        nearest = f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(known)}"
        raise ValueError(f"there is no {kind.__name__.lower()} {word!r}{nearest}")
    return known[word]


@cache
def effects_called(group: str) -> frozenset[Effect]:
    """Return a group of effects by its name in the table: "doubts" say that it is not known what would run."""
    return frozenset(Effect[word.upper()] for word in without_examples("rules")["effects"][group].split())


def _some_words(rule: object, attribute: object, argv: tuple[str, ...]) -> None:
    if not argv or not all(isinstance(word, str) for word in argv) or not argv[0]:
        raise ValueError("a rule about a command needs the words that the command begins with")


def _bound_when_it_allows(rule: "CommandRule", attribute: object, executable: str | None) -> None:
    if rule.level is Level.allow and not (executable or "").startswith("/"):
        words = " ".join(rule.argv)
        form = f"allow file=/usr/bin/{rule.argv[0]} -- {words}"
        raise ValueError(f"a rule that allows {words!r} must name the file that it starts, absolute: {form}")


def _in_order(words: list[str], argv: tuple[str, ...]) -> bool:
    """Return whether words follow each other in a command, with only options and their values between."""
    before = ""
    for word in argv:
        if not words:
            break
        if word == words[0]:
            words = words[1:]
        elif not word.startswith("-") and not before.startswith("-"):
            return False
        before = word
    return not words


@frozen
class CommandRule:
    """One argv prefix and its level. `executable`: the resolved file that a grant is bound to, absolute.

    `content`: the content of the files that the command runs, to which a grant is bound, too (`Action.content`).

    `exact`: the words are the whole command. `rule`: the rule of the policy whose asks a grant lowers; None: of all
    rules. `match` and `not_match`: commands that the rule does and does not concern; `flaws_of` checks them. Raises
    ValueError for no words, and for a grant without a file.
    """

    level: Level
    argv: tuple[str, ...] = field(converter=_tuple, validator=_some_words)
    executable: str | None = field(default=None, validator=_bound_when_it_allows)
    reason: str = ""
    rule: str | None = None
    exact: bool = False
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    content: str = ""

    def begins(self, argv: tuple[str, ...]) -> bool:
        """Return whether a command begins with the words of this rule, or equals them if the rule is exact."""
        return argv == self.argv if self.exact else argv[: len(self.argv)] == self.argv

    def concerns(self, argv: tuple[str, ...]) -> bool:
        """Return whether a command is the program of this rule, by any path, with its words and any options between.

        After an option one more word is skipped, which may be its value: `git -C . push` is `git push`.
        """
        if self.exact or argv[:1] == ():
            return self.begins(argv)
        if self.argv[0] not in (argv[0], argv[0].rpartition("/")[2]):
            return False
        options = {word for word in self.argv[1:] if word.startswith("-")}
        return options <= set(argv) and _in_order([word for word in self.argv[1:] if word not in options], argv[1:])

    def grants(self, argv: tuple[str, ...], action: Action) -> bool:
        """Return whether this is a grant for a command that starts the bound file, with unchanged content."""
        return self._names(argv, action) and self.content in ("", action.content)

    def is_outdated(self, argv: tuple[str, ...], action: Action) -> bool:
        """Return whether this would be a grant for a command, but the files that it runs have changed since."""
        return self._names(argv, action) and not self.grants(argv, action)

    def _names(self, argv: tuple[str, ...], action: Action) -> bool:
        is_its_file = action.executables.get(argv[0]) == self.executable
        return self.level is Level.allow and self.begins(argv) and is_its_file

    def __str__(self) -> str:
        """Return the rule in one line, which `read_command_rule` reads; its examples are not in it."""
        import shlex  # with the first rule of a user

        exact = "yes" if self.exact else ""
        bound = {"file": self.executable, "content": self.content}
        named = {**bound, "rule": self.rule, "exact": exact, "reason": self.reason}
        facts = (f"{name}={value}" for name, value in named.items() if value)
        return shlex.join([self.level.value, *facts, "--", *self.argv])


def read_command_rule(line: str) -> CommandRule:
    """Parse a rule about a command: `deny 'reason=not on Fridays' -- make deploy`.

    Before the words are the level and the conditions: `file=`, `content=`, `rule=`, `exact=yes`, `reason=`. Raises
    ValueError.
    """
    import shlex

    level, *words = shlex.split(line) or [""]
    if level not in {known.value for known in Level} or "--" not in words:
        raise ValueError(f"{line!r}: a rule about a command reads `allow|ask|deny [file=PATH] [rule=NAME] -- WORDS`")
    end = words.index("--")
    facts = dict(word.partition("=")[::2] for word in words[:end])
    if unknown := facts.keys() - {"file", "content", "rule", "reason", "exact"}:
        known = "known are file=, content=, rule=, exact=, reason="
        raise ValueError(f"{line!r}: there is no {sorted(unknown)[0]!r} here; {known}")
    if facts.get("exact", "yes") != "yes":
        raise ValueError(f"{line!r}: exact= can only be yes")
    return CommandRule(
        Level(level),
        tuple(words[end + 1 :]),
        facts.get("file"),
        facts.get("reason", ""),
        facts.get("rule"),
        exact="exact" in facts,
        content=facts.get("content", ""),
    )
