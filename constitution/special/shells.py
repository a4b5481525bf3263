"""Shells and what they run: `sh -c TEXT`, `sh FILE`, `source FILE`, a script that comes through a pipe."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.tables.programs import read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["INPUTS", "run_file", "run_input", "shell", "source"]

INPUTS = ("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")


def shell(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`sh -c TEXT`, `sh FILE`, and a shell that reads its script from its input."""
    line = read_line(
        [_plus(word) for word in argv[1:]], frozenset(("-o", "--rcfile", "--init-file", "-O")), to_operand=True
    )
    if name in ("pwsh", "powershell"):
        power_shell(examination, name, argv, walk)
        return
    if "-c" in line.flags:
        if line.operands:
            start_themselves(examination, name, line.operands[0], walk)
            scope = walk.scope.copy()
            scope.positional = line.operands[2:]
            walk.nested(line.operands[0], stdin, scope=scope)
        return
    if line.flags & {"--version", "--help", "-n"}:
        return
    for file in line.value_of("--rcfile", "--init-file"):
        examination.found(Effect.EXECUTE, walk, program=name, path=file)
    if line.operands and "-s" not in line.flags and line.operands[0] not in INPUTS:
        run_file(examination, name, line.operands[0], walk, walk.nested)
    else:
        run_input(examination, name, stdin, walk, walk.nested)


PS_FETCHES = re.compile(r"(?i)DownloadString|DownloadFile|Invoke-WebRequest|Invoke-RestMethod|\b(iwr|irm|curl|wget)\b")
PS_RUNS = re.compile(r"(?i)\b(iex|Invoke-Expression|Start-Process|Invoke-Command|ScriptBlock)\b")
PS_DELETES = re.compile(r"(?i)\b(?:Remove-Item|rm|del|rd|rmdir)\b[^;|]*?(-Recurse|-r\b)")
PS_PATH = re.compile(r"(?<!\S)['\"]?(/[^\s'\";|]*|~[^\s'\";|]*|\$HOME[^\s'\";|]*|\$env:HOME[^\s'\";|]*)")


def power_shell(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """`pwsh -Command TEXT`, read by its words."""
    text = " ".join(argv[1:])
    if any(word.lower().startswith(("-enc", "-e")) and not word.lower().startswith("-ex") for word in argv[1:]):
        examination.found(Effect.RUN_FETCHED_CODE, walk, program=name)
    if PS_FETCHES.search(text):
        effect = Effect.RUN_FETCHED_CODE if PS_RUNS.search(text) else Effect.NETWORK
        examination.found(effect, walk, program=name)
    for path in PS_PATH.findall(text) if PS_DELETES.search(text) else ():
        examination.found(Effect.DELETE_TREE, walk, program=name, path=re.sub(r"^\$(env:)?HOME", "~", path))


ITSELF = re.compile(r"(?:^|[;&|\n]\s*)[\"']?\$(?:0|\{0\}|BASH_SOURCE)[\"']?[^;\n&|]*[&|](?![&|])")


def start_themselves(examination: "Examination", name: str, text: str, walk: "Walk") -> None:
    """A script that starts `$0` in the background, or in a pipe."""
    if ITSELF.search(text):
        examination.found(Effect.FORK_BOMB, walk, program=name, says="start itself again and again")


def _plus(word: str) -> str:
    return "-" + word[1:] if word.startswith("+") and len(word) > 1 else word


def run_file(
    examination: "Examination", name: str, file: str, walk: "Walk", read: Callable[[str], object] | None = None
) -> None:
    """A file is run as a script. What the command writes to it, or prints into a process substitution, is read."""
    if not file.startswith("/dev/fd/"):
        examination.found(Effect.EXECUTE, walk, program=name, path=file)
    examination.contents.started(file, walk)
    if read is not None:
        examination.run_written(file, walk, lambda flow: run_input(examination, name, flow, walk, read))


def run_input(examination: "Examination", name: str, stdin: Flow, walk: "Walk", read: Callable[[str], object]) -> None:
    """Code comes through a pipe: known text is read, fetched or decoded text is reported."""
    if stdin.origin is Origin.TEXT:
        start_themselves(examination, name, stdin.text, walk)
        read(stdin.text)
    elif stdin.origin in (Origin.FETCHED, Origin.DECODED):
        examination.found(Effect.RUN_FETCHED_CODE, walk, program=name)
    elif stdin.origin is Origin.FILE:
        for file in stdin.names:
            examination.found(Effect.EXECUTE, walk, program=name, path=file)
    elif stdin.origin is not Origin.NOTHING:
        examination.found(Effect.RUN_UNKNOWN_CODE, walk, program=name)
        if stdin.text:
            read(stdin.text)


def source(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`source FILE` and `. FILE`."""
    if len(argv) > 1 and argv[1] in INPUTS:
        run_input(examination, name, stdin, walk, walk.nested)
    elif len(argv) > 1:
        run_file(examination, name, argv[1], walk, walk.nested)
