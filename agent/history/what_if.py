"""Decisions about the calls of a recording: why each was made, and what it would be with other b-threads."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from attrs import define, frozen

from agent.effects.loop import declared_effects
from agent.history.playback import played, retaken
from agent.history.rebuilding import rebuild, recorded_preset, within
from agent.log.reading import Decoder, LogError, RecordedRun
from agent.projections.conversation import Conversation
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    PromptGiven,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from bp import BProgram, BProgramError, BThread, Event, Refusals, Step
from bp.runner import Effect
from constitution import POLICIES, Level, judge

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

    def __str__(self) -> str:
        then, now = ("not decided" if each is None else each.kind for each in (self.then, self.now))
        return f"{self.call.id} ({self.call.tool}) was {then}, and now: {now}"


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


# What if


def what_if(run: RecordedRun, bthreads: Sequence[BThread]) -> WhatIf:
    """Judge the calls of a log again, on `bthreads`. Raises LogError for a record that cannot be an event."""
    then = _Recording(run)
    with BProgram(*bthreads) as program:
        now = _Rerun(program, then)
        divergence = now.play()
        calls = now.compared()
    if divergence is None:
        divergence = next((Divergence(len(run.records) + 1, str(call)) for call in calls if call.changed), None)
    return WhatIf(run.path, calls, divergence)


def recorded_decisions(run: RecordedRun) -> tuple[tuple[ToolCall, Decision | None], ...]:
    """Return every whole call of a log with its decision. Raises LogError."""
    return tuple((entry.call, entry.decision) for entry in _Recording(run).entries)


@define(eq=False)
class _Entry:
    """One call of a committed answer; `said` is the answer of a user about it."""

    call: ToolCall
    decision: Decision | None = None
    said: bool | None = None
    is_answered: bool = False

    def fold(self, event: Event) -> None:
        match event:
            case ApprovalAnswered(present=True):
                self.said = event.yes
            case GateApproved():
                self.decision = Decision("approved by a person" if self.said else "approved")
            case GateRejected():  # the answer to the call follows, and says why
                by = tuple(sorted({refusal.bthread for refusal in event.refusals}))
                self.decision = Decision("declined by a person" if self.said is False else "rejected", by)
            case CallAnswered() if not self.is_answered:
                self.is_answered = True
                if self.decision is None:
                    self.decision = Decision("not put up", (), event.result.text)
                elif self.decision.by:
                    self.decision = Decision(self.decision.kind, self.decision.by, event.result.text)


class _Ledger:
    """Every whole call of a run, in order, with its decision, and the conversation, from the events so far."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.conversation = Conversation()
        self._latest: dict[str, _Entry] = {}  # by id, which may come again

    def fold(self, event: Event) -> None:
        """Record an event."""
        self.conversation.fold(event)
        if isinstance(event, AnswerCommitted):
            for call in event.calls:
                self._latest.pop(call.id, None)
                if call.flaw is None:
                    self._latest[call.id] = _Entry(call)
                    self.entries.append(self._latest[call.id])
            return
        about = getattr(event, "call", None)
        entry = self._latest.get(about.id if isinstance(about, ToolCall) else str(about))
        if entry is not None:
            entry.fold(event)


class _Recording(_Ledger):
    """A log as the rerun needs it. `outside`: its external events, each with its line and the messages before it."""

    FOLDED = ("answer_committed", "gate_approved", "gate_rejected", "call_answered", "run_ended")
    """Internal events that make up the recorded conversation and its decisions."""

    def __init__(self, run: RecordedRun) -> None:
        super().__init__()
        self.outside: list[tuple[int, Event, int]] = []
        self.last_line = len(run.records) + 1
        decoder = Decoder()
        for line, record in enumerate(run.records, start=2):
            decoder.learn(record)
            from_outside = record["origin"] == "outside"
            if from_outside or record["name"] in self.FOLDED:
                event = decoder.event(record)
                if from_outside:
                    self.outside.append((line, event, len(self.conversation.messages)))
                self.fold(event)


