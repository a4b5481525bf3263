"""Autonomous work (S1): `complete` ends the run, and after `pursue_objective` nothing else completes it.

The arguments of the two tools are read from their results: only calls that passed the gate and ran count.
"""

from typing import Any

from agent.threads.limits import LIMIT_TEXT, TURNS
from agent.vocabulary.events import (
    AnswerCommitted,
    GateApproved,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    ToolFinished,
)
from agent.vocabulary.reasons import Ending, Unfinished
from bp import NONE, BThreadBody, bthread, contains, sync, where

PURSUE, COMPLETE = "pursue_objective", "complete"
"""The tools that begin and end autonomous work."""

GO_ON = Unfinished(
    "You have not called complete, so the run goes on. Continue, or call complete with the result and the status "
    "success, partial or failure."
)
PURSUING = "an objective is being pursued; call complete before you take another one"


def _is_pursuit(event: Any) -> bool:
    return bool(event.call.tool == PURSUE)


def _has_begun(finished: ToolFinished) -> bool:
    return finished.call.tool == PURSUE and not finished.is_error


def _has_completed(finished: ToolFinished) -> bool:
    return finished.call.tool == COMPLETE and not finished.is_error


OBJECTIVE_TAKEN = where(ToolFinished, _has_begun)
COMPLETED = where(ToolFinished, _has_completed)
TEXT_ALONE = where(RunEnded, status="completed", reason="answered")


@bthread
def complete_to_finish(after_objective: bool = False) -> BThreadBody:
    """End the run when `complete` is called; a text alone does not complete it.

    With `after_objective` that holds once an objective was taken. If the user has more to say after `complete`, the run
    continues as it began.
    """
    while True:
        said = yield sync(wait_for=PromptGiven)
        is_pursuing = not after_objective
        while not isinstance(said, RunEnded):
            said = yield sync(
                wait_for=COMPLETED | OBJECTIVE_TAKEN | RunEnded,
                refuse=TEXT_ALONE if is_pursuing else NONE,
                because=GO_ON,
            )
            if contains(OBJECTIVE_TAKEN, said):
                is_pursuing = True
            elif isinstance(said, ToolFinished):
                over = InferenceRequested | ProposedAction
                said = yield sync(refuse=over, because=declared(said), wait_for=RunEnded | RunContinued)
                is_pursuing = not after_objective


def declared(finished: ToolFinished) -> Ending:
    """Return the end that a call of `complete` asks for."""
    given = finished.call.arguments
    return Ending("completed", str(given.get("status", "success")), str(given.get("result", "")))


@bthread
def one_objective() -> BThreadBody:
    """While an objective is pursued, refuse to take another one."""
    pursuits = where(GateApproved, _is_pursuit)
    while True:
        yield sync(wait_for=OBJECTIVE_TAKEN)
        yield sync(wait_for=COMPLETED | RunEnded, refuse=pursuits, because=PURSUING)


@bthread
def iterations_at_most(turns: int, text: str = LIMIT_TEXT) -> BThreadBody:
    """Allow `turns` committed answers, counted from the first objective of the run; the last response is returned.

    Before there is an objective they are counted too: `turns` answers without one are a limit as well (S1 4.3, 7.2).
    """
    taken, pursuing, response = 0, False, ""
    while True:
        words = f"{text}\n\nLast response: {response}" if response else text
        said = yield sync(
            wait_for=TURNS | OBJECTIVE_TAKEN,
            refuse=InferenceRequested if taken >= turns else NONE,
            because=Ending("limit", "max_iterations", words),
        )
        if isinstance(said, AnswerCommitted):
            taken, response = taken + 1, said.message.text.strip() or response
        elif isinstance(said, RunEnded):
            taken, pursuing, response = 0, False, ""
        elif not pursuing:
            taken, pursuing = 0, True
