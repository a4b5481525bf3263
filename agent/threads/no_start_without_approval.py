"""Defense in depth: a tool starts only on exactly the call that the gate approved."""

from agent.calls import ToolCall
from agent.events import CallAnswered, GateApproved, ToolStarted
from bp import BThreadBody, bthread, sync, where

__all__ = ["no_start_without_approval"]


@bthread
def no_start_without_approval() -> BThreadBody:
    """Refuse `tool_started` for every call value (id, tool, arguments) that was not approved, once for each approval.

    Approvals are forgotten when they are used, and when their call is answered without having started.
    """
    approved: tuple[ToolCall, ...] = ()
    while True:
        others = ToolStarted & ~where_any(approved)
        said = yield sync(
            wait_for=[GateApproved, ToolStarted, CallAnswered], refuse=others, because="the gate did not approve it"
        )
        if isinstance(said, GateApproved):
            approved = (*approved, said.call)
        elif isinstance(said, ToolStarted):
            approved = tuple(call for call in approved if call != said.call)
        else:
            approved = tuple(call for call in approved if call.id != said.call)


def where_any(calls: tuple[ToolCall, ...]) -> object:
    """Return the starts of these calls as an event set."""
    return [where(ToolStarted, call=call) for call in calls]