class _Rerun(_Ledger):
    """The program, answered from the recording as long as that is valid."""

    def __init__(self, program: BProgram, then: _Recording) -> None:
        super().__init__()
        self._program, self._then = program, then
        self._effects: Mapping[type[Event], Effect] = {effect.on: effect for effect in declared_effects()}
        self._under_way: list[Event] = []
        self._ended: RunEnded | None = None
        self._divergence: Divergence | None = None

    def play(self) -> Divergence | None:
        """Play the recording; return where it stopped being valid, if it did."""
        try:
            for step in played(self._program, self._still_valid()):
                self.fold(step.event)
                if isinstance(step.event, RunEnded | PromptGiven):
                    self._ended = step.event if isinstance(step.event, RunEnded) else None
                if type(step.event) in self._effects:
                    self._under_way.append(step.event)
        except BProgramError as error:
            return Divergence(self._then.last_line, f"the program fails: {error}")
        return self._divergence

    def compared(self) -> tuple[Rejudged, ...]:
        """Return every call of the recording with both decisions; the calls are the same as far as both runs go."""
        again = [entry.decision or self._pending(entry.call) for entry in self.entries]
        missing = len(self._then.entries) - len(again)
        both = zip(self._then.entries, (*again, *[None] * missing), strict=False)
        return tuple(Rejudged(entry.call, entry.decision, now) for entry, now in both)

    def _still_valid(self) -> Iterator[Event]:
        """Yield the external events of the recording, up to the first that does not fit the new events."""
        for line, event, told in self._then.outside:
            started = next((each for each in self._under_way if self._effects[type(each)].answers(each, event)), None)
            if isinstance(event, InferenceFinished | InferenceFailed) and (why := self._objection(told, started)):
                self._divergence = Divergence(line, why)
                return
            if started is not None:
                self._under_way.remove(started)
            if started is not None or not any(isinstance(event, effect.outcome) for effect in self._effects.values()):
                yield event  # of an effect under way, or of a user

    def _objection(self, told: int, started: Event | None) -> str:
        """Return why the recording cannot go on with an answer of the model; an empty text when it can."""
        ended = self._ended and f"the run would have ended, {self._ended.status} ({self._ended.reason})"
        if self.conversation.messages != self._then.conversation.messages[:told]:
            changed = next((str(call) for call in self.compared() if call.changed), None)
            return changed or ended or "the model would have been told something else before"
        return "" if started is not None else ended or "the model would not be asked again"

    def _pending(self, call: ToolCall) -> Decision | None:
        """Return the state of a call without a decision: a user would be asked, or a b-thread holds it back."""
        for event in self._under_way:
            if isinstance(event, ApprovalAsked) and event.call == call:
                return Decision("asks a person", ("by_constitution",), event.question)
        held = [
            blocker.bthread
            for _, sync in self._program.standing
            for event in sync.requests
            if isinstance(event, GateApproved) and event.call == call
            for blocker in self._program.blockers(event)
        ]
        why = "nothing in the recording releases the call"
        return Decision("held back", tuple(dict.fromkeys(held)), why) if held else None


# Why

Obstacles = Mapping[str, bool]
"""The b-threads in the way of a call, by name; true for one that would ask a person."""

SomeEvent = TypeVar("SomeEvent", bound=Event)


@frozen
class Objection:
    """A b-thread that refused, why, and which would still be in the way without it; `asking`: those that would ask."""

    bthread: str
    because: object
    remaining: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()


@frozen
class Cause:
    """The explanation of the decision about one call.

    `story`: its events, from its proposal to its answer. `objections`: the refusals that kept it from running.
    `levels`: the verdict of each shipped policy on the recorded action.
    """

    call: ToolCall
    story: tuple[Step, ...]
    objections: tuple[Objection, ...] = ()
    levels: tuple[tuple[str, Level], ...] = ()

    def event(self, kind: type[SomeEvent]) -> SomeEvent | None:
        """Return the event of this kind, if there is one."""
        return next((step.event for step in self.story if isinstance(step.event, kind)), None)


