"""The workspace is kept before a call that may change files, so that every change can be taken back."""

from functools import partial

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    RunEnded,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    ToolStarted,
)
from agent.vocabulary.reasons import NotKept, not_run
from bp import BThreadBody, bthread, start, sync, where


def _may_change_files(approved: GateApproved) -> bool:
    return approved.call.category != "read"


CHANGE_APPROVED = where(GateApproved, _may_change_files)
OUTCOME = SnapshotTaken | SnapshotFailed


@bthread
def snapshot_before_change() -> BThreadBody:
    """Have the workspace kept before each call starts that may change files, after the last yes to it.

    Calls that are approved before a snapshot begins share it. One is taken at a time.
    """
    while True:
        said = yield sync(wait_for=CHANGE_APPROVED | SnapshotRequested)
        while isinstance(said, SnapshotRequested):
            said = yield sync(wait_for=CHANGE_APPROVED | OUTCOME, block=SnapshotRequested)
            if isinstance(said, GateApproved):
                yield start(keep_first(said.call))
                said = SnapshotRequested()
        if isinstance(said, GateApproved):
            yield start(keep_first(said.call))


@bthread(name="snapshot_before_change")
def keep_first(call: ToolCall) -> BThreadBody:
    """Hold the start of a call until the workspace is kept. If it cannot be, ask the user; without a yes refuse it."""
    starts, answered = where(ToolStarted, call=call), where(CallAnswered, call=call.id)
    unexecuted = partial(not_run, call.id)
    said = yield sync(request=SnapshotRequested(), otherwise=unexecuted, block=starts, wait_for=answered)
    if isinstance(said, CallAnswered):
        return
    kept = yield sync(wait_for=OUTCOME, block=starts | answered)
    if isinstance(kept, SnapshotTaken):
        return
    question = ApprovalAsked(call, f"{kept.error}\nwithout a snapshot, what this call changes cannot be undone")
    said = yield sync(request=question, otherwise=unexecuted, block=starts, wait_for=answered)
    if isinstance(said, CallAnswered):
        return
    said = yield sync(wait_for=where(ApprovalAnswered, call=call), block=starts | answered | RunEnded)
    if not said.yes:
        yield sync(refuse=starts, because=NotKept(kept.error, said.text, present=said.present), wait_for=answered)
