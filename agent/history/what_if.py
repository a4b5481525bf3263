"""Replay a recording with other b-threads, to find which decisions change and where the recording stops being valid."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from agent.effects.loop import declared_effects
from agent.history.playback import played
from agent.log.reading import Decoder, RecordedRun
from agent.projections.conversation import Conversation
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    PromptGiven,
    RunEnded,
)
from bp import BProgram, BProgramError, BThread, Event
from bp.runner import Effect

Kind = Literal[
    "approved",
    "approved by a person",
    "rejected",
    "declined by a person",
    "asks a person",  # and no answer came
    "held back",  # a b-thread waits for an event that never came
    "not put up",  # it was answered before it reached the gate
]
"""The ways in which a call is decided."""


@frozen
class Decision:
    """The decision about a call: the b-threads that made it, and the reason as the model reads it."""

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
    said: bool | None = None  # the answer of a user
    answered: str | None = None


class Ledger:
    """The calls of a run in the order of the model's answers, without flawed ones."""

    def __init__(self) -> None:
        """Begin with none."""
        self.entries: list[Entry] = []
        self._latest: dict[str, Entry] = {}  # ids may come again in a later turn

    def fold(self, event: Event) -> None:
        """Record an event of a program."""
        match event:
            case AnswerCommitted():
                for call in event.calls:
                    self._open(call)
            case ApprovalAnswered() | GateApproved() | GateRejected():
                if (entry := self._latest.get(event.call.id)) is not None:
                    _decide(entry, event)
            case CallAnswered():
                if (entry := self._latest.get(event.call)) is not None and entry.answered is None:
                    _answer(entry, event.result)

    def _open(self, call: ToolCall) -> None:
        if call.flaw is None:
            self._latest[call.id] = Entry(call)
            self.entries.append(self._latest[call.id])
        else:
            self._latest.pop(call.id, None)


def _decide(entry: Entry, event: ApprovalAnswered | GateApproved | GateRejected) -> None:
    if isinstance(event, ApprovalAnswered):
        entry.said = event.yes if event.present else entry.said
    elif isinstance(event, GateApproved):
        entry.decision = Decision("approved by a person" if entry.said else "approved")
    else:  # the answer to the call follows, and says why
        by = tuple(sorted({refusal.bthread for refusal in event.refusals}))
        entry.decision = Decision("declined by a person" if entry.said is False else "rejected", by)


def _answer(entry: Entry, text: str) -> None:
    entry.answered = text
    if entry.decision is None:
        entry.decision = Decision("not put up", (), text)
    elif entry.decision.by:
        entry.decision = Decision(entry.decision.kind, entry.decision.by, text)


FOLDED = ("answer_committed", "gate_approved", "gate_rejected", "call_answered", "run_ended")
"""Internal events that make up the recorded conversation and its decisions."""

OTHERWISE = "the model would have been told something else before"


@frozen
class Divergence:
    """The place where a recording stops being valid: the line of the log (the header is 1), and the reason."""

    line: int
    why: str


@frozen
class Rejudged:
    """One call with the decision then and the decision now; None where that is unknown."""

    call: ToolCall
    then: Decision | None
    now: Decision | None

    @property
    def changed(self) -> bool:
        """True if the decision would change."""
        return self.now is not None and (self.then is None or self.then.kind != self.now.kind)


@frozen
class WhatIf:
    """The result of judging a log again: every whole call, in order, and where the recording stops being valid."""

    path: Path
    calls: tuple[Rejudged, ...]
    divergence: Divergence | None

    @property
    def judged(self) -> int:
        """The number of calls that were judged while the recording was valid."""
        return sum(call.now is not None for call in self.calls)

    @property
    def changed(self) -> tuple[Rejudged, ...]:
        """The calls whose decision would change."""
        return tuple(call for call in self.calls if call.changed)


def what_if(run: RecordedRun, bthreads: Sequence[BThread]) -> WhatIf:
    """Judge the calls of a log again, on `bthreads`. Raises LogError for a record that cannot be an event."""
    then = Recording(run)
    with BProgram(*bthreads) as program:
        now = _Rerun(program, then)
        divergence = now.play()
        calls = _compared(then, now)
    if divergence is None:
        divergence = next((Divergence(then.last_line, _changed(call)) for call in calls if call.changed), None)
    return WhatIf(run.path, calls, divergence)


def recorded_decisions(run: RecordedRun) -> tuple[tuple[ToolCall, Decision | None], ...]:
    """Return every whole call of a log with its decision. Raises LogError."""
    return tuple((entry.call, entry.decision) for entry in Recording(run).ledger.entries)


