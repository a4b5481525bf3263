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


CHANGES = where((ProposedAction, GateApproved, GateRejected), _may_change_files)
NEWS = CHANGES | SnapshotRequested | SnapshotTaken | SnapshotFailed | CallAnswered
STARTS = where(ToolStarted, _may_change_files)


@bthread
def snapshot_before_change() -> BThreadBody:
    """Have the workspace kept before calls start that may change files: after the last yes to one of those proposed.

    So calls that run together share a snapshot. One that cannot be taken is asked about for each of its calls; where it
    could be taken without some files, the user is asked once whether to leave them out.
    """
    group: Calls = ()
    undecided: Calls = ()
    keeping: Calls = ()
    while True:
        said = yield holding(group, undecided, keeping)
        if isinstance(said, SnapshotRequested):
            group, keeping = (), group
        elif isinstance(said, SnapshotFailed) and said.too_large:
            yield start(leave_out(keeping[0], said.error, said.too_large))
            group, keeping = (*keeping, *group), ()
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
    held = [where(ToolStarted, call=call) for call in (*keeping, *group)]
    if group and not (undecided or keeping):
        unexecuted = partial(not_run, group[0].id)
        return sync(request=SnapshotRequested(), otherwise=unexecuted, wait_for=NEWS, block=held)
    answers = [where(CallAnswered, call=call.id) for call in keeping]
    return sync(wait_for=NEWS, block=[*held, *answers, SnapshotRequested])


@bthread(name="snapshot_before_change")
def go_without(call: ToolCall, error: str) -> BThreadBody:
    """Ask the user whether the call may start without a snapshot; without a yes refuse it."""
    starts = where(ToolStarted, call=call)
    said = yield from asked(call, f"{error}\nwithout a snapshot, what this call changes cannot be undone", starts)
    if said is not None and not said.yes:
        because = NotKept(error, said.text, present=said.present)
        yield sync(refuse=starts, because=because, wait_for=where(CallAnswered, call=call.id))


@bthread(name="snapshot_before_change")
def leave_out(call: ToolCall, error: str, paths: tuple[str, ...]) -> BThreadBody:
    """Ask the user whether snapshots leave out these paths; without a yes refuse changes for the rest of the run."""
    question = f"{error}\na yes leaves these out from now on: what calls change there cannot be undone"
    said = yield from asked(call, question, SnapshotRequested)
    if said is None:
        return
    if said.yes:
        smaller, answered = SnapshotRequested(paths), where(CallAnswered, call=call.id)
        yield sync(request=smaller, block=SnapshotRequested(), wait_for=answered)
    else:
        because = NotKept(error, said.text, present=said.present)
        yield sync(block=SnapshotRequested, refuse=STARTS, because=because, wait_for=RunEnded)


def asked(call: ToolCall, question: str, held: Any) -> BThreadBody:
    """Ask the user about a call, and block `held` meanwhile; return the answer.

    Where no question may be asked, as after a stop, the call is answered, and the result is None.
    """
    answered = where(CallAnswered, call=call.id)
    unexecuted = partial(not_run, call.id)
    said = yield sync(request=ApprovalAsked(call, question), otherwise=unexecuted, block=held, wait_for=answered)
    if isinstance(said, CallAnswered):
        return None
    return (yield sync(wait_for=where(ApprovalAnswered, call=call), block=[held, answered, RunEnded]))
