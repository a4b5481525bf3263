"""An agent: a model, tools, and the b-threads of a preset, as one behavioral program with its effects.

agent = Agent(model=ScriptedModel(["Hello."]), tools=workspace_tools(folder))
run = await agent.run("Say hello")
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from attrs import evolve

from agent.effects import (
    Approver,
    Watcher,
    approval_effect,
    backoff_effect,
    description_effect,
    execution_effect,
    inference_effect,
    seeking_effect,
)
from agent.errors import RunError
from agent.events import BackoffStarted, HistoryGiven, PromptGiven, RunEnded
from agent.header import make_header
from agent.hooks import HookCaller, Hooks
from agent.log import LogWriter
from agent.messages import Message, UserMessage
from agent.models import Model
from agent.presets import Preset, preset_named
from agent.projections import Conversation, OpenCalls, Totals
from agent.run import Run
from agent.tools import Tool, Workspace
from agent.tools.toolbox import Toolbox
from bp import BProgram, BThread, Event, ProgramEnded, Step
from bp.runner import Effect

__all__ = ["Agent", "failure_record"]


class Agent:
    """A conversation with a model that may use tools: one run after the other, each from a prompt to its end.

    `run` waits for the end, `run_sync` does so without an event loop, `start` lets people step in meanwhile.
    """

    def __init__(
        self,
        model: Model,
        tools: Iterable[Tool] = (),
        *,
        preset: str | Preset = "default",
        threads: Sequence[BThread] = (),
        history: Sequence[Message] = (),
        workspace: str | os.PathLike[str] | None = None,
        system_prompt: str | None = None,
        approve: Approver | None = None,
        log: str | os.PathLike[str] | None = None,
        on_step: Callable[[Step], None] | None = None,
        on_text: Watcher | None = None,
        on_output: Watcher | None = None,
        wait: Callable[[BackoffStarted], float] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        """Make an agent; nothing happens before its first run.

        preset: a name or a `Preset`. threads: more b-threads beside the preset's: protocols, monitors, limits.
        history: an earlier conversation to continue.
        workspace: the folder for calls of tools without one; by default that of the tools, else the current one.
        approve: asked when a person has to decide; without it nobody is present, and the answer is no.
        log: a file that must not exist yet. on_step, on_text, on_output: called with every step, and with pieces
        of the model's text and of the tools' output. wait: seconds before the next attempt of an inference.
        hooks: what changes the model's context, and speaks up for people.

        Raises OptionError for an unknown preset, LogError when the log cannot be written.
        """
        self.preset = preset_named(preset) if isinstance(preset, str) else preset
        self.model = model
        self.threads = tuple(threads)
        self.toolbox = _make_toolbox(tuple(tools), workspace)
        self.conversation = Conversation()
        self.totals = Totals()
        self.bthreads = (*self.preset.bthreads(), *(hooks or Hooks()).bthreads(), *self.threads)
        self.program = BProgram(*self.bthreads)
        self.heard: list[Event] = []  # what came from outside so far, in order
        self.left_unsaid: list[str] = []  # what people said too late for a run; the next one begins with it
        self.system_prompt = system_prompt if system_prompt is not None else self._shipped_prompt()
        self._approve = approve
        self._on_step, self._on_text, self._on_output = on_step, on_text, on_output
        self._wait = wait
        self._hooks = hooks or Hooks()
        self._history = tuple(history)
        self._open_calls = OpenCalls()
        self._last_step: Step | None = None
        self.under_way = anyio.Lock()  # held by the one run that is; a prompt waits for the end of the run before it
        self.log_path = None if log is None else Path(log)
        self._log = None if log is None else LogWriter(log, make_header(self))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self.conversation.messages

    async def run(self, prompt: str) -> Run:
        """Run to the end and return the run.

        Raises BProgramError when a b-thread failed, RunError when the log or a listener did; the log says so then.
        """
        run = Run(self, prompt)
        await run.drive()
        return run

    def run_sync(self, prompt: str) -> Run:
        """Run to the end, for programs without an event loop."""
        return anyio.run(self.run, prompt)

    @asynccontextmanager
    async def start(self, prompt: str) -> AsyncIterator[Run]:
        """Start a run and give it; leaving the block waits for its end, an error in the block aborts it.

        Unless the agent has an approver, the one who started the run is the person present: see `Run.answer`.
        """
        run = Run(self, prompt, attended=self._approve is None)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run.drive)
                yield run
        except BaseExceptionGroup as group:
            if len(group.exceptions) > 1:
                raise
            alone = group.exceptions[0]  # what went wrong, as itself and not as a group of one
            raise alone from alone.__cause__

    def close(self) -> None:
        """End the program and close the log."""
        self.program.close()
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # What a run needs.

    def openings(self, prompt: str) -> tuple[Event, ...]:
        """Return what a run begins with: the prompt, and before it what was said before this run and not in one."""
        history = (*self._history, *map(UserMessage, self.left_unsaid))
        self._history = ()
        self.left_unsaid.clear()
        return (*((HistoryGiven(history),) if history else ()), PromptGiven(prompt))

    def effects(
        self,
        attendant: Approver | None,
        guarded: Callable[[Watcher], Watcher],
        fail: Callable[[Exception], None],
    ) -> tuple[Effect, ...]:
        """Return the effects of the loop.

        `attendant` is asked for approvals when the agent has no approver; `guarded` makes watchers fit to be called;
        `fail` is told when a hook does not do what it should.
        """
        hooks = HookCaller(self._hooks, fail)
        on_text = self._on_text and guarded(self._on_text)
        on_output = self._on_output and guarded(self._on_output)
        return (
            inference_effect(
                self.model, self.toolbox, self.system_prompt, self.conversation, self.totals, on_text, hooks
            ),
            description_effect(self.toolbox),
            execution_effect(self.toolbox, on_output),
            approval_effect(self._approve or attendant),
            seeking_effect(hooks),
            backoff_effect() if self._wait is None else backoff_effect(self._wait),
        )

    def check_usable(self) -> None:
        """Raise ProgramEnded when an earlier run failed, or the agent was closed: its program takes no events then."""
        self.program.run()

    def log_step(self, step: Step) -> None:
        """Write a step down. Raises RunError."""
        self._last_step = step
        if step.bthread is None:
            self.heard.append(step.event)
        if self._log is not None:
            _take("the log", self._log.record, step)

    def remember(self, step: Step) -> None:
        """Have the projections fold a step, and then tell whoever looks on. Raises RunError."""
        _take("a projection", self._fold, step)
        if self._on_step is not None:
            _take("on_step", self._on_step, step)

    def flush(self) -> None:
        """Flush the log. Raises RunError."""
        if self._log is not None:
            try:
                self._log.flush()
            except OSError as error:
                raise RunError(f"the log cannot be written: {error}") from error

    def record_failure(self, run: Run, error: Exception) -> None:
        """Write down that the run broke off, answer the calls that are open, and close the program.

        A run that had ended keeps its end; what goes wrong here becomes a note of `error`.
        """
        if run.ended is None:
            run.ended = RunEnded("failed", "engine_error", str(error))
            for answered in self._open_calls.answers():
                self.conversation.fold(answered)
                self._open_calls.fold(answered)
            if not isinstance(error, ProgramEnded):  # else there was no run
                _note_failure(error, lambda: self._log_end(run))
        _note_failure(error, self.program.close)

    def _log_end(self, run: Run) -> None:
        if self._log is not None and run.ended is not None:
            self._log.append(failure_record(self._last_step, run.ended))

    def _fold(self, step: Step) -> None:
        self.conversation.fold(step.event)
        self.totals.fold(step.event)
        self._open_calls.fold(step.event)

    def _shipped_prompt(self) -> str:
        preset = self.preset
        return preset.system_prompt.format(
            workspace=self.toolbox.workspace.root,
            tools=", ".join(self.toolbox.names) or "none",
            timeout=preset.timeout,
            output_limit=preset.output_limit,
            max_iterations=preset.max_iterations or "as many as it takes",
        )


def failure_record(last: Step | None, ended: RunEnded) -> dict[str, Any]:
    """Return the record of a run that broke off after the step `last`."""
    return {
        "step": (last.number if last else 0) + 1,
        "super_step": last.super_step if last else 0,
        "name": ended.name,
        "data": {"status": ended.status, "reason": ended.reason, "text": ended.text, "result": None},
        "origin": "engine",
    }


def _take(who: str, function: Callable[[Step], object], step: Step) -> None:
    """Call `function` with a step; what it raises becomes a RunError that names it."""
    try:
        function(step)
    except Exception as error:
        event = f"step {step.number} ({step.event.name})"
        raise RunError(f"{who} failed at {event}: {type(error).__name__}: {error}") from error


def _note_failure(error: Exception, function: Callable[[], None]) -> None:
    """Call `function`; what goes wrong there is a note of `error`, which is why it is called."""
    try:
        function()
    except Exception as another:
        error.add_note(f"and then: {type(another).__name__}: {another}")


def _make_toolbox(tools: tuple[Tool, ...], workspace: str | os.PathLike[str] | None) -> Toolbox:
    """Put the tools of one agent together; those without a workspace get the agent's."""
    own = next((tool.workspace for tool in tools if tool.workspace is not None), None)
    chosen = Workspace(workspace) if workspace is not None else own or Workspace(Path.cwd())
    return Toolbox((evolve(tool, workspace=tool.workspace or chosen) for tool in tools), chosen)
