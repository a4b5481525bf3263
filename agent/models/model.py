"""Requests to a model and its answers; prices, and estimates of size."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, Protocol

from attrs import evolve, field, frozen

from agent.tools.schemas import ToolSchema
from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import AssistantMessage, FailureReason, Message, StopReason, Usage


@frozen
class ModelRequest:
    """One inference: the complete input of the model, and the API key if it is not the model's own."""

    system_prompt: str
    messages: Sequence[Message]
    tools: tuple[ToolSchema, ...] = ()
    role: str = "agent"
    api_key: str | None = field(default=None, repr=False)


@frozen
class Answer:
    """A complete answer. With a `stop_reason` in `CUT_OFF` it was cut off, and its calls do not run."""

    message: AssistantMessage
    stop_reason: StopReason = "stop"
    usage: Usage = field(factory=Usage)


@frozen
class Delta:
    """A piece of a streamed answer: of its text, its reasoning, or the arguments of its call to `tool`.

    `number`: of the call in the answer, from 1.
    """

    text: str
    kind: Literal["text", "reasoning", "arguments"] = "text"
    number: int = 0
    tool: str = ""


def join_deltas(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """Yield the pieces in order, with consecutive pieces of one kind joined."""
    for (kind, number, tool), same in groupby(deltas, key=lambda piece: (piece.kind, piece.number, piece.tool)):
        yield Delta("".join(piece.text for piece in same), kind, number, tool)


class ModelError(AgentError):
    """The model gave no answer. The message is one sentence with the cure.

    `retryable`: whether a retry may succeed; `retry_after`: the seconds to wait before it, if the provider gave a time
    (0 to 120). `status`: the HTTP status of a refusal. `reason`: the class of a failure that can be cured.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        reason: FailureReason = "",
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.reason = reason


class Model(Protocol):
    """Answers requests. Raises `ModelError`; honours cancellation.

    One that has an attribute `is_quick` waits for nothing in its next answer while that is true.
    """

    @property
    def name(self) -> str:
        """The model's name, for the log."""

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the answer to `request`, calling `on_delta` for each piece as it arrives."""


BYTES_PER_TOKEN = 4
"""Bytes per token, usual for English text; other scripts have more bytes and more tokens per character."""

PER_MESSAGE = 4  # tokens of the frame of a message
PER_IMAGE = 1000  # tokens, about those of an image of 2000 x 2000


@frozen
class Price:
    """US dollars for a million input tokens, and for a million output tokens."""

    input: float
    output: float

    def of(self, usage: Usage) -> Usage:
        """Return `usage` with its cost."""
        return evolve(usage, cost=(usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6)


def read_prices(rows: Iterable[str]) -> Mapping[str, Price]:
    """Parse rows such as `gpt-5-mini=0.25/2`: the model, and dollars for a million input and output tokens.

    Raises ValueError that names the row.
    """
    return dict(map(_read_row, rows))


def _read_row(row: str) -> tuple[str, Price]:
    model, equals, amounts = row.rpartition("=")
    given, slash, made = amounts.partition("/")
    try:
        price = Price(float(given), float(made))
    except ValueError:
        price = Price(-1, -1)
    if not (model and equals and slash and 0 <= price.input < float("inf") and 0 <= price.output < float("inf")):
        raise ValueError(
            f"a price is MODEL=INPUT/OUTPUT in US dollars for a million tokens, such as gpt-5-mini=0.25/2, not {row!r}"
        )
    return model, price


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens of `text`."""
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-length // BYTES_PER_TOKEN)


def frame_tokens(system_prompt: str, tools: Iterable[ToolSchema]) -> int:
    """Return an estimate of a request's tokens beside its messages."""
    told = (estimate_tokens(f"{tool.name}{tool.description}{tool.parameters}") for tool in tools)
    return estimate_tokens(system_prompt) + sum(told)


def message_tokens(message: Message) -> int:
    """Return an estimate of the tokens of `message`."""
    texts = [message.text]
    if isinstance(message, AssistantMessage):
        texts += [part for call in message.calls for part in (call.name, call.arguments)]
    pictures = len(getattr(message, "images", ()))
    return PER_MESSAGE + PER_IMAGE * pictures + sum(map(estimate_tokens, texts))


WIDEST = 4  # the most bytes per character, in Python and UTF-8


def weight(text: str) -> int:
    """Return an upper bound of the bytes of `text`, in constant time."""
    return len(text) if text.isascii() else WIDEST * len(text)
