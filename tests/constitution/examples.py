"""Every example of the tables, with the check that it has to pass: beside the rows, in `rows.tsv`, in the rules.

In `rows.tsv` and `options.tsv` stands before a tab what a command has to be: an effect that it has, `-EFFECT` for one
that it has not, `gated` or `allowed`; in `zones.tsv` the rule that speaks, and what it says; in `commands.tsv` this, or
a level. `⟨-a|-b⟩` in a command stands for several commands, one with each; `⏎` is a newline.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import attrs

from constitution import Action, Effect, Level, deeds_of, judge_command
from constitution.tables import rows as tables
from constitution.tables import table_names
from constitution.tables.rows import Program, Variable, Wrapper, all_variables

__all__ = [
    "OF_PATHS",
    "Example",
    "effects_of",
    "labelled_rows",
    "of_options",
    "of_rows",
    "of_zones",
    "written_down",
]


OF_PATHS = ("read_outside_workspace", "name_path_outside_workspace")


@attrs.frozen
class Example:
    """A command, and what has to be true of it."""

    command: str
    said: str  # an effect, `-EFFECT`, `gated`, `allowed`, or the name of a rule

    def holds(self) -> bool:
        """Tell whether it is judged as it has to be."""
        if self.said.lstrip("-").isupper():
            named = Effect[self.said.lstrip("-")]
            return (named in effects_of(self.command)) is not self.said.startswith("-")
        verdict = judge_command(self.command, "/ws", home="/home/me")
        if self.said in ("gated", "allowed"):  # that something beyond the workspace is named is not in question
            passes = verdict.level is Level.allow or (verdict.reasons == () and verdict.rule in OF_PATHS)
            return passes is (self.said == "allowed")
        return self.said in (str(verdict.level), f"{verdict.rule} {verdict.level}")


def effects_of(command: str) -> frozenset[Effect]:
    """What a command would do."""
    action = Action("bash", "write", "/ws", home="/home/me", command=command)
    return frozenset(deed.effect for deed in deeds_of(action))


@cache
def written_down() -> tuple[Example, ...]:
    """The examples of `rows.tsv`."""
    return tuple(example for line in _lines("rows.tsv") for example in line)


@cache
def of_options() -> tuple[tuple[Example, ...], ...]:
    """The examples of `options.tsv`, those of a line together."""
    return tuple(_lines("options.tsv"))


@cache
def of_zones() -> tuple[tuple[Example, ...], ...]:
    """The examples of `zones.tsv`, those of a line together."""
    return tuple(_lines("zones.tsv"))


def labelled_rows(name: str) -> list[tuple[str, str]]:
    """The labels and commands of a table, which may stand for several."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    found = [line.split("\t", 1) for line in lines if line and not line.startswith("#")]
    return [(said, command.replace("⏎", "\n")) for said, command in found]


def _lines(name: str) -> Iterator[tuple[Example, ...]]:
    for said, command in labelled_rows(name):
        yield tuple(Example(one, said) for one in _each(command))


def _each(command: str) -> Iterator[str]:
    """Every command that a text with alternatives stands for."""
    alternatives = re.search("⟨(.*?)⟩", command)
    if alternatives is None:
        yield command
        return
    for one in alternatives[1].split("|"):
        yield from _each(command[: alternatives.start()] + one + command[alternatives.end() :])


def all_programs() -> tuple[Program, ...]:
    """Every row of a program, in the order of the names."""
    return tuple(dict.fromkeys(row for name in sorted(table_names("program")) for row in tables._rows(name)))


def all_wrappers() -> tuple[Wrapper, ...]:
    """Every row of a wrapper."""
    return tuple(dict.fromkeys(row for name in sorted(table_names("wrapper")) for row in tables._wrappers(name)[:1]))


@cache
def of_rows() -> tuple[Example, ...]:
    """The examples that stand beside the rows."""
    every = [does for program in all_programs() for does in program.does]
    found = [Example(command, does.effect.name) for does in every for command in does.match]
    found += [Example(command, f"-{does.effect.name}") for does in every for command in does.not_match]
    rows: tuple[Program | Wrapper | Variable, ...] = (*all_programs(), *all_wrappers(), *all_variables())
    found += [Example(command, "gated") for row in rows for command in row.match]
    found += [Example(command, "allowed") for row in rows for command in row.not_match]
    return tuple(dict.fromkeys(found))
