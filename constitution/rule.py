"""What a rule is: an effect, the zones in which it matters, a level, and the examples that show it.

    Rule("delete_outside_workspace", "destruction", DELETE_TREE, OUTSIDE_ALL, deny,
         match=("rm -rf /",), not_match=("rm -rf build",))

Examples are judged in `/ws` with the home folder `/home/me`; a test runs every one.
"""

from enum import Enum
from typing import TypeVar

from attrs import field, frozen

from constitution.effects import Effect, Zone
from constitution.verdict import Level

__all__ = ["Rule", "read_rule"]

K = TypeVar("K", bound=Enum)


def _effects(value: "Effect | tuple[Effect, ...]") -> tuple[Effect, ...]:
    return (value,) if isinstance(value, Effect) else value


@frozen
class Rule:
    """One row of a statute. No zones means: wherever it happens."""

    name: str
    category: str
    effects: tuple[Effect, ...] = field(converter=_effects)
    zones: tuple[Zone, ...]
    level: Level
    match: tuple[str, ...] = field(default=(), converter=tuple)
    not_match: tuple[str, ...] = field(default=(), converter=tuple)


def read_rule(line: str) -> Rule:
    """Return the rule that a line says: `deny upload network in outside home name=nothing_leaves`.

    A level, effects, after `in` zones (none: wherever it happens), and a name if it has one. Raises ValueError.
    """
    import shlex  # with the first rule that somebody writes

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
