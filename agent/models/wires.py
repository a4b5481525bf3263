"""The two wire formats in which the same request can be asked: chat completions, and responses."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from attrs import frozen

from agent.models.assembly import Assembly
from agent.models.carrying import Carrying
from agent.models.chat import chat_body
from agent.models.model import Answer, Delta, ModelRequest
from agent.models.response_assembly import ResponseAssembly
from agent.models.responses import responses_body

__all__ = ["WIRES", "Api", "StreamAssembly", "Wire"]

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
