"""A model behind an HTTP server: one POST, server-sent events in bounded memory, in either of two formats."""

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import anyio
from attrs import field, frozen, validators

from agent.models.chat import Assembly, chat_body
from agent.models.failures import ConnectionBroke, describe_status, named_failures, seconds_to_wait
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest
from agent.models.refusals import TOO_LARGE, Body, changed, lesson, refuses_images
from agent.models.responses import ResponseAssembly, responses_body
from agent.tools.blocking import run_in_background, unwind
from agent.vocabulary.errors import meant, nearest

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import AsyncOpenAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"

LONGEST_SILENCE, TIMEOUT = 600.0, "BPAGENT_MODEL_TIMEOUT"
"""The longest silence of a server in seconds, and the variable that changes it."""

SHORTEST_SECRET = 8
"""The length from which a key is removed from messages, in characters."""

_NO_KEY = (
    "no API key: set OPENAI_API_KEY, or for a server that needs none its address: OPENAI_BASE_URL, --model http://..."
)


def checked_url(url: str | None) -> str:
    """Return the address of a server, by default OpenAI's. Raises `ModelError` for an invalid one."""
    url = (url or DEFAULT_BASE_URL).strip()
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise ModelError(f"the base URL {url!r} is not an address; write it like http://127.0.0.1:8080/v1")
    path = parts.path.rstrip("/")
    for wire in WIRES.values():  # portals show the whole address of an endpoint
        path = path.removesuffix(wire.path)
    return parts._replace(path=path).geturl()


