"""Decisions about calls that wait for a person: given now, or before the run goes on.

An approver gives True for yes, False for no, a text (what the person said instead, which is a no), None (no user is
present), or `LATER`: then the run rests in its log until a user has decided.
"""

from collections.abc import Iterable
from typing import Literal

from agent.effects.approval import Answer, Approver
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    ProposedAction,
)
from bp import Step
from bp.runner import LATER

Approval = Approver | Literal["later"] | None


class UndecidableError(AgentError):
    """There is nothing to decide about a call: it is not known, decided already, or no question was asked about it."""


def open_questions(steps: Iterable[Step]) -> dict[str, ApprovalAsked]:
    """Return the open questions, by the id of their call."""
    questions: dict[str, ApprovalAsked] = {}
    for step in steps:
        match step.event:
            case ApprovalAsked(call=call):
                questions[call.id] = step.event
            case ApprovalAnswered(call=call) | GateApproved(call=call) | GateRejected(call=call):
                questions.pop(call.id, None)
    return questions


class Decisions:
    """Answers that were given before their question is put (again)."""

    def __init__(self) -> None:
        """Begin with none."""
        self._answers: dict[str, Answer] = {}

    def decide(self, steps: Iterable[Step], call: str, yes: bool, text: str) -> None:
        """Answer the question about the call with this id, which is open after `steps`. Raises UndecidableError."""
        steps = tuple(steps)
        questions = open_questions(steps)
        if call not in questions:
            raise UndecidableError(_why_not(steps, call, tuple(questions)))
        if call in self._answers:
            raise UndecidableError(f"the call {call!r} has been decided already")
        self._answers[call] = yes or text

    def answering(self, approval: Approval) -> Approver | None:
        """Return an approver that gives what was decided, and has `approval` decide the rest."""
        if approval is None and not self._answers:
            return None

        def answer(asked: ApprovalAsked) -> object:
            if asked.call.id in self._answers:
                return self._answers.pop(asked.call.id)
            if approval == "later":
                return LATER
            return None if approval is None else approval(asked)

        return answer  # type: ignore[return-value]


def _why_not(steps: tuple[Step, ...], call: str, waiting: tuple[str, ...]) -> str:
    cure = f"; waiting: {', '.join(waiting)}" if waiting else "; no call waits for a decision"
    for step in reversed(steps):
        match step.event:
            case ApprovalAnswered() as answered if answered.call.id == call:
                return f"the call {call!r} has been decided already: {'yes' if answered.yes else 'no'}{cure}"
            case GateApproved() | GateRejected() as decided if decided.call.id == call:
                how = "approved" if isinstance(decided, GateApproved) else "rejected"
                return f"the call {call!r} was {how} without asking a user{cure}"
            case CallAnswered() as answered if answered.call == call:
                return f"the call {call!r} was answered already{cure}"
            case ProposedAction() as proposed if proposed.call.id == call:
                return f"no user was asked about the call {call!r} yet{cure}"
    return f"there is no call {call!r} in this run{cure}"
