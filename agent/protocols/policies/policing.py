"""The b-thread that keeps a temporal policy, whatever its pattern and its scope, and the one-line factories.

otherwise       what happens to an action that the policy forbids
refuse          it is refused, and the model is told why; what is owed keeps the run from completing
ask             it waits for a person, and runs if they say yes to exactly this call
stop            it is refused, and the run ends; what is owed at its end ends it as stopped
"""

from collections.abc import Sequence
from typing import Any, Literal

from attrs import evolve, frozen

from agent.protocols.asking import allowed_by_person
from agent.protocols.containment import COMPLETED, EVERYTHING
from agent.protocols.policies.matching import Actions, Match, as_chain, as_match
from agent.protocols.policies.patterns import Absence, Bound, Missing, Pattern, Precedence, Response
from agent.protocols.policies.scopes import RUN, Scope
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, CallAnswered, GateApproved, GateRejected, RunEnded, ToolFinished
from agent.vocabulary.reasons import Ending, Unfinished
from bp import NONE, BThread, BThreadBody, bthread, contains, start, sync, where
from constitution import Level, Verdict

__all__ = ["OTHERWISE", "Otherwise", "eventually", "never", "no_more_than", "only_after", "police"]

Otherwise = Literal["refuse", "ask", "stop"]
OTHERWISE: tuple[Otherwise, ...] = ("refuse", "ask", "stop")

NEWS = GateApproved | ToolFinished | CallAnswered | RunEnded

Running = tuple[tuple[ToolCall, GateApproved], ...]


def only_after(
    what: Actions, *first: Actions, within: Scope = RUN, otherwise: Otherwise = "refuse", name: str = "only_after"
) -> BThread:
    """Precedence: `what` may run only after each of `first` has ended well, in this order."""
    return _police(Precedence(as_match(what), as_chain(first)), within, otherwise, name)


def never(
    what: Actions,
    *,
    after: "Actions | Sequence[Actions]" = (),
    within: Scope = RUN,
    otherwise: Otherwise = "refuse",
    name: str = "never",
) -> BThread:
    """Absence: once `after` has begun, or all of it in this order, `what` may not run."""
    return _police(Absence(as_match(what), as_chain(_listed(after))), within, otherwise, name)


def no_more_than(
    most: int, what: Actions, *, within: Scope = RUN, otherwise: Otherwise = "refuse", name: str = "no_more_than"
) -> BThread:
    """Bounded existence: `what` may run so often."""
    return _police(Bound(as_match(what), most), within, otherwise, name)


def eventually(
    *what: Actions,
    after: "Actions | Sequence[Actions]",
    within: Scope = RUN,
    otherwise: Literal["refuse", "stop"] = "refuse",
    name: str = "eventually",
) -> BThread:
    """Response: after `after`, the run, or the action that closes the scope, has to wait for all of `what`.

    Raises ValueError for `otherwise="ask"`: a person decides about calls, and the end of a run is none.
    """
    if otherwise not in ("refuse", "stop"):
        raise ValueError("a person is asked about actions; what is owed at the end is refused, or stops the run")
    return _police(Response(as_chain(what), as_chain(_listed(after))), within, otherwise, name)


def _police(pattern: Pattern, within: Scope, otherwise: Otherwise, name: str) -> BThread:
    match otherwise:
        case "refuse":
            return police(pattern, within).named(name)
        case "stop":
            return police(pattern, within, stops=True).named(name)
        case "ask":
            return police_asking(pattern, within, name).named(name)


def _listed(actions: "Actions | Sequence[Actions]") -> "tuple[Actions, ...]":
    return (actions,) if isinstance(actions, str | Match) else tuple(actions)


@frozen
class Memory:
    """What a policy knows: how far its pattern is, None while its scope is closed, and which actions are under way."""

    state: Pattern | None
    running: Running = ()

    @classmethod
    def fresh(cls, pattern: Pattern, scope: Scope) -> "Memory":
        """Return what it knows at first."""
        return cls(pattern if scope.is_open_at_first else None)

    def after(self, said: object, pattern: Pattern, scope: Scope) -> "Memory":
        """Take an event into account."""
        match said:
            case GateApproved():
                return Memory(begun(self.state, pattern, scope, said), (*self.running, (said.call, said)))
            case ToolFinished():
                approved = dict(self.running).get(said.call)
                well = approved is not None and not said.is_error
                return evolve(self, state=done(self.state, scope, approved)) if approved and well else self
            case CallAnswered():
                return evolve(self, running=tuple(each for each in self.running if each[0].id != said.call))
            case RunEnded() if scope.kind != "conversation":
                return evolve(self, state=Memory.fresh(pattern, scope).state)
        return self


