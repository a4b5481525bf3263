"""A response whose size cannot hurt: no event of its stream, and no error page, takes unbounded memory."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from agent.models.model import ModelError

if TYPE_CHECKING:
    import httpx2

__all__ = ["LONGEST_EVENT", "EventSize", "bound"]

LONGEST_EVENT = 8_000_000
"""Bytes of one event of a stream, or of a whole error page."""

_EVENT_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


class EventSize:
    """Counts the bytes since the last blank line, whatever the pieces in which they come."""

    def __init__(self) -> None:
        self._size = 0
        self._tail = b""

    def add(self, piece: bytes) -> int:
        """Take the next bytes; return the size of the event that is not finished yet, in bytes."""
        seen = self._tail + piece
        end = max((seen.rfind(blank) + len(blank) for blank in _EVENT_ENDS if blank in seen), default=0)
        self._size = len(seen) - end if end else self._size + len(piece)
        self._tail = seen[max(end, len(seen) - 3) :]
        return self._size


async def bound(response: "httpx2.Response") -> None:
    """Make `response` raise `ModelError` when it sends more than `LONGEST_EVENT` bytes in one piece (a response hook).

    A compressed response is refused: a few bytes of it may stand for any number.
    """
    import httpx2

    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise ModelError(f"the server sent its answer as {encoding}, though it was asked not to; turn compression off")

    class BoundedStream(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size, total = EventSize(), 0
            async for piece in self._stream:
                total += len(piece)
                if (size.add(piece) if response.is_success else total) > LONGEST_EVENT:
                    raise ModelError(f"the server sent more than {LONGEST_EVENT:,} bytes in one event; ask for less")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = BoundedStream(response.stream)
