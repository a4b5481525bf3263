"""Spelling: what to say about a name that there is not: the one that was meant, or all that there are."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["meant", "resembled"]


def meant(name: str, known: Iterable[str]) -> str:
    """Return the cure for a name that is not among the known: "did you mean 'gated'?", or "there are: a, b"."""
    names = list(known)
    close = resembled(name, names)
    return f"there are: {', '.join(names) or 'none'}" if close is None else f"did you mean {close!r}?"


def resembled(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """Return the one of the known names that a name resembles most; None where none does, by `cutoff` of 1."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)
