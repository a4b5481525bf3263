"""Programs that run others for each thing they find: `find`, `xargs`; and `tar` in its old spelling."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from constitution.effects import Effect, Finding
from constitution.shell.flow import NOTHING, Flow, Origin
from constitution.special.fetched import unpack
from constitution.special.serving import hunts_by_name
from constitution.tables.programs import is_bare_shell, read_line
from constitution.zones import FOUND, UNKNOWN, is_private

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["fd", "find", "find_roots", "found_below", "parallel", "tar", "xargs"]

FIND_TAKES = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-regex",
        "-iregex",
        "-type",
        "-size",
        "-mtime",
        "-atime",
        "-ctime",
        "-mmin",
        "-amin",
        "-cmin",
        "-newer",
        "-user",
        "-group",
        "-perm",
        "-maxdepth",
        "-mindepth",
        "-fstype",
        "-links",
        "-inum",
        "-lname",
        "-printf",
        "-fprintf",
        "-fprint",
        "-fprint0",
        "-fls",
        "-uid",
        "-gid",
        "-samefile",
        "-wholename",
        "-xtype",
        "-used",
    ]
)
FIND_FILTERS = FIND_TAKES - {
    "-maxdepth",
    "-mindepth",
    "-fprint",
    "-printf",
    "-fprintf",
    "-fls",
    "-fprint0",
    "-xtype",
} | {"-empty", "-newermt"}
FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


def find(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`find ROOTS TESTS -delete`, `-exec COMMAND ;`, `-fprint FILE`."""
    roots = find_roots(argv)
    hunts_by_name(examination, name, roots, argv[1:], walk)
    for root in roots:
        examination.found(Effect.LIST, walk, program=name, path=root)
    for index, word in enumerate(argv):
        names = [found_below(root, argv[:index]) for root in roots] if word == "-delete" or word in FIND_RUNS else []
        if word == "-delete":
            for path in names:
                examination.found(Effect.DELETE_TREE, walk, program=name, path=path)
        elif word in ("-fprint", "-fprintf", "-fls", "-fprint0") and index + 1 < len(argv):
            examination.found(Effect.WRITE, walk, program=name, path=argv[index + 1])
        elif word in FIND_RUNS:
            _each_found(argv[index + 1 :], names, walk)


