"""The table of programs: what each does, in one line of `programs.toml`.

    sort: read operands; write -o --output; code ?--compress-program; out same
    git log|show: write --output; code ?--ext-diff; out word

A line has the names of programs, each followed by its subcommands, and clauses. A clause is a kind of effect, the words
that it concerns, and conditions:

    operands, first, last, but_last, rest, here    these operands, or the folder
    -o --output                                    the values of these options
    ?-f --force, !-n                               if one of these options is there; none of these
    ~PATTERN, %PATTERN, @PATTERN, ^N               if some word, an operand, the first one fits; at least N operands

`text`: words are no paths; `skip`: the first operand is none; `wraps N`: behind N operands there is another command;
`out`: what it prints: `names` below its operands, a `word`, something `fetched`, the `same` as its input. A row without
clauses does nothing beyond the workspace, whatever code of the project it runs. A name that comes twice is an error.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

from attrs import evolve, frozen

from constitution.tables import table

VERSIONED = re.compile(r"((?:python|pip|ruby|perl|node|gcc|g\+\+|clang|php|lua)(?=[\d.]+$))[\d.]+$")
ASKS_FOR_HELP = ("--version", "-V", "--help", "-h", "version", "-v")
NO_EFFECTS = frozenset({"out", "text", "skip", "wraps"})
PROGRAM_FOLDERS = (
    *("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/"),
    *("/usr/libexec/", "/lib/", "/lib64/"),
)
MOST_SUBCOMMANDS = 3
CONTINUED = re.compile(r"(\|)?\n[ \t]+")


@frozen
class Clause:
    """One effect of a program, the words that it concerns, and when it has it."""

    effect: str
    targets: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    operand: re.Pattern[str] | None = None
    first: re.Pattern[str] | None = None
    least: int = 0


@frozen
class Row:
    """All clauses of a program or subcommand, and the options whose value may be the next word.

    `depth`: the number of subcommands in its key.
    """

    clauses: tuple[Clause, ...]
    takes: frozenset[str]
    depth: int = 0

    def has(self, effect: str) -> Clause | None:
        """Return the clause of an effect."""
        return next((clause for clause in self.clauses if clause.effect == effect), None)

    @property
    def skips(self) -> int:
        """The number of operands before the command that it starts."""
        wraps = self.has("wraps")
        return int(wraps.targets[0]) if wraps and wraps.targets else 0


@frozen
class Line:
    """The words after a program: options, their values, operands."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def given(self, options: frozenset[str]) -> bool:
        """Return whether one of some options is there; long ones may be abbreviated."""
        if self.flags & options:
            return True
        short = [flag for flag in self.flags if flag.startswith("--") and len(flag) > 4]
        return any(option.startswith(flag) for flag in short for option in options)

    def value_of(self, *options: str) -> list[str]:
        """Return the values of some options."""
        return [value for name, value in self.values if name in options]

    def without(self, depth: int) -> "Line":
        """Return the line without its subcommands."""
        return evolve(self, operands=self.operands[depth:])


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of words of the table."""
    return frozenset(table("programs")["words"][name].split())


@cache
def sign(name: str) -> re.Pattern[str]:
    """Return a pattern of the table."""
    return re.compile(table("programs")["patterns"][name].replace("\n", ""))


def program_name(word: str) -> str:
    """Return the name of a program without its folder and its version: `python` for /usr/bin/python3.11."""
    return VERSIONED.sub(r"\1", word.rpartition("/")[2].lower() if "/" in word else word)


def changes_commands(variable: str) -> bool:
    """Return whether a variable of the environment can make other programs run, or run otherwise."""
    return any(sign(name).match(variable) for name in ("loading_variables", "shell_variables"))


def lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and the rest of each line of a table; one that begins with a blank continues the one before."""
    for line in CONTINUED.sub(lambda match: match[1] or " ", text).splitlines():
        if line.strip() and not line.startswith("#"):
            names, colon, rest = line.partition(":")
            if not colon:
                raise ValueError(f"{line!r}: a row reads `NAMES: WHAT THEY DO`")
            yield names, rest.strip()


@cache
def _rows() -> dict[str, dict[tuple[str, ...], str]]:
    """Return what programs do, as text: by program, then by subcommands. Raises ValueError for one that comes twice."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for section in table("programs")["rows"].values():
        for names, text in lines(section):
            for program, *subcommands in product(*(word.split("|") for word in names.split())):
                rows = found.setdefault(program, {})
                if tuple(subcommands) in rows:
                    raise ValueError(f"{program} {' '.join(subcommands)} comes twice in the table of programs")
                rows[tuple(subcommands)] = text
    return found


@cache
def synonyms(program: str) -> dict[str, str]:
    """Return the first of the names of each option of a program that has several."""
    found = {}
    for names, text in lines(table("programs")["options"]["synonyms"]):
        for first, *others in map(str.split, text.split(";") if program in names.split("|") else ()):
            found.update(dict.fromkeys(others, first))
    return found


@cache
def interpreters() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the options of each interpreter that take code, and those that take other values."""
    found = {}
    for names, text in lines(table("programs")["options"]["interpreters"]):
        code, _, others = text.partition(";")
        found.update(dict.fromkeys(names.split("|"), (frozenset(code.split()), frozenset(others.split()))))
    return found


