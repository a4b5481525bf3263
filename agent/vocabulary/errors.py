"""Errors of agents and tools, and suggestions for unknown names; `bp` has the engine's errors."""

from collections.abc import Iterable


class AgentError(Exception):
    """The base class of the errors of agents: logs, options, models, runs."""


class RunError(AgentError):
    """The log, a projection or an observer failed during a run; the message names it, and `__cause__` is its error."""


class ToolError(Exception):
    """A tool could not do what it was asked; the message is for the model."""


class PathRefused(ToolError, PermissionError):
    """A path that a tool may not touch: outside the allowed paths, denied, or not an ordinary file."""


class CannotStart(ToolError):
    """A process could not start: the program or directory does not exist, or the arguments are invalid."""


def one_of(error: BaseException) -> BaseException:
    """Return the first error of a group, in however many groups; any other error as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def nearest(name: str, known: Iterable[str], most: int = 3, *, cutoff: float = 0.5) -> tuple[str, ...]:
    """Return up to `most` of the known names that are spelled like `name`, nearest first; case does not count.

    cutoff: the least similarity, from 0 to 1.
    """
    from difflib import get_close_matches  # only mistakes need it

    spelled = {each.lower(): each for each in known}
    return tuple(spelled[match] for match in get_close_matches(name.lower(), spelled, n=most, cutoff=cutoff))


def meant(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name: "did you mean 'gated'?", or "there are: a, b"."""
    names = tuple(known)
    close = nearest(name, names, most=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names) or 'none'}"
