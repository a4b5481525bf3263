"""Which programs and paths a command names, so that the caller can resolve them on disk before judging."""

from attrs import frozen

from constitution.paths import is_within
from constitution.zones import FOUND, UNKNOWN

__all__ = ["Mentions", "mentions"]

HOME = "/~"
"""Stands for the home folder until the caller knows it."""


@frozen
class Mentions:
    """`programs`: program words, as `PATH` would be asked for them. `paths`: words to resolve from where the command
    starts (`~` stays as it is); a `cd` in the command has been followed.
    """

    programs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def mentions(command: str) -> Mentions:
    """Return the program words and literal paths of a command. Total; of unreadable text, what can be read."""
    from constitution.examination import Examination  # the tables and the parser are loaded with the first use
    from constitution.shell.scope import Scope
    from constitution.shell.walk import Walk

    scope = Scope(("",), HOME)
    examination = Examination(scope, {}, {})
    try:
        Walk(examination, scope).run(command)
    except RecursionError:
        return Mentions()
    literal = (path for path in examination.words if path and not any(mark in path for mark in (UNKNOWN, FOUND, "*")))
    paths = ("~" + path[len(HOME) :] if is_within(path, HOME) else path for path in literal)
    return Mentions(tuple(examination.programs), tuple(paths))
