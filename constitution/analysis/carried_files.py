"""Options and variables that name a file or folder outside the workspace with settings or code for a program.

`make -f /tmp/x`, `eslint --config=/tmp/x.js .`, `CARGO_HOME=/tmp/x cargo build`, `git -C /tmp/x status`: what runs is
not in the workspace. Lists of harmless options and variables are in `variables.toml`; every other one counts.
"""

import re
import shlex
from collections.abc import Iterator

from constitution.action import Disk
from constitution.analysis.clients import GIT_TAKES, REMOTE
from constitution.analysis.external_effects import names_production
from constitution.analysis.steps import Change, Command, Found, Script, Set, Started, Steps, What
from constitution.effects import UNKNOWN, Effect
from constitution.tables import expression, pattern
from constitution.tables.rows import Holds, Variable, is_prompt, options_in, read_line, variable_of
from constitution.zones import FETCHED, is_within

ELSEWHERE = pattern(r"^(?:file://|@|[\w.-]+=)?((?:/|~|\.\./).*|\.\.)$")
LIBRARY = pattern(r"\.(so|dll|dylib|jar|wasm|pyz|node)$")
INSIDE = frozenset(["run", "exec", "create", "debug"])
"""Words of container tools followed by a command, whose paths are inside the container."""

SETTINGS = "take settings or code from {path}"


def carried(command: Command) -> Steps:
    """Report each outside file or folder in an option of a program, unless the program reads only data."""
    words = " ".join(command.argv[1:])
    if "/" not in words and "~" not in words and ".." not in words and UNKNOWN not in words and "@" not in words:
        return
    if "takes_data" in command.kinds or "shell" in command.kinds:
        return
    if "container" in command.kinds and not INSIDE.isdisjoint(command.argv[1:4]):
        return
    if "read_only" in command.kinds and "script_runner" not in command.kinds:
        return
    for word in filter(LIBRARY.search, command.argv[1:]):
        if path := ELSEWHERE.match(word):
            yield Found(Effect.CARRIED, path=path[1], says=SETTINGS)
    carrying, harmless = (expression("variables", "options", key) for key in ("carrying", "harmless"))
    for option, value, attached in _options(command):
        names = (option, CAMEL.sub("-", option).lower() if option[:2] == "--" else option)
        carries = any(map(carrying.fullmatch, names))
        several = value.split(":") if carries and "://" not in value else value.split() or [value]
        path = next(filter(None, map(ELSEWHERE.match, several)), None)
        if path is not None and (carries or (attached and not harmless.search(option))):
            yield Found(Effect.CARRIED, path=path[1], says=SETTINGS)
        elif carries and value.startswith(UNKNOWN):
            yield Found(Effect.CARRIED, path=UNKNOWN, says=SETTINGS)


def _options(command: Command) -> Iterator[tuple[str, str, bool]]:
    """Yield the options of a program, each with its value from the same or the next word.

    Words after the script of an interpreter, or after `--`, are for another program. `@FILE` holds options.
    """
    words = command.argv[1:]
    for index, word in enumerate(words):
        if word == "--" or ("script_runner" in command.kinds and word[:1] not in "-@"):
            return
        if word[:1] == "@":
            yield "@", word[1:], True
        elif word[:1] == "-" and len(word) > 1:
            yield from _option(word, words[index + 1] if index + 1 < len(words) else "")


def _option(word: str, following: str) -> Iterator[tuple[str, str, bool]]:
    if match := ATTACHED.match(word):
        yield match[1], match[2], True
    elif word[1] != "-" and ELSEWHERE.match(word[2:]):
        yield word[:2], word[2:], True
    elif following:
        yield (f"-{word[-1]}" if CLUSTER.match(word) else word), following, False
        if word in SETS:
            yield "@", following.partition("=")[2], True


ATTACHED = pattern(r"(--?[\w.-]+)[:=](.*)", re.S)
CAMEL = pattern(r"(?<=[a-z])(?=[A-Z])")
CLUSTER = pattern(r"-[A-Zbijknqsvwx]+[fC]$")
"""Several options of one letter, as in `make -sf FILE`."""

SETS = ("-d", "-D", "-c", "-C", "-Z", "-P")
"""Options before `NAME=VALUE`."""


