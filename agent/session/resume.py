"""Resuming a log: the state is rebuilt from the records, and the run continues in the same log.

Effects that were under way when the log ended start again, except tools: their outcome is unknown, so their calls are
answered as interrupted and never run twice.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from agent.history.playback import broke_off, retaken
from agent.history.rebuilding import RebuildError, recorded_bthreads
from agent.log.reading import LogError, RecordedRun
from agent.log.writing import reopen
from agent.models.model import Model
from agent.session.agent import Agent
from agent.tools.definition import Tool
from bp import BThread


def resume(
    log: str | os.PathLike[str],
    model: Model,
    tools: Iterable[Tool] = (),
    *,
    threads: Sequence[BThread] = (),
    **options: Any,
) -> Agent:
    """Return the agent of a log, as it was when the log ended; `run()` without a prompt continues its last run.

    Preset, shipped b-threads, workspace and system prompt come from the log; `threads` are the other b-threads,
    `options` the other options of `Agent` (approve, on_step, ...). Nothing happens before the next run, except that a
    torn last line is cut off the log. `agent.journal.is_under_way` is true if a run can be continued.

    Raises LogInUse when another process writes the log, RebuildError when its program differs from the one here,
    LogDiffers when it was changed, and other LogErrors for an invalid log, or a failed run.
    """
    writer, recorded = reopen(log)
    try:
        if broke_off(recorded):
            raise LogError(f"{recorded.path} broke off and cannot go on: {recorded.records[-1]['data'].get('text')}")
        preset, beside = recorded_bthreads(recorded, threads)
        header = recorded.header
        if missing := [name for name in header.get("secrets") or [] if name not in options.get("secrets", {})]:
            raise RebuildError(f"{recorded.path} keeps the secrets {_listed(missing)} out; give them again")
        known: dict[str, Any] = {name: header.get(name) for name in ("workspace", "system_prompt")}
        known["approve"] = "later" if header.get("approvals") == "later" else None
        agent = Agent(model, tools, preset=preset, threads=beside, log=writer, **(known | options))
        then, now = header.get("tools"), list(agent.toolbox.names)
        if then != now:
            differ = f"was made with the tools {_listed(then)}, and here are {_listed(now)}; give the same"
            raise RebuildError(f"{recorded.path} {differ}")
        agent.take_up(retaken(recorded, agent.program))
        _check_integrity(recorded)  # after the more precise errors
    except BaseException:
        writer.close()
        raise
    return agent


def _check_integrity(recorded: RecordedRun) -> None:
    """Refuse a changed log, and an unsigned yes on which the run still acts."""
    if recorded.misfit:
        raise LogError(recorded.misfit)
    answered = {record["data"].get("call") for record in recorded.records if record["name"] == "call_answered"}
    for place in recorded.unsigned:
        if recorded.records[place]["data"].get("call") not in answered:
            raise LogError(
                f"{recorded.path}, line {place + 2}: this yes is not signed with the key of this user, and approves "
                f"nothing; remove the line and what follows it, and decide again"
            )


def _listed(names: Any) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) and names else "none"
