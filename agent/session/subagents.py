"""The tool `task`: a subagent works on a part of the task, with its own log and conversation (S2).

A subagent runs within the call: an abort of the call aborts it, and a stop by the user ends both. It has no more rights
than its parent: the same preset with a share of the remaining limits, and the same additional b-threads, effects and
models. Its parent counts its tokens.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from attrs import define, evolve, field, frozen

from agent.effects.approval import Approver
from agent.models.model import Model
from agent.presets.preset import Preset
from agent.session.agent import Agent, Run
from agent.session.resume import resume
from agent.tools.definition import PerAgent, Tool, ToolContext, running_agent, tool
from agent.tools.schemas import Limits
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import (
    NO_USAGE,
    InferenceFinished,
    PromptGiven,
    StopAsked,
    SummaryFinished,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult, Usage
from bp import BThread, Event
from bp.runner import Effect

_TASK_ID = re.compile(r"task-[0-9a-f]{8}")


@frozen
class SubagentType:
    """A kind of subagent: when to use it (the model reads that), its system prompt and its tools.

    `tools` are names of the store's tools, None for all of them; `system_prompt` is by default that of the preset.
    """

    name: str
    description: str
    system_prompt: str | None = None
    tools: tuple[str, ...] | None = None


GENERAL = SubagentType("general", "works on any task of several steps, with all tools, and reports what it found")


@define(eq=False)
class _Parent:
    """The tokens that the run of a parent has used, and the runs of its subagents."""

    spent: Usage = Usage()
    running: list[Run] = field(factory=list)


@define(eq=False)
class SubagentStore:
    """Makes subagents and keeps them: each can be continued by its task id.

    `tools` makes new tools for each subagent, so that none shares a terminal or a list with another. `logs` is the
    folder of their logs; without one there are none, and tasks last as long as the store. `parent` is named in them.
    `secrets` are masked. `share` is the part of the preset's limits that each run gets, and no more than its parent has
    left. `threads`, `effects` and `models` are those of its parent, as in `Agent`: protocols, monitors. Each takes
    snapshots if its parent does. Without an approver the answer to every question is no, at once.
    """

    model: Model
    preset: Preset
    tools: Callable[[], Iterable[Tool]]
    types: tuple[SubagentType, ...] = (GENERAL,)
    logs: Path | None = None
    parent: str = ""
    approve: Approver | None = None
    secrets: Mapping[str, str] = field(factory=dict, repr=False)
    share: float = 0.5
    threads: Sequence[BThread] = ()
    effects: Sequence[Callable[[Agent], Effect]] = ()
    models: Mapping[str, Model] = field(factory=dict)
    _open: dict[str, Agent] = field(init=False, factory=dict)
    _parents: PerAgent[_Parent] = field(init=False, factory=lambda: PerAgent(_Parent))

    def type_named(self, name: str) -> SubagentType:
        """Return a type. Raises ToolError, naming those there are."""
        for kind in self.types:
            if kind.name == name:
                return kind
        raise ToolError(f"there is no subagent type {name!r}; types: {', '.join(kind.name for kind in self.types)}")

    def hear(self, event: Event) -> None:
        """Stop running subagents when the user asks to stop; note what the parent's run has used."""
        parent = self._parents.own
        if isinstance(event, PromptGiven):
            parent.spent = Usage()
        elif isinstance(event, (InferenceFinished, SummaryFinished, ToolFinished)):
            parent.spent += event.usage
        if isinstance(event, StopAsked):
            for run in parent.running:
                run.stop(event.text)

    async def run(
        self, kind: SubagentType, task_id: str | None, prompt: str, context: ToolContext
    ) -> tuple[str, Run, dict[str, Any]]:
        """Run a new subagent, or the one of `task_id`; return its task id, the run and its usage. Raises ToolError.

        An unfinished run continues first; the prompt is a follow-up of it.
        """
        name = task_id or f"task-{os.urandom(4).hex()}"
        agent = self._open[name] = self._find(name, kind) if task_id else self._make(name, kind, context.call_id)
        before = agent.totals.usage
        rested = agent.rests
        async with agent.start(None if rested else prompt) as run:
            if rested:
                run.follow_up(prompt)
            running = self._parents.own.running
            running.append(run)
            told = len(run.steps)
            try:
                async for step in run:
                    if isinstance(step.event, ToolStarted) and step not in run.steps[:told]:
                        context.progress(f"{step.event.call.tool}\n")
            finally:
                running.remove(run)
        return name, run, _spent_since(before, run.usage)

    def close(self) -> None:
        """Close all subagents and their logs."""
        for agent in self._open.values():
            agent.close()
        self._open.clear()

    def _make(self, name: str, kind: SubagentType, call: str) -> Agent:
        return Agent(
            self.model,
            self._tools_of(kind),
            preset=share_of(self.preset, self.share, self._parents.own.spent),
            system_prompt=kind.system_prompt,
            log=self._log_of(name),
            about={"parent": self.parent, "parent_call": call, "subagent_type": kind.name, "task_id": name},
            **self._inherited,
        )

    def _find(self, name: str, kind: SubagentType) -> Agent:
        """Return a subagent of this store, or one resumed from its log."""
        if name in self._open:
            return self._open[name]
        log = self._log_of(name) if _TASK_ID.fullmatch(name) else None
        if log is None or not log.exists():
            raise ToolError(f"there is no task {name!r} to go on with; leave task_id out to begin a new one")
        return resume(log, self.model, self._tools_of(kind), **self._inherited)

    @property
    def _inherited(self) -> dict[str, Any]:
        parent = running_agent()
        return {
            "snapshots": True if parent is None else parent.snapshots,
            "threads": self.threads, "effects": self.effects, "models": self.models, "secrets": self.secrets,
            "approve": self.approve or (lambda _: None),  # no user is present: the answer is no
        }  # fmt: skip

    def _log_of(self, name: str) -> Path | None:
        return None if self.logs is None else self.logs / f"{name}.jsonl"

    def _tools_of(self, kind: SubagentType) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.tools() if kind.tools is None or tool.name in kind.tools)


