"""What inferences cost, and how long they are where the provider does not say: prices and estimates."""

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from agent.models.model import ToolSchema
from agent.vocabulary.messages import AssistantMessage, Message, Usage

__all__ = ["Price", "estimate_tokens", "frame_tokens", "message_tokens", "read_prices"]

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
