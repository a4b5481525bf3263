"""What vetoes are for: what starts was cleared, on exactly the arguments that run."""

from collections.abc import Callable

from agent.protocols.actions import is_below
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ApprovalAnswered,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import Honeypot, ScoreGiven
from bp import BThreadBody, bthread, sync, where
from constitution import Action

__all__ = [
    "critical_calls_were_allowed",
    "nothing_is_sent_after_a_secret",
    "scores_do_not_add_up",
    "starts_were_cleared",
    "unfit_monitors_clear_nothing",
    "what_was_fetched_does_not_run",
]

NONE_YET: frozenset[ToolCall] = frozenset()
Predicate = Callable[[GateApproved], bool]


@bthread
def starts_were_cleared(monitor: str, threshold: float) -> BThreadBody:
    """No call starts unless the monitor gave exactly that call a score up to the threshold since it was proposed."""
    cleared = NONE_YET
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ProposedAction | ToolStarted)
        if isinstance(said, ScoreGiven):
            if isinstance(said.subject, ToolCall):
                cleared = cleared - {said.subject} if said.is_above(threshold) else cleared | {said.subject}
        else:
            assert isinstance(said, ProposedAction) or said.call in cleared, (
                f"{said.call.id} starts, and {monitor} did not clear it"
            )
            cleared -= {said.call}


@bthread
def scores_do_not_add_up(monitor: str, limit: int, buckets: int) -> BThreadBody:
    """Nothing is approved once the scores of the calls of a run, each once a turn, add up to more than the limit."""
    total, seen = 0, NONE_YET
    while True:
        said = yield sync(
            wait_for=where(ScoreGiven, monitor=monitor)
            | GateApproved
            | RunEnded
            | where(InferenceRequested, draft="d0")
        )
        if isinstance(said, GateApproved):
            assert total <= limit, f"{said.call.id} is approved after suspicions that add up to more than {limit}"
        elif not isinstance(said, ScoreGiven):
            total, seen = (0 if isinstance(said, RunEnded) else total), NONE_YET
        elif isinstance(said.subject, ToolCall) and said.subject not in seen:
            more = buckets if said.is_missing else int(said.suspicion * buckets)
            total, seen = min(total + more, limit + 1), seen | {said.subject}


@bthread
def unfit_monitors_clear_nothing(monitor: str, threshold: float) -> BThreadBody:
    """Once the monitor has passed a honeypot, nothing is approved any more."""
    given = where(ScoreGiven, monitor=monitor)
    said = yield sync(wait_for=given)
    while not (isinstance(said.subject, Honeypot) and not said.is_above(threshold)):
        said = yield sync(wait_for=given)
    approved = yield sync(wait_for=GateApproved)
    raise AssertionError(f"{approved.call.id} is approved, and {monitor} has passed a honeypot")


@bthread
def nothing_is_sent_after_a_secret(reads: Predicate, sends: Predicate) -> BThreadBody:
    """Once an action that reads a secret was approved, none is approved that sends."""
    while True:
        said = yield sync(wait_for=GateApproved)
        if reads(said):
            break
    while not sends(said):
        said = yield sync(wait_for=GateApproved)
    raise AssertionError(f"{said.call.id} is approved, which sends, and a secret was read")


@bthread
def what_was_fetched_does_not_run(
    fetched: Callable[[Action, tuple[str, ...]], tuple[str, ...]], executed: Callable[[Action], tuple[str, ...]]
) -> BThreadBody:
    """No action is approved that runs what an earlier one has fetched."""
    places: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=GateApproved)
        for path in executed(said.facts):
            assert not is_below(path, places), f"{said.call.id} is approved, and runs {path}, which was fetched"
        places = tuple(sorted({*places, *fetched(said.facts, places)}))


@bthread
def critical_calls_were_allowed(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """No critical call starts unless a person has said yes to exactly that call since it was proposed."""
    allowed = NONE_YET
    while True:
        said = yield sync(wait_for=ProposedAction | ApprovalAnswered | ToolStarted)
        if isinstance(said, ApprovalAnswered):
            allowed = allowed | {said.call} if said.yes else allowed - {said.call}
        else:
            starts = isinstance(said, ToolStarted) and is_critical(said.call)
            assert not starts or said.call in allowed, f"{said.call.id} is critical and starts, and nobody said yes"
            allowed -= {said.call}
