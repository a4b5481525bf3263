"""Defense in depth: a tool starts only on exactly the call that the gate approved."""

from typing import Any

from agent.vocabulary.calls import ToolCall, still_open, without
from agent.vocabulary.events import CallAnswered, GateApproved, ToolStarted
from bp import BThreadBody, bthread, sync, where

__all__ = ["no_start_without_approval"]

NEWS = GateApproved | ToolStarted | CallAnswered


@bthread
def no_start_without_approval() -> BThreadBody:
    """Refuse `tool_started` for every call value (id, tool, arguments) that was not approved, once for each approval.

    Approvals are forgotten when they are used, and when their call is answered without having started.
    """
    approved: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(
            wait_for=NEWS,
            refuse=other_starts(approved),
            because="the gate did not approve it",
        )
        if isinstance(said, GateApproved):
            approved = (*approved, said.call)
        elif isinstance(said, ToolStarted):
            approved = without(approved, said.call)
        else:
            approved = still_open(approved, said.call)


def other_starts(approved: tuple[ToolCall, ...]) -> Any:
    """Return the starts of all calls but these, as an event set."""
    others: Any = ToolStarted
    for call in approved:
        others = others & ~where(ToolStarted, call=call)
    return others
