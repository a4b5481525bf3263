"""What a row about a program that runs another one says: where, in its words, the other command begins.

Wrapper("timeout", takes="-k -s", skip=1)     # timeout -k 5 60 rm x       ->  rm x
Wrapper("su", takes="-s", script="-c")        # su -c 'rm x'               ->  the script: rm x
Wrapper("docker exec", takes="-e", skip=1)    # docker exec -e A=b c rm x  ->  rm x, in a container
Wrapper("bwrap", loose=True)                  # bwrap --bind / / rm x      ->  rm x, whatever the options
"""

import re
from collections.abc import Callable

from attrs import field, frozen

from constitution.effects import Effect
from constitution.programs.options import read_line

__all__ = ["SHELLS", "SSH_TAKES", "Wrapper", "commands_of_ssh", "is_bare_shell", "unwrap"]


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


@frozen
class Wrapper:
    """A row. Each of `match` reaches a command inside that is gated; each of `not_match` is allowed."""

    names: tuple[str, ...] = field(converter=_names)  # with subcommands, as in "docker exec"
    takes: frozenset[str] = field(default="", converter=_set)  # options with a value
    skip: int = 0  # operands before the command
    script: tuple[str, ...] = field(default="", converter=_words)  # options whose value is shell text
    joins: bool = False  # the operands are joined to shell text
    assignments: bool = False  # assignments may stand before the command
    looks: frozenset[str] = field(default="", converter=_set)  # options that only look
    only: frozenset[str] = field(default="", converter=_set)  # it runs a command only behind one of these words
    by_shell: bool = False  # the shell itself runs it, so that functions and aliases count
    instead: bool = False  # a script takes the place of a command
    dashes: bool = False  # the command begins behind `--`, where there is one
    loose: bool = False  # it has many options: the command begins at the first word that names a program
    scripts: bool = False  # every operand is shell text
    typed: bool = False  # a shell alone in it is one in which anything can be typed
    inside: bool = False  # the command runs in a throw-away container: paths are not those of this machine
    effect: Effect | None = None
    says: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


SHELLS = frozenset(
    [
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "mksh",
        "ash",
        "fish",
        "rbash",
        "csh",
        "tcsh",
        "oksh",
        "yash",
        "pwsh",
        "powershell",
    ]
)

BARE_SHELL = re.compile(rf"^\s*(?:exec\s+)?(?:/\S*/)?({'|'.join(sorted(SHELLS))})(?:\s+-[ipl]+)?\s*(?:#.*)?$")


def is_bare_shell(text: str) -> bool:
    """Tell whether a command is a shell alone, in which anything can be typed."""
    return BARE_SHELL.match(text) is not None


SSH_TAKES = "-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -S -W -w -B"
"""Options of ssh that take a value."""

STARTING = ("ProxyCommand=", "LocalCommand=", "KnownHostsCommand=", "LocalCommand ", "ProxyCommand ")
"""Options of ssh that run a command here."""


def commands_of_ssh(options: tuple[str, ...]) -> list[str]:
    """Return the commands that options of ssh run here."""
    return [value[len(start) :] for value in options for start in STARTING if value.startswith(start)]


def unwrap(wrapper: Wrapper, words: list[str], is_program: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the command inside (empty when there is none) and the scripts in option values."""
    line = read_line(words, wrapper.takes, to_operand=True)
    if line.flags & wrapper.looks:
        return [], []
    whole = read_line(words, wrapper.takes) if wrapper.instead or wrapper.loose else line
    scripts = list(whole.value_of(*wrapper.script))
    scripts += commands_of_ssh(line.value_of("-o"))
    inner = list(line.operands)
    if wrapper.dashes and "--" in words:
        inner = words[words.index("--") + 1 :]
        return inner, scripts
    if wrapper.scripts:
        return [], [*scripts, *(word for word in read_line(words, wrapper.takes).operands if is_program(word))]
    if wrapper.loose:
        starts = [index for index, word in enumerate(words) if index >= wrapper.skip and is_program(word)]
        return words[starts[0] :] if starts and not scripts else [], scripts
    if wrapper.only:
        if not inner or inner[0] not in wrapper.only:
            return [], scripts
        rest = read_line(inner[1:], wrapper.takes, to_operand=True)
        scripts += rest.value_of(*wrapper.script)
        inner = list(rest.operands)
    if wrapper.assignments:
        while inner and (inner[0] == "-" or "=" in inner[0]):  # whatever the name: `env` takes any
            inner.pop(0)
    return [] if wrapper.instead and scripts else inner[wrapper.skip :], scripts