@bthread
def police(pattern: Pattern, scope: Scope = RUN, stops: bool = False) -> BThreadBody:
    """Keep a policy while its scope is open: refuse what it forbids, and the end while it is owed something.

    `stops`: whoever comes up against it ends the run.
    """
    memory, ending = Memory.fresh(pattern, scope), None
    news = NEWS | GateRejected if stops else NEWS
    while True:
        refused, because = objections(memory.state, scope)
        if stops and isinstance(because, Unfinished):
            because = stopped(because)
        if ending is not None:
            refused, because = EVERYTHING | COMPLETED, ending
        said = yield sync(wait_for=news, refuse=refused, because=because)
        if isinstance(said, GateRejected):
            broken = any(refusal.because == because for refusal in said.refusals)
            ending = stopped(because) if broken and ending is None else ending
        else:
            memory, ending = memory.after(said, pattern, scope), None if isinstance(said, RunEnded) else ending


def stopped(because: object) -> Ending:
    """Return the end of a run that came up against a policy."""
    return because if isinstance(because, Ending) else Ending("stopped", "policy", f"Stopped by a policy: {because}.")


@bthread(name="police")
def police_asking(pattern: Pattern, scope: Scope, name: str) -> BThreadBody:
    """Keep a policy by having a person decide about each action that it forbids.

    What is forbidden is held from the start, noticed or not; a call for which a person is asked is left to its answer.
    """
    memory = Memory.fresh(pattern, scope)
    described: tuple[GateApproved, ...] = ()
    asked: tuple[ToolCall, ...] = ()
    while True:
        forbidden, because = objections(memory.state, scope)
        for approval in described:
            if approval.call not in asked and contains(forbidden, approval):
                asked = (*asked, approval.call)
                yield start(person(approval.call, str(because)).named(name))
        held = forbidden & ~calls(asked)
        said = yield sync(wait_for=NEWS | ActionDescribed | GateRejected, block=held)
        if isinstance(said, ActionDescribed):
            described = (*described, GateApproved(said.call, said.facts))
            continue
        described = tuple(each for each in described if not is_over(each.call, said))
        asked = tuple(call for call in asked if not is_over(call, said))
        memory = memory.after(said, pattern, scope)


def is_over(call: ToolCall, said: Any) -> bool:
    """Whether an event decides about a call, one way or the other."""
    match said:
        case GateApproved() | GateRejected():
            return bool(said.call == call)
        case CallAnswered():
            return bool(said.call == call.id)
    return isinstance(said, RunEnded)


def calls(these: tuple[ToolCall, ...]) -> Any:
    """Return the approvals of these calls."""
    found: Any = NONE
    for call in these:
        found = found | where(GateApproved, call=call)
    return found


@bthread
def person(call: ToolCall, because: str) -> BThreadBody:
    """Have a person decide about one call."""
    yield from allowed_by_person(call, Verdict(Level.ask, "policy", "policy", explanation=because))


def objections(state: Pattern | None, scope: Scope) -> tuple[Any, object]:
    """Return what is refused now, and why: what the pattern forbids, and the end of the scope while that owes."""
    if state is None:
        return NONE, Missing("")
    owed = state.owed()
    if owed is None:
        return state.refuses()
    at_the_end = NONE if scope.kind == "between" else COMPLETED
    closing = NONE if scope.closes is None else where(GateApproved, scope.closes)
    return at_the_end | closing, Unfinished(str(owed))


def begun(state: Pattern | None, pattern: Pattern, scope: Scope, approved: GateApproved) -> Pattern | None:
    """Take an approval into account; one that opens the scope is not in it yet."""
    if state is None:
        return pattern if scope.opens is not None and scope.opens(approved) else None
    return state.begun(approved)


def done(state: Pattern | None, scope: Scope, approved: GateApproved) -> Pattern | None:
    """Take an action into account that ended well; one that closes the scope is its last."""
    if state is None or (scope.closes is not None and scope.closes(approved)):
        return None
    return state.done(approved)
