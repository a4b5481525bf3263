"""How the pieces of a stream become one whole answer, or none.

Text and reasoning are joined as they come; pieces of calls go to the calls that they belong to. An answer is whole
when the server gave a finish reason; of a stream that ended without one nothing is used.
"""

from collections.abc import Iterator
from io import StringIO

from agent.models.chunks import Chunk, read_chunk
from agent.models.model import Answer, Delta, ModelError
from agent.models.streamed_calls import StreamedCalls
from agent.models.surrogates import mend_surrogates
from agent.models.weight import weight
from agent.vocabulary.messages import AssistantMessage, StopReason, Usage

__all__ = ["LONGEST_ANSWER", "Assembly", "assemble"]

LONGEST_ANSWER = 4_000_000
"""Bytes of text, reasoning and arguments that an answer may have together; a longer one is an error."""

STOP_REASONS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}
"""Finish reasons that say the answer was cut off. All others are a stop, or calls when there are calls."""


def assemble(chunks: Iterator[object] | list[object]) -> Answer:
    """Return the answer that a whole stream of raw chunks makes; raises as `Assembly` does."""
    assembly = Assembly()
    for chunk in chunks:
        assembly.feed(chunk)
    return assembly.answer()


class Assembly:
    """An answer while it streams: feed it each raw chunk, then ask for the whole answer."""

    def __init__(self) -> None:
        self._text = StringIO()
        self._reasoning = StringIO()
        self._calls = StreamedCalls()
        self._finish_reason = ""
        self._usage = Usage()
        self._chunks = 0
        self._size = 0

    def feed(self, raw: object) -> Delta | None:
        """Take the next chunk; return what it adds for those who look on, or None.

        Raises `ModelError`, retryable, for a chunk that is no object or reports an error; not retryable, for an
        answer that is longer than `LONGEST_ANSWER` or has more calls than `StreamedCalls` takes.
        """
        chunk = read_chunk(raw)
        self._chunks += 1
        self._finish_reason = _worse(self._finish_reason, chunk.finish_reason)
        self._usage = chunk.usage or self._usage
        if chunk.whole and self._size:  # a summary of what streamed before
            return None
        return self._add(chunk)

    def _add(self, chunk: Chunk) -> Delta | None:
        arguments = sum(weight(text) for piece in chunk.pieces for text in (piece.arguments, piece.name, piece.id))
        self._size += weight(chunk.text) + weight(chunk.reasoning) + arguments
        if self._size > LONGEST_ANSWER:
            raise ModelError(f"the model's answer is longer than {LONGEST_ANSWER:,} bytes; ask for less at once")
        self._text.write(chunk.text)
        self._reasoning.write(chunk.reasoning)
        self._calls.add(chunk.pieces)
        if not chunk.text and not chunk.reasoning:
            return None
        return Delta(mend_surrogates(chunk.text), mend_surrogates(chunk.reasoning))

    @property
    def is_finished(self) -> bool:
        """True when the server gave a finish reason: the answer is whole, only usage may still come."""
        return bool(self._finish_reason)

    @property
    def is_over(self) -> bool:
        """False: usage may come after the finish reason, and only the end of the stream says that nothing else will."""
        return False

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises `ModelError`, retryable, when the stream ended without a finish reason: then nothing of it may be used.
        """
        if not self._finish_reason:
            raise ModelError(
                f"the model's stream broke off after {self._chunks} chunks, without a finish reason; "
                "nothing of it was used",
                retryable=True,
            )
        if self._finish_reason == "error":
            raise ModelError("the model's server broke off with finish reason 'error'; ask again", retryable=True)
        calls = self._calls.requested()
        message = AssistantMessage(
            text=mend_surrogates(self._text.getvalue()),
            calls=calls,
            reasoning=mend_surrogates(self._reasoning.getvalue()),
        )
        stop_reason = STOP_REASONS.get(self._finish_reason, "tool_calls" if calls else "stop")
        return Answer(message, stop_reason, self._usage)


def _worse(old: str, new: str) -> str:
    """Of two finish reasons keep the one that says the answer was cut off; else the later one."""
    return old if not new or old in STOP_REASONS or old == "error" else new
