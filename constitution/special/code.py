"""Interpreters of other languages: code in an option, in a file, or in the input."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.interpreters import SED_SCRIPT, SED_STARTS, Reading, read_awk
from constitution.lexicon import read_code
from constitution.programs.options import read_line
from constitution.python_code import read_python
from constitution.shell.flow import NOTHING, Flow
from constitution.special.shells import INPUTS, run_file, run_input
from constitution.zones import FETCHED, UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["INLINE", "awk", "editor", "interpreter", "python", "sed", "terminal"]

PYTHON_TAKES = frozenset(["-W", "-X", "--check-hash-based-pycs"])


def python(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`python -c CODE`, `python FILE`, `python -m MODULE`, `python -`."""
    line = read_line(argv[1:], PYTHON_TAKES | {"-c", "-m"}, to_operand=True)

    def read(code: str) -> None:
        touched(examination, name, read_python(code), code, walk)

    for code in line.value_of("-c"):
        read(code)
    modules = line.value_of("-m")
    if modules and modules[0] in ("pip", "pipx", "twine", "pytest", "mypy", "black"):
        examination.examine([modules[0], *line.operands], stdin, walk)
    if line.value_of("-c", "-m") or line.flags & {"-V", "--version", "-h", "--help"}:
        return
    if line.operands and line.operands[0] not in INPUTS:
        run_file(examination, name, line.operands[0], walk, read)
    else:
        run_input(examination, name, stdin, walk, read)


INLINE = {
    "perl": "-e -E",
    "ruby": "-e",
    "node": "-e --eval -p --print",
    "nodejs": "-e --eval -p --print",
    "php": "-r",
    "lua": "-e",
    "expect": "-c",
    "Rscript": "-e",
    "R": "-e",
    "osascript": "-e",
    "deno": "eval",
    "bun": "-e --eval",
    "luajit": "-e",
    "julia": "-e -E",
    "tclsh": "-c",
    "raku": "-e",
    "elixir": "-e",
    "groovy": "-e",
    "scala": "-e",
    "swipl": "-g",
    "gawk": "",
    "awk": "",
    "mawk": "",
}


JAVASCRIPT = ("node", "nodejs", "deno", "bun")


def interpreter(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """Perl, Ruby, Node and others with code in an option, in a file, or in their input."""
    options = frozenset(INLINE[name].split())
    line = read_line(argv[1:], options | {"-I", "-M", "-r"} - ({"-r"} if name == "ruby" else set()), to_operand=True)
    codes = line.value_of(*options)

    def read(code: str) -> None:
        touched(examination, name, read_code(code, backticks=name not in JAVASCRIPT), code, walk)

    for code in codes:
        read(code)
    if codes and "-i" in line.flags:
        for file in line.operands:
            examination.found(Effect.WRITE, walk, program=name, path=file)
    if codes or line.flags & {"-v", "--version", "--help", "-h", "-c", "--check", "--test"}:
        return
    if line.operands and line.operands[0] not in INPUTS:
        run_file(examination, name, line.operands[0], walk, read)
    else:
        run_input(examination, name, stdin, walk, read)


def awk(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """awk: the first operand is code; `-f` names a file with code."""
    line = read_line(
        argv[1:], frozenset(["-F", "-v", "-f", "--field-separator", "--assign", "--file"]), to_operand=True
    )
    operands = list(line.operands)
    if not line.value_of("-f", "--file") and operands:
        code = operands.pop(0)
        touched(examination, name, read_awk(code), code, walk)
    for operand in operands:
        examination.found(Effect.READ, walk, program=name, path=operand)
        if line.flags & {"-i"}:
            examination.found(Effect.WRITE, walk, program=name, path=operand)


def sed(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """sed: its commands `e` and `s///e` start programs."""
    line = read_line(argv[1:], frozenset(("-e", "--expression", "-f", "--file", "-l")))
    for script in (*line.value_of("-e", "--expression"), *line.operands[:1]):
        if SED_STARTS.search(script):
            examination.found(Effect.RISKY_CODE, walk, program=name, says="run a sed script that starts programs")
        for text in SED_SCRIPT.findall(script):
            walk.nested(text)


def editor(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """vim, ed and debuggers: commands in options, or in the input, may start programs with `!` or `shell`."""
    line = read_line(argv[1:], frozenset(("-c", "-ex", "--cmd", "-S", "--eval-command")), long_style=True)
    for text in (*line.value_of("-c", "-ex", "--cmd", "--eval-command"), *(w[1:] for w in argv[1:] if w[:1] == "+")):
        if match := re.search(r"(?:!|\bshell\b|\bsystem\()(.*)", text, re.S):
            walk.nested(match[1].strip(" )'\""))
    for text in stdin.text.splitlines():
        if match := re.match(r"\s*(?::?!|shell\s)(.*)", text):
            walk.nested(match[1])


SCREEN_TAKES = frozenset(("-S", "-L", "-t", "-c", "-s", "-h", "-p", "-X", "-r", "-x"))


def terminal(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """tmux and screen: words with blanks are commands that run in a new window."""
    for word in argv[1:]:
        if " " in word and not word.startswith("#"):
            walk.nested(word)
    if name == "screen":
        command = read_line(argv[1:], SCREEN_TAKES, to_operand=True).operands
        if command and "-X" not in argv:
            examination.examine(list(command), NOTHING, walk)


DEEDS = {
    "fetched": (Effect.RUN_FETCHED_CODE, "run code that was downloaded or decoded"),
    "shell": (Effect.GIVE_SHELL, "give another machine a shell"),
    "network": (Effect.NETWORK, "reach another machine"),
    "leak": (Effect.LEAK, "send the environment to another machine"),
    "forks": (Effect.FORK_BOMB, "start itself again and again"),
}


def touched(examination: "Examination", name: str, reading: Reading, code: str, walk: "Walk") -> None:
    """Report what inline code does."""
    if UNKNOWN in code:
        effect = Effect.RUN_FETCHED_CODE if FETCHED in code else Effect.RUN_UNKNOWN_CODE
        examination.found(effect, walk, program=name)
    for script in reading.scripts:
        walk.nested(script)
    effects = {"delete_tree": Effect.DELETE_TREE, "delete": Effect.DELETE, "write": Effect.WRITE, "read": Effect.READ}
    for kind, path in reading.paths:
        examination.found(effects[kind], walk, program=name, path=path or UNKNOWN)
    for deed in reading.deeds:
        effect, says = DEEDS[deed]
        examination.found(effect, walk, program=name, says=says)
    for risk in reading.risks:
        examination.found(Effect.RISKY_CODE, walk, program=name, says=risk)
