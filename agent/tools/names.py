"""Find the names that someone may have meant."""

from collections.abc import Iterable

__all__ = ["explain_unknown", "nearest"]


def nearest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return up to three of `names` that are spelled like `name`, nearest first."""
    from difflib import get_close_matches

    spelled = {known.lower(): known for known in names}
    return tuple(spelled[match] for match in get_close_matches(name.lower(), spelled, n=3, cutoff=0.5))


def explain_unknown(name: str, names: Iterable[str]) -> str:
    """Return the answer to a call of a tool that is not there: "unknown tool 'bsh'; nearest: bash"."""
    names = tuple(names)
    near = nearest(name, names)
    if near:
        return f"unknown tool {name!r}; nearest: {', '.join(near)}"
    return f"unknown tool {name!r}; known: {', '.join(sorted(names)) or 'none'}"
