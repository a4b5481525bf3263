"""Protocols of users: `FILE.py:NAME`, `FILE.py:NAME(steps=4)`, `module:NAME`, or a file of temporal policies (.yaml).

An episode depends on what is in the file, so that one that was changed runs again.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agent.protocols import LEFT_OPEN, NOTHING, OFFERED, Entry, entry_named
from agent.protocols.policies import PolicyError, read_policies
from agent.vocabulary.errors import meant, nearest
from agent.vocabulary.importing import NotImportable, read_name
from bp import BThread, BThreadFunction

POLICIES = (".yaml", ".yml")


def own_value(name: str, what: str, *kinds: type) -> Any:
    """Return the object of the user's that a plan names; `what` it is for stands in messages. Raises ValueError."""
    try:
        return read_name(name).value(f"{what}s", *kinds)
    except NotImportable as error:
        raise ValueError(f"the {what} {name!r}: {error}") from error


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


def is_own(name: str) -> bool:
    """Return whether a protocol is the user's own, and not of the catalogue."""
    return ":" in name or name.endswith(POLICIES)


def short_name(name: str) -> str:
    """Return what tables call a protocol."""
    if not is_own(name):
        return name
    return Path(name).stem if name.endswith(POLICIES) else read_name(name).short


@cache
def entry_of(name: str) -> Entry:
    """Return a protocol of the catalogue, or one of the user's own. Raises ValueError, which says what is wrong."""
    if not is_own(name):
        return entry_named(name)
    made = _policies(name) if name.endswith(POLICIES) else _named(name)
    entry = Entry(name, made, "a protocol of your own", NOTHING, name)
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
    where = name if name.endswith(POLICIES) else read_name(name).where
    try:
        text = Path(where).read_bytes() if where.endswith((".py", *POLICIES)) else where.encode()
    except OSError:
        text = b""
    return blake2b(text, digest_size=10).hexdigest()


def _policies(name: str) -> Any:
    try:
        bthreads = read_policies(name)
    except PolicyError as error:
        raise ValueError(str(error)) from error
    return lambda: bthreads


def _named(name: str) -> Any:
    value = own_value(name, "protocol", BThread, BThreadFunction)
    several = value if isinstance(value, tuple | list) else (value,)
    if several and all(isinstance(each, BThread) for each in several):
        return lambda: tuple(several)
    if not callable(value):
        raise ValueError(f"{name!r} is {type(value).__name__}; a protocol is a b-thread, or a function that makes some")
    return value
