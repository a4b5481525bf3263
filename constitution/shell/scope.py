"""The shell's state, as far as known at one point of a script: folder, variables, functions, pipes.

Everything has a *tuple of possible values*; a branch that may or may not be taken joins them. `UNKNOWN` is a value.
"""

from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from attrs import define, field

from constitution.effects import UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_VALUES = 8
MAX_LENGTH = 4_096
ANY_VALUE = (UNKNOWN,)


@define
class Scope:
    """A shell's state; copied where a subshell starts, joined where branches meet."""

    cwd: tuple[str, ...]
    home: str
    variables: dict[str, tuple[str, ...]] = field(factory=dict)
    arrays: dict[str, tuple[str, ...]] = field(factory=dict)
    functions: dict[str, "tuple[Node, bytes]"] = field(factory=dict)
    aliases: dict[str, str] = field(factory=dict)
    positional: tuple[str, ...] | None = None
    left: tuple[str, ...] = ()  # folders of the shell in case the last `cd` failed
    stops: bool = False  # `set -e`: a command that fails ends the script
    texts: frozenset[str] = frozenset()  # variables with unknown text, as from `read` and `$(cat FILE)`

    def copy(self) -> "Scope":
        """Return an independent copy."""
        return Scope(
            self.cwd,
            self.home,
            dict(self.variables),
            dict(self.arrays),
            dict(self.functions),
            dict(self.aliases),
            self.positional,
            self.left,
            self.stops,
            self.texts,
        )

    def move(self, folders: tuple[str, ...]) -> None:
        """Record a `cd`: until the next command that does not depend on it, the shell is in one of these folders."""
        self.left = _either(self.left, self.cwd)
        self.cwd = folders

    def stay(self) -> None:
        """Continue for both outcomes of the last `cd`: success and failure."""
        if self.left and not self.stops:
            self.cwd = _either(self.cwd, self.left)
        self.left = ()

    def values(self, name: str) -> tuple[str, ...]:
        """Return the possible values of a variable; if it was not set here, those at the start of the shell."""
        known = self.variables.get(name)
        if known is not None:
            return known
        if name == "HOME":
            return (self.home,)
        if name == "PWD":
            return tuple(folder or "." for folder in self.cwd)
        if name == "IFS":
            return (" ",)
        if name == "PPID":
            return (f"{UNKNOWN}bpagent",)  # an unknown number, of a known process: the agent's own
        if name.isdigit() and name != "0" and self.positional is not None:
            return (self.positional[int(name) - 1] if int(name) <= len(self.positional) else "",)
        return ANY_VALUE

    def assign(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable; too many or too long values are replaced by `UNKNOWN`."""
        modelled = len(values) <= MAX_VALUES and all(len(value) <= MAX_LENGTH for value in values)
        self.variables[name] = values if modelled else ANY_VALUE
        if name == "HOME":
            self.home = values[0] if len(values) == 1 and values[0].startswith("/") else UNKNOWN
        self.arrays.pop(name, None)
        self.texts -= {name}

    def join(self, other: "Scope") -> None:
        """Join another possible state into this one."""
        self.cwd = _either(self.cwd, other.cwd)
        self.home = self.home if self.home == other.home else UNKNOWN
        for name in self.variables.keys() | other.variables.keys():
            self.variables[name] = _either(self.values(name), other.values(name))
        for name in self.arrays.keys() ^ other.arrays.keys():
            self.arrays.pop(name, None)
            self.variables[name] = ANY_VALUE
        for name in self.arrays.keys() & other.arrays.keys():
            if self.arrays[name] != other.arrays[name]:
                self.arrays[name] = ANY_VALUE
        self.functions = {**other.functions, **self.functions}
        self.aliases = {**other.aliases, **self.aliases}
        self.texts |= other.texts
        self.left = _either(self.left, other.left)


def _either(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
    if one == two:
        return one
    both = tuple(dict.fromkeys(one + two))
    return both if len(both) <= MAX_VALUES else ANY_VALUE


# The contents of a pipe: known text, names of files, downloaded or decoded data, or anything


class Origin(Enum):
    """The source of the bytes in a pipe."""

    NOTHING = auto()
    TEXT = auto()  # exactly known
    NAMES = auto()  # names below known folders
    FETCHED = auto()
    DECODED = auto()
    FILE = auto()
    PROCESSES = auto()  # process IDs: unknown, with the names of the processes; "-1": all of a user
    ENDLESS = auto()  # endless bytes
    SHELL = auto()  # output of a shell whose commands come from outside
    ANYTHING = auto()


class Flow(NamedTuple):
    """The content of a pipe. `text` is set for TEXT; `names` (each below a known folder) for NAMES and FILE.

    The text of ANYTHING is the part that is known.
    """

    origin: Origin
    text: str = ""
    names: tuple[str, ...] = ()


NOTHING = Flow(Origin.NOTHING)
ANYTHING = Flow(Origin.ANYTHING)
EVERY_PROCESS = Flow(Origin.PROCESSES, names=("-1",))
"""The IDs of all processes of a user: for `kill`, equivalent to -1."""

STRONGEST = (Origin.SHELL, Origin.FETCHED, Origin.DECODED)


def one_after_the_other(flows: list[Flow]) -> Flow:
    """Return the joined output of several commands."""
    flows = [flow for flow in flows if flow.origin is not Origin.NOTHING]
    if len(flows) < 2:
        return flows[0] if flows else NOTHING
    text = "".join(flow.text for flow in flows)
    if all(flow.origin is Origin.TEXT for flow in flows):
        return Flow(Origin.TEXT, text)
    origins = {flow.origin for flow in flows}
    return Flow(next((origin for origin in STRONGEST if origin in origins), Origin.ANYTHING), text)
