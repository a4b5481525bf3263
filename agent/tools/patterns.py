"""Regular expressions that take time linear in the text, whatever the expression: those of RE2.

There is no look-around and there are no back references; `\\d`, `\\w`, `\\s` and `\\b` mean ASCII.
"""

from functools import lru_cache
from typing import Any, BinaryIO

MOST_CHARACTERS = 100_000  # of a pattern
PIECE = 4 << 20  # bytes of a file read at once
LONGEST_LINE = 64 << 20  # bytes; a longer line is searched in parts


def compiled(text: str | bytes, *, literal: bool = False, ignore_case: bool = False) -> Any:
    """Return the expression for RE2. Raises ValueError for one that is none, with its reason and a cure."""
    import re2  # a library of C++, which nothing needs that has no pattern

    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the pattern has {len(text)} characters; {MOST_CHARACTERS} are the most")
    options = re2.Options()
    options.log_errors, options.literal, options.case_sensitive = False, literal, not ignore_case
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise ValueError(f"the pattern {_shown(text)} is not supported: {_reason(error)}") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error


def _shown(text: str | bytes) -> str:
    return repr(text.decode("utf-8", "replace")[:60] if isinstance(text, bytes) else text[:60])


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


_expression = lru_cache(maxsize=256)(compiled)


def matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text; one that is no Unicode it does not. Raises ValueError."""
    expression = _expression(pattern)
    try:
        return expression.fullmatch(text) is not None
    except UnicodeEncodeError:
        return False


class LinePattern:
    """A regular expression, or a literal text, that is looked for within single lines."""

    def __init__(self, text: str, *, literal: bool = False, ignore_case: bool = False) -> None:
        """Read the pattern. Raises ValueError for one that is empty, spans lines, or that RE2 does not take."""
        if not text:
            raise ValueError("the pattern is empty; give what to look for")
        if "\n" in text or "\0" in text:
            raise ValueError("the pattern holds a line break or NUL; what is looked for lies within one line")
        try:
            content = text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the pattern holds a lone surrogate at position {error.start}; leave it out") from error
        self._in_line = compiled(content, literal=literal, ignore_case=ignore_case)
        in_piece = content if literal else b"(?m)" + content
        self._in_piece = compiled(in_piece, literal=literal, ignore_case=ignore_case)

    def lines(self, file: BinaryIO, most: int) -> list[int]:
        """Return the numbers of the lines of a file that match, from 1 on and in order, at most `most`."""
        file.seek(0)
        rest, number, found = b"", 1, list[int]()
        while len(found) < most:
            piece = file.read(PIECE)
            content = rest + piece
            cut = content.rfind(b"\n") + 1 if piece else len(content)
            cut = len(content) if cut == 0 and len(content) > LONGEST_LINE else cut
            found += [number + line for line in self._lines_in(content[:cut])]
            number += content.count(b"\n", 0, cut)
            rest = content[cut:]
            if not piece:
                break
        return found[:most]

    def _lines_in(self, content: bytes) -> list[int]:
        """Return the numbers of the lines that match, from 0.

        A line that matches alone matches in its piece too, at the same place; what only matches there spans lines.
        """
        found, number, position, counted = list[int](), 0, 0, 0
        while position < len(content) and (match := self._in_piece.search(content, position)) is not None:
            begin = content.rfind(b"\n", 0, match.start()) + 1
            end = len(content) if (newline := content.find(b"\n", begin)) == -1 else newline
            if begin == len(content):
                break
            if self._in_line.search(content[begin:end]):
                number += content.count(b"\n", counted, begin)
                counted = begin
                found.append(number)
            position = end + 1
        return found
