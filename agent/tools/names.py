"""What a model is told that calls a tool which is not there."""

from collections.abc import Iterable

from agent.vocabulary.spelling import nearest

__all__ = ["explain_unknown"]


def explain_unknown(name: str, names: Iterable[str]) -> str:
    """Return the answer to a call of a tool that is not there: "unknown tool 'bsh'; nearest: bash"."""
    names = tuple(names)
    near = nearest(name, names)
    if near:
        return f"unknown tool {name!r}; nearest: {', '.join(near)}"
    return f"unknown tool {name!r}; known: {', '.join(sorted(names)) or 'none'}"