def make_task(store: SubagentStore) -> Tool:
    """Return the tool `task` over a store."""

    @tool(category="write", parallel=True)
    async def task(
        description: Annotated[str, Limits(max_length=200)],
        prompt: str,
        subagent_type: str,
        context: ToolContext,
        task_id: str | None = None,
        command: str | None = None,
    ) -> ToolResult:
        """Give a task of several steps to a subagent, which works on its own and reports.

        Args:
            description: the task in 3 to 5 words
            prompt: what the subagent is to do, with everything that it needs to know
            subagent_type: which kind of subagent
            task_id: only to go on with an earlier task, in the same conversation
            command: the command that led to this task
        """
        kind = store.type_named(subagent_type)
        if not prompt.strip():
            raise ToolError("the prompt is empty; say what the subagent is to do")
        name, run, usage = await store.run(kind, task_id, prompt, context)
        details: dict[str, Any] = {
            "description": description, "prompt": prompt, "subagentType": subagent_type, "taskId": name,
            "log": "" if run.log is None else str(run.log), "status": run.status, "reason": run.reason,
            "usage": usage,
        }  # fmt: skip
        ending = f"[task_id: {name}]" if run.status == "completed" else f"[{run.status}: {run.reason}; task_id: {name}]"
        text = f"{run.text.rstrip() or '(it said nothing)'}\n{ending}"
        return ToolResult(text, is_error=run.status != "completed", details=details)

    kinds = "\n".join(f"- {kind.name}: {kind.description}" for kind in store.types)
    return evolve(task, description=f"{task.description}\n\nTypes of subagents:\n{kinds}", hears=store.hear)


def _spent_since(before: Usage, now: Usage) -> dict[str, Any]:
    """Return the usage of a run: that of the conversation, less what it was before."""
    told = {"input_tokens": now.input_tokens - before.input_tokens}
    told["output_tokens"] = now.output_tokens - before.output_tokens
    return told if now.cost is None else {**told, "cost": now.cost - (before.cost or 0.0)}


def share_of(preset: Preset, part: float, spent: Usage = NO_USAGE) -> Preset:
    """Return a preset with a part of its limits: turns, tokens, cost and time; none stays none.

    spent: the tokens and cost used so far; no share is more than the rest.
    """

    def some(limit: int | None, used: int = 0) -> int | None:
        return None if limit is None else max(1, min(math.ceil(limit * part), limit - used))

    cost = preset.max_cost
    limits: Mapping[str, Any] = {
        "max_iterations": some(preset.max_iterations),
        "max_tokens": some(preset.max_tokens, spent.tokens),
        "max_cost": None if cost is None else max(1e-9, min(cost * part, cost - (spent.cost or 0.0))),
        "deadline": None if preset.deadline is None else preset.deadline * part,
    }
    return evolve(preset, **limits)
