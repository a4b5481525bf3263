"""A model behind an OpenAI-compatible server: one inference is one POST, streamed, and nothing else is asked.

The `openai` package does addresses, keys and errors of the transport; it is imported with the first request. Its
streams are not used: real servers' shapes break the typed ones, no limit holds for a line, and on trio they leave
generators to the garbage collector. Its response is read by `RawChunks`, and `Assembly` makes the answer.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from attrs import field, frozen

from agent.models.assembly import Assembly
from agent.models.chat import render_messages, render_tools
from agent.models.failures import ConnectionBroke, named_failures
from agent.models.http_stream import RawChunks, check_response
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.weight import LONGEST_CONVERSATION, conversation_weight

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI

__all__ = ["DEFAULT_BASE_URL", "OpenAIChat"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"

LONGEST_CONNECT = 10.0
"""Seconds that opening the connection may take."""

SHORTEST_SECRET = 8
"""Characters of a key from which on it is kept out of messages."""

GRACE = 5.0
"""Seconds that a server may take to end its stream after the finish reason."""


def _checked_url(url: str | None) -> str:
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


def _checked_key(key: str | None) -> str:
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelError("the API key holds characters that no key has; check OPENAI_API_KEY")
    return key


@frozen
class OpenAIChat:
    """A model that speaks chat completions.

    `base_url` is the server's address up to and including `/v1`; None is OpenAI's own, which needs an `api_key`.
    `timeout` is how long the server may send nothing, in seconds. `settings` go into every request as they are:
    `{"temperature": 0}`. Raises `ModelError` for an address or a key that cannot be one, and for a missing key.
    """

    name: str
    base_url: str = field(default=None, kw_only=True, converter=_checked_url)
    api_key: str = field(default=None, kw_only=True, converter=_checked_key, repr=False)
    timeout: float = field(default=600.0, kw_only=True)
    settings: Mapping[str, object] = field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.api_key and self.base_url == DEFAULT_BASE_URL:
            raise ModelError(_NO_KEY)

    @classmethod
    def from_environment(cls, name: str, environ: Mapping[str, str]) -> "OpenAIChat":
        """Return the model `name` on the server of OPENAI_BASE_URL, with OPENAI_API_KEY; the key must be there."""
        key = environ.get("OPENAI_API_KEY", "")
        if not key.strip():
            raise ModelError(_NO_KEY)
        return cls(name, base_url=environ.get("OPENAI_BASE_URL"), api_key=key)

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Ask once. Raises `ModelError`, which never shows the key; closes the connection at once when cancelled."""
        assembly = Assembly()
        _check_weight(request)
        try:
            # In a thread, because the first import takes a second in which nothing else would be heard.
            client = await anyio.to_thread.run_sync(self._client, abandon_on_cancel=True)
            async with client, RawChunks(await self._post(client, request), self._address) as chunks:
                await _feed(assembly, chunks, on_delta)
            return assembly.answer()
        except ModelError as error:
            error.args = tuple(self._without_key(f"{text}") for text in error.args)
            raise

    async def _post(self, client: "AsyncOpenAI", request: ModelRequest) -> "httpx2.Response":
        """Send the request; return the response, of which only the head was read."""
        import httpx2
        from openai import AsyncStream

        with named_failures(self._address):
            response: object = await client.post(
                "/chat/completions",
                cast_to=httpx2.Response,
                body=self._body(request),
                stream=True,
                stream_cls=AsyncStream[object],  # asked for by the signature; with this cast_to it is not used
            )
        assert isinstance(response, httpx2.Response)
        return response

    def _without_key(self, text: str) -> str:
        """Blot out the key, which servers like to quote; a short one is no secret but a word like `none`."""
        return text.replace(self.api_key, "***") if len(self.api_key) >= SHORTEST_SECRET else text

    def _body(self, request: ModelRequest) -> dict[str, object]:
        tools = {"tools": render_tools(request.tools)} if request.tools else {}
        return {
            "model": self.name,
            "messages": render_messages(request),
            **tools,
            **self.settings,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

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
            api_key=self.api_key or "none",
            base_url=self.base_url,
            max_retries=0,
            http_client=transport,
            default_headers={"Accept-Encoding": "identity"},
        )


def _check_weight(request: ModelRequest) -> None:
    if conversation_weight(request.messages) > LONGEST_CONVERSATION:
        raise ModelError(f"the conversation is longer than {LONGEST_CONVERSATION:,} bytes; begin a new one")


_NO_KEY = (
    "no API key: set OPENAI_API_KEY (a server that needs none takes any text), or name a server: --model http://..."
)


async def _feed(assembly: Assembly, chunks: RawChunks, on_delta: Callable[[Delta], None]) -> None:
    """Read to the end; after the finish reason only usage can come, so a connection that breaks then loses nothing."""
    with anyio.CancelScope() as scope:
        try:
            async for chunk in chunks:
                if delta := assembly.feed(chunk):
                    on_delta(delta)
                if assembly.is_finished:
                    scope.deadline = anyio.current_time() + GRACE
        except ConnectionBroke:
            if not assembly.is_finished:
                raise


@cache
def _ssl_context() -> "ssl.SSLContext":
    """Load the certificates once: 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()
