"""Interpreters of other languages: code in an option, in a file, or in the input."""

import re
from typing import TYPE_CHECKING

from constitution.any_code import read_any
from constitution.effects import Effect
from constitution.handed import handed_in_code
from constitution.interpreters import (
    SED_INSERTS,
    SED_SCRIPT,
    SED_STARTS,
    SED_WRITES,
    Reading,
    deeds_in,
    read_awk,
    read_tcl,
)
from constitution.lexicon import read_code
from constitution.python_code import read_python
from constitution.shell.flow import Flow, Origin
from constitution.special.serving import own_server, serve
from constitution.special.shells import INPUTS, run_file, run_input
from constitution.tables.programs import code_options, is_bare_shell, read_line
from constitution.zones import FETCHED, UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["any_language", "awk", "calculator", "interpreter", "python", "sed", "touched"]

PYTHON_TAKES = frozenset(["-W", "-X", "--check-hash-based-pycs"])


def python(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`python -c CODE`, `python FILE`, `python -m MODULE`, `python -`."""
    line = read_line(argv[1:], PYTHON_TAKES | {"-c", "-m"}, to_operand=True)

    def read(code: str) -> None:
        touched(examination, name, read_python(code), code, walk)

    for code in line.value_of("-c"):
        read(code)
    modules = line.value_of("-m")
    if modules and modules[0] in ("timeit", "cProfile", "pdb"):
        for code in (word for word in line.operands if not word.startswith("-") and re.search(r"\W", word)):
            read(code)
    if modules and modules[0] in ("http.server", "SimpleHTTPServer"):
        serve(examination, name, ["http.server", *line.operands], stdin, walk)
    if modules and modules[0] in ("pip", "pipx", "twine", "pytest", "mypy", "black"):
        examination.examine([modules[0], *line.operands], stdin, walk)
    if line.value_of("-c", "-m") or line.flags & {"-V", "--version", "-h", "--help"}:
        return
    if line.operands and line.operands[0] not in INPUTS:
        run_file(examination, name, line.operands[0], walk, read)
    else:
        run_input(examination, name, stdin, walk, read)


TCL = ("expect", "tclsh", "wish")
JAVASCRIPT = ("node", "nodejs", "deno", "bun", "tsx", "ts-node")
RARE = ("julia", "R", "Rscript", "elixir", "groovy", "scala", "ghc", "swipl", "raku")


def interpreter(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """Perl, Ruby, Node and others with code in an option, in a file, or in their input."""
    options = code_options(name)
    line = read_line(argv[1:], options | {"-I", "-M", "-r"} - ({"-r"} if name == "ruby" else set()), to_operand=True)
    codes = line.value_of(*options)
    own_server(examination, name, argv, walk)
    if "eval" in options and line.operands[:1] == ("eval",):
        codes = line.operands[1:2]

    def read(code: str) -> None:
        reading = read_tcl(code) if name in TCL else read_code(code, backticks=name not in JAVASCRIPT)
        touched(examination, name, reading, code, walk)
        if name in RARE:
            touched(examination, name, read_any(code), code, walk)

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


def any_language(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """Interpreters of languages that nobody here knows, with code in an option or in their input."""
    options = code_options(name, "any_code")
    line = read_line(argv[1:], options, long_style=True)
    codes = [*line.value_of(*options), *([stdin.text] if stdin.text else [])]
    codes += [word for word in argv[1:] if "write18" in word]
    for code in codes:
        touched(examination, name, read_any(code), code, walk)


def calculator(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`dc -e '!COMMAND'`, and the same in its input."""
    for text in (*read_line(argv[1:], frozenset(("-e", "--expression"))).value_of("-e", "--expression"), stdin.text):
        for script in re.findall(r"(?m)^\s*!([^<>=].*)$", text):
            walk.nested(script)


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
    """sed: with `-i` it writes the files behind its script; its commands `e` and `s///e` start programs."""
    line = read_line(argv[1:], frozenset(("-e", "--expression", "-f", "--file", "-l")))
    written = line.operands[0 if line.flags & {"-e", "--expression", "-f", "--file"} else 1 :]
    for file in written if line.flags & {"-i", "--in-place", "-I"} else ():
        examination.found(Effect.WRITE, walk, program=name, path=file)
        for text in (
            text for script in (*line.value_of("-e"), *line.operands[:1]) for text in SED_INSERTS.findall(script)
        ):
            examination.wrote(file, Flow(Origin.TEXT, re.sub(r"\\(.)", r"\1", text)), walk)
    for script in (*line.value_of("-e", "--expression"), *line.operands[:1]):
        if match := SED_STARTS.search(script):
            examination.found(Effect.RISKY_CODE, walk, program=name, says="run a sed script that starts programs")
            if match[2]:
                walk.nested(match[2].replace("\\" + match[1], match[1]))
        for text in SED_SCRIPT.findall(script):
            walk.nested(text)
        for file in SED_WRITES.findall(script):
            examination.found(Effect.WRITE, walk, program=name, path=file)


DEEDS = {
    "fetched": (Effect.RUN_FETCHED_CODE, "run code that was downloaded or decoded"),
    "shell": (Effect.GIVE_SHELL, "give another machine a shell"),
    "network": (Effect.NETWORK, "reach another machine"),
    "leak": (Effect.LEAK, "send the environment to another machine"),
    "grows": (Effect.FILL, "fill the memory without end"),
    "kills": (Effect.KILL_ALL, "end every process"),
    "passwords": (Effect.TAKE_KEYS, "show a secret in clear"),
    "keys": (Effect.TAKE_KEYS, "ask the cloud for the keys of this machine"),
    "database": (Effect.DATABASE_LOSS, "delete from a database"),
    "cloud": (Effect.CLOUD_LOSS, "delete in the cloud"),
    "publish": (Effect.PUBLISH, "hand files to others"),
    "power": (Effect.POWER, "stop or restart the machine"),
    "forks": (Effect.FORK_BOMB, "start itself again and again"),
}


def touched(examination: "Examination", name: str, reading: Reading, code: str, walk: "Walk") -> None:
    """Report what inline code does."""
    if UNKNOWN in code:
        effect = Effect.RUN_FETCHED_CODE if FETCHED in code else Effect.RUN_UNKNOWN_CODE
        examination.found(effect, walk, program=name)
    for script in reading.scripts:
        if is_bare_shell(script):
            examination.found(
                Effect.ESCAPE_SHELL, walk, program=name, says="start a shell in which anything can be typed"
            )
        walk.nested(script)
    effects = {"delete_tree": Effect.DELETE_TREE, "delete": Effect.DELETE, "write": Effect.WRITE, "read": Effect.READ}
    for kind, path in reading.paths:
        examination.found(effects[kind], walk, program=name, path=path or UNKNOWN)
    for deed in (*reading.deeds, *deeds_in(code)):
        if deed == "sends":
            examination.sent(walk.evidence)
            continue
        effect, says = DEEDS[deed]
        examination.found(effect, walk, program=name, says=says)
    handed_in_code(examination, name, code, walk)
    for risk in reading.risks:
        examination.found(Effect.RISKY_CODE, walk, program=name, says=risk)
