"""Every example of the tables, with the check that it has to pass: beside the rows, in `rows.tsv`, in the rules.

In `rows.tsv` stands before a tab what a command has to be: an effect that it has, `-EFFECT` for one that it has not,
`gated` or `allowed`.
"""

from functools import cache
from pathlib import Path

import attrs

from constitution import DEFAULT, Action, Effect, Level, deeds_of, judge_command
from constitution.programs.program import Program
from constitution.programs.table import PROGRAMS
from constitution.variables import VARIABLES, Variable
from constitution.wrapper import Wrapper
from constitution.wrappers import TABLE
from tests.constitution.corpora import CORPORA, commands

__all__ = ["Example", "effects_of", "every_example", "of_rows", "of_the_statute", "written_down"]


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
        if self.said in ("gated", "allowed"):
            return (verdict.level is Level.allow) is (self.said == "allowed")
        return f"{verdict.rule} {verdict.level}" == self.said


def effects_of(command: str) -> frozenset[Effect]:
    """What a command would do."""
    action = Action("bash", "write", "/ws", home="/home/me", command=command)
    return frozenset(deed.effect for deed in deeds_of(action))


@cache
def written_down() -> tuple[Example, ...]:
    """The examples of `rows.tsv`."""
    lines = (Path(__file__).parent / "rows.tsv").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t", 1) for line in lines if line and not line.startswith("#"))
    return tuple(Example(command, said) for said, command in pairs)


@cache
def of_rows() -> tuple[Example, ...]:
    """The examples that stand beside the rows."""
    every = [does for program in PROGRAMS for does in program.does]
    found = [Example(command, does.effect.name) for does in every for command in does.match]
    found += [Example(command, f"-{does.effect.name}") for does in every for command in does.not_match]
    rows: tuple[Program | Wrapper | Variable, ...] = (*PROGRAMS, *TABLE, *VARIABLES)
    found += [Example(command, "gated") for row in rows for command in row.match]
    found += [Example(command, "allowed") for row in rows for command in row.not_match]
    return tuple(dict.fromkeys(found))


@cache
def of_the_statute() -> tuple[Example, ...]:
    """The examples of the rules."""
    found = [Example(command, f"{rule.name} {rule.level}") for rule in DEFAULT.rules for command in rule.match]
    found += [Example(command, "allowed") for rule in DEFAULT.rules for command in rule.near_miss]
    return tuple(found)


@cache
def every_example() -> tuple[Example, ...]:
    """All of them, and the labelled commands that are judged as labelled."""
    labels = (("deny", "gated"), ("ask", "gated"), ("allow", "allowed"))
    labelled = [
        Example(command, said) for corpus in CORPORA for label, said in labels for command in commands(corpus, label)
    ]
    return (*of_rows(), *written_down(), *of_the_statute(), *(example for example in labelled if example.holds()))
