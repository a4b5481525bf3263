"""Ask a person. No answer, nobody there, or an error means no."""

from collections.abc import Awaitable, Callable

from agent.events import AbortAsked, ApprovalAnswered, ApprovalAsked, DeadlineReached, GateRejected, StopAsked
from bp import where
from bp.runner import Broken, Effect

__all__ = ["Approver", "approval_effect"]

Answer = bool | str | None
Approver = Callable[[ApprovalAsked], Awaitable[Answer] | Answer]
"""Gives True for yes, False for no, what the person said instead (which is a no), or None: nobody is present."""


def approval_effect(approver: Approver | None) -> Effect:
    """Return the effect of `approval_asked`; without an approver no person is present."""

    async def ask(asked: ApprovalAsked) -> ApprovalAnswered:
        answer = None if approver is None else approver(asked)
        if isinstance(answer, Awaitable):
            answer = await answer
        said = answer if isinstance(answer, str) else ""
        return ApprovalAnswered(asked.call, yes=answer is True, text=said, present=answer is not None)

    def unanswered(asked: ApprovalAsked, broken: Broken) -> ApprovalAnswered:
        reason = f"asking failed: {broken.error}" if broken.error else "the question was withdrawn"
        return ApprovalAnswered(asked.call, yes=False, text=reason)

    return Effect(
        on=ApprovalAsked,
        run=ask,
        outcome=(ApprovalAnswered,),
        broken=unanswered,
        until=lambda asked: where(GateRejected, call=asked.call) | AbortAsked | StopAsked | DeadlineReached,
    )
