"""Builtins that change what is known: the folder, variables, aliases, arguments, what runs later."""

from itertools import pairwise
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.special.output import output_of
from constitution.tables import is_a
from constitution.zones import UNKNOWN, resolve

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["alias", "change_folder", "kill", "print_to_variable", "read_variables", "set_arguments", "trap"]


def change_folder(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`cd DIR`, `pushd DIR`: from here on relative paths start elsewhere."""
    operands = [word for word in argv[1:] if word not in ("-P", "-L", "-e", "-@", "--")]
    target = operands[0] if operands else "~"
    at_home = target == "~" or target.startswith("~/")
    if name == "popd" or target == "-" or target.startswith("+") or (at_home and UNKNOWN in walk.scope.home):
        walk.scope.cwd = (UNKNOWN,)
        return
    folders = (resolve(target, cwd=cwd, home=walk.scope.home) for cwd in walk.scope.cwd)
    walk.scope.cwd = tuple(dict.fromkeys(examination.resolved.get(folder, folder) for folder in folders))
    for folder in walk.scope.cwd:
        examination.words[folder] = None


def read_variables(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`read`, `mapfile`, `getopts`: variables get what comes in."""
    value = stdin.names if stdin.origin is Origin.NAMES else (UNKNOWN,)
    if stdin.origin is Origin.TEXT and len(stdin.text.splitlines()) <= 8:
        value = tuple(stdin.text.splitlines()) or (UNKNOWN,)
    names = [word for word in argv[1:] if word.isidentifier()] or ["REPLY", "MAPFILE"]
    for variable in names:
        walk.set(variable, value if len(names) == 1 else (UNKNOWN,))


def print_to_variable(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`printf -v NAME` sets a variable."""
    if "-v" in argv[1:-1]:
        position = argv.index("-v")
        printed = output_of("printf", ["printf", *argv[position + 2 :]], stdin)
        known = printed.origin is Origin.TEXT
        walk.set(argv[position + 1], (printed.text if known else UNKNOWN,))


def alias(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`alias NAME=TEXT`: the text is judged at once, and again where the name is used."""
    for word in argv[1:]:
        key, equals, text = word.partition("=")
        if equals and examination.discoveries.placing and is_a(key, "trusted"):
            examination.found(Effect.DISARM, walk, program=name, says=f"put something else behind {key}, for good")
        if equals and key not in walk.scope.aliases:
            walk.nested(text)
            walk.scope.aliases[key] = text


def trap(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`trap TEXT SIGNAL`: the text runs later."""
    words = [word for word in argv[1:] if word != "--"]
    if len(words) > 1 and words[0] not in ("-", "", "-p", "-l"):
        walk.nested(words[0])


def set_arguments(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`set -- A B` sets the positional arguments; `set +o history` forgets what is typed from here on."""
    if any(pair == ("+o", "history") for pair in pairwise(argv)):
        examination.found(Effect.COVER_TRACKS, walk, program=name, says="keep no record of what is done")
    if "--" in argv:
        walk.scope.positional = tuple(argv[argv.index("--") + 1 :])


def kill(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`kill -9 12 -1`: behind the first word -1 is no signal but every process."""
    if "-1" in argv[2:]:
        examination.found(Effect.KILL_ALL, walk, program=name, says="end every process")
