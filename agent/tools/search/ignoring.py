"""What `.gitignore` files leave out, by git's rules: a later line wins, a deeper file wins, ! takes back.

A directory that is left out is not entered, so that nothing in it can be taken back. `.git` is always left out.
"""

import re
from collections.abc import Iterator

from attrs import frozen

from agent.tools.errors import ToolError
from agent.tools.search.globs import Glob, make_glob

__all__ = ["NOTHING_IGNORED", "Ignored", "Rule", "read_rules"]

_MOST_LINES = 10_000  # of one file that are looked at


@frozen
class Rule:
    """One line: what it means, whether it takes back, and whether it is about directories only."""

    glob: Glob
    takes_back: bool
    directories_only: bool


@frozen
class Ignored:
    """The rules that hold in a directory: (its path from where a file stands, that file's rules), outer first."""

    layers: tuple[tuple[str, tuple[Rule, ...]], ...] = ()

    def below(self, name: str, rules: tuple[Rule, ...] = ()) -> "Ignored":
        """Return what holds in the directory `name`, which has `rules` of its own."""
        moved = tuple((f"{path}{name}/", own) for path, own in self.layers)
        return Ignored((*moved, ("", rules)) if rules else moved)

    def leaves_out(self, name: str, *, is_directory: bool) -> bool:
        """Whether an entry of the directory is left out."""
        if name == ".git":
            return True
        for path, rules in reversed(self.layers):
            for rule in reversed(rules):
                if (is_directory or not rule.directories_only) and rule.glob.matches(path + name):
                    return not rule.takes_back
        return False


NOTHING_IGNORED = Ignored()


def read_rules(content: bytes) -> tuple[Rule, ...]:
    """Return the rules of a `.gitignore` file; lines that cannot be read say nothing."""
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")[:_MOST_LINES]
    return tuple(rule for line in lines for rule in _rule(line.removesuffix("\r")))


def _rule(line: str) -> Iterator[Rule]:
    text = _without_last_spaces(line)
    if not text or text.startswith("#"):
        return
    takes_back = text.startswith("!")
    pattern = text[takes_back:]
    directories_only = pattern.endswith("/")
    anchored = "/" in pattern.rstrip("/")
    try:
        glob = make_glob(_escaped(pattern.strip("/")), anywhere=not anchored)
    except ToolError:
        return
    yield Rule(glob, takes_back, directories_only)


def _without_last_spaces(line: str) -> str:
    """A backslash keeps the space after it."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return f"{text} " if backslashes % 2 and len(text) < len(line) else text


def _escaped(pattern: str) -> str:
    """Braces are characters for git. (A first \\# or \\! needs no care: a backslash makes any character itself.)"""
    return re.sub(r"(?<!\\)[{}]", r"\\\g<0>", pattern)
