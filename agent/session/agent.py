"""Agents, their runs and their journal: a conversation with a model that uses tools, one run after the other.

agent = Agent(model=ScriptedModel(["Hello."]), tools=workspace_tools(folder))
run = await agent.run("Say hello")
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import anyio
from attrs import evolve

from agent.effects.approval import Approval, Approver, Decisions, open_questions
from agent.effects.execution import Watcher
from agent.effects.loop import Fail, HookCaller, Hooks, Inferences, RoleModel, failure, loop_effects, seconds_before
from agent.effects.snapshots import Keeper
from agent.models.model import Model, frame_tokens
from agent.presets import preset_named
from agent.presets.preset import Preset
from agent.projections import Projection
from agent.projections.conversation import Context, Conversation
from agent.projections.state import BackgroundProcess, State, StateTracker, Totals, answers_to_open_calls
from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, Toolbox, running
from agent.tools.snapshots.store import Snapshot, Snapshots
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import AgentError, RunError
from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAsked,
    BackoffStarted,
    FollowUpGiven,
    HistoryGiven,
    PromptGiven,
    RunEnded,
    RunStatus,
    SnapshotTaken,
    SteeringGiven,
    StopAsked,
)
from agent.vocabulary.messages import Message, Usage, UserMessage, with_calls_answered
from bp import BProgram, BThread, Event, ProgramEnded, Step
from bp.runner import GRACE, Effect, Runner, Wakeup
from bp.statements import as_list

if TYPE_CHECKING:
    from agent.log.writing import LogWriter
    from agent.projections.narration import Narration, StreamEvent
    from agent.tools.snapshots.undo import Change, Undone


RUN_RESTS = "a run rests; continue it, with run() without a prompt, before you give another prompt"

Listener = tuple[str, Callable[[Step], object]]


class _Folds(dict[type, tuple[Callable[[Any], None], ...]]):
    """The folds of each kind of event, in the order of the projections: the context reads the two before it."""

    def __init__(self, *projections: Projection) -> None:
        super().__init__()
        self._projections = projections

    def __missing__(self, kind: type) -> tuple[Callable[[Any], None], ...]:
        folds = [(projection, projection.FOLDS.get(kind)) for projection in self._projections]
        return self.setdefault(kind, tuple(partial(fold, each) for each, fold in folds if fold is not None))


class Journal:
    """The log, if there is one, and the projections of one conversation.

    `heard`: the external events so far, in order. `unfinished`: the steps since the last run ended.
    """

    _folds: _Folds
    _listeners: tuple[Listener, ...]

    def __init__(self, log: "LogWriter | None", preset: Preset, context_tokens: int | None) -> None:
        """context_tokens: those for the messages in the context of the model; None: no limit."""
        self.conversation = Conversation()
        self.tracker = StateTracker(preset.max_iterations)
        self.context = Context(self.conversation, self.tracker, context_tokens, preset.carried)
        self.totals = Totals()
        self.heard: list[Event] = []
        self.unfinished: list[Step] = []
        self._last: Step | None = None
        self._log = log
        self._projections = (self.conversation, self.tracker, self.context, self.totals)
        self.leave()

    @property
    def log_path(self) -> Path | None:
        """The path of the log, or None without one."""
        return None if self._log is None else self._log.path

    @property
    def last_record(self) -> str:
        """The latest line of the log; empty without one."""
        return "" if self._log is None else self._log.last

    @property
    def is_under_way(self) -> bool:
        """True if a run has begun and not ended."""
        return any(isinstance(step.event, PromptGiven) for step in self.unfinished)

    def begin(self, run: Projection, *listeners: Listener) -> list[Step]:
        """Fold events into `run` first, then into the others, then call the listeners; return its steps, as they come.

        listeners: each with its name, for errors.
        """
        self._folds, self._listeners = _Folds(run, *self._projections), listeners
        self.unfinished = [*self.unfinished]
        return self.unfinished

    def leave(self) -> None:
        """Forget the run."""
        self._folds, self._listeners = _Folds(*self._projections), ()

    def record(self, step: Step) -> None:
        """Record a step in the log, then in the projections, then call the listeners. Raises RunError."""
        event, who = step.event, "the log"
        self._last = step
        try:
            if self._log is not None:
                self._log.record(step)
            who = "a projection"
            if step.bthread is None:
                self.heard.append(event)
            self.unfinished.append(step)
            if type(event) is RunEnded:
                self.unfinished = []
            for fold in self._folds[type(event)]:
                fold(event)
            for name, listen in self._listeners:
                who = name
                listen(step)
        except Exception as error:
            at = f"step {step.number} ({event.name})"
            raise RunError(f"{who} failed at {at}: {type(error).__name__}: {error}") from error

    def take_up(self, step: Step) -> None:
        """Record a step that is already in the log. Raises RunError."""
        log, self._log = self._log, None
        try:
            self.record(step)
        finally:
            self._log = log

    def flush(self) -> None:
        """Flush the log. Raises RunError."""
        if self._log is not None:
            try:
                self._log.flush()
            except AgentError as error:
                raise RunError(str(error)) from error

    def break_off(self, ended: RunEnded, error: Exception) -> None:
        """Answer the open calls and record that the run failed with `error`; errors raised here become its notes."""
        for event in (*answers_to_open_calls(step.event for step in self.unfinished), ended):
            for fold in self._folds[type(event)]:
                fold(event)
        self.unfinished = []
        if not isinstance(error, ProgramEnded):  # else there was no run
            note_failure(error, lambda: self._write_end(ended))

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _write_end(self, ended: RunEnded) -> None:
        if self._log is not None:
            last = self._last
            record = {
                "step": (last.number if last else 0) + 1,
                "super_step": last.super_step if last else 0,
                "name": ended.name,
                "data": {"status": ended.status, "reason": ended.reason, "text": ended.text, "result": None},
                "origin": "engine",
            }
            self._log.record(record)
            self._log.flush()


def note_failure(error: Exception, function: Callable[[], None]) -> None:
    """Call `function`, the clean-up after `error`; its errors become notes of `error`."""
    try:
        function()
    except Exception as another:
        error.add_note(f"and then: {type(another).__name__}: {another}")


class Run(Projection):
    """One run of an agent.

    `status`, `reason`, `text` and `result` describe its end, `steps` its events, `messages` the conversation so far.
    `async for step in run` yields the steps as they happen. `stop`, `abort`, `steer`, `follow_up` and `answer`
    may be called from any thread, and take effect at once. `agent` is the agent that runs.
    """

    def __init__(
        self, agent: "Agent", prompt: str | UserMessage | None, *, attended: bool = False, alone: bool = False
    ) -> None:
        """Prepare a run; `Agent.run` and `Agent.start` make and drive it. attended: a user may `answer`.

        alone: no user can act or read the steps meanwhile. Without a prompt the run that rests continues. Raises
        RunError when none does, or when one rests and there is a prompt.
        """
        openings = agent.openings(prompt)
        self.agent = agent
        self._taken_up: Sequence[Step] = () if openings else tuple(agent.journal.unfinished)
        self._narration = _new_narration() if agent.is_watched else None
        effects = agent.effects(
            self.ask if attended else None, lambda error: self._runner.fail(error), self._narration, alone=alone
        )
        self._runner: Runner = Runner(agent.program, effects, journal=agent.journal)
        self._news: anyio.Event | None = None  # readers wait on it for the next step, or the end
        self._over = False
        self._lock = Lock()  # held while another thread acts on the run, and while it ends
        self._attended, self._alone = attended, alone
        self._questions: dict[str, _Question] = {}  # from the moment that listeners may hear of them
        self._unposted: list[SteeringGiven | FollowUpGiven] = []  # messages of users that were not posted yet
        self.steps: list[Step] = list(self._taken_up)
        self.ended: RunEnded | None = None
        if attended:
            self._questions = {call: _Question() for call in open_questions(self._taken_up)}
        for opening in openings:  # now, so that no act of a user can precede it
            self._runner.post(opening)

    def __repr__(self) -> str:
        how = f"{self.status}, {self.reason}" if self.reason else self.status
        return f"<Run: {how}, {len(self.steps)} steps>"

    # How it went.

    @property
    def status(self) -> RunStatus | Literal["running", "waiting"]:
        """The status at the end: completed, limit, doom_loop, failed, stopped or aborted; "running" until then.

        It is also "running" while a question is open (`waiting_for`), and "waiting" when the run rests until a user
        decides (`Agent.decide`).
        """
        if self.ended is not None:
            return self.ended.status
        return "waiting" if self._over else "running"

    @property
    def waiting_for(self) -> tuple[ApprovalAsked, ...]:
        """The questions that have no answer yet."""
        answered = {call for call, question in self._questions.items() if question.said is not None}
        return tuple(asked for call, asked in open_questions(self.steps).items() if call not in answered)

    @property
    def reason(self) -> str:
        """The reason of the end, as one word."""
        return self.ended.reason if self.ended else ""

    @property
    def text(self) -> str:
        """The final answer, or the reason why there is none."""
        return self.ended.text if self.ended else ""

    @property
    def result(self) -> Any:
        """The `result` of the `run_ended` that ended the run; the shipped b-threads give None."""
        return self.ended.result if self.ended else None

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the run, in order."""
        return tuple(step.event for step in self.steps)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation, this run's part included."""
        return self.agent.journal.conversation.messages

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """The messages that this run added to the conversation so far, its prompt first."""
        narration = _new_narration()
        for event in self.events:
            for _ in narration.tell(event):
                pass
        return narration.new_messages

    @property
    def state(self) -> State:
        """The state of the run, at its end the last one: objective, iteration, terminal, files that were modified."""
        return self.agent.journal.tracker.state

    @property
    def unheard(self) -> tuple[str, ...]:
        """Texts of users that the model was not shown, from this run or after its end, until the next one begins."""
        unsaid = (*self._unposted, *self.agent.late_messages)
        return (*self.agent.journal.conversation.unheard, *(words.text for words in unsaid))

    @property
    def usage(self) -> Usage:
        """Tokens of the whole conversation."""
        return self.agent.journal.totals.usage

    @property
    def log(self) -> Path | None:
        """The path of the log, or None without one."""
        return self.agent.journal.log_path

    # Acts of users during the run.

    @property
    def changes(self) -> "tuple[Change, ...]":
        """All that this run and others changed in the workspace since its first snapshot, and who did."""
        from agent.tools.snapshots.undo import changes_since

        keeper, taken = self.agent.keeper, self._snapshots()
        return tuple(changes_since(keeper.snapshots, taken[0][1]).values()) if keeper is not None and taken else ()

    def snapshot(self, step: int = 0) -> Snapshot:
        """Return the workspace as it was before a step. Raises SnapshotError if nothing was kept since."""
        keeper = self.agent.keeper
        name = next((name for number, name in self._snapshots() if number >= step), None)
        if keeper is None or name is None:
            raise SnapshotError(f"no snapshot was taken in this run since step {step}: no call has changed files")
        return keeper.snapshots.get(name)

    async def undo(
        self, step: int = 0, paths: Sequence[str] = (), *, force: bool = False, git: bool = False
    ) -> "Undone":
        """Make the workspace, or some paths of it, what it was before a step of this run.

        What others have changed since is left, except with `force`; branches and HEAD stay, except with `git`. Raises
        SnapshotError.
        """
        from agent.tools.snapshots.undo import undo

        name, keeper = self.snapshot(step).name, self.agent.keeper
        assert keeper is not None
        return await run_in_background(lambda: undo(keeper.snapshots, name, paths=paths, force=force, git=git))

    def _snapshots(self) -> list[tuple[int, str]]:
        """Return the snapshots of the run, with the numbers of their steps."""
        return [(step.number, step.event.snapshot) for step in self.steps if isinstance(step.event, SnapshotTaken)]

    def stop(self, text: str = "") -> None:
        """Let running tools finish, then end the run."""
        self._runner.post(StopAsked(text), "drop")

    def abort(self, text: str = "") -> None:
        """End the run now; every call is still answered."""
        self._runner.post(AbortAsked(text), "drop")

    def steer(self, text: str | UserMessage) -> None:
        """Add a message that the model reads next; calls that have not started are skipped.

        With images it is a `UserMessage`. What comes too late for that stays in `unheard`, and is what the agent's next
        run begins with.
        """
        self._say(SteeringGiven, text)

    def follow_up(self, text: str | UserMessage) -> None:
        """Add a message, like `steer`, with which the run continues when it would complete."""
        self._say(FollowUpGiven, text)

    def _say(self, kind: type[SteeringGiven] | type[FollowUpGiven], text: str | UserMessage) -> None:
        message = UserMessage(text) if isinstance(text, str) else text
        with self._lock:
            if self._over:
                self.agent.late_messages.append(message)
                return
            self._unposted.append(kind(message.text, message.images))
            self._runner.post(self._unposted[-1], "drop")

    def answer(self, call: str, yes: bool, text: str = "") -> None:
        """Answer the question about the call with this id. Raises KeyError when none is open."""
        with self._lock:
            question = self._questions.get(call)
            if question is None or question.said is not None:  # the first answer counts
                others = ", ".join(id for id, each in self._questions.items() if each.said is None) or "none"
                raise KeyError(f"no question about the call {call!r} waits for an answer; open: {others}")
            question.answer(yes, text)

    async def ask(self, asked: ApprovalAsked) -> bool | str:
        """Wait for `answer`: the approver of a run that was started with `Agent.start`."""
        question = self._questions[asked.call.id]
        try:
            return await question.wait()
        finally:
            if question.said is None:  # it was withdrawn
                self._questions.pop(asked.call.id, None)

    def __aiter__(self) -> AsyncIterator[Step]:
        """Yield every step from the first one on, until the run is over."""
        return _Steps(self)

    async def news(self, position: int) -> None:
        """Wait for the step at a position in `steps`, or for the end of the run."""
        while position >= len(self.steps) and not self._over:
            self._news = self._news or anyio.Event()
            await self._news.wait()

    # Driving it.

    async def drive(self) -> None:
        """Run to the end, once the run before is over. A cancelled run is aborted first, and the log records that.

        Raises the errors of the engine, and RunError when the log or a listener failed; the log records that if
        possible, and the agent accepts no further run.
        """
        async with self.agent.under_way:
            with running(self.agent if self.agent.has_own_state else None):
                await self._drive()

    async def _drive(self) -> None:
        try:
            if not self._taken_up and self.agent.journal.is_under_way:
                raise RunError(RUN_RESTS)
            await self._to_its_end()
        finally:
            await self._runner.close()
            await self.agent.run_over()
            with self._lock:
                self._runner = Runner(self.agent.program)  # takes no events; the old one refers to this run
                self._over = True
                self.agent.late_messages.extend(UserMessage(words.text, words.images) for words in self._unposted)
                self._unposted.clear()
            self.agent.journal.leave()
            self._wake_readers()

    async def _to_its_end(self) -> None:
        try:
            try:
                self.agent.program.run()
            except ProgramEnded as ended:
                raise ProgramEnded("the agent was closed, or an earlier run of it failed; make a new Agent") from ended
            readers = () if self._alone else (("a reader", self._wake_readers),)
            self.steps = self.agent.journal.begin(self, *readers, *self.agent.watchers(self._narration))
            self._runner.resume(self._taken_up)
            await self._runner.run(until=RunEnded)
        except anyio.get_cancelled_exc_class():
            await self._aborted()
            raise
        except Exception as error:
            self._record_failure(error)
            raise

    async def _aborted(self) -> None:
        """Abort a run that was cancelled; if no b-thread reacts, record a failure."""
        try:
            with anyio.fail_after(2 * GRACE, shield=True):
                self.abort("the run was cancelled")
                await self._runner.run(until=RunEnded)
        except TimeoutError:
            self._record_failure(RunError("the run was cancelled, and did not end when aborted"))
        except Exception as error:
            self._record_failure(error)
            raise

    def _record_failure(self, error: Exception) -> None:
        """Record that the run failed, answer the open calls and close the program. A run that had ended keeps its end;
        errors raised here become notes of `error`.
        """
        if self.ended is None:
            self.ended = RunEnded("failed", "engine_error", str(error))
            self.agent.journal.break_off(self.ended, error)
        note_failure(error, self.agent.program.close)

    def _end(self, ended: RunEnded) -> None:
        self.ended = ended

    def _open_question(self, asked: ApprovalAsked) -> None:
        if self._attended:
            self._questions[asked.call.id] = _Question()

    def _hear_words(self, words: SteeringGiven | FollowUpGiven) -> None:
        if words in self._unposted:
            self._unposted.remove(words)

    FOLDS: ClassVar = {
        RunEnded: _end,
        ApprovalAsked: _open_question,
        SteeringGiven: _hear_words,
        FollowUpGiven: _hear_words,
    }

    def _wake_readers(self, _: Step | None = None) -> None:
        """Wake the readers that wait for the next step, once it has been recorded."""
        news, self._news = self._news, None
        if news is not None:
            news.set()


