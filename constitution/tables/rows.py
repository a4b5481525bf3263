"""Rows of the tables: options and effects of programs, wrappers of other commands, and variables.

A block of a table is a row:

    [[program]]                       # `tee x` writes its operands
    names = "tee"
    [[program.does]]
    effect = "write"
    to = "operands"

    [[wrapper]]                       # timeout -k 5 60 rm x  ->  rm x
    names = "timeout"
    takes = "-k -s"
    skip = 1

    [[kind]]                          # further properties: `names_of_kind` and `is_a`
    names = "tee"
    is = "passes_on"

`to` chooses the paths of an effect: `operands`, `first`, `last`, `but_last`, `rest` (all but the first), `stems`
(without their endings), `address` (the first that is no method, as in `POST x.com`), `settings` (the values of
`NAME=value`), `-o --output` (the value of an option), `@ -d` (a file named behind `@` in such a value), `: -v` (what
stands before `:` in it), `of=` (a word that begins so), `here` (the present folder), `unknown` (paths that are not
known), or "" for an effect without a path.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from constitution.effects import UNKNOWN, Effect
from constitution.tables import (
    Block,
    blocks_of,
    names_of_kind,
    one_line,
    pattern,
    said_of,
    table,
    table_names,
    words_in,
)

# Command lines: options and operands

NONE = frozenset[str]()
R = TypeVar("R")


class Line(NamedTuple):
    """A parsed command line without its program word: option names, their values, and operands."""

    flags: frozenset[str]
    values: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def value_of(self, *names: str) -> tuple[str, ...]:
        """Return the values of the named options, in order."""
        return tuple([value for name, value in self.values if name in names]) if self.values else ()


def read_line(words: list[str], takes: frozenset[str], *, long_style: bool = False, to_operand: bool = False) -> Line:
    """Parse the words after a program: clusters split, values attached, `--` obeyed.

    `takes`: the options whose value may be the next word. `long_style`: one dash does not begin a cluster (find,
    terraform, java). `to_operand`: all words from the first operand on are operands.
    """
    for word in words:
        if word[:1] == "-":
            break
    else:
        return Line(NONE, (), tuple(words))
    flags, values, operands, rest = set[str](), list[tuple[str, str]](), list[str](), iter(words)
    for word in rest:
        if word == "--":
            operands.extend(rest)
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
            if to_operand:
                operands.extend(rest)
                break
            continue
        name, attached = _attached(word, takes, flags, long_style)
        if attached is None and takes and _takes(name, takes):
            name, attached = _full(name, takes), next(rest, None)
        if attached is not None:
            values.append((name, attached))
    return Line(frozenset(flags), tuple(values), tuple(operands))


def _attached(word: str, takes: frozenset[str], flags: set[str], long_style: bool) -> tuple[str, str | None]:
    """Add the option names of a word to `flags`; return the last name, and the value in the same word, if any."""
    if word[1] == "-" or long_style:
        name, equals, value = word.partition("=")
        flags.add(name)
        return _full(name, takes) if equals else name, value if equals else None
    if len(word) == 2:
        flags.add(word)
        return word, None
    for position, letter in enumerate(word[1:], 1):
        name = "-" + letter
        flags.add(name)
        if name in takes and position + 1 < len(word):
            return name, word[position + 1 :]
    return name, None


def _full(name: str, takes: frozenset[str]) -> str:
    """Return the option that takes a value and of which a long name is the beginning; otherwise the name itself."""
    if name in takes or len(name) < 5 or name[:2] != "--":
        return name
    return min((option for option in takes if option.startswith(name)), default=name)


def _takes(name: str, takes: frozenset[str]) -> bool:
    """Return whether an option takes a value; long ones may be abbreviated."""
    return name in takes or (len(name) > 4 and name.startswith("--") and f"\n{name}" in _in_lines(takes))


def has_any(flags: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether one of the wanted options is given; a long one may be abbreviated to four letters or more."""
    if flags & wanted:
        return True
    return any(f"\n{flag}" in _in_lines(wanted) for flag in flags if len(flag) > 4 and flag.startswith("--"))


@lru_cache(maxsize=4096)
def _in_lines(options: frozenset[str]) -> str:
    """Return options as one text, each in a line of its own, in which a beginning is found at once."""
    return "\n" + "\n".join(options)


# Rows: tuples, for speed, since attrs would take 5 ms to make these classes


