"""Where a text stands in a file: exactly or, if nowhere, with typographic signs and line ends taken as equal (S2).

A model writes "straight quotes" and - dashes where a file has “curly” ones, and \\n where it has \\r\\n. Nothing else
is tolerated, white space counts.
"""

import re

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
        raise ToolError(
            f"oldText stands {len(spans)} times in {path} (at lines {lines}{more}); "
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
    """Return every place, overlapping ones too: what overlaps is as unclear as what does not."""
    found = []
    start = text.find(wanted)
    while start != -1:
        found.append(Span(start, start + len(wanted)))
        start = text.find(wanted, start + 1)
    return found


def _tolerantly(text: str, wanted: str) -> list[Span]:
    """Signs are exchanged one for one, so that places stay the same; a line end may have a \\r or not."""
    plain = wanted.replace("\r\n", "\n").translate(_PLAIN)
    pattern = re.compile(f"(?=({re.escape(plain)}))".replace("\\\n", "\r?\n"))
    return [Span(match.start(1), match.end(1), exact=False) for match in pattern.finditer(text.translate(_PLAIN))]
