"""Spelling: what to say about an unknown name: the one that was meant, or all known ones."""

from collections.abc import Iterable

__all__ = ["meant", "nearest"]


def nearest(name: str, known: Iterable[str], most: int = 3, *, cutoff: float = 0.5) -> tuple[str, ...]:
    """Return up to `most` of the known names that are spelled like `name`, nearest first; case does not count.

    cutoff: how much they have to resemble each other, of 1.
    """
    from difflib import get_close_matches  # only mistakes need it

    spelled = {each.lower(): each for each in known}
    return tuple(spelled[match] for match in get_close_matches(name.lower(), spelled, n=most, cutoff=cutoff))


def meant(name: str, known: Iterable[str]) -> str:
    """Return the cure for a name that is not among the known: "did you mean 'gated'?", or "there are: a, b"."""
    names = tuple(known)
    close = nearest(name, names, most=1)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
