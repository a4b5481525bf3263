"""How bytes become the events of a server-sent event stream, in whatever pieces they come, in bounded memory.

The form is that of the HTML standard (9.2.6), of which chat completions use only data lines: an event is the data
lines before a blank line, joined by newlines. Where the standard drops an event that the end of the stream cuts, it
is given here: if it was whole it counts, and if it was not its reader will say so.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator

from agent.models.model import ModelError

__all__ = ["LONGEST_EVENT", "EventDecoder", "WholeBody"]

LONGEST_EVENT = 8_000_000
"""Bytes that one event may have; a longer one is an error."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_IS_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")


class EventDecoder:
    """Feed it the bytes as they come; it gives the data of each event that they complete.

    Raises `ModelError` for an event longer than `LONGEST_EVENT`, UnicodeDecodeError for one that is not UTF-8.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._lines: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._is_first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        """Take the next bytes; yield the data of the events that end in them."""
        if self._after_return and piece.startswith(b"\n"):  # the second half of a line end that was cut in two
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        *ended, rest = _LINE_END.split(piece)
        for part in ended:
            self._grow(part)
            yield from self._end_line()
        self._grow(rest)

    def finish(self) -> Iterator[str]:
        """Take the end of the stream; yield the data of an event that no blank line ended."""
        yield from self._end_line()
        yield from self._end_line()

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        _check_size(self._size)
        self._line += part

    def _end_line(self) -> Iterator[str]:
        line = bytes(self._line)
        self._line.clear()
        if self._is_first:
            line, self._is_first = line.removeprefix(BOM_UTF8), False
        field, _, value = line.partition(b":")
        if field == b"data":
            self._lines.append(value.removeprefix(b" "))
            self._size += 100  # what an empty line costs in memory
        elif line:  # comments and other fields
            self._size -= len(line)
        else:
            lines, self._lines, self._size = self._lines, [], 0
            if lines:
                yield b"\n".join(lines).decode()


class WholeBody:
    """The decoder for a server that says it does not stream: the body is one event, unless it streams after all."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, piece: bytes) -> Iterator[str]:
        """Take the next bytes; yield nothing yet. Raises `ModelError` beyond `LONGEST_EVENT`."""
        _check_size(len(self._body) + len(piece))
        self._body += piece
        yield from ()

    def finish(self) -> Iterator[str]:
        """Yield the body, or the events in it."""
        if _IS_STREAM.match(self._body):
            decoder = EventDecoder()
            yield from decoder.feed(bytes(self._body))
            yield from decoder.finish()
        else:
            yield self._body.decode("utf-8-sig")


def _check_size(size: int) -> None:
    if size > LONGEST_EVENT:
        raise ModelError(
            f"the model's server sent more than {LONGEST_EVENT:,} bytes in one event; ask for less at once"
        )
