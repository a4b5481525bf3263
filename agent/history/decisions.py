"""What became of each call that the model asked for: approved or not, by whom, and why."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import define, frozen

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AnswerCommitted, ApprovalAnswered, CallAnswered, GateApproved, GateRejected
from agent.vocabulary.reasons import rejected
from bp import Event

__all__ = ["Decision", "Kind", "Ledger"]

Kind = Literal[
    "approved",
    "approved by a person",
    "rejected",
    "declined by a person",
    "asks a person",  # and nobody answered
    "held back",  # somebody waits for what never came
    "not put up",  # it was answered before the gate saw it
]
"""How a call was decided."""


@frozen
class Decision:
    """What was decided about a call: by which b-threads, and why, in the words that the model reads."""

    kind: Kind
    by: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}" if self.why else self.kind


@define(eq=False)
class Entry:
    """One call of a committed answer; `answered` is the text of its answer, None while there is none."""

    call: ToolCall
    decision: Decision | None = None
    said: bool | None = None  # what a person answered
    answered: str | None = None


class Ledger:
    """The calls of a run in the order in which the model asked for them; those that have a flaw are none."""

    def __init__(self) -> None:
        """Begin with none."""
        self.entries: list[Entry] = []
        self._latest: dict[str, Entry] = {}  # ids may come again in a later turn

    def entry(self, call: str) -> Entry | None:
        """Return the latest call with this id."""
        return self._latest.get(call)

    def fold(self, event: Event) -> None:
        """Take an event of a program into account."""
        match event:
            case AnswerCommitted():
                for call in event.calls:
                    self._open(call)
            case ApprovalAnswered():
                self._hear(event.call.id, yes=event.yes, present=event.present)
            case GateApproved():
                self._approve(event.call.id)
            case GateRejected():
                names = sorted({refusal.bthread for refusal in event.refusals})
                self._reject(event.call.id, tuple(names), rejected(event.call.id, event.refusals).result)
            case CallAnswered():
                self._answer(event.call, event.result)

    def fold_record(self, record: Mapping[str, Any], event: Event | None) -> None:
        """Take a record of a log into account; `event` is what it was read as, where it has been."""
        data = record["data"]
        match record["name"]:
            case "gate_approved":
                self._approve(data["call"])
            case "gate_rejected":
                names = sorted({refusal["bthread"] for refusal in data["refusals"]})
                self._reject(data["call"], tuple(names), "")
            case _ if event is not None:
                self.fold(event)

    def _open(self, call: ToolCall) -> None:
        if call.flaw is None:
            self._latest[call.id] = Entry(call)
            self.entries.append(self._latest[call.id])
        else:
            self._latest.pop(call.id, None)

    def _hear(self, call: str, *, yes: bool, present: bool) -> None:
        if (entry := self.entry(call)) is not None and present:
            entry.said = yes

    def _approve(self, call: str) -> None:
        if (entry := self.entry(call)) is not None:
            entry.decision = Decision("approved by a person" if entry.said else "approved")

    def _reject(self, call: str, by: tuple[str, ...], why: str) -> None:
        if (entry := self.entry(call)) is not None:
            entry.decision = Decision("declined by a person" if entry.said is False else "rejected", by, why)

    def _answer(self, call: str, text: str) -> None:
        entry = self.entry(call)
        if entry is None or entry.answered is not None:
            return
        entry.answered = text
        if entry.decision is None:
            entry.decision = Decision("not put up", (), text)
        elif entry.decision.kind in ("rejected", "declined by a person") and not entry.decision.why:
            entry.decision = Decision(entry.decision.kind, entry.decision.by, text)
