"""What it means that a variable is set: which programs, files and scripts run for it."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.spoken import names_production
from constitution.variables import FUNCTIONS, Holds, Variable, is_prompt, variable_of
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["assigned", "given"]

SUBSTITUTION = re.compile(r"\$\(|`")
SUBSCRIPT = re.compile(r"\[[^]]*(?:\$\(|`)")
"""A value that runs a command where it is taken for a number: the shell looks into the subscript of an array."""

LOADS = re.compile(
    r"(?:--(?:require|import|loader|experimental-loader)[= ]+|-(?:javaagent|agentpath|Xbootclasspath(?:/[ap])?):"
    r"|(?:^|\s)-[rMI]\s*)((?:/|~|\.\./)[^\s=,]+)"
)
"""`--require /x.js`, `-javaagent:/x.jar`, `-M/x`, `-r/x.rb`: options that name code to load from elsewhere."""


def given(examination: "Examination", words: list[str], walk: "Walk") -> None:
    """`env NAME=VALUE`: variables of the command behind it."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and not name.startswith("-"):
            examination.assigned(name, (value,), walk)


def assigned(examination: "Examination", name: str, values: tuple[str, ...], walk: "Walk") -> None:
    """Take an assignment to a variable; some make other programs run what they hold."""
    row = variable_of(name)
    for value in values:
        if names_production(name, value):
            examination.discoveries.production = True
        if row is not None:
            _by_row(examination, row, name, value, walk)
        if script := _script_in(name, value):
            walk.nested(script)


def _by_row(examination: "Examination", row: Variable, name: str, value: str, walk: "Walk") -> None:
    if row.holds is Holds.COMMAND:
        walk.nested(value)
        if value.startswith("/"):
            _searched(examination, value.partition(" ")[0].rpartition("/")[0], walk)
    elif row.holds is Holds.LOADED:
        _loaded(examination, name, value, walk)
    elif row.holds is Holds.FOLDERS:
        _searched(examination, value, walk)
    elif row.holds is Holds.OPTIONS:
        for path in LOADS.findall(value):
            _loaded(examination, name, path, walk)
    if row.effect is not None and re.search(row.values, value):
        examination.found(row.effect, walk, program="the command", says=row.says)


def _loaded(examination: "Examination", name: str, value: str, walk: "Walk") -> None:
    if name == "ENV" and value.isidentifier():
        return  # a name such as `production`, which programs read; shells look for a file
    says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
    examination.found(Effect.PRELOAD, walk, program="the command", path=value, says=says)


def _searched(examination: "Examination", value: str, walk: "Walk") -> None:
    """Programs are looked for in these folders, those that come before the usual ones first."""
    for folder in value.split(":")[:16]:
        if folder.startswith(UNKNOWN):
            return
        if folder:
            examination.found(Effect.SEARCH_PATH, walk, program="the command", path=folder)


def _script_in(name: str, value: str) -> str:
    """Return the script that is run where a variable is used; none in most."""
    if name.startswith(FUNCTIONS):
        return f"f {value}"
    runs = SUBSTITUTION if is_prompt(name) else SUBSCRIPT
    return ': "{}"'.format(value.replace('"', '\\"')) if runs.search(value) else ""
