"""What it means that a variable is set: which programs, files and scripts run for it.

A judgement reads a command's words. `git status` is something else where `PATH` leads elsewhere, `ls ~` where `HOME`
does, any command where `BASH_ENV` or `PS4` holds text that a shell runs. What is written in the command at hand is
judged; what was set earlier is not seen. So variables for which `changes_commands` is true must not be carried from one
command to the next.
"""

import re
import shlex

from constitution.analysis.carried_files import carried_by_variable
from constitution.analysis.external_effects import names_production
from constitution.analysis.steps import Found, Production, Script, Set, Started, Steps
from constitution.effects import Effect
from constitution.tables.rows import Holds, Variable, is_prompt, variable_of
from constitution.zones import UNKNOWN

__all__ = ["assigned", "given"]

FUNCTIONS = "BASH_FUNC_"
"""Variables of the environment whose names begin so are functions to the next bash."""

SUBSTITUTION = re.compile(r"\$\(|`")
SUBSCRIPT = re.compile(r"\[[^]]*(?:\$\(|`)")
"""A value that runs a command where it is taken for a number: the shell looks into the subscript of an array."""

LOADS = re.compile(
    r"(?:--(?:require|import|loader|experimental-loader)[= ]+|-(?:javaagent|agentpath|Xbootclasspath(?:/[ap])?):"
    r"|(?:^|\s)-[rMI]\s*)((?:/|~|\.\./)[^\s=,]+)"
)
"""`--require /x.js`, `-javaagent:/x.jar`, `-M/x`, `-r/x.rb`: options that name code to load from elsewhere."""


def given(words: list[str]) -> Steps:
    """`env NAME=VALUE`: variables of the command behind it."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and not name.startswith("-"):
            yield Set(name, (value,), exported=True)


def assigned(name: str, values: tuple[str, ...]) -> Steps:
    """Take an assignment to a variable; some make other programs run what they hold."""
    row = variable_of(name)
    for value in values:
        if names_production(name, value):
            yield Production()
        if row is not None:
            yield from _by_row(row, name, value)
        yield from carried_by_variable(name, value)
        if script := _script_in(name, value):
            yield Script(script)


def _by_row(row: Variable, name: str, value: str) -> Steps:
    if row.holds is Holds.COMMAND:
        yield Script(value)
        if value.startswith("/"):
            yield from _searched(value.partition(" ")[0].rpartition("/")[0])
    elif row.holds is Holds.ARGUMENTS:
        yield Started([row.of, *_split(value)])
        if SUBSTITUTION.search(value):
            yield Found(
                Effect.CONFIGURE_TOOL, program="the command", says=f"give {row.of} options that run a command ({name})"
            )
    elif row.holds is Holds.LOADED:
        yield from _loaded(name, value)
    elif row.holds is Holds.FOLDERS:
        yield from _searched(value)
    elif row.holds is Holds.OPTIONS:
        for path in LOADS.findall(value):
            yield from _loaded(name, path)
    if row.effect is not None and re.search(row.values, value):
        yield Found(row.effect, program="the command", says=row.says)


def _split(options: str) -> list[str]:
    """Return the options in a text; without a dash, one is letters."""
    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    return [word if word.startswith(("-", "+")) or index else f"-{word}" for index, word in enumerate(words)]


def _loaded(name: str, value: str) -> Steps:
    if name == "ENV" and value.isidentifier():
        return  # a name such as `production`, which programs read; shells look for a file
    says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
    yield Found(Effect.PRELOAD, program="the command", path=value, says=says)


def _searched(value: str) -> Steps:
    """Programs are looked for in these folders, those that come before the usual ones first."""
    for folder in value.split(":")[:16]:
        if folder.startswith(UNKNOWN):
            return
        if folder:
            yield Found(Effect.SEARCH_PATH, program="the command", path=folder)


def _script_in(name: str, value: str) -> str:
    """Return the script that is run where a variable is used; none in most."""
    if name.startswith(FUNCTIONS):
        return f"f {value}"
    runs = SUBSTITUTION if is_prompt(name) else SUBSCRIPT
    return ': "{}"'.format(value.replace('"', '\\"')) if runs.search(value) else ""
