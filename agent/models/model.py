"""What the loop asks of a model, and what a model gives back: one request, one answer or one error."""

from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import field, frozen

from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import AssistantMessage, Message, StopReason, Usage

__all__ = ["Answer", "Delta", "Model", "ModelError", "ModelRequest", "ToolSchema"]


@frozen
class ToolSchema:
    """A tool as the model is told about it: name, description, and its parameters as a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, object]


@frozen
class ModelRequest:
    """One inference: everything that the model may know, and the key for it where that is not the model's own."""

    system_prompt: str
    messages: Sequence[Message]
    tools: tuple[ToolSchema, ...] = ()
    role: str = "agent"
    api_key: str | None = field(default=None, repr=False)


@frozen
class Answer:
    """A whole answer. `stop_reason` "length" or "content_filter" says that its last call may be cut off."""

    message: AssistantMessage
    stop_reason: StopReason = "stop"
    usage: Usage = field(factory=Usage)


@frozen
class Delta:
    """A piece of an answer as it streams: text, or reasoning, for those who look on."""

    text: str = ""
    reasoning: str = ""


class ModelError(AgentError):
    """The model gave no answer. The message is one sentence with the cure.

    `retryable` says whether asking again may help; `retry_after` is how long to wait before that, in seconds, where
    the provider named a time (0 to 120). `status` is the status of HTTP that a server refused with.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status


class Model(Protocol):
    """Anything that answers a request. Raises `ModelError`; honours cancellation."""

    @property
    def name(self) -> str:
        """The model's name, for the log."""

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the answer to `request`, calling `on_delta` for each piece as it arrives."""