def fd(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`fd PATTERN ROOT -x COMMAND`."""
    line = read_line(argv[1:], frozenset("-x -X --exec --exec-batch -e -t -d -E".split()))  # noqa: SIM905
    starts = [index for index, word in enumerate(argv) if word in ("-x", "-X", "--exec", "--exec-batch")]
    for index in starts[:1]:
        before = read_line(argv[1:index], frozenset(["-e", "-t", "-d", "-E"])).operands
        names = [f"{root}/{FOUND}" for root in before[1:] or (".",)]
        command = argv[index + 1 :]
        _each_found(command if any("{" in word for word in command) else [*command, "{}"], names, walk)
    for root in line.operands[1:2] if not starts else ():
        examination.found(Effect.LIST, walk, program=name, path=root)


def find_roots(argv: list[str]) -> list[str]:
    """Return the folders in which a `find` starts."""
    roots = []
    for word in argv[1:]:
        if word in ("-H", "-L", "-P") or word.startswith(("-O", "-D")):
            continue
        if word.startswith("-") or word in ("(", "!", ")"):
            break
        roots.append(word)
    return roots or ["."]


def found_below(root: str, argv: list[str]) -> str:
    """Return a stand-in for what is found: something below the root if the search is narrowed, else the root."""
    narrowed = any(word in FIND_FILTERS for word in argv)
    kept = (".git", ".hg", ".svn", ".jj")
    private = [
        name for test, name in pairwise(argv) if test in ("-name", "-iname") and (is_private(name) or name in kept)
    ]
    if private:
        return f"{root}/{private[0]}"
    everything = any(
        a in ("-name", "-iname", "-path", "-wholename") and b in ("*", "**", ".*", "*.*") for a, b in pairwise(argv)
    )
    return f"{root}/{FOUND}" if narrowed and not everything else root


def _each_found(words: list[str], names: list[str], walk: "Walk") -> None:
    ends = [index for index, word in enumerate(words) if word in (";", "+")]
    command = words[: ends[0]] if ends else words
    if is_bare_shell(" ".join(command)):
        says = "start a shell in which anything can be typed"
        walk.examiner.report(Finding(Effect.ESCAPE_SHELL, "", says, "find", walk.evidence))
    for path in names if command else ():
        walk.invoke([word.replace("{}", path) for word in command], NOTHING)


XARGS_TAKES = frozenset(
    """
    -a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars -R -S -J --replace
    """.split()  # noqa: SIM905
)


def xargs(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`xargs COMMAND`: the input's words are put behind the command, or where `-I` says."""
    line = read_line(argv[1:], XARGS_TAKES, to_operand=True)
    marks = line.value_of("-I", "-J", "--replace") or (("{}",) if line.flags & {"-i", "--replace"} else ())
    command = list(line.operands)
    if not command:
        return  # it echoes
    if stdin.origin is Origin.ENDLESS and line.flags & {"-P", "--max-procs"}:
        examination.found(Effect.FORK_BOMB, walk, program=name, says="start more and more programs without end")
    lines = bool(marks or line.value_of("-d", "--delimiter"))
    items = stdin.text.splitlines() if lines and stdin.origin is Origin.TEXT else _items(stdin)
    if marks:
        for item in items:
            walk.invoke([word.replace(marks[0], item) for word in command], NOTHING)
    else:
        walk.invoke([*command, *items], NOTHING)


def _items(stdin: Flow) -> list[str]:
    if stdin.origin is Origin.TEXT:
        return stdin.text.split()
    return list(stdin.names) if stdin.origin in (Origin.NAMES, Origin.PROCESSES) else [UNKNOWN]


def parallel(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`parallel COMMAND ::: A B`, `... | parallel COMMAND`: once for each, put where `{}` stands, or at the end."""
    words = list(read_line(argv[1:], PARALLEL_TAKES, to_operand=True).operands)
    mark = next((index for index, word in enumerate(words) if word.startswith(":::")), len(words))
    command, items = " ".join(words[:mark]), words[mark + 1 :] or _items(stdin)
    if not command:
        command = "{}"
    for item in items[:8]:
        if UNKNOWN not in item:
            walk.nested(command.replace("{}", item) if "{}" in command else f"{command} {item}", NOTHING)
    if any(UNKNOWN in item for item in items) or not items:
        walk.nested(re.sub(r"\{[./#%]*\}", "$_UNKNOWN_", command) if "{" in command else command, NOTHING)


PARALLEL_TAKES = frozenset(
    """
    -j --jobs -a --arg-file -I -S --sshlogin --colsep -N -n -L --delay --timeout -P --max-procs --joblog --results -d
    """.split()  # noqa: SIM905
)


def tar(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tar czf x y`: the old spelling without a dash."""
    if len(argv) > 1 and argv[1].isalpha() and set(argv[1]) & set("cxtru"):
        examination.examine([name, "-" + argv[1].replace("f", "") + "f", *argv[2:]], stdin, walk)
    line = read_line(argv[1:], frozenset(["-f", "--file", "-C", "--directory", "-T", "-X", "--exclude", "-I"]))
    if line.flags & {"-c", "--create"}:
        for folder in line.value_of("-C", "--directory"):
            for word in line.operands:
                examination.found(Effect.READ_TREE, walk, program=name, path=f"{folder}/{word}")
                examination.found(Effect.READ, walk, program=name, path=f"{folder}/{word}")
    if len(argv) > 1 and "x" in argv[1].lstrip("-")[:6]:
        unpack(examination, name, argv, stdin, walk)