class Does(NamedTuple):
    """One effect of a program, if one of `given`, none of `unless` and an operand matching `words` are there."""

    effect: Effect
    to: str = ""
    given: frozenset[str] = NONE
    unless: frozenset[str] = NONE
    besides: frozenset[str] = NONE  # and one of these options
    words: str = ""  # a pattern
    also: str = ""  # a pattern for another operand
    lacks: str = ""  # a pattern for no operand
    first: str = ""  # a pattern for the first operand
    values: str = ""  # a pattern for the value of one of the given options
    says: str = ""
    flags: str = ""  # a pattern for the name of an option
    bare: bool = False  # only without operands
    texts: str = ""  # a pattern for an operand, or for the value of any option
    match: tuple[str, ...] = ()  # commands that have this effect
    not_match: tuple[str, ...] = ()  # similar commands without it

    def applies(self, line: Line) -> bool:
        """Return whether a command line has this effect."""
        if self.given and not has_any(line.flags, self.given):
            return False
        if self.besides and not has_any(line.flags, self.besides):
            return False
        if line.flags & self.unless or (self.bare and line.operands):
            return False
        if self.flags and not any(map(_pattern(self.flags).search, line.flags)):
            return False
        if self.values and not any(map(_pattern(self.values).search, line.value_of(*self.given))):
            return False
        if self.texts and not any(
            map(_pattern(self.texts).search, [*line.operands, *(value for _, value in line.values)])
        ):
            return False
        if self.words and not any(map(_pattern(self.words).search, line.operands)):
            return False
        if self.lacks and any(map(_pattern(self.lacks).search, line.operands)):
            return False
        if self.first and not any(map(_pattern(self.first).search, line.operands[:1])):
            return False
        return not self.also or any(map(_pattern(self.also).search, line.operands))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern compiled on first use: a command needs few of the rows."""
    return re.compile(text)


class Program(NamedTuple):
    """A row: names (with subcommands, as in "git push"), options that take a value, effects.

    `match`: commands that are gated because of this row; `not_match`: commands that resemble them and are allowed.
    """

    names: tuple[str, ...]
    does: tuple[Does, ...] = ()
    takes: frozenset[str] = NONE
    long_style: bool = False
    unless: frozenset[str] = NONE  # with one of these it is read-only
    runs: tuple[str, ...] = ()  # options whose value is a shell script
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


class Wrapper(NamedTuple):
    """A row of a program that runs another one. `match` and `not_match` as in `Program`."""

    names: tuple[str, ...]  # with subcommands, as in "docker exec"
    takes: frozenset[str] = NONE  # options with a value
    skip: int = 0  # operands before the command
    script: tuple[str, ...] = ()  # options whose value is shell text
    joins: bool = False  # the operands are joined to shell text
    assignments: bool = False  # assignments may stand before the command
    looks: frozenset[str] = NONE  # read-only options
    only: frozenset[str] = NONE  # it runs a command only after one of these words
    by_shell: bool = False  # the shell itself runs it, so that functions and aliases count
    instead: bool = False  # a script takes the place of a command
    moves: frozenset[str] = NONE  # options with the folder of the command
    dashes: bool = False  # the command begins after `--`, if there is one
    loose: bool = False  # it has many options: the command begins at the first word that names a program
    scripts: bool = False  # every operand is shell text
    typed: bool = False  # a bare shell in it is interactive
    inside: bool = False  # the command runs in a throw-away container, with its own paths
    effect: Effect | None = None
    says: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


class Holds(Enum):
    """The meaning of the value of a variable, beside text."""

    COMMAND = auto()
    ARGUMENTS = auto()  # options of a program
    LOADED = auto()  # a file that every program loads
    FOLDERS = auto()  # search paths of programs, or of parts of them
    OPTIONS = auto()  # options, some of which name files that are loaded
    TEXT = auto()


class Variable(NamedTuple):
    """A row: the meaning of the value of variables, and the effect of a value that matches the pattern."""

    names: tuple[str, ...]
    holds: Holds
    effect: Effect | None = None
    values: str = ""  # a pattern
    of: str = ""  # the program whose options they are
    says: str = ""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def _row(kind: type[R], block: Block) -> R:
    return kind(**{column: READ[column](value) if column in READ else value for column, value in block.items()})


READ: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(
        ("takes", "given", "unless", "besides", "looks", "only", "moves"), lambda text: frozenset(text.split())
    ),
    **dict.fromkeys(("runs", "script"), lambda text: tuple(text.split())),
    **dict.fromkeys(("to", "words", "also", "lacks", "first", "values", "flags", "texts"), one_line),
    **dict.fromkeys(("match", "not_match"), tuple),
    "names": lambda text: tuple(one_line(text).split("|")),
    "does": lambda blocks: tuple(_row(Does, block) for block in blocks),
    "effect": lambda name: Effect[name.upper()],
    "holds": lambda name: Holds[name.upper()],
}
"""The columns whose text in the tables stands for something else."""


def paths_of(to: str, line: Line) -> tuple[str, ...]:
    """Return the words of a command line that `to` selects."""
    if to in CHOICES:
        return CHOICES[to](line.operands)
    if to.endswith("="):
        return tuple(word[len(to) :] for word in line.operands if word.startswith(to))
    values = [value for name, value in line.values if name in options_in(to)] if line.values else []
    if to[:1] == ":":
        return tuple(value.partition(":")[0] for value in values)
    return tuple(value.rpartition("@")[2] for value in values if "@" in value) if to[:1] == "@" else tuple(values)


@cache
def options_in(text: str) -> frozenset[str]:
    """Return the options in a text."""
    return frozenset(text.split())


METHOD = pattern("[A-Z]+")
CHOICES: dict[str, Callable[[tuple[str, ...]], tuple[str, ...]]] = {
    "operands": lambda operands: operands,
    "first": lambda operands: operands[:1],
    "but_last": lambda operands: operands[:-1],
    "last": lambda operands: operands[1:][-1:],
    "rest": lambda operands: operands[1:],
    "here": lambda _: (".",),
    "unknown": lambda _: (UNKNOWN,),
    "stems": lambda operands: tuple(word.rpartition(".")[0] for word in operands),
    "address": lambda operands: tuple(word for word in operands if not METHOD.fullmatch(word))[:1],
    "settings": lambda operands: tuple(word.partition("=")[2] for word in operands if "=" in word),
}


# The rows of a program, by its name and its subcommands

VERSIONED = pattern(r"(?:[-.]?\d+(?:\.\d+)*|\.exe)$")


@cache
def _rows(name: str) -> tuple[Program, ...]:
    return tuple(_row(Program, block) for block in blocks_of("program", name))


def _with_beginnings(names: Iterable[str]) -> set[str]:
    """Return names of several words with their beginnings: "git stash drop", "git stash" and "git"."""
    found, shorter = set[str](), {name for name in names if " " in name}
    while shorter:
        found |= shorter
        shorter = {name.rpartition(" ")[0] for name in shorter if " " in name} - found
    return found


class Names(NamedTuple):
    """Names in the tables, by what they are."""

    known: frozenset[str]  # programs, without subcommands
    heads: frozenset[str]  # what has rows for subcommands: "git", "git stash"
    subcommands: frozenset[str]  # with the words before them
    wrapping: frozenset[str]  # programs that run another one after one of their subcommands


@cache
def _names() -> Names:
    programs, wrappers = table_names("program"), table_names("wrapper")
    known = frozenset(name.partition(" ")[0] for name in programs) | names_of_kind("harmless")
    return Names(
        known - names_of_kind("little_known"),
        frozenset(name.rpartition(" ")[0] for name in _with_beginnings(programs) if " " in name),
        frozenset(name for name in _with_beginnings(programs | wrappers) if " " in name),
        frozenset(name.partition(" ")[0] for name in wrappers if " " in name),
    )


def is_subcommand(name: str) -> bool:
    """Return whether a table has a program with these subcommands, or with further ones: "git push"."""
    return name in _names().subcommands


def has_subcommands(name: str) -> bool:
    """Return whether a program, or a subcommand, has rows for subcommands of its own."""
    return name in _names().heads


@cache
def own_takes(head: str) -> frozenset[str]:
    """Return the options of a program itself, before its subcommand, that take a value."""
    return frozenset().union(*(row.takes for row in _rows(head)))


def rows_for(name: str, words: list[str]) -> Iterator[tuple[Program, list[str]]]:
    """Yield each row for a command, with the words of its options and operands."""
    for row in _rows(name):
        yield row, words
    if name in _names().heads:
        for longer, rest in subcommands(name, words):
            for row in _rows(longer):
                yield row, rest


def subcommands(name: str, words: list[str], takes: frozenset[str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield a program's name with its first one, two and three operands, and the remaining words.

    `takes` are the options that take a value, where they are not those of its rows.
    """
    takes, rest = own_takes(name) if takes is None else takes, words
    for _ in range(3):
        rest = behind_options(rest, takes)
        if not rest:
            return
        name, rest = f"{name} {rest[0]}", rest[1:]
        yield name, rest


