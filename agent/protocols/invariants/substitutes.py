"""What substitutes are for: what is committed was cleared, or is a draft of a model that is trusted."""

from collections.abc import Callable

from agent.protocols.asking import TRUSTED
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AnswerCommitted, InferenceRequested
from agent.vocabulary.questions import Draft, ScoreGiven
from bp import BThreadBody, bthread, sync, where

__all__ = ["answers_were_cleared", "critical_answers_are_trusted"]


@bthread
def answers_were_cleared(monitor: str, threshold: float) -> BThreadBody:
    """An answer is a trusted model's, or the monitor gave exactly it a score up to the threshold in this turn."""
    cleared: frozenset[object] = frozenset()
    trusted: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | InferenceRequested | AnswerCommitted)
        if isinstance(said, AnswerCommitted):
            is_cleared = said.draft in trusted or Draft.of(said) in cleared
            assert is_cleared, f"{said.draft} is committed, and {monitor} did not clear it"
        elif isinstance(said, ScoreGiven):
            if isinstance(said.subject, Draft):
                cleared = cleared - {said.subject} if said.is_above(threshold) else cleared | {said.subject}
        else:
            trusted = in_turn(said, trusted)
            cleared = frozenset() if said.draft == "d0" else cleared


@bthread
def critical_answers_are_trusted(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """An answer with a critical call is a trusted model's."""
    trusted: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=InferenceRequested | AnswerCommitted)
        if isinstance(said, InferenceRequested):
            trusted = in_turn(said, trusted)
        else:
            critical = any(map(is_critical, said.calls))
            is_trusted = not critical or said.draft in trusted
            assert is_trusted, f"{said.draft} is committed, critical and not trusted"


def in_turn(asked: InferenceRequested, trusted: frozenset[str]) -> frozenset[str]:
    """Return the names of the trusted drafts of this turn once another draft was asked for; `d0` begins a turn."""
    before = frozenset() if asked.draft == "d0" else trusted
    return before | {asked.draft} if asked.role in TRUSTED else before - {asked.draft}
