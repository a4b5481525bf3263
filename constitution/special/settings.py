"""Settings and clients that run what stands in a word: `git config core.pager CMD`, `\\! CMD` in a database client."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.programs.options import read_line
from constitution.shell.flow import Flow
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["database", "git", "look_up"]

RUNS = re.compile(
    r"(?i)^(core\.(pager|editor|sshcommand|fsmonitor|askpass)|alias\.\S+|credential\.(\S+\.)?helper|filter\.\S+|diff\.\S+"
    r"|sequence\.editor|merge\.\S+\.driver|pager\.\S+|difftool\.\S+|mergetool\.\S+)$"
)
GIT_TAKES = frozenset("-C -c --git-dir --work-tree --namespace --exec-path --config-env".split())  # noqa: SIM905
ESCAPES = re.compile(r"(?:\\!|^\.(?:shell|system)|(?<![\w.])system)\s+(.*)")


def git(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`git -c KEY=VALUE`, `git config KEY VALUE`, `git bisect run CMD`, `git submodule foreach CMD`."""
    line = read_line(argv[1:], GIT_TAKES, to_operand=True)
    for setting in line.value_of("-c"):
        key, _, value = setting.partition("=")
        _setting(key, value, walk)
    operands = list(line.operands)
    if operands[:1] == ["config"]:
        words = read_line(operands[1:], frozenset(["-f", "--file", "--type"])).operands
        words = words[1:] if words[:1] == ("set",) else words
        _setting(words[0], " ".join(words[1:]), walk) if len(words) > 1 else None
    for verb, word in (("bisect", "run"), ("submodule", "foreach")):
        if operands[:1] == [verb] and word in operands:
            command = [part for part in operands[operands.index(word) + 1 :] if part not in ("--recursive", "--quiet")]
            walk.nested(" ".join(command)) if len(command) == 1 else walk.invoke(command or [":"], stdin)


def _setting(key: str, value: str, walk: "Walk") -> None:
    if not RUNS.match(key) or value in ("true", "false", "store", "cache", "osxkeychain", ""):
        return
    if not key.lower().startswith("alias."):
        walk.nested(value.removeprefix("!"))
    else:
        walk.nested(value[1:] if value.startswith("!") else f"git {value}")


def database(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    r"""`psql -c '\! CMD'`, `sqlite3 x '.shell CMD'`, `mysql -e 'system CMD'`, and the same in their input."""
    for word in [*argv[1:], *stdin.text.splitlines()]:
        if match := ESCAPES.search(word):
            walk.nested(match[1])
    if stdin.text:
        examination.examine([name, *(["x"] if name == "sqlite3" else []), stdin.text], Flow(stdin.origin), walk)


def look_up(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`dig NAME`, `ping NAME`: what is put into a name goes to whoever answers for it."""
    for word in argv[1:]:
        if UNKNOWN in word and re.search(r"\0[^\0/]*\.[A-Za-z][\w-]*\.?$", word):
            says = "send data to another machine, in a name that is looked up"
            computed = "$(" in walk.evidence.text or "`" in walk.evidence.text
            examination.found(Effect.LEAK if computed else Effect.UPLOAD, walk, program=name, says=says)
