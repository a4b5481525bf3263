"""Ask a person. No answer, no user, or an error means no."""

from collections.abc import Awaitable, Callable

from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAnswered,
    ApprovalAsked,
    DeadlineReached,
    GateRejected,
    StopAsked,
)
from bp import where
from bp.runner import LATER, Broken, Effect, Later

Answer = bool | str | Later | None
Approver = Callable[[ApprovalAsked], Awaitable[Answer] | Answer]
"""Gives True for yes, False for no, a text (what the user said instead, which is a no), None (no user is present), or
`LATER`: the run rests until the question is put again and answered."""


def approval_effect(approver: Approver | None) -> Effect:
    """Return the effect of `approval_asked`; without an approver no person is present.

    An approver that raises, or gives what it must not, counts as a no.
    """

    async def ask(asked: ApprovalAsked) -> ApprovalAnswered | Later:
        answer = None if approver is None else approver(asked)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is LATER:
            return LATER
        if not isinstance(answer, bool | str | None):
            raise TypeError(f"the approver gave {answer!r}; it must give True, False, a text, None or LATER")
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
