"""A tool as it is declared: a program, its arguments, and what the model may fill in (S0 6.3)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from agent.tools.declared.templates import Template
from agent.tools.errors import ToolError
from agent.tools.structures import Record
from agent.vocabulary.calls import Category

__all__ = ["Declaration", "OptionalArguments", "expand_environment"]

_VARIABLE = re.compile(r"\$\{(\w+)\}")


@frozen
class OptionalArguments:
    """Arguments that are there when the parameter `name` is given, and is not false."""

    name: str
    templates: tuple[Template, ...]


@frozen
class Declaration:
    """A declared tool. `listed` are the parameters whose values are listed by the one who declared it.

    `source` says where it stands: file and line.
    """

    name: str
    description: str
    category: Category
    program: str
    arguments: tuple[Template, ...]
    optional: tuple[OptionalArguments, ...]
    parameters: Record
    listed: frozenset[str]
    env: tuple[tuple[str, str], ...]
    source: str

    def argv(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the program and its arguments for valid `arguments`: one position for each template.

        Raises ToolError for a value that would become an option.
        """
        values = {name: _as_text(value) for name, value in arguments.items()}
        argv = [self.program]
        for template in self._templates(arguments):
            if "--" not in argv:
                template.check(values, self.listed)
            argv.append(template.fill_in(values))
        return tuple(argv)

    def _templates(self, arguments: Mapping[str, Any]) -> Iterator[Template]:
        yield from self.arguments
        for group in self.optional:
            if arguments.get(group.name) not in (None, False):
                yield from group.templates


def expand_environment(texts: tuple[tuple[str, str], ...], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a tool, each `${NAME}` replaced once by ours. Raises ToolError for one not set."""
    return {name: _VARIABLE.sub(lambda found: _our(found[1], ours), text) for name, text in texts}


def _our(name: str, ours: Mapping[str, str]) -> str:
    if name not in ours:
        raise ToolError(f"the environment variable {name} is not set; the tool needs it")
    return ours[name]


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)
