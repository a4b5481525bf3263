"""What a row of the program tables says: which words of a command line have which effect.

    Program("tee", does=[Does(WRITE, "operands")])
    Program("git push", does=[Does(SHARED_HISTORY_LOSS, given="-f --force --mirror", says="overwrite what others see")])

`to` chooses the paths: `operands`, `first`, `last`, `but_last`, `rest` (all but the first), `address` (the first that
is no method, as in `POST x.com`), `-o` or `--output` (the
value of an option, several with blanks), `@ -d` (a file named behind `@` in such a value),
`of=` (a word that starts so), or "" for an effect without a path.
"""

import re
from collections.abc import Sequence
from functools import cache

from attrs import field, frozen

from constitution.effects import Effect
from constitution.programs.options import Line, has_any

__all__ = ["Does", "Program", "paths_of"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile on first use: there are many rows, and a command meets few."""
    return re.compile(text)


@frozen
class Does:
    """One effect of a program, and when it has it: with one of `given`, without `unless`, an operand like `words`."""

    effect: Effect
    to: str = ""
    given: frozenset[str] = field(default="", converter=_words)
    unless: frozenset[str] = field(default="", converter=_words)
    besides: frozenset[str] = field(default="", converter=_words)  # and one of these options
    words: str = ""  # a pattern
    also: str = ""  # a pattern for another operand
    first: str = ""  # a pattern for the first operand
    values: str = ""  # a pattern: one of the given options has such a value
    says: str = ""
    bare: bool = False  # only without operands
    texts: str = ""  # a pattern for an operand, or for the value of any option
    match: tuple[str, ...] = ()  # commands that have this effect
    not_match: tuple[str, ...] = ()  # commands that resemble them and do not

    def applies(self, line: Line) -> bool:
        """Return whether a command line has this effect."""
        if self.given and not has_any(line.flags, self.given):
            return False
        if self.besides and not has_any(line.flags, self.besides):
            return False
        if line.flags & self.unless or (self.bare and line.operands):
            return False
        if self.values and not any(map(_pattern(self.values).search, line.value_of(*self.given))):
            return False
        if self.texts and not _anywhere(_pattern(self.texts), line):
            return False
        if self.words and not any(map(_pattern(self.words).search, line.operands)):
            return False
        if self.first and not (line.operands and _pattern(self.first).search(line.operands[0])):
            return False
        return not self.also or any(map(_pattern(self.also).search, line.operands))


def _anywhere(pattern: re.Pattern[str], line: Line) -> bool:
    return any(map(pattern.search, line.operands)) or any(pattern.search(value) for _, value in line.values)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _all(does: Sequence[Does]) -> tuple[Does, ...]:
    return tuple(does)


@frozen
class Program:
    """A row: names (with subcommands, as in "git push"), options that take a value, effects."""

    names: tuple[str, ...] = field(converter=_names)
    does: tuple[Does, ...] = field(default=(), converter=_all)
    takes: frozenset[str] = field(default="", converter=_words)
    long_style: bool = False
    unless: frozenset[str] = field(default="", converter=_words)  # with one of these it only looks
    runs: tuple[str, ...] = field(default="", converter=_listed)  # options whose value is a shell script
    match: tuple[str, ...] = ()  # commands that are gated because of this row
    not_match: tuple[str, ...] = ()  # commands that resemble them and are allowed


def paths_of(to: str, line: Line) -> tuple[str, ...]:
    """Return the words that a choice of paths names in a command line."""
    operands = line.operands
    if to in CHOICES:
        first, last = CHOICES[to]
        return operands[first:last]
    if to == "address":
        return tuple(word for word in operands if not METHOD.fullmatch(word))[:1]
    if to == "last":
        return operands[-1:] if len(operands) > 1 else ()
    if to.endswith("="):
        return tuple(word[len(to) :] for word in operands if word.startswith(to))
    if to.startswith("@"):
        return tuple(word.rpartition("@")[2] for word in line.value_of(*to.split()) if "@" in word)
    return line.value_of(*to.split())


METHOD = re.compile("[A-Z]+")
CHOICES: dict[str, tuple[int | None, int | None]] = {
    "operands": (None, None),
    "first": (None, 1),
    "but_last": (None, -1),
    "rest": (1, None),
}