def find_causes(run: RecordedRun, call: str, threads: Sequence[BThread] = ()) -> tuple[Cause, ...]:
    """Return the causes of every call with this id, in order; ids may come again in later turns.

    The log is replayed for that. Raises LogError when there is no such call, or the log differs from its replay, and
    RebuildError when its program cannot be rebuilt.
    """
    obstacles: dict[int, Obstacles] = {}  # by the number of the step that rejects it
    steps: list[Step] = []
    with rebuild(run, threads) as program:
        wanted: Event | None = None  # the next request for the call
        for step in retaken(run, program):
            steps.append(step)
            wanted = _next_request(step.event, call, wanted)
            if wanted is not None:
                obstacles[step.number + 1] = _obstacles(program, wanted)
    answers = ((step.number, step.event) for step in steps if isinstance(step.event, AnswerCommitted))
    calls = [(number, found) for number, answer in answers for found in answer.calls]
    if call not in (found.id for _, found in calls):
        known = dict.fromkeys(found.id for _, found in calls)
        raise LogError(f"{run.path} has no call {call!r}; calls: {', '.join(known) or 'none'}")
    return tuple(_cause(run, found, _story(steps[at:], found), obstacles) for at, found in calls if found.id == call)


def _obstacles(program: BProgram, wanted: Any) -> Obstacles:
    """Return the b-threads that hold or refuse an event of a call, and whether each requests a question about it."""
    asking = {
        name
        for name, statement in program.standing
        for request in statement.requests
        if isinstance(request, ApprovalAsked) and request.call == wanted.call
    }
    return {blocker.bthread: blocker.bthread in asking for blocker in program.blockers(wanted)}


def _next_request(event: Event, call: str, wanted: Event | None) -> Event | None:
    """Return the event that the call needs next, after `event`."""
    match event:
        case AnswerCommitted():
            return next((ProposedAction(found) for found in event.calls if found.id == call), wanted)
        case ActionDescribed() if event.call.id == call:
            return GateApproved(event.call, event.facts)
        case GateApproved() if event.call.id == call:
            return ToolStarted(event.call)
        case GateRejected() | ToolStarted() if event.call.id == call:
            return None
        case CallAnswered() if event.call == call:
            return None
    return wanted


def _story(steps: Sequence[Step], call: ToolCall) -> tuple[Step, ...]:
    """Return the events of a call, from its proposal to its answer, or to the end of its run."""
    story = []
    for step in steps:
        if isinstance(step.event, RunEnded):
            break
        if getattr(step.event, "call", None) in (call, call.id):
            story.append(step)
            if isinstance(step.event, CallAnswered):
                break
    return tuple(story)


def _cause(run: RecordedRun, call: ToolCall, story: tuple[Step, ...], obstacles: Mapping[int, Obstacles]) -> Cause:
    objecting = next((step for step in story if step.refusals), None)
    objections = () if objecting is None else _objections(objecting.refusals, obstacles.get(objecting.number, {}))
    described = next((step.event for step in story if isinstance(step.event, ActionDescribed)), None)
    if described is None or described.problem is not None:
        return Cause(call, story, objections)
    preset = recorded_preset(run)
    levels = ((name, judge(described.facts, within(preset, policy)).level) for name, policy in POLICIES.items())
    return Cause(call, story, objections, tuple(levels))


def _objections(refusals: Refusals | None, obstacles: Obstacles) -> tuple[Objection, ...]:
    found = []
    for by, because in sorted(refusals or (), key=lambda refusal: (refusal.bthread, str(refusal.because))):
        remaining = tuple(name for name in obstacles if name != by)
        found.append(Objection(by, because, remaining, tuple(name for name in remaining if obstacles[name])))
    return tuple(found)
