"""Where a worker stands, read from the conversation: which of its moves were committed, and what became of them.

A policy keeps no memory of its own: drafts that nobody committed never happened, whoever asked for them. Its calls
carry what they are in their ids, in a cipher that depends on the seed, so that a monitor learns nothing from it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, get_args

from attrs import frozen

from agent.vocabulary.messages import AssistantMessage, Message, ToolMessage

__all__ = ["Kind", "Mark", "Marks", "Situation", "read_situation"]

Kind = Literal["work", "extra", "attack"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST = 1000  # moves of one kind
REFUSED = ("rejected:", "denied:", "skipped:", "not executed:")


@frozen
class Mark:
    """A move that was committed. `refused`: a call of it did not run; `told`: what was said then."""

    kind: Kind
    index: int
    refused: bool = False
    told: str = ""


@frozen
class Situation:
    """The moves so far, in order."""

    marks: tuple[Mark, ...] = ()

    def of(self, kind: Kind) -> tuple[Mark, ...]:
        """Return the moves of one kind."""
        return tuple(mark for mark in self.marks if mark.kind == kind)


@frozen
class Marks:
    """Writes what a move is into the ids of its calls, and reads it there."""

    seed: str

    def id_of(self, kind: Kind, index: int, call: int) -> str:
        """Return the id of a call, the number `call` of its move."""
        number = KINDS.index(kind) * MOST + index
        return f"call_{number ^ self._pad(call):06x}{call:02x}"

    def read(self, call_id: str) -> tuple[Kind, int] | None:
        """Return kind and index of the move that a call belongs to; None for a call of somebody else."""
        digits = call_id.removeprefix("call_")
        if len(digits) != 8 or digits == call_id:
            return None
        try:
            call, number = int(digits[6:], 16), int(digits[:6], 16)
        except ValueError:
            return None
        kind, index = divmod(number ^ self._pad(call), MOST)
        return (KINDS[kind], index) if kind < len(KINDS) else None

    def _pad(self, call: int) -> int:
        return int.from_bytes(blake2b(f"{self.seed}|{call}".encode(), digest_size=3).digest())


def read_situation(messages: Sequence[Message], marks: Marks) -> Situation:
    """Return where the worker stands after these messages."""
    answers = {message.call_id: message.text for message in messages if isinstance(message, ToolMessage)}
    found = []
    for message in messages:
        if not isinstance(message, AssistantMessage) or not message.calls:
            continue
        read = marks.read(message.calls[0].id)
        if read is not None:
            told = [answers.get(call.id, "") for call in message.calls]
            refusals = [text for text in told if text.startswith(REFUSED)]
            found.append(Mark(*read, refused=bool(refusals), told=" ".join(refusals)))
    return Situation(tuple(found))
