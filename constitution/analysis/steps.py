"""The input and the output of an analysis: a command, and the steps that follow from it.

An analysis is a function from a `Command` to steps. `Found` is a finding; other steps change the state, or name
something more to examine: a script, another command, a file that is run. `examine` carries steps out, in order.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

from constitution.action import NOTHING_FOUND, Disk
from constitution.analysis.file_flow import Files
from constitution.effects import Effect
from constitution.shell.scope import NOTHING, Flow, Scope
from constitution.tables import kinds_of
from constitution.tables.rows import Line, is_bare_shell, options_in, read_line
from constitution.zones import resolve

BARE_SHELL = "start a shell in which anything can be typed"


class Command(NamedTuple):
    """A simple command with partly known words, and its context."""

    name: str  # of the program in the tables
    kinds: frozenset[str]  # of the program
    argv: list[str]
    stdin: Flow
    text: str  # of the command, as written
    source: bytes  # the whole script around it
    scope: Scope  # the state of the shell; read only
    start: str  # the folder in which the call starts
    home: str
    files: Files
    resolved: Mapping[str, str]  # real paths by lexical ones
    placing: bool = False  # it is in a file that runs at every start
    production: bool = False  # a variable selects production for programs
    disk: Disk = NOTHING_FOUND

    def with_argv(self, argv: list[str], *, name: str | None = None) -> "Command":
        """Return the same command with other words."""
        return self._replace(argv=argv) if name is None else self._replace(argv=argv, name=name, kinds=kinds_of(name))

    def read(self, takes: str = "", *, to_operand: bool = False, long_style: bool = False) -> Line:
        """Return the options and operands behind the program; `takes`: the options with a value, as in `read_line`."""
        return read_line(self.argv[1:], options_in(takes), to_operand=to_operand, long_style=long_style)

    def absolute(self, word: str) -> list[str]:
        """Return the paths that a word may name, before links are followed."""
        return [resolve(word, cwd=cwd, home=self.home) for cwd in self.scope.cwd]

    def targets(self, word: str) -> list[str]:
        """Return the paths that a word may name, links followed."""
        return [self.resolved.get(path, path) for path in self.absolute(word)]

    def content(self, file: str) -> Flow:
        """Return the single known text that the script wrote to a file; else the file's name."""
        return self.files.of(file, self.targets(file))


# Tuples, for speed: they are made for every command.


class Found(NamedTuple):
    """An effect of the command, on a path or without one; `says` completes "<program> would ..."."""

    effect: Effect
    path: str | None = None
    says: str = ""
    program: str = ""


class Script(NamedTuple):
    """Shell text that the command runs."""

    text: str
    stdin: Flow = NOTHING
    arguments: tuple[str, ...] | None = None  # `$1`, `$2`, ...; None: those of the enclosing script


class Started(NamedTuple):
    """Another command that the command runs; `by_shell`: its name may be a function or an alias."""

    argv: list[str]
    stdin: Flow = NOTHING
    by_shell: bool = False


class Runs(NamedTuple):
    """A file is run: `read` returns the steps of each content that the script writes to it, before or after."""

    file: str
    read: Callable[[Flow], "Steps"]


class Wrote(NamedTuple):
    """A file gets a content."""

    file: str
    flow: Flow


class Set(NamedTuple):
    """A variable gets one of these values; `exported`: for the command behind it only; `text`: it may be any text."""

    name: str
    values: tuple[str, ...]
    exported: bool = False
    text: bool = False


class Because(NamedTuple):
    """A fact on the disk because of which there is no finding with this effect."""

    told: str
    effect: Effect


class What(Enum):
    """A change of the state, by its kind; in capitals the words that it has."""

    BEGUN = auto()  # FILE is run, which may lie in a downloaded folder
    COPIED = auto()  # from SOURCE to TARGET
    LINKED = auto()  # TARGET gets the name LINK
    FETCHED = auto()  # the content of FOLDER is downloaded
    REMOTE = auto()  # NAME is a remote at ADDRESS
    SENT = auto()  # something computed is sent to another machine
    MOVED = auto()  # the shell is in one of these FOLDERS
    ARGUMENTS = auto()  # the script gets other ARGUMENTS
    ALIAS = auto()  # NAME stands for TEXT
    STOPS = auto()  # from here on, a failing command ends the script
    PRODUCTION = auto()  # from here on, programs work in production


class Change(NamedTuple):
    """A change of what is known about files, or about the shell."""

    what: What
    words: tuple[str, ...] = ()


class Placed(NamedTuple):
    """These steps are done at every start."""

    steps: "tuple[Step, ...]"


Step = Found | Script | Started | Runs | Wrote | Set | Because | Placed | Change
Steps = Iterator[Step]
Read = Callable[[str], Steps]
"""Returns the steps of a code that is run."""


def as_script(text: str) -> Steps:
    """Read a text as shell."""
    yield Script(text)


def as_typed(text: str) -> Steps:
    """Read a text as shell; a shell alone is one in which anything can be typed."""
    if is_bare_shell(text):
        yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)
    yield Script(text)
