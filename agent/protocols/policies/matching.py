"""Which actions a policy means: calls of some tools, with such arguments, that have such effects in such places."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from agent.vocabulary.events import GateApproved
from agent.vocabulary.spelling import meant
from bp import freeze
from constitution import Effect, Zone, deeds_of

__all__ = ["CONDITIONS", "Actions", "Condition", "Match", "action", "as_chain", "as_match", "make_match"]


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, bound: Any) -> bool:
        try:
            return not isinstance(value, bool) and compare(float(value), float(bound))
        except (TypeError, ValueError):
            return False

    return holds


CONDITIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": lambda value, wanted: bool(value == wanted),
    "is_not": lambda value, unwanted: bool(value != unwanted),
    "above": _ordered(operator.gt),
    "below": _ordered(operator.lt),
    "at_least": _ordered(operator.ge),
    "at_most": _ordered(operator.le),
    "contains": lambda value, part: part in value if isinstance(value, str | tuple) else False,
    "matches": lambda value, pattern: isinstance(value, str) and re.search(pattern, value) is not None,
    "one_of": lambda value, choices: value in choices,
}
"""What can be said of an argument; an argument that is not there is None."""


@frozen
class Condition:
    """What an argument has to be: a word of `CONDITIONS`, and what it is compared with."""

    argument: str
    test: str
    value: Any = field(converter=freeze)

    def __call__(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether it holds."""
        return CONDITIONS[self.test](arguments.get(self.argument), self.value)

    def __str__(self) -> str:
        return f"{self.argument} {self.test.replace('_', ' ')} {self.value!r}"


@frozen
class Match:
    """Whether an approved action is meant; what is left empty does not matter."""

    tools: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    effects: tuple[Effect, ...] = ()
    zones: tuple[Zone, ...] = ()

    def __call__(self, approved: GateApproved) -> bool:
        """Tell so."""
        call = approved.call
        if self.tools and call.tool not in self.tools:
            return False
        if not all(condition(call.arguments) for condition in self.conditions):
            return False
        return not (self.effects or self.zones) or any(
            (not self.effects or deed.effect in self.effects) and (not self.zones or deed.zone in self.zones)
            for deed in deeds_of(approved.facts)
        )

    def __str__(self) -> str:
        parts = [" or ".join(self.tools), *(f"with {condition}" for condition in self.conditions)]
        parts += [" or ".join(effect.name.lower() for effect in self.effects)]
        parts += [f"in {' or '.join(zone.name.lower() for zone in self.zones)}" if self.zones else ""]
        return " ".join(filter(None, parts)) or "any action"


Actions = str | Match


def action(*tools: str, effect: str = "", zone: str = "", **arguments: Any) -> Match:
    """Return the actions of these tools, with these effects, in these zones, whose arguments are so.

    An argument is given as a value, or as one condition: `amount={"above": 100}`. Raises ValueError for a word that
    is no condition, effect or zone.
    """
    return make_match(tools, arguments, effect, zone)


def make_match(tools: tuple[str, ...], arguments: Mapping[str, Any], effect: str = "", zone: str = "") -> Match:
    """Return the same for arguments by any name. Raises ValueError."""
    conditions = tuple(_condition(name, value) for name, value in arguments.items())
    return Match(tools, conditions, _members(Effect, effect), _members(Zone, zone))


def _condition(name: str, value: Any) -> Condition:
    if not isinstance(value, Mapping):
        return Condition(name, "is", value)
    if len(value) != 1 or not set(value) <= set(CONDITIONS):
        raise ValueError(f"{name}: {dict(value)!r} is no condition; give one of {', '.join(CONDITIONS)}, and a value")
    [(test, wanted)] = value.items()
    if test == "matches":
        try:
            re.compile(wanted)
        except (re.error, TypeError) as error:
            raise ValueError(f"{name}: {wanted!r} is no regular expression: {error}") from error
    return Condition(name, test, wanted)


def _members(kind: Any, words: str) -> tuple[Any, ...]:
    known = {member.name.lower(): member for member in kind}
    for word in words.split():
        if word not in known:
            raise ValueError(f"there is no {kind.__name__.lower()} {word!r}; {meant(word, known)}")
    return tuple(known[word] for word in words.split())


def as_match(actions: Actions) -> Match:
    """Return the actions that are meant; a text is the name of a tool."""
    return Match((actions,)) if isinstance(actions, str) else actions


def as_chain(actions: "Actions | tuple[Actions, ...] | list[Actions]") -> tuple[Match, ...]:
    """Return one action or several, in their order."""
    many = actions if isinstance(actions, tuple | list) else (actions,)
    return tuple(map(as_match, many))
