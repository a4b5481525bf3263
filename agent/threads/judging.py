"""The constitution at the gate: denied calls are refused, doubtful ones wait for the user's answer."""

from collections.abc import Callable
from functools import lru_cache

from attrs import frozen

from agent.tools.sandbox.permissions import without_hosts
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionChanged,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    RunEnded,
    SandboxLifted,
)
from agent.vocabulary.reasons import Declined
from bp import BThreadBody, bthread, start, sync, where
from constitution import GRANTED, Action, Level, Policy, Verdict, judge


@bthread
def by_constitution(judge: Callable[[Action], Verdict]) -> BThreadBody:
    """Judge each described action. `judge` is a pure function; one that raises ends the run."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if described.problem is None:
            verdict = judge(described.facts)
        else:
            told = f"what it would touch could not be found: {described.problem}"
            verdict = Verdict(Level.deny, "not_described", "form", explanation=told)
        rights = rights_beyond(described.facts) if verdict.granted or verdict.level is Level.ask else ()
        if verdict.level is not Level.allow:
            yield start(objection(described, verdict, rights))
        elif rights:
            yield start(grant(described.call, rights))


def rights_beyond(facts: Action) -> tuple[str, ...]:
    """Return the rights beyond its sandbox that a yes gives a call: those it asks for, and those it needs."""
    if not facts.is_confined:
        return ()
    named = any(right.startswith("network ") for right in facts.rights)
    needs = (right for right in facts.needs if right != "network" or not named)  # these hosts, then, and no others
    return without_hosts(tuple(dict.fromkeys((*facts.rights, *needs))))


@bthread(name="by_constitution")
def objection(described: ActionDescribed, verdict: Verdict, rights: tuple[str, ...] = ()) -> BThreadBody:
    """Refuse the approval of a call as it was described: at once when it is denied, else unless the user says yes. A
    yes gives the call the `rights` beyond its sandbox. When the call is described again, this b-thread ends. If the
    question itself is refused, as after a stop, the call is rejected for that reason.
    """
    call = described.call
    approval = where(GateApproved, call=call)
    decided = where((GateRejected, ActionChanged), call=call)
    others = where(ApprovalAsked, call=call)  # b-threads ask about a call one after the other
    because: Verdict | Declined = verdict
    if verdict.level is Level.ask:
        said = yield sync(
            request=ApprovalAsked(call, question(verdict, rights, getattr(described, "changes", ()))),
            otherwise=lambda refusals: GateRejected(call, refusals),
            block=approval,
            wait_for=decided,
        )
        if not isinstance(said, ApprovalAsked):
            return  # another b-thread has rejected it meanwhile
        answered = where(ApprovalAnswered, call=call)
        said = yield sync(wait_for=answered | decided, block=approval | others | RunEnded)
        if isinstance(said, GateRejected):  # the question is withdrawn; the call is over once that is known
            yield sync(wait_for=answered, block=where(CallAnswered, call=call.id) | others)
            return
        if said.yes:
            yield from lift(call, rights)
            return
        because = Declined(verdict, said.text, present=said.present)
    yield sync(refuse=approval, because=because, wait_for=decided)


def lift(call: ToolCall, rights: tuple[str, ...]) -> BThreadBody:
    """Lift the sandbox of `call`; where that is refused, the call is rejected for it."""
    if rights:
        yield sync(
            request=SandboxLifted(call, rights),
            otherwise=lambda refusals: GateRejected(call, refusals),
            block=where(GateApproved, call=call),
            wait_for=where((GateRejected, ActionChanged), call=call),
        )


grant = bthread(name="by_constitution")(lift)
"""Lift the sandbox of a call as far as the user granted it beforehand, before it is approved."""

LIFTED = {"network": "reach the network", "unconfined": "run without the sandbox"}


def question(verdict: Verdict, rights: tuple[str, ...] = (), changes: tuple[str, ...] = ()) -> str:
    """Return the text of the question: one reason per line, the changes since, and the rights that a yes gives."""
    reasons = (*(verdict.reasons or (verdict.explanation,)), *(f"changed since your yes: {each}" for each in changes))
    words = (right.replace("write ", "change ", 1).replace("network ", "reach ", 1) for right in rights)
    lifts = ", ".join(LIFTED.get(right, right) for right in words)
    return "\n".join((*reasons, f"a yes lets this one call {lifts}") if rights else reasons)


_judged = lru_cache(maxsize=64)(judge)  # all calls of tools that touch nothing have the same facts


IRREVERSIBLE = Verdict(
    Level.ask,
    "no_snapshots",
    "undo",
    explanation="this agent takes no snapshots, so what this call changes cannot be undone",
)


@frozen
class Judge:
    """The constitution under one policy, as a pure function of an action. `undoable`: changes can be taken back."""

    policy: Policy
    undoable: bool = True

    def __call__(self, action: Action) -> Verdict:
        """Return the verdict on `action`. A user approves one by declaring its tool as one that writes (S0 6.1)."""
        verdict = _judged(action, self.policy)
        if verdict.allowed and not (verdict.granted or self.undoable or action.category == "read"):
            return IRREVERSIBLE
        if verdict.level is not Level.ask or self.policy.name != "workspace":
            return verdict
        is_declared = action.category == "write" and bool(action.argv) and action.command is None
        return GRANTED if is_declared else verdict

    def __str__(self) -> str:
        return f"policy {self.policy.name}"
