"""Whether JSON text that comes in pieces is closed by now, without reading it all again with every piece."""

import re

__all__ = ["Nesting"]

_MARKS = re.compile(r'\\.|["{}\[\]]|\\\Z', re.DOTALL)


class Nesting:
    """How deep the text is nested where it ends. It is not checked further: closed text may still be no JSON."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escapes_next = False

    @property
    def is_closed(self) -> bool:
        """True outside of all texts, objects and arrays."""
        return self._depth == 0 and not self._in_text

    def feed(self, piece: str) -> None:
        """Take the next piece."""
        if self._escapes_next and piece:
            piece, self._escapes_next = piece[1:], False
        for mark in _MARKS.findall(piece):
            if mark[0] == "\\":
                self._escapes_next = len(mark) == 1
            elif mark == '"':
                self._in_text = not self._in_text
            elif not self._in_text:
                self._depth += 1 if mark in "{[" else -1