def behind_options(words: list[str], takes: frozenset[str]) -> list[str]:
    """Return the first operand and all words behind it."""
    if words and words[0][:1] != "-":
        return words
    return list(read_line(words, takes, to_operand=True).operands)


def program_name(word: str, also: frozenset[str] = frozenset()) -> str:
    """Return the name of a program word in the tables: without folder and version (`/usr/bin/python3.11`)."""
    name = word.rpartition("/")[2] or word
    if name in _names().known or name in also:
        return name
    plain = VERSIONED.sub("", name)
    if plain in _names().known or plain in also:
        return plain
    stem = name.partition(".")[0]
    return stem if stem in ("mkfs", "newfs", "fsck") else name


def is_known(name: str) -> bool:
    """Return whether a table knows the program."""
    return name in _names().known


@cache
def code_options(name: str, key: str = "code") -> frozenset[str]:
    """Return the options in which an interpreter takes code; `key`: "any_code" for languages without a reader."""
    return frozenset(" ".join(said_of(name, key)).split())


# Programs that run another one


@cache
def _wrappers(name: str) -> tuple[Wrapper, ...]:
    return tuple(_row(Wrapper, block) for block in blocks_of("wrapper", name))


def wrapper_of(name: str) -> Wrapper | None:
    """Return the wrapper row of a program, with a subcommand if it needs one; None for others."""
    return next(iter(_wrappers(name)), None)


