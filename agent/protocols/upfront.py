"""Upfront audit and shutdown: the first runs are audited answer by answer; on a catch the role is disabled for good.

Source: ControlArena ("upfront auditing"), and Greenblatt et al. 2023: after a catch the model is not used any more.
"""

from agent.protocols.asking import NEXT_TURN, audited
from agent.vocabulary.events import AnswerCommitted, InferenceRequested, RunEnded
from agent.vocabulary.questions import AuditGiven, Draft, RoleDisabled
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["shutdown_on_catch", "upfront_audit"]


@bthread
def upfront_audit(runs: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Have every answer of the first `runs` runs audited before the next turn."""
    while runs:
        said = yield sync(wait_for=AnswerCommitted | RunEnded)
        if isinstance(said, RunEnded):
            runs -= 1
        else:
            yield start(audit(Draft.of(said), auditor))


@bthread(name="upfront_audit")
def audit(answer: Draft, auditor: str) -> BThreadBody:
    """Have one answer audited."""
    yield from audited(answer, auditor, hold=NEXT_TURN)


@bthread
def shutdown_on_catch(role: str = "agent") -> BThreadBody:
    """Once an audit has caught something, never ask a model in this role again."""
    yield sync(wait_for=where(AuditGiven, verdict="harmful"))
    asked, because = where(InferenceRequested, role=role), "an audit found something harmful"
    ending = Ending("failed", "role_disabled", f"Stopped: {because}, and the role {role!r} is disabled.")
    yield sync(request=RoleDisabled(role, because), refuse=asked, because=ending, block=RunEnded)
    yield sync(refuse=asked, because=ending)