def checked_key(key: str | None) -> str:
    """Return a key, "" for none. Raises `ModelError`, without showing it, for an invalid one."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ModelError("the API key holds characters that no key has; check OPENAI_API_KEY")
    return key


Api = Literal["chat", "responses"]


@frozen
class Wire:
    """One API format: the path below the base URL, the body of requests, and the assembly of answers.

    `usage_follows`: the usage may come after the complete answer.
    """

    path: str
    body: Callable[["OpenAIModel", ModelRequest], Body]
    assembly: Callable[[str], Assembly | ResponseAssembly]
    usage_follows: bool


WIRES: dict[str, Wire] = {
    "chat": Wire(
        "/chat/completions",
        lambda model, request: chat_body(model.name, request, model.reasoning_field, model.source),
        Assembly,
        usage_follows=True,
    ),
    "responses": Wire(
        "/responses",
        lambda model, request: responses_body(model.name, request, model.source),
        ResponseAssembly,
        usage_follows=False,
    ),
}


@frozen
class OpenAIModel:
    """A model with the chat completions API, or with `api="responses"` the responses API.

    base_url: the server's address up to and including `/v1`, perhaps with a query; None: OpenAI's, which needs an
    `api_key`, or a hook's key in each request. timeout: the longest silence of the server, in seconds. settings: sent
    unchanged with every request: `{"temperature": 0}`; None leaves a field out. Raises `ModelError` for an invalid
    address or key.

    What differs between servers: accept_done: `[DONE]` ends an answer also without a finish reason. bridge: an
    assistant message comes between a tool's result, or a message of the user, and the next message of the user.
    stream_options: whether the usage is asked for. reasoning_field: in chat, the message field that returns the
    reasoning of any model as text, such as "reasoning_content". The model returns by itself, to the server that sent
    them, fields that are not of the format. What a server refuses by name it leaves out afterwards.
    """

    name: str
    api: Api = field(default="chat", kw_only=True, validator=validators.in_(tuple(WIRES)))
    base_url: str = field(default=None, kw_only=True, converter=checked_url)
    api_key: str = field(default=None, kw_only=True, converter=checked_key, repr=False)
    timeout: float = field(default=LONGEST_SILENCE, kw_only=True)
    settings: Mapping[str, object] = field(factory=dict, kw_only=True)
    accept_done: bool = field(default=False, kw_only=True)
    bridge: bool = field(default=False, kw_only=True)
    stream_options: bool = field(default=True, kw_only=True)
    reasoning_field: str = field(default="", kw_only=True)
    _lessons: set[str] = field(factory=set, init=False, eq=False, repr=False)  # changes that refusals have taught

    @property
    def source(self) -> str:
        """The model with its server and wire, as it stands beside what only this one can read; without credentials."""
        return f"{self.api} {_public(self.base_url)}#{self.name}"

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
        key, wire = self.required_key(request.api_key), WIRES[self.api]
        body = self._body(wire.body(self, request))
        try:
            # In a thread, because the first import would block the event loop for a second.
            async with await run_in_background(partial(_client, self.base_url, key, self.timeout)) as client:
                address = _public(self.base_url)
                with named_failures(address):
                    response = await _post(client, wire.path, urlsplit(self.base_url).query, body)
                async with raw_chunks(response, address) as chunks:
                    return await _assembled(wire, wire.assembly(self.source), chunks, on_delta, self.accept_done)
        except ModelError as error:
            self._learn(error, body, request)
            if len(key) >= SHORTEST_SECRET:  # servers quote keys; a short one is a placeholder such as `none`
                error.args = tuple(f"{text}".replace(key, "***") for text in error.args)
            raise

    def _body(self, body: Body) -> Body:
        """Return a body with the settings, and without what this server does not take."""
        body = {**body, **self.settings, "stream": True}
        body = {name: value for name, value in body.items() if value is not None or name not in self.settings}
        options = {"bridge": self.bridge, "stream_options": not self.stream_options}
        return changed(body, {*self._lessons, *(name for name, is_chosen in options.items() if is_chosen)})

    def _learn(self, error: ModelError, body: Body, request: ModelRequest) -> None:
        """Make a refusal retryable where the next request differs: without what the server refused, or its images."""
        status, said = error.status or 0, str(error).removeprefix(_public(self.base_url))
        if error.reason not in ("", "context_length_exceeded") or (error.retryable and status < 500):
            return
        has_images = any(getattr(message, "images", ()) for message in request.messages)
        if learned := lesson(status, said, body):
            self._lessons.add(learned)
            error.retryable, error.reason = True, ""
        elif has_images and refuses_images(status, said) and (not error.reason or status == TOO_LARGE):
            error.retryable, error.reason = True, "images_refused"


def _public(base_url: str) -> str:
    """Return an address without credentials and query, which may hold one."""
    parts = urlsplit(base_url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


GRACE = 5.0
"""The timeout for the end of a stream after the finish reason, in seconds."""


async def _assembled(
    wire: Wire,
    assembly: Assembly | ResponseAssembly,
    chunks: AsyncIterator[object],
    on_delta: Callable[[Delta], None],
    accept_done: bool,
) -> Answer:
    """Read to the end; once the answer is complete a broken connection loses only usage."""
    with anyio.CancelScope() as scope:
        try:
            async for chunk in chunks:
                if chunk is DONE:
                    if accept_done:
                        assembly.accept_end()
                    break
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
    OpenAI's own server needs, unless a hook gives a key to each inference. A name may end with `OPTIONS` in brackets.
    `api`: the API format of servers. Raises `ModelError` for a missing or invalid name, key, address or option,
    `ScriptError` for an invalid script.
    """
    name = name.strip()
    if not name:
        raise ModelError("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    if name == "script:":
        raise ModelError("'script:' names no file; write script:FILE.yaml")
    if name.startswith("script:"):
        from agent.models.scripted import load_script

        return load_script(name.removeprefix("script:"))
    kind, colon, rest = name.partition(":")
    if name.endswith((".yaml", ".yml")) or (colon and nearest(kind, ("script",), cutoff=0.7)):
        script = rest if colon else name
        raise ModelError(f"the model {name!r} looks like a script; did you mean script:{script}?")
    if BARE_ADDRESS.match(name):
        raise ModelError(f"the model {name!r} is no address without http://; write http://{name}")
    name, options = split_options(name)
    url, _, model = name.partition("#") if "://" in name else (environ.get("OPENAI_BASE_URL"), "", name)
    key = environ.get("OPENAI_API_KEY")
    made = OpenAIModel(model or "default", api=api, base_url=url, api_key=key, timeout=_timeout(environ), **options)
    if not has_key_hook:
        made.required_key()
    return made


OPTIONS = ("accept_done", "bridge", "stream_options", "reasoning_field")
"""Options that a model's name may have: `qwen3[accept_done=true, bridge=true]`."""


def split_options(name: str) -> tuple[str, dict[str, Any]]:
    """Return a model's name without its options, and these. Raises `ModelError` for an invalid one."""
    found = re.fullmatch(r"(.*?)\[([^\[\]]*=[^\[\]]*)\]", name)
    if not found:
        return name, {}
    options: dict[str, Any] = {}
    for row in found[2].split(","):
        option, _, value = (part.strip() for part in row.partition("="))
        if option not in OPTIONS:
            raise ModelError(
                f"the model {name!r} has an option {option!r}, and there is none; {meant(option, OPTIONS)}"
            )
        if option != "reasoning_field" and value not in ("true", "false"):
            raise ModelError(f"the model {name!r}: {option} is {value!r}; write {option}=true or {option}=false")
        options[option] = value if option == "reasoning_field" else value == "true"
    return found[1].strip(), options


def _timeout(environ: Mapping[str, str]) -> float:
    """Return the longest silence of a server in seconds. Raises ModelError."""
    given = environ.get(TIMEOUT) or LONGEST_SILENCE
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ModelError(f"{TIMEOUT} is {given!r}; give the seconds that a server may send nothing, such as 60")
    return seconds


# The request

LONGEST_CONNECT = 10.0
"""The timeout of a connection, in seconds."""


def _client(base_url: str, key: str, timeout: float) -> "AsyncOpenAI":
    """Return a client for one inference. timeout: the longest silence of the server in seconds.

    A connection pool fails in another event loop, and the caller would have to close it; a new client costs 2 ms, a
    connection one or two round trips. Redirects are not followed: they would be further requests.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpx2Client, Timeout

    transport = DefaultAsyncHttpx2Client(
        timeout=Timeout(timeout, connect=min(timeout, LONGEST_CONNECT)),
        verify=_ssl_context(),
        follow_redirects=False,
        event_hooks={"response": [check_response]},
    )
    return AsyncOpenAI(
        api_key=key or "none",
        base_url=urlsplit(base_url)._replace(query="").geturl(),
        max_retries=0,
        http_client=transport,
        default_headers={"Accept-Encoding": "identity"},
    )


async def _post(client: "AsyncOpenAI", path: str, query: str, body: Body) -> "httpx2.Response":
    import httpx2
    from openai import AsyncStream

    response: object = await client.post(
        f"{path}?{query}" if query else path,
        cast_to=httpx2.Response,
        body=body,
        stream=True,
        stream_cls=AsyncStream[object],  # required by the signature, unused with this cast_to
    )
    assert isinstance(response, httpx2.Response)
    return response


@cache
def _ssl_context() -> "ssl.SSLContext":
    """Return the TLS context, cached: loading the certificates takes 30 ms. Raises `ModelError`."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # SSLError, too
        named = {name: value for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if (value := os.environ.get(name))}
        raise ModelError(f"the certificates cannot be read: {error}; correct or unset {named}") from error


# The response

LONGEST_ERROR_PAGE = 100_000
"""Bytes of an error page that are read."""


async def check_response(response: "httpx2.Response") -> None:
    """Raise `ModelError` for a response without an answer (a response hook, called first).

    Compressed responses are refused: a few bytes of them may expand to any number.
    """
    url = response.request.url
    address = f"{url.scheme}://{url.netloc.decode()}{url.path}"
    for wire in WIRES.values():
        address = address.removesuffix(wire.path)
    if not response.is_success:
        page = await _read_page(response)
        raise describe_status(response.status_code, page, seconds_to_wait(response.headers), address)
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


@asynccontextmanager
async def raw_chunks(response: "httpx2.Response", url: str) -> AsyncIterator[AsyncIterator[object]]:
    """Give the chunks of the stream in `response`, as parsed JSON, and close it; `url` names the server in errors.

    Iterating raises `ModelError`, retryable, for a broken connection or stream. Whether it is a stream is decided by
    the content, not by the content type; another body is one event. A last event counts also without a final blank
    line.
    """
    pieces = response.aiter_raw()
    chunks = _chunks_in(pieces, url)
    try:
        yield chunks
    finally:
        await chunks.aclose()
        await unwind(pieces)
        await response.aclose()


async def _chunks_in(pieces: AsyncIterator[bytes], url: str) -> AsyncGenerator[object]:
    events = Events()
    with named_failures(url):
        async for piece in pieces:
            for event in events.add(piece):
                yield (chunk := _read(event))
                if chunk is DONE:
                    return
        for event in (*events.add(b"\n"), bytes(events.data)):
            if event.strip():
                yield _read(event)


DONE = object()
"""Stands for the end marker among the chunks of a stream."""


def _read(event: bytes) -> object:
    return DONE if event.startswith(b"[DONE]") else json.loads(event.decode())


LONGEST_EVENT = 8_000_000
"""The limit of one event in bytes, without comments; a longer one is an error."""


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
            if len(self.data) + len(self._line) > LONGEST_EVENT:
                raise ModelError(
                    f"the model's server sent more than {LONGEST_EVENT:,} bytes in one event; ask for less at once"
                )
            if len(content) < len(part):
                yield from self._end_line()

    def _end_line(self) -> Iterator[bytes]:
        """End a line; a blank line ends an event."""
        if self._is_json is None:
            self._line = self._line.removeprefix(BOM_UTF8).lstrip()
            self._is_json = self._line.startswith((b"{", b"[")) if self._line else None
        name, _, value = self._line.partition(b":")
        if self._is_json:
            self.data += self._line + b"\n"
        elif name == b"data":
            self.data += value.removeprefix(b" ") + b"\n"
        elif name == b"error":  # an error in the place of data
            self.data += b'{"error":' + value + b"}\n"
        elif not self._line:
            if self.data.strip():
                yield bytes(self.data)
            self.data.clear()
        self._line.clear()
