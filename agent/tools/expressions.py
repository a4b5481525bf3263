"""Read a regular expression into its parts: signs, sequences, choices and repeats, as far as it can be followed."""

import re
from typing import Literal

from attrs import frozen

Place = Literal["edge", "word", "other"]
"""What stands beside a position: nothing, a letter, digit or _, or another character."""

_MOST_CHARACTERS = 10_000
_MOST_DEPTH = 100
_TOKEN = re.compile(
    r"""(?P<anchor>[\^$]|\\[bBAZ]) | (?P<refused>\\[0-9z]|\(\?(?!:|P<)) | (?P<group>\((?:\?:|\?P<\w+>)?) |
    (?P<bar>\|) | (?P<close>\)) |
    (?P<repeat>(?:[*+?]|\{\d+\}|\{\d*,\d*\})[?+]?) |
    (?P<sign>\\x..|\\u.{4}|\\U.{8}|\\N\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)""",
    re.VERBOSE | re.DOTALL,
)


@frozen
class Sign:
    """One character, of those that `pattern` matches."""

    pattern: "re.Pattern[str]"


@frozen
class Anchor:
    """A condition on what stands before and after a position: ^ $ \\b \\B."""

    kind: str

    def holds(self, before: Place, after: Place) -> bool:
        """Whether the condition holds between these two."""
        match self.kind:
            case "^" | "\\A":
                return before == "edge"
            case "$" | "\\Z":
                return after == "edge"
            case "\\b":
                return (before == "word") != (after == "word")
            case _:
                return (before == "word") == (after == "word")


@frozen
class Sequence:
    """One part after the other."""

    parts: "tuple[Expression, ...]"


@frozen
class Either:
    """One of some parts."""

    options: "tuple[Expression, ...]"


@frozen
class Repeat:
    """A part several times; `most` None is any number of times."""

    part: "Expression"
    least: int
    most: int | None


Expression = Sign | Anchor | Sequence | Either | Repeat


def read_expression(text: str) -> Expression:
    """Return the parts of an expression. Raises ValueError, saying what is wrong with it or not supported."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"the pattern has more than {_MOST_CHARACTERS} characters; write a shorter one")
    try:
        re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from error
    return _Reader(text).read()


class _Reader:
    """Goes through a valid expression once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def read(self, depth: int = 0) -> Expression:
        """Read up to the end, or to the ) of the group that is open."""
        if depth > _MOST_DEPTH:
            raise ValueError(f"the pattern has groups in more than {_MOST_DEPTH} groups; nest fewer")
        options: list[list[Expression]] = [[]]
        while (token := _TOKEN.match(self._text, self._position)) is not None:
            position, self._position = self._position, token.end()
            match token.lastgroup:
                case "close":
                    break
                case "bar":
                    options.append([])
                case "refused":
                    raise _refused(token[0], position)
                case "group":
                    options[-1].append(self.read(depth + 1))
                case "repeat":
                    if len(token[0]) > 1 and token[0].endswith("+"):
                        raise _refused(token[0], position)
                    options[-1].append(_repeated(options[-1].pop(), token[0]))
                case "anchor":
                    options[-1].append(Anchor(token[0]))
                case _:
                    options[-1].append(Sign(re.compile(_alone(token[0]), re.ASCII)))
        found = tuple(Sequence(tuple(parts)) for parts in options)
        return found[0] if len(found) == 1 else Either(found)


def _alone(sign: str) -> str:
    """Return a sign so that it means itself: a brace that begins no number is a character."""
    return re.escape(sign) if sign in ("{", "}", "]") else sign


def _repeated(part: Expression, token: str) -> Repeat:
    lazy = token.removesuffix("?") or "?"
    if lazy in ("*", "+", "?"):
        return Repeat(part, int(lazy == "+"), 1 if lazy == "?" else None)
    least, comma, most = lazy.strip("{}").partition(",")
    lowest = int(least or 0)
    return Repeat(part, lowest, (int(most) if most else None) if comma else lowest)


def _refused(what: str, position: int) -> ValueError:
    return ValueError(
        f"the pattern holds {what!r} at position {position}, which is not supported (no look-around, flags, back "
        "references, or repeats that never give back)"
    )
