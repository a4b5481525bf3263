"""Spelling: what to say about a name that there is not: the one that was meant, or all that there are."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["meant"]


def meant(name: str, known: Iterable[str]) -> str:
    """Return the cure for a name that is not among the known: "did you mean 'gated'?", or "there are: a, b"."""
    names = list(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