def wraps_behind_subcommands(name: str) -> bool:
    """Return whether a program runs another one only after one of its subcommands."""
    return name in _names().wrapping


@cache
def _bare_shell() -> re.Pattern[str]:
    shells = "|".join(sorted(names_of_kind("shell")))
    return re.compile(rf"^\s*(?:exec\s+)?(?:/\S*/)?({shells})(?:\s+-[ipl]+)?\s*(?:#.*)?$")


def is_bare_shell(text: str) -> bool:
    """Return whether a command is a bare, interactive shell."""
    return _bare_shell().match(text) is not None


SSH_TAKES = "-i -p -l -o -F -J -L -R -D -b -c -E -e -I -m -O -S -W -w -B"
"""Options of ssh that take a value."""

STARTING = ("ProxyCommand=", "LocalCommand=", "KnownHostsCommand=", "LocalCommand ", "ProxyCommand ")
"""Options of ssh that run a command here."""


def commands_of_ssh(options: tuple[str, ...]) -> list[str]:
    """Return the commands that options of ssh run here."""
    return [value[len(start) :] for value in options for start in STARTING if value.startswith(start)]


def unwrap(wrapper: Wrapper, words: list[str], is_program: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the inner command (empty if there is none) and the scripts in option values."""
    line = read_line(words, wrapper.takes, to_operand=True)
    if line.flags & wrapper.looks:
        return [], []
    whole = read_line(words, wrapper.takes) if wrapper.instead or wrapper.loose else line
    scripts = [value.replace("\\_", " ") for value in whole.value_of(*wrapper.script)]  # `env -S` reads `\\_` so
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
        while inner and (inner[0] == "-" or "=" in inner[0]):  # any name: `env` accepts all
            inner.pop(0)
    return [] if wrapper.instead and scripts else inner[wrapper.skip :], scripts


# Variables


@cache
def all_variables() -> tuple[Variable, ...]:
    """Return every row."""
    return tuple(_row(Variable, block) for block in table("variables")["variable"])


@cache
def _by_name() -> dict[str, Variable]:
    return {name: row for row in all_variables() for name in row.names}


def variable_of(name: str) -> Variable | None:
    """Return the row of a variable, or None; a name in the table may contain a `*`."""
    row = _by_name().get(name)
    if row is None and "_" in name:
        return next((_by_name()[known] for known in _wild() if known in _by_name() and fnmatchcase(name, known)), None)
    return row


@cache
def _wild() -> tuple[str, ...]:
    return tuple(name for row in all_variables() for name in row.names if "*" in name)


@cache
def _changing() -> frozenset[str]:
    named = frozenset(name for row in all_variables() if row.holds is not Holds.TEXT for name in row.names)
    return named.union(*(words_in("variables", "changes_commands", key) for key in ("prompts", "reading", "code")))


def is_prompt(name: str) -> bool:
    """Return whether a variable is a prompt, whose substitutions the shell runs (`PS4` when it traces)."""
    return name in words_in("variables", "changes_commands", "prompts")


def changes_commands(name: str) -> bool:
    """Return whether a variable changes later commands. The list covers shells and common programs, not all."""
    return name in _changing() or name.startswith(tuple(words_in("variables", "changes_commands", "beginnings")))
