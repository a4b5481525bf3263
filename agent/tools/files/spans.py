"""Where a text stands in a file: exactly or, if nowhere, with typographic signs and line ends taken as equal (S2).

A model writes "straight quotes" and - dashes where a file has “curly” ones, and \\n where it has \\r\\n. Nothing else
is tolerated, white space counts.
"""

from bisect import bisect_left
from collections.abc import Iterator

from attrs import frozen

from agent.tools.errors import ToolError

__all__ = ["Span", "find_span", "with_line_ends"]

_QUOTES, _DOUBLE_QUOTES = "‘’‚‛′‵", "“”„‟″‶«»"
_DASHES = "‐‑‒–—―−﹘﹣－"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN = str.maketrans(
    dict.fromkeys(_QUOTES, "'") | dict.fromkeys(_DOUBLE_QUOTES, '"') | dict.fromkeys(_DASHES, "-")
    | dict.fromkeys(_SPACES, " ")
)  # fmt: skip
_MOST_NAMED = 5  # places that a message lists
_MOST_COUNTED = 100


@frozen
class Span:
    """Characters `start` to `end` of a text; `exact` tells that nothing had to be tolerated."""

    start: int
    end: int
    exact: bool = True


def find_span(text: str, wanted: str, path: str) -> Span:
    """Return the one place where `wanted` stands. Raises ToolError, naming `path`, for none or several."""
    spans = _exactly(text, wanted) or _tolerantly(text, wanted)
    if not spans:
        raise ToolError(
            f"oldText was not found in {path}; it must match exactly, white space and line breaks included: "
            "read the file again"
        )
    if len(spans) > 1:
        lines = ", ".join(str(text.count("\n", 0, span.start) + 1) for span in spans[:_MOST_NAMED])
        more = " and more" if len(spans) > _MOST_NAMED else ""
        count = f"{_MOST_COUNTED} times or more" if len(spans) == _MOST_COUNTED else f"{len(spans)} times"
        raise ToolError(
            f"oldText stands {count} in {path} (at lines {lines}{more}); "
            "give more of what is around it, so that it stands there once"
        )
    return spans[0]


def with_line_ends(new: str, text: str, span: Span) -> str:
    """Return `new` with line ends like those of `text` at `span`; line ends that it has itself are kept."""
    if "\r" in new or "\n" not in new:
        return new
    newline = text.find("\n", span.start)
    if newline == -1:
        newline = text.rfind("\n", 0, span.start)
    return new.replace("\n", "\r\n") if newline > 0 and text[newline - 1] == "\r" else new


def _exactly(text: str, wanted: str) -> list[Span]:
    """Return the places, overlapping ones too: what overlaps is as unclear as what does not."""
    return [Span(start, start + len(wanted)) for start in _places(text, wanted)]


def _tolerantly(text: str, wanted: str) -> list[Span]:
    """Signs are exchanged one for one, so that places stay the same; a line end may have a \\r or not."""
    plain = wanted.replace("\r\n", "\n").translate(_PLAIN)
    places = _places(text.replace("\r\n", "\n").translate(_PLAIN), plain)
    shortened = list(_shortened(text)) if places else []
    return [
        Span(start + bisect_left(shortened, start), end + bisect_left(shortened, end), exact=False)
        for start, end in ((place, place + len(plain)) for place in places)
    ]


def _shortened(text: str) -> Iterator[int]:
    """Yield where each line end that had a \\r is once all these are gone."""
    position = text.find("\r\n")
    gone = 0
    while position != -1:
        yield position - gone
        gone += 1
        position = text.find("\r\n", position + 2)


def _places(text: str, wanted: str) -> list[int]:
    """Return where `wanted` begins: at most as many places as are counted, for each takes as long as it is long."""
    found: list[int] = []
    start = text.find(wanted)
    while start != -1 and len(found) < _MOST_COUNTED:
        found.append(start)
        start = text.find(wanted, start + 1)
    return found
