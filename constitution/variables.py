"""Which variables of a shell change what later commands do, whatever stands in these commands.

A judgement reads a command's words. `git status` is something else where `PATH` leads elsewhere, `ls ~` where `HOME`
does, any command where `BASH_ENV` or `PS4` holds text that a shell runs. What is written in the command at hand is
judged; what was set earlier is not seen. So nobody should carry these from one command to the next.
"""

from enum import Enum, auto
from functools import cache

from attrs import field, frozen

from constitution.effects import Effect
from constitution.tables import one_line, table

__all__ = ["FUNCTIONS", "Holds", "Variable", "all_variables", "changes_commands", "is_prompt", "variable_of"]


class Holds(Enum):
    """What a value is, besides text."""

    COMMAND = auto()
    LOADED = auto()  # a file that every program loads
    FOLDERS = auto()  # folders in which programs, or parts of them, are looked for
    OPTIONS = auto()  # options, some of which name files that are loaded
    TEXT = auto()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _holds(name: str) -> Holds:
    return Holds[name.upper()]


def _effect(value: str | None) -> Effect | None:
    return None if value is None else Effect[value.upper()]


@frozen
class Variable:
    """A row: names, what a value is, and the effect of setting one that fits the pattern."""

    names: tuple[str, ...] = field(converter=_names)
    holds: Holds = field(converter=_holds)
    effect: Effect | None = field(default=None, converter=_effect)
    values: str = field(default="", converter=one_line)  # a pattern
    says: str = ""
    match: tuple[str, ...] = field(default=(), converter=tuple)  # commands that are gated because of this row
    not_match: tuple[str, ...] = field(default=(), converter=tuple)  # commands that resemble them and are allowed


FUNCTIONS = "BASH_FUNC_"
"""Variables of the environment whose names begin so are functions to the next bash."""


@cache
def all_variables() -> tuple[Variable, ...]:
    """Return every row."""
    return tuple(Variable(**row) for row in table("variables")["variable"])


@cache
def _by_name() -> dict[str, Variable]:
    return {name: row for row in all_variables() for name in row.names}


def variable_of(name: str) -> Variable | None:
    """Return the row of a variable, or None."""
    return _by_name().get(name)


@cache
def _listed(key: str) -> tuple[str, ...]:
    return tuple(table("variables")["changes_commands"][key].split())


@cache
def _changing() -> frozenset[str]:
    named = (name for row in all_variables() if row.holds is not Holds.TEXT for name in row.names)
    return frozenset([*named, *_listed("prompts"), *_listed("reading"), *_listed("code")])


def is_prompt(name: str) -> bool:
    """Tell whether a variable holds text whose substitutions a shell runs before it shows it (`PS4` when it traces)."""
    return name in _listed("prompts")


def changes_commands(name: str) -> bool:
    """Tell whether a variable changes what later commands do. The list knows shells and everyday programs, not all."""
    return name in _changing() or name.startswith(_listed("beginnings"))
