"""Files that tools execute or obey, where the script around the tool writes them itself.

`echo ... > conftest.py && pytest`, `... > d.cmake; cmake -P d.cmake`: a tool of the workspace is trusted with the files
that are there, not with what the same command puts there. `echo registry=ADDRESS >> .npmrc`: packages come from there.
"""

import json
from collections.abc import Callable
from functools import cache, partial

from constitution.analysis.steps import Command, Found, Runs, Script, Started, Steps
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import Flow, Origin
from constitution.tables import sign, table
from constitution.tables.rows import is_known, program_name


@cache
def _rows() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """Return for each program how its files are read, and their usual names."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for row in table("signs")["recipe"]:
        for program in row["programs"].split():
            found.setdefault(program, []).append((row["reads"], tuple(row["files"].split())))
    return found


def has_recipes(program: str) -> bool:
    """Return whether a program executes files of its folder that have a usual name."""
    return program in _rows()


def recipes(command: Command) -> Steps:
    """Read the files that a tool executes, as far as the script around it writes them."""
    if len(command.source) <= len(command.text):  # nothing stands around it
        return
    for reads, files in _rows()[command.name]:
        given = (word.partition("=")[2] or word for word in command.argv[1:] if reads not in ("python", "scripts"))
        for file in (*files, *(word for word in given if word[:1] != "-" and "." in word)):
            yield Runs(file, partial(_read, reads, command))


def _read(reads: str, command: Command, flow: Flow) -> Steps:
    if flow.origin in (Origin.FETCHED, Origin.DECODED):
        yield Found(Effect.RUN_FETCHED_CODE)
    elif flow.text:
        yield from READERS[reads](flow.text, command)


def _python(text: str, command: Command) -> Steps:
    yield Started(["python3", "-c", text])


def _statements(text: str, command: Command) -> Steps:
    yield Started([command.name, text])


def _code(text: str, command: Command) -> Steps:
    yield Started([command.name, "--eval" if command.name in ("octave", "sbcl") else "-e", text])


def _debugger(text: str, command: Command) -> Steps:
    for line in text.splitlines():
        yield Started([command.name, "-ex" if command.name == "gdb" else "-o", line])


def _lines(text: str, command: Command) -> Steps:
    """Read the lines of a recipe that are commands, behind what marks them as such."""
    yield from _risks(text, command)
    for line in sign("recipe_command").findall(text):
        if is_known(program_name(line.partition(" ")[0])):
            yield Script(line)


def _scripts(text: str, command: Command) -> Steps:
    """Read the scripts of `package.json`, each of which a package manager may run."""
    try:
        found = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError):
        found = {}
    for script in found.values() if isinstance(found, dict) else ():
        yield Script(str(script))


def _risks(text: str, command: Command) -> Steps:
    if risk := sign("recipe_risks").search(text):
        yield Found(
            Effect.RISKY_CODE, says=f"obey a file that this command writes, with {' '.join(risk[0].split())[:40]!r}"
        )


READERS: dict[str, Callable[[str, Command], Steps]] = {
    "python": _python,
    "statements": _statements,
    "code": _code,
    "lines": _lines,
    "scripts": _scripts,
    "debugger": _debugger,
    "risks": _risks,
}


def sources_in(path: str, flow: Flow) -> Steps:
    """Report the settings in a file that make a package manager download from elsewhere: `.npmrc`, `pip.conf`."""
    for files, sources in SOURCES:
        if sign(files).search(path) and (source := sign(sources).search(flow.text)):
            shown = next(filter(None, source.groups()), "").strip()[:80].replace(UNKNOWN, "…")
            yield Found(Effect.FOREIGN_PACKAGES, says=f"take packages, or a program, from {shown}")


SOURCES = (
    ("package_settings", "package_address"),
    ("package_project", "package_source"),
    ("package_manifest", "manifest_source"),
)
"""Patterns of files, and of what makes a package manager download from elsewhere in them."""
