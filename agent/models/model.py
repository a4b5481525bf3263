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
    """A piece of an answer as it streams: of its text, of its reasoning, or of the arguments of its call to `tool`.

    `number` is that of the call in the answer, from 1.
    """

    text: str
    kind: Literal["text", "reasoning", "arguments"] = "text"
    number: int = 0
    tool: str = ""


def join_deltas(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """Yield what streamed, in order: pieces of one kind that follow each other are one."""
    for (kind, number, tool), same in groupby(deltas, key=lambda piece: (piece.kind, piece.number, piece.tool)):
        yield Delta("".join(piece.text for piece in same), kind, number, tool)


class ModelError(AgentError):
    """The model gave no answer. The message is one sentence with the cure.

    `retryable` says whether asking again may help; `retry_after` is how long to wait before that, in seconds, where
    the provider named a time (0 to 120). `status` is the status of HTTP that a server refused with. `reason` says what
    can be done about it.
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
    """Anything that answers a request. Raises `ModelError`; honours cancellation.

    One that has an attribute `is_quick` waits for nothing in its next answer while that is true.
    """

    @property
    def name(self) -> str:
        """The model's name, for the log."""

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the answer to `request`, calling `on_delta` for each piece as it arrives."""


BYTES_PER_TOKEN = 4
"""A usual measure for English text; other scripts take more bytes for each character, and more tokens."""

PER_MESSAGE = 4  # tokens of the frame of a message
PER_IMAGE = 1000  # tokens, about what providers take for one of 2000 x 2000


@frozen
class Price:
    """US dollars for a million tokens read, and for a million tokens written."""

    input: float
    output: float

    def of(self, usage: Usage) -> Usage:
        """Return `usage` with its cost."""
        return evolve(usage, cost=(usage.input_tokens * self.input + usage.output_tokens * self.output) / 1e6)


def read_prices(rows: Iterable[str]) -> Mapping[str, Price]:
    """Read rows such as `gpt-5-mini=0.25/2`: the model, dollars for a million tokens read, and written.

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
    """Return about how many tokens `text` has."""
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-length // BYTES_PER_TOKEN)


def frame_tokens(system_prompt: str, tools: Iterable[ToolSchema]) -> int:
    """Return about how many tokens a request has beside its messages."""
    told = (estimate_tokens(f"{tool.name}{tool.description}{tool.parameters}") for tool in tools)
    return estimate_tokens(system_prompt) + sum(told)


def message_tokens(message: Message) -> int:
    """Return about how many tokens `message` has."""
    texts = [message.text]
    if isinstance(message, AssistantMessage):
        texts += [part for call in message.calls for part in (call.name, call.arguments)]
    pictures = len(getattr(message, "images", ()))
    return PER_MESSAGE + PER_IMAGE * pictures + sum(map(estimate_tokens, texts))


WIDEST = 4  # bytes that Python and UTF-8 take at most for a character


def weight(text: str) -> int:
    """Return the bytes that `text` takes at most, without looking at each character."""
    return len(text) if text.isascii() else WIDEST * len(text)
