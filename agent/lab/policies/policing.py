"""The b-thread that keeps a temporal policy, whatever its pattern and its scope, and the one-line factories."""

from collections.abc import Sequence
from typing import Any

from agent.calls import ToolCall
from agent.events import CallAnswered, GateApproved, RunEnded, ToolFinished
from agent.lab.policies.matching import Actions, Match, as_chain, as_match
from agent.lab.policies.patterns import Absence, Bound, Missing, Pattern, Precedence, Response
from agent.lab.policies.scopes import RUN, Scope
from agent.reasons import Unfinished
from bp import NONE, BThread, BThreadBody, bthread, sync, where

__all__ = ["eventually", "never", "no_more_than", "only_after", "police"]

NEWS = GateApproved | ToolFinished | CallAnswered | RunEnded
COMPLETED = where(RunEnded, status="completed")

Running = tuple[tuple[ToolCall, GateApproved], ...]


def only_after(what: Actions, *first: Actions, within: Scope = RUN) -> BThread:
    """Precedence: `what` may run only after each of `first` has ended well, in this order."""
    return police(Precedence(as_match(what), as_chain(first)), within).named("only_after")


def never(what: Actions, *, after: "Actions | Sequence[Actions]" = (), within: Scope = RUN) -> BThread:
    """Absence: once `after` has begun, or all of it in this order, `what` may not run."""
    return police(Absence(as_match(what), as_chain(_listed(after))), within).named("never")


def no_more_than(most: int, what: Actions, *, within: Scope = RUN) -> BThread:
    """Bounded existence: `what` may run so often."""
    return police(Bound(as_match(what), most), within).named("no_more_than")


def eventually(*what: Actions, after: "Actions | Sequence[Actions]", within: Scope = RUN) -> BThread:
    """Response: after `after`, the run, or the action that closes the scope, has to wait for all of `what`."""
    return police(Response(as_chain(what), as_chain(_listed(after))), within).named("eventually")


def _listed(actions: "Actions | Sequence[Actions]") -> "tuple[Actions, ...]":
    return (actions,) if isinstance(actions, str | Match) else tuple(actions)


@bthread
def police(pattern: Pattern, scope: Scope = RUN) -> BThreadBody:
    """Keep a policy while its scope is open: refuse what it forbids, and the end while it is owed something."""
    state: Pattern | None = pattern if scope.is_open_at_first else None
    running: Running = ()
    while True:
        refused, because = objections(state, scope)
        said = yield sync(wait_for=NEWS, refuse=refused, because=because)
        if isinstance(said, GateApproved):
            running = (*running, (said.call, said))
            state = begun(state, pattern, scope, said)
        elif isinstance(said, ToolFinished):
            approved = dict(running).get(said.call)
            if approved is not None and not said.is_error:
                state = done(state, scope, approved)
        elif isinstance(said, CallAnswered):
            running = tuple(entry for entry in running if entry[0].id != said.call)
        elif scope.kind != "conversation":
            state = pattern if scope.is_open_at_first else None


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
