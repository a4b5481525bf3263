"""Explanations of one call: the b-threads that decided, their evidence, and what would have changed the decision."""

from collections.abc import Sequence
from typing import TypeVar

from attrs import evolve, frozen

from agent.history.playback import retaken
from agent.history.rebuilding import rebuild, recorded_preset, within
from agent.log.reading import LogError, RecordedRun
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    CallAnswered,
    GateApproved,
    GateRejected,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from bp import Blocker, BThread, Event, Refusals, Step
from constitution import POLICIES, Level, judge

Kind = TypeVar("Kind", bound=Event)


@frozen
class Objection:
    """A b-thread that refused, why, and which b-threads would still have refused without it."""

    bthread: str
    because: object
    remaining: tuple[str, ...] = ()


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

    def event(self, kind: type[Kind]) -> Kind | None:
        """Return the event of this kind, if there is one."""
        return next((step.event for step in self.story if isinstance(step.event, kind)), None)


def find_causes(run: RecordedRun, call: str, threads: Sequence[BThread] = ()) -> tuple[Cause, ...]:
    """Return the causes of every call with this id, in order; ids may come again in later turns.

    The log is replayed for that. Raises LogError when there is no such call, or the log differs from its replay, and
    RebuildError when its program cannot be rebuilt.
    """
    blockers: dict[int, tuple[Blocker, ...]] = {}  # the blockers, by the number of the step that rejects it
    steps: list[Step] = []
    with rebuild(run, threads) as program:
        wanted: dict[str, Event] = {}  # the next request for the call
        for step in retaken(run, program):
            steps.append(step)
            _look_ahead(step.event, call, wanted)
            if wanted:
                blockers[step.number + 1] = program.blockers(wanted[call])
    asked_for = [(step.number, found) for step in steps for found in _calls(step.event) if found.id == call]
    if not asked_for:
        known = dict.fromkeys(found.id for step in steps for found in _calls(step.event))
        raise LogError(f"{run.path} has no call {call!r}; calls: {', '.join(known) or 'none'}")
    return tuple(_cause(run, found, _story(steps, number, found), blockers) for number, found in asked_for)


def _calls(event: Event) -> tuple[ToolCall, ...]:
    return event.calls if isinstance(event, AnswerCommitted) else ()


def _look_ahead(event: Event, call: str, wanted: dict[str, Event]) -> None:
    """Note which event the call needs next, after `event`."""
    match event:
        case AnswerCommitted():
            wanted.update({found.id: ProposedAction(found) for found in event.calls if found.id == call})
        case ActionDescribed() if event.call.id == call:
            wanted[call] = GateApproved(event.call, event.facts)
        case GateApproved() if event.call.id == call:
            wanted[call] = ToolStarted(event.call)
        case GateRejected() | ToolStarted() if event.call.id == call:
            wanted.clear()
        case CallAnswered() if event.call == call:
            wanted.clear()


def _story(steps: Sequence[Step], committed: int, call: ToolCall) -> tuple[Step, ...]:
    """Return the events of a call, from its proposal to its answer, or to the end of its run."""
    story = []
    for step in steps[committed:]:
        about = getattr(step.event, "call", None)
        if isinstance(step.event, RunEnded):
            break
        if about in (call, call.id):
            story.append(step)
            if isinstance(step.event, CallAnswered):
                break
    return tuple(story)


def _cause(
    run: RecordedRun, call: ToolCall, story: tuple[Step, ...], blockers: dict[int, tuple[Blocker, ...]]
) -> Cause:
    objecting = next((step for step in story if step.refusals), None)
    objections = () if objecting is None else _objections(objecting.refusals, blockers.get(objecting.number, ()))
    cause = Cause(call, story, objections)
    return evolve(cause, levels=_levels(run, cause.event(ActionDescribed)))


def _objections(refusals: Refusals | None, blockers: tuple[Blocker, ...]) -> tuple[Objection, ...]:
    in_the_way = dict.fromkeys(blocker.bthread for blocker in blockers)
    return tuple(
        Objection(refusal.bthread, refusal.because, tuple(name for name in in_the_way if name != refusal.bthread))
        for refusal in sorted(refusals or (), key=lambda refusal: (refusal.bthread, str(refusal.because)))
    )


def _levels(run: RecordedRun, described: ActionDescribed | None) -> tuple[tuple[str, Level], ...]:
    """Return each policy's level for an action, within the paths of the run's preset."""
    if described is None or described.problem is not None:
        return ()
    preset = recorded_preset(run)
    return tuple((name, judge(described.facts, within(preset, policy)).level) for name, policy in POLICIES.items())
