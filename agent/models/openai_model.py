"""A model behind an HTTP server: one POST, server-sent events in bounded memory, in either of two formats."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import anyio
from attrs import field, frozen, validators

from agent.models.chat_stream import Assembly
from agent.models.failures import ConnectionBroke, describe_status, named_failures
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest
from agent.models.requests import chat_body, responses_body
from agent.models.responses_stream import ResponseAssembly
from agent.tools.blocking import run_in_background, unwind
from agent.vocabulary.errors import nearest

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI


LONGEST_EVENT = 8_000_000
"""The limit of one event in bytes, without comments; a longer one is an error."""


class RawChunks:
    """The chunks of the stream in `response`, as parsed JSON; `url` names the server in errors.

    Use it with `async with`. Iterating raises `ModelError`, retryable, for a broken connection or stream. Whether it is
    a stream is decided by the content, not by the content type; another body is one event. A last event counts also
    without a final blank line.
    """

    def __init__(self, response: "httpx2.Response", url: str) -> None:
        self._response = response
        self._url = url
        self._events = self._read()

    async def __aenter__(self) -> "RawChunks":
        return self

    async def __aexit__(self, *error: object) -> None:
        await unwind(self._events)
        await self._response.aclose()

    def __aiter__(self) -> "RawChunks":
        return self

    async def __anext__(self) -> object:
        with named_failures(self._url):
            event = (await anext(self._events, b"[DONE]")).removesuffix(b"\n").decode()
            if not event.startswith("[DONE]"):
                return json.loads(event)
        raise StopAsyncIteration

    async def _read(self) -> AsyncIterator[bytes]:
        events = Events()
        async for piece in self._response.aiter_raw():
            for event in events.add(piece):
                yield event
        for event in (*events.add(b"\n"), bytes(events.data)):
            if event.strip():
                yield event


class Events:
    """Parses events from the pieces of a stream. `data`: of the current event. A JSON object is one event.

    Comments and other fields are ignored.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self._line = bytearray()
        self._is_cut = False  # after \r, when \n may belong to the same line end
        self._is_json: bool | None = None  # unknown before the first line

    def add(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that end in a piece. Raises `ModelError` if one is longer than `LONGEST_EVENT`."""
        lines = (piece.removeprefix(b"\n") if self._is_cut else piece).splitlines(keepends=True)
        self._is_cut = piece.endswith(b"\r")
        for part in lines:
            content = part.rstrip(b"\r\n")
            self._line += content
            _check_event(len(self.data) + len(self._line))
            if len(content) < len(part):
                yield from self._end_line()

    def _end_line(self) -> Iterator[bytes]:
        """End a line; a blank line ends an event."""
        if self._is_json is None:
            self._line = self._line.removeprefix(BOM_UTF8).lstrip()
            self._is_json = self._line.startswith(b"{") if self._line else None
        name, _, value = self._line.partition(b":")
        if self._is_json:
            self.data += self._line + b"\n"
        elif name == b"data":
            self.data += value.removeprefix(b" ") + b"\n"
        elif not self._line:
            if self.data.strip():
                yield bytes(self.data)
            self.data.clear()
        self._line.clear()


def _check_event(size: int) -> None:
    if size > LONGEST_EVENT:
        text = f"the model's server sent more than {LONGEST_EVENT:,} bytes in one event; ask for less at once"
        raise ModelError(text)


LONGEST_ERROR_PAGE = 100_000
"""Bytes of an error page that are read."""


async def check_response(response: "httpx2.Response") -> None:
    """Raise `ModelError` for a response without an answer (a response hook, called first).

    Compressed responses are refused: a few bytes of them may expand to any number.
    """
    address = _address(response)
    if not response.is_success:
        page = await _read_page(response)
        raise describe_status(response.status_code, page, response.headers.get("retry-after"), address)
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise ModelError(f"{address} compressed its answer ({encoding}) though it was asked not to; turn that off")
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        raise ModelError(f"{address} answered with a web page; is the base URL right? It usually ends in /v1")


async def _read_page(response: "httpx2.Response") -> str:
    """Return the available beginning of an error page; the status is what counts."""
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


DEFAULT_BASE_URL = "https://api.openai.com/v1"

LONGEST_CONNECT = 10.0
"""The timeout of a connection, in seconds."""

SHORTEST_SECRET = 8
"""The length from which a key is removed from messages, in characters."""


def checked_url(url: str | None) -> str:
    """Return the address of a server, by default OpenAI's. Raises `ModelError` for an invalid one."""
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
    """Return a key, "" for none. Raises `ModelError`, without showing it, for an invalid one."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelError("the API key holds characters that no key has; check OPENAI_API_KEY")
    return key


@frozen
class Server:
    """The server at `base_url`, for one inference with one key. `timeout`: its longest silence in seconds."""

    base_url: str
    key: str = field(repr=False)
    timeout: float

    @asynccontextmanager
    async def post(self, path: str, body: Mapping[str, Any]) -> AsyncIterator[RawChunks]:
        """Send a request and yield the chunks of the response stream; the connection ends with the block.

        Raises `ModelError`, which never shows the key, also from within the block.
        """
        with self._key_kept_secret():
            # In a thread, because the first import would block the event loop for a second.
            client = await run_in_background(self._client)
            async with client, RawChunks(await self._send(client, path, body), self._address) as chunks:
                yield chunks

    async def _send(self, client: "AsyncOpenAI", path: str, body: Mapping[str, Any]) -> "httpx2.Response":
        import httpx2
        from openai import AsyncStream

        with named_failures(self._address):
            response: object = await client.post(
                path,
                cast_to=httpx2.Response,
                body=body,
                stream=True,
                stream_cls=AsyncStream[object],  # required by the signature, unused with this cast_to
            )
        assert isinstance(response, httpx2.Response)
        return response

    @contextmanager
    def _key_kept_secret(self) -> Iterator[None]:
        """Remove the key from errors, where servers quote it; a short one is a placeholder such as `none`."""
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

        A connection pool fails in another event loop, and the caller would have to close it; a new client costs 2 ms, a
        connection one or two round trips. Redirects are not followed: they would be further requests.
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
    """Return the TLS context, cached: loading the certificates takes 30 ms."""
    import httpx2

    return httpx2.create_ssl_context()


Api = Literal["chat", "responses"]


@frozen
class Wire:
    """One API format: the path below the base URL, the body of requests, and the assembly of answers.

    `usage_follows`: the usage may come after the complete answer.
    """

    path: str
    body: Callable[[str, ModelRequest, str], dict[str, Any]]
    assembly: Callable[[str], Assembly | ResponseAssembly]
    usage_follows: bool


WIRES: dict[str, Wire] = {
    "chat": Wire("/chat/completions", chat_body, lambda model: Assembly(), usage_follows=True),
    "responses": Wire("/responses", lambda model, request, _: responses_body(model, request), ResponseAssembly, False),
}


GRACE = 5.0
"""The timeout for the end of a stream after the finish reason, in seconds."""


LONGEST_SILENCE, TIMEOUT = 600.0, "BPAGENT_MODEL_TIMEOUT"
"""The longest silence of a server in seconds, and the variable that changes it."""


@frozen
class OpenAIModel:
    """A model with the chat completions API, or with `api="responses"` the responses API.

    base_url: the server's address up to and including `/v1`; None: OpenAI's, which needs an `api_key`, or a hook's key
    in each request. timeout: the longest silence of the server, in seconds. reasoning_field: in chat, the message field
    that returns reasoning as text, such as "reasoning_content"; empty: none. settings: sent unchanged with every
    request: `{"temperature": 0}`. Raises `ModelError` for an invalid address or key.
    """

    name: str
    api: Api = field(default="chat", kw_only=True, validator=validators.in_(tuple(WIRES)))
    base_url: str = field(default=None, kw_only=True, converter=checked_url)
    api_key: str = field(default=None, kw_only=True, converter=checked_key, repr=False)
    timeout: float = field(default=LONGEST_SILENCE, kw_only=True)
    reasoning_field: str = field(default="", kw_only=True)
    settings: Mapping[str, object] = field(factory=dict, kw_only=True)

    def required_key(self, given: str | None = None) -> str:
        """Return the key given for an inference, else the model's own, "" for none.

        Raises `ModelError` if there is none and the server needs one.
        """
        key = checked_key(given) or self.api_key
        if not key and self.base_url == DEFAULT_BASE_URL:
            raise ModelError(_NO_KEY)
        return key

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Send one request. Raises `ModelError`, which never shows the key; a cancellation closes the connection."""
        key = self.required_key(request.api_key)
        wire = WIRES[self.api]
        async with Server(self.base_url, key, self.timeout).post(wire.path, self._body(wire, request)) as chunks:
            return await _assembled(wire, self.name, chunks, on_delta)

    def _body(self, wire: Wire, request: ModelRequest) -> dict[str, object]:
        return {**wire.body(self.name, request, self.reasoning_field), **self.settings, "stream": True}


_NO_KEY = (
    "no API key: set OPENAI_API_KEY, or for a server that needs none its address: OPENAI_BASE_URL, --model http://..."
)


async def _assembled(wire: Wire, model: str, chunks: RawChunks, on_delta: Callable[[Delta], None]) -> Answer:
    """Read to the end; once the answer is complete a broken connection loses only usage."""
    assembly = wire.assembly(model)
    with anyio.CancelScope() as scope:
        try:
            async for chunk in chunks:
                for delta in assembly.feed(chunk):
                    on_delta(delta)
                if assembly.is_finished and not wire.usage_follows:
                    break
                if assembly.is_finished:
                    scope.deadline = anyio.current_time() + GRACE
        except ConnectionBroke:
            if not assembly.is_finished:
                raise
    return assembly.answer()


BARE_ADDRESS = re.compile(r"(localhost|\d+\.\d+\.\d+\.\d+)(:\d+)?(/|$)|[\w.-]+:\d+/")
"""Matches the beginning of an address without its scheme; no model's name begins so."""


def model_from_name(name: str, environ: Mapping[str, str], *, api: Api = "chat", has_key_hook: bool = False) -> Model:
    """Return the model with this name.

    `script:FILE` is a scripted model; `http://host/v1` or `http://host/v1#model` is a model on that server (with
    OPENAI_API_KEY where it is set); everything else is a model of OPENAI_BASE_URL with OPENAI_API_KEY, which only
    OpenAI's own server needs, unless a hook gives a key to each inference. `api`: the API format of servers. Raises
    `ModelError` for a missing or invalid name, key or address, `ScriptError` for an invalid script.
    """
    name = name.strip()
    if not name:
        raise ModelError("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    if name == "script:":
        raise ModelError("'script:' names no file; write script:FILE.yaml")
    if name.startswith("script:"):
        from agent.models.script_files import load_script  # imports the YAML reader

        return load_script(name.removeprefix("script:"))
    kind, colon, rest = name.partition(":")
    if name.endswith((".yaml", ".yml")) or (colon and nearest(kind, ("script",), cutoff=0.7)):
        script = rest if colon else name
        raise ModelError(f"the model {name!r} looks like a script; did you mean script:{script}?")
    if BARE_ADDRESS.match(name):
        raise ModelError(f"the model {name!r} is no address without http://; write http://{name}")
    url, _, model = name.partition("#") if "://" in name else (environ.get("OPENAI_BASE_URL"), "", name)
    key = environ.get("OPENAI_API_KEY")
    made = OpenAIModel(model or "default", api=api, base_url=url, api_key=key, timeout=_timeout(environ))
    if not has_key_hook:
        made.required_key()
    return made


def _timeout(environ: Mapping[str, str]) -> float:
    """Return the longest silence of a server in seconds. Raises ModelError."""
    given = environ.get(TIMEOUT, "")
    if not given:
        return LONGEST_SILENCE
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ModelError(f"{TIMEOUT} is {given!r}; give the seconds that a server may send nothing, such as 60")
    return seconds
