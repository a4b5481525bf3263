"""The workspace is kept before calls that may change files, so that every change can be taken back."""

from functools import partial
from typing import Any

from agent.vocabulary.calls import ToolCall, still_open, without
from agent.vocabulary.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    ProposedAction,
    RunEnded,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    ToolStarted,
)
from agent.vocabulary.reasons import NotKept, not_run
from bp import BThreadBody, Sync, bthread, start, sync, where

Calls = tuple[ToolCall, ...]


def _may_change_files(said: Any) -> bool:
    return bool(said.call.category != "read")


NEWS = where((ProposedAction, GateApproved, GateRejected), _may_change_files)
OUTCOME = SnapshotTaken | SnapshotFailed


@bthread
def snapshot_before_change() -> BThreadBody:
    """Have the workspace kept before calls start that may change files: after the last yes to one of those proposed.

    So calls that run together share a snapshot. One that cannot be taken is asked about for each of its calls.
    """
    group: Calls = ()
    undecided: Calls = ()
    keeping: Calls = ()
    while True:
        said = yield holding(group, undecided, keeping)
        if isinstance(said, SnapshotRequested):
            group, keeping = (), group
        elif isinstance(said, SnapshotFailed):
            yield start(*[go_without(call, said.error) for call in keeping])
            keeping = ()
        elif isinstance(said, SnapshotTaken):
            keeping = ()
        elif isinstance(said, CallAnswered):
            group = still_open(group, said.call)
        elif isinstance(said, ProposedAction):
            group, undecided = (*group, said.call), (*undecided, said.call)
        else:
            group = without(group, said.call) if isinstance(said, GateRejected) else group
            undecided = without(undecided, said.call)


def holding(group: Calls, undecided: Calls, keeping: Calls) -> Sync:
    """Return the statement that holds calls until a snapshot, which is requested when those of the group are decided.

    keeping: the calls of the snapshot that is being taken; these are not answered either, so no run ends meanwhile.
    """
    starts = [where(ToolStarted, call=call) for call in (*keeping, *group)]
    if keeping:
        answers = [where(CallAnswered, call=call.id) for call in keeping]
        return sync(wait_for=NEWS | OUTCOME | CallAnswered, block=[*starts, *answers])
    if not group or undecided:
        return sync(wait_for=NEWS | CallAnswered if group else NEWS, block=starts)
    unexecuted = partial(not_run, group[0].id)
    return sync(request=SnapshotRequested(), otherwise=unexecuted, wait_for=NEWS | CallAnswered, block=starts)


@bthread(name="snapshot_before_change")
def go_without(call: ToolCall, error: str) -> BThreadBody:
    """Ask the user whether the call may start without a snapshot; without a yes refuse it."""
    starts, answered = where(ToolStarted, call=call), where(CallAnswered, call=call.id)
    question = ApprovalAsked(call, f"{error}\nwithout a snapshot, what this call changes cannot be undone")
    unexecuted = partial(not_run, call.id)
    said = yield sync(request=question, otherwise=unexecuted, block=starts, wait_for=answered)
    if isinstance(said, CallAnswered):
        return
    said = yield sync(wait_for=where(ApprovalAnswered, call=call), block=[starts, answered, RunEnded])
    if not said.yes:
        yield sync(refuse=starts, because=NotKept(error, said.text, present=said.present), wait_for=answered)
