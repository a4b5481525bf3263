"""How the rows of the program tables are applied to a command."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.interpreters import METADATA
from constitution.shell.flow import Origin
from constitution.tables.programs import Does, Line, is_bare_shell, paths_of, read_line, rows_for
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["apply_rows"]

ADDRESSED = frozenset({Effect.NETWORK, Effect.UPLOAD})
"""What these name are addresses, not paths."""

LOCAL = re.compile(
    r"^:\d*(/|$)|^file:|^(\w+://)?([^/@]*@)?(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0|[\w.-]+\.(localhost"
    r"|local|test))(:\d+)?(/|$|\?)"
)


def apply_rows(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """Report the effects of every row that speaks about a command, and read the scripts in its options."""
    if argv[-1] == "help" and len(argv) > 2 and name in ASK_FOR_HELP:
        return
    if "--help" in argv[1:3] and len(argv) <= 3 and argv[-1] == "--help":
        return
    lines: dict[tuple[int, frozenset[str], bool], Line] = {}  # rows that read alike: all see the end of one list
    for row, words in rows_for(name, argv[1:]):
        reading = len(words), row.takes, row.long_style
        line = lines.get(reading)
        if line is None:
            line = lines[reading] = read_line(words, row.takes, long_style=row.long_style)
        if line.flags & row.unless:
            continue
        for does in row.does:
            if does.applies(line):
                _does(examination, does, name, paths_of(does.to, line), walk)
        for script in line.value_of(*row.runs) if row.runs else ():
            _runs(examination, name, _command_in(script), walk)


ASK_FOR_HELP = ("aws", "gcloud", "heroku", "doctl", "gh", "kubectl", "terraform")


SETTING = re.compile(r"^[\w.:-]*(?:exec|pager|invoke[\w-]*|alias\.\w+)(?:::)?=!?", re.I)
OTHER_SETTING = re.compile(r"^[\w:-]+[.:][\w:.-]*=")


def _command_in(script: str) -> str:
    """Return the command in the value of an option: `pager=CMD`, `APT::Update::Pre-Invoke::=CMD`, `sh,-s`, `!CMD`."""
    if SETTING.match(script):
        return SETTING.sub("", script)
    if OTHER_SETTING.match(script) or script.startswith(("format=", "border=", "null=", "fieldsep=")):
        return ""
    plain = script.replace(",", " ") if " " not in script and script.count(",") else script
    return plain.removeprefix("!")


def _runs(examination: "Examination", name: str, script: str, walk: "Walk") -> None:
    if is_bare_shell(script.removesuffix(" -s")):
        examination.found(Effect.ESCAPE_SHELL, walk, program=name, says="start a shell in which anything can be typed")
    if script and script not in ("on", "off", "always"):
        walk.nested(script)


def _does(examination: "Examination", does: Does, name: str, paths: tuple[str, ...], walk: "Walk") -> None:
    if not does.to:
        examination.found(does.effect, walk, program=name, says=does.says)
    for path in paths:
        if does.effect not in ADDRESSED:
            if path != "-":
                examination.found(does.effect, walk, program=name, path=path, says=does.says)
        elif METADATA.search(path):
            says = "ask the cloud for the keys of this machine"
            examination.found(Effect.TAKE_KEYS, walk, program=name, says=says)
        elif not _is_local(path):
            if UNKNOWN in path or examination.input.origin is not Origin.NOTHING:
                examination.sent(walk.evidence)
            says = does.says or f"reach {path.replace(UNKNOWN, '…')[:80]} over the network"
            examination.found(does.effect, walk, program=name, says=says)


def _is_local(address: str) -> bool:
    return LOCAL.match(address) is not None
