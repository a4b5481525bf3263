"""The chunks in an HTTP response: read one by one, refused when it is no stream, and left cleanly at any moment."""

import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from agent.models.event_stream import EventDecoder, WholeBody
from agent.models.failures import describe_status, named_failures
from agent.models.model import ModelError

if TYPE_CHECKING:
    import httpx2

__all__ = ["LONGEST_ERROR_PAGE", "RawChunks", "check_response", "unwind"]

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


async def unwind(pieces: AsyncIterator[bytes]) -> None:
    """End an iterator, also one that is left early.

    It is a chain of async generators, of which `aclose` reaches only the outermost, and trio warns of every other
    that is left to the garbage collector. A cancelled read ends them all, from the innermost outwards.
    """
    import httpx2

    with anyio.CancelScope() as scope, suppress(httpx2.HTTPError):  # what breaks now was not wanted any more
        scope.cancel()
        while await anext(pieces, None) is not None:
            pass
