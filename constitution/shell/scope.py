"""The shell's state as far as it is known at one point of a script: folder, variables, functions.

Everything has a *tuple of possible values*; a branch that may or may not be taken joins them. `UNKNOWN` is a value.
"""

from typing import TYPE_CHECKING

from attrs import define, field

from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_VALUES", "Scope"]

MAX_VALUES = 8
MAX_LENGTH = 4_096
ANYTHING = (UNKNOWN,)


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
    left: tuple[str, ...] = ()  # folders in which the shell still is if the last `cd` has failed
    stops: bool = False  # `set -e`: a command that fails ends the script
    texts: frozenset[str] = frozenset()  # variables that may hold any text, as `read` and `$(cat FILE)` give it

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

    def with_arguments(self, arguments: tuple[str, ...]) -> "Scope":
        """Return a copy with other positional arguments."""
        copy = self.copy()
        copy.positional = arguments
        return copy

    def move(self, folders: tuple[str, ...]) -> None:
        """Take a `cd`: until the next command that does not depend on it, the shell is in one of these folders."""
        self.left = _either(self.left, self.cwd)
        self.cwd = folders

    def stay(self) -> None:
        """Take what follows whether or not the last `cd` has failed."""
        if self.left and not self.stops:
            self.cwd = _either(self.cwd, self.left)
        self.left = ()

    def values(self, name: str) -> tuple[str, ...]:
        """Return the possible values of a variable; of one that was never set here, what the shell starts with."""
        known = self.variables.get(name)
        if known is not None:
            return known
        if name == "HOME":
            return (self.home,)
        if name == "PWD":
            return self.cwd
        if name == "IFS":
            return (" ",)
        if name == "PPID":
            return (f"{UNKNOWN}bpagent",)  # a number that is not known, of a process that is: the agent's own
        if name.isdigit() and name != "0" and self.positional is not None:
            return (self.positional[int(name) - 1] if int(name) <= len(self.positional) else "",)
        return ANYTHING

    def assign(self, name: str, values: tuple[str, ...]) -> None:
        """Set a variable; too many possible values, or too long ones, are as good as unknown."""
        modelled = len(values) <= MAX_VALUES and all(len(value) <= MAX_LENGTH for value in values)
        self.variables[name] = values if modelled else ANYTHING
        if name == "HOME":
            self.home = values[0] if len(values) == 1 and values[0].startswith("/") else UNKNOWN
        self.arrays.pop(name, None)
        self.texts -= {name}

    def join(self, other: "Scope") -> None:
        """Make this the state after either this or `other` happened."""
        self.cwd = _either(self.cwd, other.cwd)
        self.home = self.home if self.home == other.home else UNKNOWN
        for name in self.variables.keys() | other.variables.keys():
            self.variables[name] = _either(self.values(name), other.values(name))
        for name in self.arrays.keys() ^ other.arrays.keys():
            self.arrays.pop(name, None)
            self.variables[name] = ANYTHING
        for name in self.arrays.keys() & other.arrays.keys():
            if self.arrays[name] != other.arrays[name]:
                self.arrays[name] = ANYTHING
        self.functions = {**other.functions, **self.functions}
        self.aliases = {**other.aliases, **self.aliases}
        self.texts |= other.texts
        self.left = _either(self.left, other.left)


def _either(one: tuple[str, ...], two: tuple[str, ...]) -> tuple[str, ...]:
    if one == two:
        return one
    both = tuple(dict.fromkeys(one + two))
    return both if len(both) <= MAX_VALUES else ANYTHING
