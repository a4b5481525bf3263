"""A model behind an OpenAI-compatible server: one inference is one POST, streamed, in either of two formats."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import anyio
from attrs import field, frozen, validators

from agent.models.chat_stream import Assembly
from agent.models.failures import ConnectionBroke
from agent.models.http_stream import RawChunks
from agent.models.model import LONGEST_CONVERSATION, Answer, Delta, Model, ModelError, ModelRequest, conversation_weight
from agent.models.requests import Carrying, chat_body, responses_body
from agent.models.responses_stream import ResponseAssembly
from agent.models.scripted import load_script
from agent.models.server import DEFAULT_BASE_URL, KeySource, Server, asked_key, checked_key, checked_url

Api = Literal["chat", "responses"]


class StreamAssembly(Protocol):
    """An answer while it streams. `is_finished`: it is whole; `is_over`: nothing else can come either."""

    def feed(self, raw: object) -> Delta | None:
        """Take the next parsed event; return what it adds for those who look on."""

    @property
    def is_finished(self) -> bool:
        """The answer is whole."""

    @property
    def is_over(self) -> bool:
        """Nothing can come any more, so that reading may end."""

    def answer(self) -> Answer:
        """Return the whole answer, or raise `ModelError`."""


@frozen
class Wire:
    """One format: where a request goes below the base URL, how it looks, and who puts the answer together."""

    path: str
    body: Callable[[str, ModelRequest, Carrying], dict[str, Any]]
    assembly: Callable[[str], StreamAssembly]


WIRES: dict[str, Wire] = {
    "chat": Wire("/chat/completions", chat_body, lambda model: Assembly()),
    "responses": Wire("/responses", responses_body, ResponseAssembly),
}


GRACE = 5.0
"""Seconds that a server may take to end its stream after the finish reason."""


@frozen
class OpenAIModel:
    """A model that speaks chat completions, or with `api="responses"` the responses API.

    `base_url` is the server's address up to and including `/v1`; None is OpenAI's own, which needs an `api_key`.
    `get_api_key`, async or not, is asked for the key of each inference instead, for keys that do not live long.
    `timeout` is how long the server may send nothing, in seconds. `carrying` says what becomes of images and reasoning.
    `settings` go into every request as they are: `{"temperature": 0}`. Raises `ModelError` for an address or a key that
    cannot be one, and for a missing key.
    """

    name: str
    api: Api = field(default="chat", kw_only=True, validator=validators.in_(tuple(WIRES)))
    base_url: str = field(default=None, kw_only=True, converter=checked_url)
    api_key: str = field(default=None, kw_only=True, converter=checked_key, repr=False)
    get_api_key: KeySource | None = field(default=None, kw_only=True)
    timeout: float = field(default=600.0, kw_only=True)
    carrying: Carrying = field(factory=Carrying, kw_only=True)
    settings: Mapping[str, object] = field(factory=dict, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.api_key and self.get_api_key is None and self.base_url == DEFAULT_BASE_URL:
            raise ModelError(_NO_KEY)

    @classmethod
    def from_environment(cls, name: str, environ: Mapping[str, str], *, api: Api = "chat") -> "OpenAIModel":
        """Return the model `name` on the server of OPENAI_BASE_URL, with OPENAI_API_KEY, which OpenAI's own needs."""
        return cls(name, api=api, base_url=environ.get("OPENAI_BASE_URL"), api_key=environ.get("OPENAI_API_KEY"))

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Ask once. Raises `ModelError`, which never shows the key; closes the connection at once when cancelled."""
        _check_weight(request)
        key = request.api_key or (self.api_key if self.get_api_key is None else await asked_key(self.get_api_key))
        wire = WIRES[self.api]
        assembly = wire.assembly(self.name)
        async with Server(self.base_url, key, self.timeout).post(wire.path, self._body(wire, request)) as chunks:
            await _feed(assembly, chunks, on_delta)
            return assembly.answer()

    def _body(self, wire: Wire, request: ModelRequest) -> dict[str, object]:
        """Return what is sent; a setting cannot turn streaming off, which everything here relies on."""
        return {**wire.body(self.name, request, self.carrying), **self.settings, "stream": True}


def _check_weight(request: ModelRequest) -> None:
    if conversation_weight(request.messages) > LONGEST_CONVERSATION:
        raise ModelError(f"the conversation is longer than {LONGEST_CONVERSATION:,} bytes; begin a new one")


_NO_KEY = (
    "no API key: set OPENAI_API_KEY, or for a server that needs none its address: OPENAI_BASE_URL, --model http://..."
)


async def _feed(assembly: StreamAssembly, chunks: RawChunks, on_delta: Callable[[Delta], None]) -> None:
    """Read to the end; once the answer is whole only usage can come, so a connection that breaks then loses nothing."""
    with anyio.CancelScope() as scope:
        try:
            async for chunk in chunks:
                if delta := assembly.feed(chunk):
                    on_delta(delta)
                if assembly.is_over:
                    return
                if assembly.is_finished:
                    scope.deadline = anyio.current_time() + GRACE
        except ConnectionBroke:
            if not assembly.is_finished:
                raise


def model_from_name(name: str, environ: Mapping[str, str], *, api: Api = "chat") -> Model:
    """Return the model that `name` means.

    `script:FILE` is a scripted model; `http://host/v1` or `http://host/v1#model` is a model on that server (with
    OPENAI_API_KEY where it is set); everything else is a model of OPENAI_BASE_URL with OPENAI_API_KEY, which only
    OpenAI's own server needs. `api` is the format that servers are spoken to in. Raises `ModelError` for a name, key or
    address that is missing or cannot be one, `ScriptError` for a bad script.
    """
    name = name.strip()
    if not name:
        raise ModelError("no model is named; give one, such as gpt-5-mini, http://127.0.0.1:8080/v1 or script:FILE")
    if name == "script:":
        raise ModelError("'script:' names no file; write script:FILE.yaml")
    if name.startswith("script:"):
        return load_script(name.removeprefix("script:"))
    if "://" in name:
        url, _, model = name.partition("#")
        return OpenAIModel(model or "default", api=api, base_url=url, api_key=environ.get("OPENAI_API_KEY"))
    return OpenAIModel.from_environment(name, environ, api=api)
