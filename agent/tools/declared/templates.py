"""One argument of a program with its `{{variables}}`: filled in once, and never split (S6.8).

What is filled in is not looked at again, so that a value with braces or quotes in it is only a value.
"""

import re
from collections.abc import Mapping

from attrs import frozen

from agent.tools.errors import ToolError

__all__ = ["Template", "read_template"]

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@frozen
class Template:
    """Texts and variables in turn: ("--name=", "name", "") is `--name={{name}}`."""

    pieces: tuple[str, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return self.pieces[1::2]

    @property
    def begins_with_a_variable(self) -> bool:
        """Whether a value could make an option of the argument."""
        return len(self.pieces) > 1 and not self.pieces[0]

    def fill_in(self, values: Mapping[str, str]) -> str:
        """Return the argument."""
        return "".join(piece if index % 2 == 0 else values[piece] for index, piece in enumerate(self.pieces))

    def check(self, values: Mapping[str, str], listed: frozenset[str]) -> None:
        """Raise ToolError for a value that would become an option of the program, unless its parameter is `listed`."""
        filled = self.fill_in(values)
        if self.begins_with_a_variable and filled.startswith("-") and self.pieces[1] not in listed:
            raise ToolError(f"{self.pieces[1]}: {filled[:60]!r} would be taken as an option; it may not begin with -")


def read_template(text: str) -> Template:
    """Return a template. Raises ValueError for braces that belong to no variable."""
    pieces = tuple(_VARIABLE.split(text))
    if any("{{" in piece or "}}" in piece for piece in pieces[::2]):
        raise ValueError(f"{text!r} has braces that belong to no variable; a variable is written {{{{name}}}}")
    return Template(pieces)
