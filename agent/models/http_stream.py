"""The chunks of an HTTP response: server-sent events in bounded memory, left cleanly at any moment."""

import json
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from agent.models.failures import describe_status, named_failures
from agent.models.model import ModelError
from agent.tools.blocking import unwind

if TYPE_CHECKING:
    import httpx2


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


LONGEST_ERROR_PAGE = 100_000
"""Bytes of an error page that are read."""


class RawChunks:
    """The chunks of the stream in `response`, as parsed JSON; `url` names the server in errors.

    Use it with `async with`. Iterating raises `ModelError`, retryable, for a connection or a stream that breaks.
    """

    def __init__(self, response: "httpx2.Response", url: str) -> None:
        self._response = response
        self._url = url
        self._pieces = response.aiter_raw()
        self._decoder = WholeBody() if _content_type(response) == "application/json" else EventDecoder()
        self._events: deque[str] = deque()
        self._ended = False

    async def __aenter__(self) -> "RawChunks":
        return self

    async def __aexit__(self, *error: object) -> None:
        await unwind(self._pieces)
        await self._response.aclose()

    def __aiter__(self) -> "RawChunks":
        return self

    async def __anext__(self) -> object:
        with named_failures(self._url):
            while not self._events and not self._ended:
                await self._read()
            event = self._events.popleft() if self._events else "[DONE]"
            if not event.startswith("[DONE]"):
                return json.loads(event)
        raise StopAsyncIteration

    async def _read(self) -> None:
        piece = await anext(self._pieces, None)
        self._ended = piece is None
        self._events.extend(self._decoder.finish() if piece is None else self._decoder.feed(piece))


async def check_response(response: "httpx2.Response") -> None:
    """Raise `ModelError` for a response that holds no answer (a response hook, before anything else reads it).

    Compressed responses are refused: a few bytes of them may stand for any number.
    """
    address = _address(response)
    if not response.is_success:
        page = await _read_page(response)
        raise describe_status(response.status_code, page, response.headers.get("retry-after"), address)
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise ModelError(f"{address} compressed its answer ({encoding}) though it was asked not to; turn that off")
    if _content_type(response) == "text/html":
        raise ModelError(f"{address} answered with a web page; is the base URL right? It usually ends in /v1")


async def _read_page(response: "httpx2.Response") -> str:
    """Return the beginning of an error page, as much of it as comes: it is the status that counts."""
    import httpx2

    page, pieces = bytearray(), response.aiter_raw()
    with suppress(httpx2.HTTPError):
        while len(page) < LONGEST_ERROR_PAGE and (piece := await anext(pieces, None)) is not None:
            page += piece
    await unwind(pieces)
    return page[:LONGEST_ERROR_PAGE].decode(errors="replace")


def _address(response: "httpx2.Response") -> str:
    url = response.request.url
    return f"{url.scheme}://{url.netloc.decode()}{url.path}".removesuffix("/chat/completions").removesuffix(
        "/responses"
    )


def _content_type(response: "httpx2.Response") -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()
