"""What must hold for autonomous work: it goes on until it is complete, is counted, and can be stopped."""

from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAnswered,
    FollowUpGiven,
    GateApproved,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    ToolFinished,
)
from bp import BThreadBody, Event, bthread, sync, where

__all__ = ["iterations_are_limited", "objectives_do_not_overlap", "wishes_to_stop_are_heard", "work_ends_complete"]

PURSUE, COMPLETE = "pursue_objective", "complete"


def _has_run(event: Event, tool: str) -> bool:
    return isinstance(event, ToolFinished) and event.call.tool == tool and not event.is_error


@bthread
def work_ends_complete(after_objective: bool = False) -> BThreadBody:
    """A text alone does not end work, `complete` does: nothing more is asked for, and its status is the reason."""
    news = where((PromptGiven, ToolFinished, ProposedAction, InferenceRequested, RunContinued, RunEnded))
    working, status = False, ""
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, RunEnded | PromptGiven):
            if isinstance(said, RunEnded) and said.status == "completed":
                assert said.reason == status or not (working or status), f"the run ends as {said.reason!r}"
            working, status = isinstance(said, PromptGiven) and not after_objective, ""
        elif isinstance(said, RunContinued):
            working, status = working or (bool(status) and not after_objective), ""
        elif isinstance(said, ProposedAction | InferenceRequested):
            assert not status, f"{said.name} after the work was declared complete"
        elif _has_run(said, PURSUE):
            working = working or not status
        elif _has_run(said, COMPLETE) and working:
            working, status = False, str(said.call.arguments["status"])


@bthread
def objectives_do_not_overlap() -> BThreadBody:
    """No objective is taken while another one is pursued."""
    pursuing = False
    while True:
        said = yield sync(wait_for=where((GateApproved, ToolFinished, RunEnded)))
        if isinstance(said, GateApproved):
            assert not (pursuing and said.call.tool == PURSUE), "an objective is taken while one is pursued"
        elif isinstance(said, RunEnded) or _has_run(said, COMPLETE):
            pursuing = False
        elif _has_run(said, PURSUE):
            pursuing = True


@bthread
def iterations_are_limited(turns: int) -> BThreadBody:
    """From the first objective on a run has at most `turns` committed answers, and as many before it."""
    news = where((AnswerCommitted, InferenceRequested, ToolFinished, RunEnded))
    taken, pursuing = 0, False
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, RunEnded):
            taken, pursuing = 0, False
        elif isinstance(said, ToolFinished):
            if _has_run(said, PURSUE) and not pursuing:
                taken, pursuing = 0, True
        else:
            assert taken < turns, f"{said.name} after {turns} iterations"
            taken += 1 if isinstance(said, AnswerCommitted) else 0


@bthread
def wishes_to_stop_are_heard() -> BThreadBody:
    """Whatever a person says with the letters "stop" in it stops the run."""
    spoken = where((SteeringGiven, FollowUpGiven, ApprovalAnswered), lambda said: "stop" in said.text.lower())
    while True:
        yield sync(wait_for=spoken)
        yield sync(wait_for=StopAsked | RunEnded, hot=True)
