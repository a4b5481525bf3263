"""The constitution at the gate: what is denied is refused, what needs a person waits for one."""

from collections.abc import Callable

from attrs import frozen

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    RunEnded,
)
from agent.vocabulary.reasons import Declined
from bp import BThreadBody, bthread, start, sync, where
from constitution import Action, Level, Policy, Verdict, judge


@bthread
def by_constitution(judge: Callable[[Action], Verdict]) -> BThreadBody:
    """Judge each described action. `judge` is a pure function; one that raises ends the run."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        verdict = judge(described.facts) if described.problem is None else undescribed(described.problem)
        if verdict.level is not Level.allow:
            yield start(objection(described.call, verdict))


@bthread(name="by_constitution")
def objection(call: ToolCall, verdict: Verdict) -> BThreadBody:
    """Refuse the approval of `call`, at once when it is denied, else unless a person says yes.

    Where the question itself is refused, as after a stop, there will be no yes: the call is rejected for that.
    """
    approval = where(GateApproved, call=call)
    decided = where((GateApproved, GateRejected), call=call)
    others = where(ApprovalAsked, call=call)  # a person is asked about a call by one after the other
    because: Verdict | Declined = verdict
    if verdict.level is Level.ask:
        said = yield sync(
            request=ApprovalAsked(call, question(verdict)),
            otherwise=lambda refusals: GateRejected(call, refusals),
            block=approval,
            wait_for=decided,
        )
        if not isinstance(said, ApprovalAsked):
            return  # somebody else has refused it meanwhile
        answered = where(ApprovalAnswered, call=call)
        said = yield sync(wait_for=answered | decided, block=approval | others | RunEnded)
        if isinstance(said, GateRejected):  # the question is withdrawn; the call is over when that has been heard
            yield sync(wait_for=answered, block=where(CallAnswered, call=call.id) | others)
            return
        if said.yes:
            return
        because = Declined(verdict, said.text, present=said.present)
    yield sync(refuse=approval, because=because, wait_for=decided)


def undescribed(problem: str) -> Verdict:
    """Return the verdict on an action of which nobody knows what it would touch."""
    return Verdict(
        Level.deny, "not_described", "form", explanation=f"what it would touch could not be found: {problem}"
    )


def question(verdict: Verdict) -> str:
    """Return why a person is asked, one reason per line."""
    return "\n".join(verdict.reasons) or verdict.explanation


@frozen
class Judge:
    """The constitution under one policy, as a pure function of an action."""

    policy: Policy

    def __call__(self, action: Action) -> Verdict:
        """Return the verdict on `action`."""
        verdict = judge(action, self.policy)
        return Verdict.allow() if self._is_approved(action, verdict) else verdict

    def _is_approved(self, action: Action, verdict: Verdict) -> bool:
        """Whether a person who declared a tool as one that writes has approved what it asks for (S0 6.1)."""
        is_declared = action.category == "write" and bool(action.argv) and action.command is None
        return self.policy.name == "workspace" and is_declared and verdict.level is Level.ask

    def __str__(self) -> str:
        return f"policy {self.policy.name}"
