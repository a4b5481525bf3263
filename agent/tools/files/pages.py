"""Read one page of a file of any length, in bounded memory: some lines from a line on, and how many there are."""

from typing import BinaryIO

from attrs import frozen

from agent.tools.cutting import Cut, cut_head

__all__ = ["Page", "read_page"]

_PIECE = 1 << 20  # bytes read at once


@frozen
class Page:
    """Lines `first` to `last` of a file with `total` lines; `cut` says what was left out of the lines asked for.

    A page with nothing on it has `last` before `first`.
    """

    cut: Cut
    first: int
    last: int
    total: int


def read_page(file: BinaryIO, *, first: int, limit: int | None, most_lines: int, most_bytes: int) -> Page:
    """Return lines from `first` (1 is the first) on: at most `limit`, `most_lines` and `most_bytes` of them.

    The file is read to its end, to count its lines; what is held is a page and one piece.
    """
    asked = most_lines + 1 if limit is None else min(limit, most_lines + 1)
    collector = _Collector(first, first + asked, most_bytes)
    while piece := file.read(_PIECE):
        collector.take(piece)
    cut = cut_head(bytes(collector.kept), most_lines=most_lines, most_bytes=most_bytes)
    return Page(cut, first, first + cut.kept_lines - 1, collector.total)


class _Collector:
    """Counts lines, and keeps those from `first` up to `end`: at most a byte more than `most_bytes`."""

    def __init__(self, first: int, end: int, most_bytes: int) -> None:
        self.kept = bytearray()
        self._first, self._end, self._most_bytes = first, end, most_bytes
        self._newlines = 0
        self._line_begun = False

    @property
    def total(self) -> int:
        return self._newlines + self._line_begun

    def take(self, piece: bytes) -> None:
        newlines = piece.count(b"\n")
        line = self._newlines + 1  # in which the piece begins
        room = self._most_bytes + 1 - len(self.kept)
        if room > 0 and line < self._end and line + newlines >= self._first:
            start = _after_newlines(piece, self._first - line)
            stop = _after_newlines(piece, self._end - line)
            self.kept += piece[start : min(stop, start + room)]
        self._newlines += newlines
        self._line_begun = not piece.endswith(b"\n")


def _after_newlines(piece: bytes, count: int) -> int:
    """Return where the text after `count` newlines begins; the end where there are fewer."""
    position = 0
    for _ in range(max(count, 0)):
        position = piece.find(b"\n", position) + 1
        if position == 0:
            return len(piece)
    return position