class _Steps:
    """The steps of a run as they happen; not a generator, so that a reader may stop early without clean-up."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._position = 0

    def __aiter__(self) -> "_Steps":
        return self

    async def __anext__(self) -> Step:
        await self._run.news(self._position)
        if self._position == len(self._run.steps):
            raise StopAsyncIteration
        self._position += 1
        return self._run.steps[self._position - 1]


def _new_narration() -> "Narration":
    from agent.projections.narration import Narration  # 1 ms, which a run without a listener does without

    return Narration()


class _Question:
    """An open question; `said` is the answer, from any thread."""

    def __init__(self) -> None:
        self.said: bool | str | None = None
        self._answered = Wakeup()

    def answer(self, yes: bool, text: str) -> None:
        self.said = yes or text
        self._answered.set()

    async def wait(self) -> bool | str:
        while self.said is None:
            await self._answered.wait()
        return self.said


class Agent:
    """A conversation with a model that may use tools: one run after the other, each from a prompt to its end.

    `run` waits for the end, `run_sync` does so without an event loop, `start` lets users act meanwhile.

    model: a model, or its name as on the command line, such as "gpt-5" or "script:FILE".
    preset: a name or a `Preset`. threads: b-threads in addition to the preset's: protocols, monitors, limits.
    history: an earlier conversation to continue; open calls in it are answered "no result recorded".
    workspace: the folder of tools that have none; by default that of the other tools, else the current one.
    approve: the function that is asked for approvals; without it no user is present, and every answer is no. "later":
    the run rests, `run.status` is "waiting", and `decide` with another `run` continues it.
    log: a file that must not exist yet. log_late: write it when the agent is closed, for runs that are restarted if
    they fail. secrets: texts to mask in the log, by name. about: additional data in its header, for the program that
    resumes it. on_step, on_text, on_output: called with every step, and with pieces of the model's text and of the
    tools' output. wait: seconds before the next attempt of an inference. on_event: called with a `StreamEvent`
    (`agent.projections.narration`) at agent_start and _end, turn_start and _end, message_start, _update and _end,
    tool_execution_start, _update and _end. hooks: functions that change the model's context, or supply messages of
    users. models: extra models by role ("trusted", "editor"), for protocols. effects: functions that make additional
    effects, for events of `threads`; each is called once. snapshots: keep the workspace before calls that may change
    files, if one of the tools works in it; False: ask about such calls instead; None: neither, for files that are
    thrown away. The preset can leave that out, too.
    """

    lost_processes: tuple[BackgroundProcess, ...] = ()
    """Processes in the background that ended with an earlier program."""

    has_own_state = True
    """False if its tools keep the state of direct calls: terminal, list of tasks, processes."""

    def __init__(
        self,
        model: Model | str,
        tools: Iterable[Tool] = (),
        *,
        preset: str | Preset = "default",
        threads: Sequence[BThread] = (),
        history: Sequence[Message] = (),
        workspace: str | os.PathLike[str] | None = None,
        system_prompt: str | None = None,
        approve: Approval = None,
        log: "str | os.PathLike[str] | LogWriter | None" = None,
        log_late: bool = False,
        secrets: Mapping[str, str] = {},
        about: Mapping[str, str] = {},
        on_step: Callable[[Step], None] | None = None,
        on_text: Watcher | None = None,
        on_output: Watcher | None = None,
        on_event: "Callable[[StreamEvent], None] | None" = None,
        wait: Callable[[BackoffStarted], float] | None = None,
        hooks: Hooks | None = None,
        models: Mapping[str, Model] = {},
        effects: Sequence[Callable[["Agent"], Effect]] = (),
        snapshots: bool | None = True,
    ) -> None:
        """Make an agent; nothing happens before its first run.

        Raises OptionError (preset, cost without price, context without room), LogError, ValueError (tools of one name),
        and TypeError for a wrong approver, or one value in the place of a list.
        """
        self._approve, self._wait = _checked_approval(approve), wait
        self.preset = preset_named(preset) if isinstance(preset, str) else preset
        self.threads, self._hooks = as_list("threads", threads), hooks or Hooks()
        self.model = self._model_named(model) if isinstance(model, str) else model
        tools = as_list("tools", tools)
        self.toolbox = _make_toolbox(self.preset, tools, workspace)
        self.snapshots = None if None in (snapshots, self.preset.snapshots) else snapshots and self.preset.snapshots
        has_workspace = workspace or any(tool.workspace for tool in tools)
        self.preset = _with_snapshots(self.preset, self.snapshots if has_workspace else None)
        self.preset.price_of(self.model.name)  # raises where cost is limited and the price is not known
        self._others = {role: self._voiced(other) for role, other in models.items()}
        self.bthreads = (*self.preset.bthreads(), *self._hooks.bthreads(), *self.threads)
        self.program = BProgram(*self.bthreads)
        if system_prompt is None:
            system_prompt = self.preset.prompt(workspace=self.toolbox.workspace.root, tools=self.toolbox.names)
        self.system_prompt = system_prompt
        self._on_step, self._on_text, self._on_output, self.on_event = on_step, on_text, on_output, on_event
        self._history, self.about = with_calls_answered(history), dict(about)
        self.late_messages: list[UserMessage] = []  # of users; the next run begins with them
        self.under_way = anyio.Lock(fast_acquire=True)  # held by a run; the next prompt waits for the end of it
        self.decisions, self._secrets = Decisions(), dict(secrets)
        room = self.preset.room_beside(frame_tokens(self.system_prompt, self.toolbox.schemas))
        self.journal = Journal(self._open_log(log, late=log_late), self.preset, room)
        self.keeper = self._keeper() if self.preset.snapshots else None
        if self.keeper is not None:
            self.toolbox.kept, self.toolbox.unkept = self.keeper.snapshots.roots, self.keeper.snapshots.left_out
            self.toolbox.keep = self.keeper.after
        self.more_effects = tuple(make(self) for make in effects)

    def __repr__(self) -> str:
        tools = ", ".join(self.toolbox.names) or "none"
        return f"<Agent: model {self.model.name}, preset {self.preset.name}, tools: {tools}>"

    @property
    def totals(self) -> Totals:
        """The tokens and the cost of the conversation so far."""
        return self.journal.totals

    @property
    def heard(self) -> Sequence[Event]:
        """The external events so far, in order."""
        return self.journal.heard

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return self.journal.conversation.messages

    @property
    def log_path(self) -> Path | None:
        """The path of the log, or None without one."""
        return self.journal.log_path

    def decide(self, call: str, yes: bool, text: str = "") -> None:
        """Answer the question about a call; `text` is the reason of a no. The next `run` continues with the answer.

        Raises UndecidableError for a call that is not known, decided already, or was not asked about.
        """
        self.decisions.decide(self.journal.unfinished, call, yes, text)

    async def run(self, prompt: str | UserMessage | None = None) -> Run:
        """Run to the end and return the run; without a prompt, continue the run that rests.

        A prompt with images is a `UserMessage`.

        Raises BProgramError when a b-thread failed, RunError when the log or a listener did; the log says so then.
        """
        run = Run(self, prompt, alone=self._hooks == Hooks())
        await run.drive()
        return run

    def run_sync(self, prompt: str | UserMessage | None = None) -> Run:
        """Run to the end, for programs without an event loop. Raises RunError where one is running."""
        with suppress(RuntimeError):
            anyio.get_current_task()
            raise RunError("an event loop is running already; write `await agent.run(...)` instead of `run_sync`")
        return anyio.run(self.run, prompt)

    @asynccontextmanager
    async def start(self, prompt: str | UserMessage | None = None) -> AsyncIterator[Run]:
        """Start a run, or continue the one that rests, and yield it.

        Leaving the block waits for its end, an error in the block aborts it.

        Unless the agent has an approver, `Run.answer` answers its questions.
        """
        run = Run(self, prompt, attended=self._approve is None)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run.drive)
                yield run
        except BaseExceptionGroup as group:
            if len(group.exceptions) > 1:
                raise
            alone = group.exceptions[0]  # the error itself instead of a group of one
            raise alone from alone.__cause__

    def close(self) -> None:
        """End the program and close the log."""
        self._on_step, self.more_effects = None, ()  # they may hold the agent: it is to go with its last user
        self.program.close()
        self.journal.close()
        if self.keeper is not None:
            self.keeper.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Parts of a run.

    @property
    def rests(self) -> bool:
        """True if a run has begun and not ended, and does not go on now."""
        return self.journal.is_under_way and not self.under_way.locked()

    def openings(self, prompt: str | UserMessage | None) -> tuple[Event, ...]:
        """Return the first messages of a run: those that came between the runs, then the prompt. A continued run has
        none. Raises RunError when no run rests, or when one rests and there is a prompt.
        """
        if self.rests != (prompt is None):
            raise RunError(RUN_RESTS if self.rests else "no run rests; give a prompt")
        if prompt is None:
            return ()
        history = (*self._history, *self.late_messages)
        self._history = ()
        self.late_messages.clear()
        asked = UserMessage(prompt) if isinstance(prompt, str) else prompt
        return (*((HistoryGiven(history),) if history else ()), PromptGiven(asked.text, asked.images))

    def effects(
        self, attendant: Approver | None, fail: Fail, narration: "Narration | None", *, alone: bool
    ) -> tuple[Effect, ...]:
        """Return the effects of the loop.

        `attendant`: the approver of an agent without one. `fail`: called when a hook or a listener fails. `narration`:
        gets the streamed output of models and tools.
        """
        pieces = outputs = None
        if narration is not None:
            pieces, outputs = self._listener_of(fail, narration.piece), self._listener_of(fail, narration.output)
        asking = Inferences(
            self._voiced(self.model),
            self.toolbox,
            self.system_prompt,
            self.journal.context,
            self.totals,
            self._others,
            pieces,
            HookCaller(self._hooks, fail),
            alone,
            (lambda: None) if self.keeper is None else self.keeper.begin,
        )
        approver = self.decisions.answering(self._approve or attendant)
        wait = seconds_before if self._wait is None else _finite(self._wait, fail)
        return (*loop_effects(asking, approver, outputs, wait, self.keeper), *self.more_effects)

    def _keeper(self) -> Keeper:
        from agent.log.chain import own_folder  # for agents that change files

        name = self.log_path.stem if self.log_path is not None else "run"
        snapshots = Snapshots.under(self.preset.configuration(), self.toolbox.workspace.root, own_folder())
        return Keeper(snapshots, lambda: bool(self.journal.tracker.state.background), f"{name}-{os.urandom(3).hex()}")

    def _voiced(self, model: Model) -> RoleModel:
        return RoleModel(model, self.preset.price_of(model.name), self.preset.counts_tokens)

    def take_up(self, steps: Iterable[Step]) -> None:
        """Record steps that were replayed from the log."""
        taken: list[SnapshotTaken] = []
        with running(self):
            for step in steps:
                self.journal.take_up(step)
                self.toolbox.take_up(step.event)
                if isinstance(step.event, SnapshotTaken):
                    taken.append(step.event)
        if self.keeper is not None and taken and _is_kept(self.keeper, taken[-1].snapshot):
            for each in taken:  # else they are of another workspace, or have gone, and new ones get a new name
                self.keeper.take_up(each)
        self.lost_processes = self.journal.tracker.state.background
        self.journal.tracker.end_background("run", "program")

    async def run_over(self) -> None:
        """End the processes and terminal sessions of a run, also of a run that only rests."""
        had_background = bool(self.journal.tracker.state.background)
        await self.toolbox.run_over()
        if self.keeper is not None and had_background:
            await self.keeper.after("background")
        self.journal.tracker.end_background("run")

    def watchers(self, narration: "Narration | None") -> Iterator[tuple[str, Callable[[Step], object]]]:
        """Yield the listeners of every step, each with its name for errors."""
        if self.toolbox.listens:
            yield "a tool", lambda step: self.toolbox.hear(step.event)
        if self._on_step is not None:
            yield "on_step", self._on_step
        if narration is not None:
            yield "on_event", lambda step: self._tell(narration.tell(step.event))

    @property
    def is_watched(self) -> bool:
        """True if a listener takes more of a run than its steps."""
        return (self._on_text, self._on_output, self.on_event) != (None, None, None)

    def _tell(self, news: "Iterable[StreamEvent]") -> None:
        for event in news:
            if self._on_text is not None and event.type == "message_update" and event.text:
                self._on_text(event.text)
            if self._on_output is not None and event.type == "tool_execution_update":
                self._on_output(event.text)
            if self.on_event is not None:
                self.on_event(event)

    def _listener_of(self, fail: Fail, told: "Callable[..., Iterable[StreamEvent]]") -> Callable[..., None]:
        """Return the function that gives listeners a piece. An error in one ends the run; it is no tool error."""

        def tell(*news: object) -> None:
            try:
                self._tell(told(*news))
            except Exception as error:
                failure("a listener", error, fail)

        return tell

    def header(self) -> dict[str, Any]:
        """Return the header of the agent's log."""
        from agent.history.rebuilding import make_header  # imports the log, 15 ms, which only agents with a log need

        return make_header(
            self.preset,
            self.bthreads,
            self.model,
            self.toolbox,
            self.system_prompt,
            approvals="later" if self._approve == "later" else "now",
            secrets=sorted(self._secrets),
            about=self.about,
        )

    def _model_named(self, name: str) -> Model:
        from agent.models.openai_model import model_from_name  # 20 ms, which a scripted model does not need

        return model_from_name(name, os.environ, has_key_hook=self._hooks.get_api_key is not None)

    def _open_log(self, log: "str | os.PathLike[str] | LogWriter | None", *, late: bool) -> "LogWriter | None":
        if log is None:
            return None
        from agent.log.writing import LogWriter, Redaction, keys_of

        models = (self.model, *(voice.model for voice in self._others.values()))
        redaction = Redaction(self._secrets, keys_of(models)) or None
        if isinstance(log, LogWriter):
            log.redaction = redaction
        else:
            log = LogWriter(log, self.header(), redaction, late=late)
        self.toolbox.own = (os.path.realpath(log.path),)
        return log


