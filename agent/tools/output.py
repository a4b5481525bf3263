"""Keep the beginning and the end of an output of any length, in bounded memory.

The first half of the limit and the last half are kept; what lies between is counted and named in a notice.
"""

import codecs

__all__ = ["HeadAndTail", "keep_head"]

_CONTINUATION = range(0x80, 0xC0)  # bytes of UTF-8 that do not begin a character


class HeadAndTail:
    """Collects bytes, and holds at most `limit` of them (and the one piece that is being added)."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.total > len(self._head) + len(self._tail)

    def add(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.total += len(piece)
        room = self._head_limit - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]

    def text(self) -> str:
        """Return what is kept as text; bytes that are no UTF-8 become U+FFFD."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        tail = _from_character(self._tail).decode("utf-8", "replace")
        left_out = self.total - len(self._head) - len(self._tail)
        return f"{head}\n[output truncated: {left_out} of {self.total} bytes left out here]\n{tail}"


def keep_head(content: bytes, limit: int, total: int) -> str:
    """Return the first `limit` bytes as text, with a notice if `total` is more than that."""
    if total <= limit:
        return content.decode("utf-8", "replace")
    head = codecs.getincrementaldecoder("utf-8")("replace").decode(content[:limit])
    return f"{head}\n[output truncated: the first {limit} of {total} bytes]"


def _from_character(tail: bytearray) -> bytearray:
    """Drop the rest of a character that was cut in two: at most three bytes."""
    start = next((index for index, byte in enumerate(tail[:4]) if byte not in _CONTINUATION), None)
    if start is None:
        return tail if len(tail) > 3 else bytearray()
    return tail[start:]