def carried_by_variable(name: str, value: str, *, exported: bool) -> Steps:
    """Report an outside file or folder in an exported variable, or one that a tool is known to read."""
    is_read = expression("variables", "tools", "names").match(name) or (exported and variable_of(name) is None)
    if expression("variables", "tools", "sources").search(name) and REMOTE.match(value):
        yield Found(Effect.FOREIGN_PACKAGES, program="the command", says=f"download from {value[:80]} ({name})")
    if not is_read or expression("variables", "tools", "harmless").search(name):
        return
    for part in dict.fromkeys([*value.split(":"), *value.split()]) if "://" not in value else ():
        if found := ELSEWHERE.match(part):
            yield Found(Effect.CARRIED, path=found[1], program="the command", says=f"{SETTINGS} ({name})")


OF_ANOTHER = "use the repository in {path}, whose settings can start programs"


def repository(command: Command) -> Steps:
    """Report a git repository other than that of the workspace: its settings can start programs."""
    line = command.read(GIT_TAKES, to_operand=True)
    if not line.operands or (line.operands[0] in ("clone", "init", "ls-remote", "help") and not line.value_of("-C")):
        return
    for folder in line.value_of("--work-tree"):
        yield Found(Effect.WRITE, path=folder)
    for folder in folders_of_git(command.argv[1:]):
        if any(not is_within(path, command.start) for path in command.absolute(folder)):
            yield Found(Effect.CARRIED, path=folder, says=OF_ANOTHER)
        if "--bare" in line.flags or any(_is_bare(path, command.disk) for path in command.absolute(folder)):
            yield Found(
                Effect.CONFIGURE_TOOL, says="use a repository within the workspace, whose settings can start programs"
            )


def folders_of_git(words: list[str]) -> tuple[str, ...]:
    """Return the folders in which `git` works with these words."""
    line = read_line(words, options_in(GIT_TAKES), to_operand=True)
    return line.value_of("-C", "--git-dir", "--work-tree") or (".",)


def _is_bare(path: str, disk: Disk) -> bool:
    if path in disk.repositories:
        return True
    name = path.rstrip("/").rpartition("/")[2]
    return name.endswith(".git") and name != ".git"


# Variables: those that the present command sets, not those set earlier

FUNCTIONS = "BASH_FUNC_"
"""Prefixes of environment variables that bash imports as functions."""

SUBSTITUTION = pattern(r"\$\(|`")
SUBSCRIPT = pattern(r"\[[^]]*(?:\$\(|`)")
"""A value that runs a command in an arithmetic context: the shell evaluates the subscript of an array."""

LOADS = pattern(
    r"(?:--(?:require|import|loader|experimental-loader)[= ]+|-(?:javaagent|agentpath|Xbootclasspath(?:/[ap])?):"
    r"|(?:^|\s)-[rMI]\s*)((?:/|~|\.\./)[^\s=,]+)"
)
"""`--require /x.js`, `-javaagent:/x.jar`, `-M/x`, `-r/x.rb`: options that name code to load from elsewhere."""


def given(words: list[str]) -> Steps:
    """`env NAME=VALUE`: variables of the wrapped command."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and not name.startswith("-"):
            yield Set(name, (value,), exported=True)


def assigned(name: str, values: tuple[str, ...], *, exported: bool = False) -> Steps:
    """Report the effects of an assignment: the values of some variables are run by other programs."""
    row = variable_of(name)
    for value in values:
        if names_production(name, value):
            yield Change(What.PRODUCTION)
        if row is not None:
            yield from _by_row(row, name, value)
        yield from carried_by_variable(name, value, exported=exported)
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
    """Return the options in a text; a word without a dash is a cluster of letters."""
    try:
        words = shlex.split(options)
    except ValueError:
        words = options.split()
    return [word if word.startswith(("-", "+")) or index else f"-{word}" for index, word in enumerate(words)]


def _loaded(name: str, value: str) -> Steps:
    if name == "ENV" and value.isidentifier():
        return  # programs read names such as `production`; shells look for a file
    yield Found(Effect.PRELOAD, program="the command", path=value, says=f"make programs load {{path}} ({name})")


def _searched(value: str) -> Steps:
    """Report folders put in front of the usual ones on the search path."""
    if value in (UNKNOWN, FETCHED):
        says = "look for programs in folders that are not known in advance"
        yield Found(Effect.CONFIGURE_TOOL, program="the command", says=says)
    for folder in value.split(":")[:16]:
        if folder.startswith(UNKNOWN):
            return
        if folder:
            yield Found(Effect.SEARCH_PATH, program="the command", path=folder)


def _script_in(name: str, value: str) -> str:
    """Return the script that runs when a variable is used; None for most variables."""
    if name.startswith(FUNCTIONS):
        return f"f {value}"
    runs = SUBSTITUTION if is_prompt(name) else SUBSCRIPT
    return ': "{}"'.format(value.replace('"', '\\"')) if runs.search(value) else ""
