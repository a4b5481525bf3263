"""Where a model's server is, who we are to it, and one POST: what both formats have in common.

The `openai` package does addresses, keys and errors of the transport; it is imported with the first request. Its
streams are not used: real servers' shapes break the typed ones, no limit holds for a line, and on trio they leave
generators to the garbage collector. Its response is read by `RawChunks`.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio.to_thread
from attrs import field, frozen

from agent.models.failures import named_failures
from agent.models.http_stream import RawChunks, check_response
from agent.models.model import ModelError
from agent.tools.blocking import run_in_background

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI


DEFAULT_BASE_URL = "https://api.openai.com/v1"

LONGEST_CONNECT = 10.0
"""Seconds that opening the connection may take."""

SHORTEST_SECRET = 8
"""Characters of a key from which on it is kept out of messages."""

KeySource = Callable[[], str | Awaitable[str]]
"""Gives the key for one inference; async or not."""


def checked_url(url: str | None) -> str:
    """Return the address of a server, by default OpenAI's. Raises `ModelError` for what cannot be one."""
    url = (url or DEFAULT_BASE_URL).strip()
    if not _is_address(url):
        raise ModelError(f"the base URL {url!r} is not an address; write it like http://127.0.0.1:8080/v1")
    return url.rstrip("/")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def checked_key(key: str | None) -> str:
    """Return a key, "" for none. Raises `ModelError`, without showing it, for what cannot be one."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelError("the API key holds characters that no key has; check OPENAI_API_KEY")
    return key


async def asked_key(source: KeySource) -> str:
    """Ask for the key of one inference; a function that is not async is called in a thread of its own.

    Raises `ModelError` for whatever it raises, and for what is no key.
    """
    try:
        made: object = source() if inspect.iscoroutinefunction(source) else await run_in_background(source)
        key = await made if inspect.isawaitable(made) else made
    except Exception as error:
        raise ModelError(f"get_api_key raised {type(error).__name__}: {error}") from error
    if not isinstance(key, str) or not key.strip():
        raise ModelError(f"get_api_key gave {_kind(key)}; it must give the key as a text")
    return checked_key(key)


def _kind(key: object) -> str:
    return "an empty text" if isinstance(key, str) else f"a value of type {type(key).__name__}"


@frozen
class Server:
    """The server at `base_url`, for one inference with one key. `timeout` is how long it may send nothing (seconds)."""

    base_url: str
    key: str = field(repr=False)
    timeout: float

    @asynccontextmanager
    async def post(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[RawChunks]:
        """Send a request and give the chunks of the stream that answers it; the connection ends with the block.

        Raises `ModelError`, which never shows the key; so does everything within the block.
        """
        with self._key_kept_secret():
            # In a thread, because the first import takes a second in which nothing else would be heard.
            client = await anyio.to_thread.run_sync(self._client, abandon_on_cancel=True)
            async with client, RawChunks(await self._send(client, path, body), self._address) as chunks:
                yield chunks

    async def _send(self, client: "AsyncOpenAI", path: str, body: Mapping[str, Any]) -> "httpx2.Response":
        """Send the request; return the response, of which only the head was read."""
        import httpx2
        from openai import AsyncStream

        with named_failures(self._address):
            response: object = await client.post(
                path,
                cast_to=httpx2.Response,
                body=body,
                stream=True,
                stream_cls=AsyncStream[object],  # asked for by the signature; with this cast_to it is not used
            )
        assert isinstance(response, httpx2.Response)
        return response

    @contextmanager
    def _key_kept_secret(self) -> Iterator[None]:
        """Blot out the key, which servers like to quote; a short one is no secret but a word like `none`."""
        try:
            yield
        except ModelError as error:
            if len(self.key) >= SHORTEST_SECRET:
                error.args = tuple(f"{text}".replace(self.key, "***") for text in error.args)
            raise

    @property
    def _address(self) -> str:
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()

    def _client(self) -> "AsyncOpenAI":
        """Return a client for one inference.

        A pool that outlives its event loop fails in the next one, and somebody would have to close it; a client costs
        2 ms, a connection one round trip or two. Redirects would be further requests.
        """
        from openai import AsyncOpenAI, DefaultAsyncHttpx2Client, Timeout

        transport = DefaultAsyncHttpx2Client(
            timeout=Timeout(self.timeout, connect=min(self.timeout, LONGEST_CONNECT)),
            verify=_ssl_context(),
            follow_redirects=False,
            event_hooks={"response": [check_response]},
        )
        return AsyncOpenAI(
            api_key=self.key or "none",
            base_url=self.base_url,
            max_retries=0,
            http_client=transport,
            default_headers={"Accept-Encoding": "identity"},
        )


@cache
def _ssl_context() -> "ssl.SSLContext":
    """Load the certificates once: 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()
