"""Finding the rows of a program: by its name, and by its subcommands, however deep they are."""

import re
from collections.abc import Iterator
from functools import cache

from constitution.programs.clients import CLIENTS
from constitution.programs.clouds import CLOUDS
from constitution.programs.clusters import CLUSTERS
from constitution.programs.containers import CONTAINERS
from constitution.programs.development import DEVELOPMENT
from constitution.programs.escapes import ESCAPES
from constitution.programs.fetching import FETCHING
from constitution.programs.files import FILES
from constitution.programs.guards import GUARDS
from constitution.programs.harmless import HARMLESS
from constitution.programs.keepers import KEEPERS
from constitution.programs.messages import MESSAGES
from constitution.programs.network import NETWORK
from constitution.programs.options import read_line
from constitution.programs.packages import PACKAGES
from constitution.programs.pipelines import PIPELINES
from constitution.programs.preferences import PREFERENCES
from constitution.programs.program import Program
from constitution.programs.publishing import PUBLISHING
from constitution.programs.queues import QUEUES
from constitution.programs.running import RUNNING
from constitution.programs.schedulers import SCHEDULERS
from constitution.programs.spies import SPIES
from constitution.programs.stores import STORES
from constitution.programs.system import SYSTEM
from constitution.programs.versions import VERSIONS
from constitution.programs.windows import WINDOWS

__all__ = ["HARMLESS", "PROGRAMS", "is_known", "program_name", "rows_for", "subcommands"]

PROGRAMS: tuple[Program, ...] = (
    *FILES,
    *SYSTEM,
    *RUNNING,
    *GUARDS,
    *SPIES,
    *NETWORK,
    *CLOUDS,
    *CLUSTERS,
    *SCHEDULERS,
    *STORES,
    *KEEPERS,
    *VERSIONS,
    *PACKAGES,
    *DEVELOPMENT,
    *CONTAINERS,
    *PUBLISHING,
    *FETCHING,
    *MESSAGES,
    *PIPELINES,
    *QUEUES,
    *PREFERENCES,
    *CLIENTS,
    *WINDOWS,
    *ESCAPES,
)

VERSIONED = re.compile(r"(?:[-.]?\d+(?:\.\d+)*|\.exe)$")


@cache
def _index() -> dict[str, tuple[Program, ...]]:
    index: dict[str, tuple[Program, ...]] = {}
    for program in PROGRAMS:
        for name in program.names:
            index[name] = (*index.get(name, ()), program)
    return index


@cache
def _with_subcommands() -> dict[str, frozenset[str]]:
    """Return, for each program that has rows for subcommands, its own options that take a value."""
    index = _index()
    heads = {name.split()[0] for name in index if " " in name}
    return {head: frozenset().union(*(row.takes for row in index.get(head, ()))) for head in heads}


def rows_for(name: str, words: list[str]) -> Iterator[tuple[Program, list[str]]]:
    """Yield each row that speaks about a command, with the words that its options and operands are read from."""
    index = _index()
    for row in index.get(name, ()):
        yield row, words
    if name in _with_subcommands():
        for longer, rest in subcommands(name, words):
            for row in index.get(longer, ()):
                yield row, rest


def subcommands(name: str, words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield a program's name with its first operand, with its first two, and with three; and the words behind them."""
    takes, rest = _with_subcommands().get(name, frozenset()), words
    for _ in range(3):
        rest = list(read_line(rest, takes, to_operand=True).operands)
        if not rest:
            return
        name, rest = f"{name} {rest[0]}", rest[1:]
        yield name, rest


@cache
def _known_names() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _index()) | HARMLESS


def program_name(word: str, also: frozenset[str] = frozenset()) -> str:
    """Return the name by which the tables know a program word: no folder, no version (`/usr/bin/python3.11`)."""
    name = word.rpartition("/")[2] or word
    if name in _known_names() or name in also:
        return name
    plain = VERSIONED.sub("", name)
    if plain in _known_names() or plain in also:
        return plain
    stem = name.partition(".")[0]
    return stem if stem in ("mkfs", "newfs", "fsck") else name


def is_known(name: str) -> bool:
    """Return whether a table knows the program."""
    return name in _known_names()