def _is_kept(keeper: Keeper, snapshot: str) -> bool:
    return snapshot in keeper.snapshots.names(snapshot.rpartition("/")[0])


def _finite(wait: Callable[[BackoffStarted], float], fail: Fail) -> Callable[[BackoffStarted], float]:
    """Return `wait`; the run fails when it raises, or gives no finite number of seconds."""

    def seconds(started: BackoffStarted) -> float:
        try:
            given = float(wait(started))
            if not isfinite(given):
                raise ValueError(f"it must return seconds, not {given}")
        except Exception as error:
            raise failure("wait", error, fail) from error
        return max(given, 0.0)

    return seconds


@lru_cache(maxsize=64)
def _with_snapshots(preset: Preset, snapshots: bool | None) -> Preset:
    return preset if preset.snapshots is snapshots else evolve(preset, snapshots=snapshots)


def _checked_approval(approve: Approval) -> Approval:
    if approve is not None and approve != "later" and not callable(approve):
        raise TypeError(f'approve={approve!r}: give a function of the question, "later", or None')
    return approve


def _make_toolbox(preset: Preset, tools: Iterable[Tool], workspace: str | os.PathLike[str] | None) -> Toolbox:
    """Return the toolbox of an agent; tools without a workspace get the agent's."""
    everything = (*preset.own_tools(), *as_list("tools", tools))
    known: dict[str, Tool] = {}
    for one in everything:
        if not isinstance(one, Tool):
            raise TypeError(f"{one!r} is no tool; make one with @tool")
        if (other := known.setdefault(one.name, one)) is not one:
            raise ValueError(f"two tools are called {one.name!r}: {other.place} and {one.place}; rename one")
    own = next((tool.workspace for tool in everything if tool.workspace is not None), None)
    chosen = Workspace(workspace) if workspace is not None else own or Workspace(Path.cwd())
    placed = (tool.in_workspace(chosen) for tool in everything)
    return Toolbox(placed, chosen, suggests=preset.unknown_tool == "nearest")
