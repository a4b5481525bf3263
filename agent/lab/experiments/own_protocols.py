"""Protocols of users: `FILE.py:NAME`, `FILE.py:NAME(steps=4)`, `module:NAME`, or a file of temporal policies (.yaml).

An episode depends on what is in the file, so that one that was changed runs again.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agent import protocols
from agent.protocols import LEFT_OPEN, OFFERED, POLICIES_FILES, Entry, is_own, own_value
from agent.vocabulary.errors import meant, nearest
from agent.vocabulary.importing import read_name


def own_object(name: str, what: str, method: str, has: str) -> Any:
    """Return an object with a method, or what a function or class of the user's makes. Raises ValueError.

    has: all that such an object has, for the message about one that has not.
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
    """Return what tables call a protocol."""
    if not is_own(name):
        return name
    return Path(name).stem if name.endswith(POLICIES_FILES) else read_name(name).short


@cache
def entry_of(name: str) -> Entry:
    """Return a protocol that ships, or one of the user's own. Raises ValueError, which says what is wrong."""
    entry = protocols.entry_of(name)
    if is_own(name):
        _check_spelling(entry)
    return entry


def check_taken(use: Sequence[str], option: str) -> None:
    """Raise ValueError for an option that none of these protocols takes."""
    takes = {name for protocol in use for name in entry_of(protocol).takes}
    if option not in takes:
        known = sorted(takes.intersection((*OFFERED, *LEFT_OPEN)))
        raise ValueError(f"{option!r} is nothing that {' or '.join(use)} takes; {meant(option, known)}")


def _check_spelling(entry: Entry) -> None:
    """Raise ValueError for a parameter that would be given nothing because of how it is spelled."""
    known = (*OFFERED, *LEFT_OPEN)
    for name in sorted(entry.takes - set(known)):
        near = nearest(name, known, most=1, cutoff=0.8)
        if near:
            told = f"the protocol {entry.name!r} has a parameter {name!r}, which no experiment gives it"
            raise ValueError(f"{told}; did you mean {near[0]!r}? Else give it a name of its own")


def digest_of(name: str) -> str:
    """Return a digest of the file in which a protocol is written; of a module, its name."""
    where = name if name.endswith(POLICIES_FILES) else read_name(name).where
    try:
        text = Path(where).read_bytes() if where.endswith((".py", *POLICIES_FILES)) else where.encode()
    except OSError:
        text = b""
    return blake2b(text, digest_size=10).hexdigest()
