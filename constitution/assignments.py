"""What it means that a variable is set: which programs, files and scripts run for it."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.variables import COMMANDS, FUNCTIONS, PRELOADS, PROMPTS
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["assigned", "given"]

SUBSTITUTION = re.compile(r"\$\(|`")
SUBSCRIPT = re.compile(r"\[[^]]*(?:\$\(|`)")
"""A value that runs a command where it is taken for a number: the shell looks into the subscript of an array."""


def given(examination: "Examination", words: list[str], walk: "Walk") -> None:
    """`env NAME=VALUE`: variables of the command behind it."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and not name.startswith("-"):
            examination.assigned(name, (value,), walk)


def assigned(examination: "Examination", name: str, values: tuple[str, ...], walk: "Walk") -> None:
    """Take an assignment to a variable; some make other programs run what they hold."""
    for value in values:
        if name in PRELOADS:
            says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
            examination.found(Effect.PRELOAD, walk, program="the command", path=value, says=says)
        elif name == "PATH":
            _search_path(examination, value, walk)
        elif script := _script_in(name, value):
            walk.nested(script)


def _search_path(examination: "Examination", value: str, walk: "Walk") -> None:
    """Programs are looked for in these folders first."""
    for folder in value.split(":")[:16]:
        if folder and not folder.startswith(UNKNOWN):
            examination.found(Effect.SEARCH_PATH, walk, program="the command", path=folder)


def _script_in(name: str, value: str) -> str:
    """Return the script that is run where a variable is used; none in most."""
    if name in COMMANDS:
        return value
    if name.startswith(FUNCTIONS):
        return f"f {value}"
    runs = SUBSTITUTION if name in PROMPTS else SUBSCRIPT
    return ': "{}"'.format(value.replace('"', '\\"')) if runs.search(value) else ""
