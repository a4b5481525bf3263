"""Protocols of users: `FILE.py:NAME`, `FILE.py:NAME(steps=4)`, `module:NAME`, or a file of temporal policies (.yaml).

An episode depends on them, so it runs again after a change (`agent.lab.dependencies`).
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agent import protocols
from agent.lab.dependencies import sources
from agent.protocols import POLICIES_FILES, Entry, is_own, own_value
from agent.vocabulary.errors import meant, nearest
from agent.vocabulary.importing import module_at, read_name


def own_object(name: str, what: str, method: str, has: str) -> Any:
    """Return the user's object if it has the method, else the result of calling it. Raises ValueError.

    has: the required attributes, for the message about an object without them.
    """
    found = own_value(name, what)
    try:
        made = found() if isinstance(found, type) or (callable(found) and not hasattr(found, method)) else found
    except Exception as error:  # whatever a foreign class may raise
        raise ValueError(f"the {what} {name!r} cannot be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, method, None)) or (what == "model" and not hasattr(made, "name")):
        raise ValueError(f"{name!r} is no {what}; give it {has}")
    return made


def short_name(name: str) -> str:
    """Return the name of a protocol in tables."""
    if not is_own(name):
        return name
    return Path(name).stem if name.endswith(POLICIES_FILES) else read_name(name).short


PARAMETERS = (
    "monitor", "monitors", "threshold", "is_critical", "honeypots",
    "draws", "limit", "buckets", "runs", "budget", "near", "auditor",
)  # fmt: skip
"""Parameters of protocols: those that an experiment fills in, then those that a plan may set."""


@cache
def entry_of(name: str) -> Entry:
    """Return a protocol that ships, or one of the user's own. Raises ValueError, which says what is wrong."""
    entry = protocols.entry_of(name)
    if is_own(name):
        _check_spelling(entry)
    return entry


def check_taken(use: Sequence[str], option: str) -> None:
    """Raise ValueError for an option that none of these protocols accepts."""
    takes = {name for protocol in use for name in entry_of(protocol).takes}
    if option not in takes:
        known = sorted(takes.intersection(PARAMETERS))
        raise ValueError(f"{option!r} is not an option of {' or '.join(use)}; {meant(option, known)}")


def _check_spelling(entry: Entry) -> None:
    """Raise ValueError for a misspelled parameter, which would get no argument."""
    for name in sorted(entry.takes - set(PARAMETERS)):
        near = nearest(name, PARAMETERS, most=1, cutoff=0.8)
        if near:
            told = f"the protocol {entry.name!r} has a parameter {name!r}, which no experiment passes"
            raise ValueError(f"{told}; did you mean {near[0]!r}? Else give it a name of its own")


def own_object_of(name: str) -> object:
    """Return the object that a name of the user's names; the name if it is that of a file of policies, or a script."""
    return read_name(name).value("objects") if _is_python(name) else name


def files_of(name: str) -> object:
    """Return the user's file or module of a name, in a form to take the digest of; empty for what ships."""
    return module_at(read_name(name).where) if _is_python(name) else sources(Path(name))


def _is_python(name: str) -> bool:
    return ":" in name and not name.endswith(POLICIES_FILES)