@cache
def _options() -> dict[str, frozenset[str]]:
    """Return the options of programs whose value may be the next word."""
    found: dict[str, frozenset[str]] = {}
    for names, text in lines(table("programs")["options"]["values"]):
        for name in names.split("|"):
            if name in found:
                raise ValueError(f"the options of {name} come twice in the table of programs")
            found[name] = frozenset(text.split())
    return found


def takes(program: str) -> frozenset[str]:
    """Return the options of a program whose value may be the next word."""
    return _options().get(program, frozenset())


def has_one_dash(program: str) -> bool:
    """Return whether options of more than a letter have one dash."""
    return program in words("one_dash")


@cache
def _of_system() -> frozenset[str]:
    names = (names.split()[0].split("|") for names, _ in lines(table("programs")["rows"]["core"]))
    return frozenset(name for several in names for name in several)


def is_of_system(program: str) -> bool:
    """Return whether a program belongs to every system, and does only what its row says."""
    return program in _of_system()


def knows(program: str) -> bool:
    """Return whether the table has a program."""
    return program in _rows()


@cache
def _row(program: str, subcommands: tuple[str, ...]) -> Row:
    clauses = tuple(map(clause, filter(str.strip, re.split(r";(?:\s+|$)", _rows()[program][subcommands]))))
    return Row(clauses, takes(program), len(subcommands))


def all_rows() -> Iterator[tuple[str, Row]]:
    """Yield all rows with their names."""
    for program, rows in _rows().items():
        for subcommands in rows:
            yield " ".join((program, *subcommands)), _row(program, subcommands)


def row_of(program: str, arguments: list[str]) -> Row | None:
    """Return the row of a command: the one with the most of its subcommands."""
    rows = _rows().get(program)
    if rows is None:
        return None
    if len(rows) == 1 and () in rows:
        return _row(program, ())
    operands = read_line(arguments, takes(program), long=has_one_dash(program)).operands
    for depth in range(min(MOST_SUBCOMMANDS, len(operands)), -1, -1):
        if operands[:depth] in rows:
            return _row(program, operands[:depth])
    return None


PATTERNS = {"~": "words", "%": "operand", "@": "first"}


def clause(text: str) -> Clause:
    """Parse a clause of a row."""
    effect, *rest = text.split()
    lists: dict[str, list[str]] = {"": [], "?": [], "!": []}
    facts: dict[str, Any] = {}
    kind = ""
    for word in rest:
        if word[0] in PATTERNS:
            facts[PATTERNS[word[0]]] = re.compile(word[1:])
        elif word[0] == "^":
            facts["least"] = int(word[1:])
        else:
            kind = word[0] if word[0] in "?!" else kind
            lists[kind].append(word.lstrip("?!"))
    return Clause(effect, tuple(lists[""]), frozenset(lists["?"]), frozenset(lists["!"]), **facts)


def read_line(arguments: list[str], takes: frozenset[str], *, to_operand: bool = False, long: bool = False) -> Line:
    """Parse the words after a program: clusters split (unless `long`), values attached, `--` obeyed."""
    flags, values, operands, rest = set[str](), list[tuple[str, str]](), list[str](), iter(arguments)
    for word in rest:
        if word == "--":
            operands.extend(rest)
        elif word[:1] != "-" or word == "-":
            operands.append(word)
            if to_operand:
                operands.extend(rest)
        elif word[:2] == "--" or word in takes or long:
            name, equals, value = word.partition("=")
            flags.add(name)
            if equals or name in takes:
                values.append((name, value if equals else next(rest, "")))
        else:
            _read_cluster(word, takes, flags, values, rest)
    return Line(frozenset(flags), tuple(values), tuple(operands))


def _read_cluster(
    word: str, takes: frozenset[str], flags: set[str], values: list[tuple[str, str]], rest: Iterator[str]
) -> None:
    """Read `-rf`, `-n5` and `-opt=x`."""
    name, equals, value = word.partition("=")
    flags.add(name)
    if equals:
        values.append((name, value))
    for at, letter in enumerate(word[1:], 1):
        flags.add("-" + letter)
        if "-" + letter in takes:
            values.append(("-" + letter, word[at + 1 :] or next(rest, "")))
            return
    if len(word) > 2:
        values.append((word[:2], word[2:]))
