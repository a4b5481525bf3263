"""Branches: a log with the first records of another one, from which a run goes on otherwise.

The workspace can be that of the step, in a folder of its own; b-threads can join after the step, so that one beginning
goes on under several protocols.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from attrs import frozen

from agent.history.changes import file_history
from agent.history.rebuilding import joins, named
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.writing import LogWriter
from agent.tools.snapshots.worktree import make_worktree
from agent.vocabulary.messages import shortened
from bp import BThread


@frozen
class Branch:
    """A branch: its log, its workspace, and what is not in a workspace of its own, since it was not kept."""

    log: Path
    workspace: str
    unkept: tuple[str, ...] = ()


def branch(
    log: str | os.PathLike[str],
    step: int,
    *,
    worktree: str | os.PathLike[str] | None = None,
    threads: Sequence[BThread] = (),
    output: str | os.PathLike[str] | None = None,
    **header: object,
) -> Branch:
    """Write the records of a log up to a step to a new one, `output`, which `resume` goes on with.

    worktree: a new or empty folder that becomes the workspace, as it was at that step. threads: b-threads that join
    after it; what came before stays as it was. header: values to replace in the header, such as `model`. Raises
    LogError, and SnapshotError for a workspace that was not kept; then nothing is left behind.
    """
    recorded = read_log(log)
    records = _records_until(recorded, step)
    new = Path(output).expanduser() if output else beside(recorded.path)
    origin = {**(recorded.header.get("branch") or {}), "log": recorded.path.name, "step": step}
    origin |= ({"model": step} if "model" in header else {}) | ({} if worktree is None else {"files": step})
    changed = {**recorded.header, **header, "branch": origin}
    changed["bthreads"] = [*changed["bthreads"], *(named(joins(records, each)) for each in threads)]
    if worktree is None:
        return Branch(fork(recorded, records, new, changed), str(changed.get("workspace")))
    snapshot, root = file_history(recorded).at(step), str(recorded.header.get("workspace"))
    folder = Path(os.path.realpath(Path(worktree).expanduser()))
    changed |= {"workspace": str(folder), "system_prompt": str(changed["system_prompt"]).replace(root, str(folder))}
    made = fork(recorded, records, new, changed)
    try:
        return Branch(made, str(folder), make_worktree(snapshot, root, folder))
    except BaseException:
        made.unlink()
        raise


def _records_until(recorded: RecordedRun, step: int) -> int:
    """Return the number of records up to a step. Raises LogError for a step that the log does not have."""
    steps = [record["step"] for record in recorded.records]
    if step in steps:
        return steps.index(step) + 1
    turns = ", ".join(str(record["step"]) for record in recorded.records if record["name"] == "inference_requested")
    there = f"its last one is {max(steps, default=0)}, and turns begin at {shortened(turns, 60) or 'none'}"
    raise LogError(f"{recorded.path} has no step {step}; {there}; bpagent view shows them")


def beside(log: Path) -> Path:
    """Return a new name for a branch, beside its log."""
    return log.with_name(f"{log.stem}-{token_hex(2)}.jsonl")


def fork(recorded: RecordedRun, records: int, new: Path, header: Mapping[str, Any]) -> Path:
    """Write the first `records` of a log to a new one, with another header, and return its path.

    Raises LogError, also for a changed log: the copy is signed again, so the original must be intact.
    """
    if recorded.misfit or any(place < records for place in recorded.unsigned):
        raise LogError(recorded.misfit or f"{recorded.path} has a yes that is not signed with the key of this user")
    writer = LogWriter(new, header)
    try:
        for record in recorded.records[:records]:
            writer.record(record)
    finally:
        writer.close()
    return new