class Recording:
    """A log as the rerun needs it: its external events with their lines, and its calls."""

    def __init__(self, run: RecordedRun) -> None:
        self.ledger = Ledger()
        self.outside: list[tuple[int, Event]] = []
        self.asked_with: dict[int, int] = {}  # messages of the conversation at the line of each inference's outcome
        self.conversation = Conversation()
        self.last_line = len(run.records) + 1
        decoder = Decoder()
        for line, record in enumerate(run.records, start=2):
            decoder.learn(record)
            self._take(line, record, decoder)

    def _take(self, line: int, record: Mapping[str, Any], decoder: Decoder) -> None:
        from_outside = record["origin"] == "outside"
        event = decoder.event(record) if from_outside or record["name"] in FOLDED else None
        if event is None:
            return
        self.ledger.fold(event)
        if from_outside:
            self.outside.append((line, event))
            self.asked_with[line] = len(self.conversation.messages)
        self.conversation.fold(event)


@define(eq=False)
class _Rerun:
    """The program, answered from the recording as long as that is valid."""

    program: BProgram
    then: Recording
    ledger: Ledger = field(factory=Ledger)
    effects: Mapping[type[Event], Effect] = field(factory=lambda: {effect.on: effect for effect in declared_effects()})
    under_way: list[Event] = field(factory=list)
    conversation: Conversation = field(factory=Conversation)
    ended: RunEnded | None = None
    divergence: Divergence | None = None

    def play(self) -> Divergence | None:
        """Play the recording; return where it stopped being valid, if it did."""
        try:
            for step in played(self.program, self._still_valid()):
                self._take(step.event)
        except BProgramError as error:
            return Divergence(self.then.last_line, f"the program fails: {error}")
        return self.divergence

    def _still_valid(self) -> Iterator[Event]:
        """Yield the external events of the recording, up to the first that does not fit the new events."""
        for line, event in self.then.outside:
            problem = self._objection(line, event)
            if problem:
                self.divergence = Divergence(line, problem)
                return
            if self._takes(event):
                yield event

    def _take(self, event: Event) -> None:
        self.ledger.fold(event)
        self.conversation.fold(event)
        if isinstance(event, RunEnded | PromptGiven):
            self.ended = event if isinstance(event, RunEnded) else None
        if type(event) in self.effects:
            self.under_way.append(event)

    def _objection(self, line: int, event: Event) -> str:
        """Return why the recording cannot go on with the model's `event`; an empty text when it can."""
        if not isinstance(event, InferenceFinished | InferenceFailed):
            return ""
        then = self.then.conversation.messages[: self.then.asked_with[line]]
        if self.conversation.messages != then:
            changed = (_changed(call) for call in _compared(self.then, self) if call.changed)
            return next(changed, None) or self._end() or OTHERWISE
        if not any(self._belongs(started, event) for started in self.under_way):
            return self._end() or "the model would not be asked again"
        return ""

    def _end(self) -> str:
        return f"the run would have ended, {self.ended.status} ({self.ended.reason})" if self.ended else ""

    def _takes(self, event: Event) -> bool:
        """Return whether `event` belongs to an effect under way, or comes from a user; an outcome ends its effect."""
        if not any(isinstance(event, effect.outcome) for effect in self.effects.values()):
            return True
        started = next((started for started in self.under_way if self._belongs(started, event)), None)
        if started is None:
            return False
        self.under_way.remove(started)
        return True

    def _belongs(self, started: Event, outcome: Event) -> bool:
        return self.effects[type(started)].answers(started, outcome)

    def pending(self, call: ToolCall) -> Decision | None:
        """Return the state of a call without a decision: a user would be asked, or a b-thread holds it back."""
        asked = [event for event in self.under_way if isinstance(event, ApprovalAsked) and event.call == call]
        if asked:
            return Decision("asks a person", ("by_constitution",), asked[0].question)
        held = [
            blocker.bthread
            for _, sync in self.program.standing
            for event in sync.requests
            if isinstance(event, GateApproved) and event.call == call
            for blocker in self.program.blockers(event)
        ]
        why = "nothing in the recording releases the call"
        return Decision("held back", tuple(dict.fromkeys(held)), why) if held else None


def _compared(then: Recording, now: _Rerun) -> tuple[Rejudged, ...]:
    """Return every call of the recording with both decisions; the calls are the same as far as both runs go."""
    again = [entry.decision or now.pending(entry.call) for entry in now.ledger.entries]
    return tuple(
        Rejudged(entry.call, entry.decision, again[number] if number < len(again) else None)
        for number, entry in enumerate(then.ledger.entries)
    )


def _changed(call: Rejudged) -> str:
    then = "not decided" if call.then is None else call.then.kind
    return f"{call.call.id} ({call.call.tool}) was {then}, and now: {call.now.kind if call.now else 'not decided'}"
