"""Runs: one prompt of a conversation, from its beginning to its end, and what people do meanwhile."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import anyio

from agent.effects.approval import Approver
from agent.effects.hooks import Fail
from agent.projections.narration import Narration, StreamEvent
from agent.projections.state import State
from agent.session.approvals import open_questions
from agent.session.journal import Journal, Narrator, note_failure
from agent.tools.toolbox import Toolbox
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import (
    AbortAsked,
    ApprovalAsked,
    FollowUpGiven,
    RunEnded,
    SteeringGiven,
    StopAsked,
)
from agent.vocabulary.messages import Message, Usage, UserMessage
from bp import BProgram, BThread, Event, Step
from bp.runner import GRACE, Effect, Runner, Wakeup

NEWS = frozenset([RunEnded, ApprovalAsked, SteeringGiven, FollowUpGiven])
"""The kinds of events after which a run knows more than its steps."""


class Conversing(Protocol):
    """The agent of a run, as far as the run needs it; agents make runs, so that these do not know that class.

    `under_way` is held by the one run that is; `left_unsaid` is what people said too late for a run.
    """

    program: BProgram
    bthreads: tuple[BThread, ...]
    journal: Journal
    toolbox: Toolbox
    under_way: "anyio.Lock"
    left_unsaid: list[UserMessage]
    on_event: Callable[[StreamEvent], None] | None

    def openings(self, prompt: str | UserMessage | None) -> tuple[Event, ...]:
        """Return what a run begins with. Raises RunError when there is nothing."""

    def effects(self, attendant: Approver | None, fail: Fail, narrator: Narrator | None) -> tuple[Effect, ...]:
        """Return the effects of the loop."""

    async def run_over(self) -> None:
        """End what does not outlive a run."""

    def watchers(self) -> Iterator[tuple[str, Callable[[Step], object]]]:
        """Yield those who hear of every step, and what they are called in errors."""


class Run:
    """One run of an agent.

    `status`, `reason`, `text` and `result` say how it ended, `steps` what happened, `messages` the conversation so
    far. `async for step in run` gives the steps as they happen. `stop`, `abort`, `steer`, `follow_up` and `answer`
    are what people do meanwhile, from any thread: the run hears them at once. `agent` is whose run it is.
    """

    def __init__(
        self, agent: Conversing, prompt: str | UserMessage | None, *, attended: bool = False, narrated: bool = False
    ) -> None:
        """Prepare a run; `Agent.run` and `Agent.start` make and drive it. attended: a user may `answer`.

        Without a prompt it goes on with the run that rests. Raises RunError when none does.
        """
        openings = agent.openings(prompt)
        self.agent = agent
        self._taken_up: Sequence[Step] = () if openings else tuple(agent.journal.unfinished)
        self._narrator = Narrator(agent.on_event) if narrated or agent.on_event else None
        effects = agent.effects(self.ask if attended else None, self._fail, self._narrator)
        self._runner = Runner(agent.program, effects, journal=agent.journal)
        self._news: anyio.Event | None = None  # what readers wait for: the next step, or the end
        self._over = False
        self._speaking = Lock()  # held by threads that step in, and by the end of the run
        self._attended = attended
        self._questions: dict[str, _Question] = {}  # from the moment that listeners may hear of them
        self._unsaid: list[SteeringGiven | FollowUpGiven] = []  # what people said, and its turn has not come yet
        self.steps: list[Step] = list(self._taken_up)
        self.ended: RunEnded | None = None
        if attended:
            self._questions = {call: _Question() for call in open_questions(self._taken_up)}
        for opening in openings:  # now, so that nothing that people do can come before it
            self._runner.post(opening)

    def __repr__(self) -> str:
        how = f"{self.status}, {self.reason}" if self.reason else self.status
        return f"<Run: {how}, {len(self.steps)} steps>"

    # How it went.

    @property
    def status(self) -> str:
        """The status at the end: completed, limit, doom_loop, failed, stopped or aborted; "running" until then.

        "waiting" when it rests because a person has to decide later: see `waiting_for` and `Agent.decide`.
        """
        if self.ended is not None:
            return self.ended.status
        return "waiting" if self._over else "running"

    @property
    def waiting_for(self) -> tuple[ApprovalAsked, ...]:
        """The questions that are still open."""
        return tuple(open_questions(self.steps).values())

    @property
    def reason(self) -> str:
        """The reason of the end, as one word."""
        return "" if self.ended is None else self.ended.reason

    @property
    def text(self) -> str:
        """The last words: the final answer, or why there is none."""
        return "" if self.ended is None else self.ended.text

    @property
    def result(self) -> Any:
        """The `result` of the `run_ended` that ended the run; None from the b-threads that ship."""
        return None if self.ended is None else self.ended.result

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
        narration = Narration()
        for event in self.events:
            for _ in narration.tell(event):
                pass
        return narration.new_messages

    @property
    def story(self) -> Narrator:
        """The events of S2, to be read with `async for`, of a run that was started as `narrated`. Raises RunError."""
        if self._narrator is None:
            raise RunError("this run has no narration; start it with narrated=True")
        return self._narrator

    @property
    def state(self) -> State:
        """The state of the run, at its end the last one: objective, iteration, terminal, files that were modified."""
        return self.agent.journal.tracker.state

    @property
    def unheard(self) -> tuple[str, ...]:
        """The texts of people that the model was not shown, in this run and after its end until the next one begins."""
        unsaid = (*self._unsaid, *self.agent.left_unsaid)
        return (*self.agent.journal.conversation.unheard, *(words.text for words in unsaid))

    @property
    def usage(self) -> Usage:
        """Tokens of the whole conversation."""
        return self.agent.journal.totals.usage

    @property
    def log(self) -> Path | None:
        """The path of the log, or None without one."""
        return self.agent.journal.log_path

    # What people do meanwhile.

    def stop(self, text: str = "") -> None:
        """Let what runs finish, then end."""
        self._runner.post(StopAsked(text), "drop")

    def abort(self, text: str = "") -> None:
        """End everything now; every call is still answered."""
        self._runner.post(AbortAsked(text), "drop")

    def steer(self, text: str | UserMessage) -> None:
        """Change the course of the run: calls that have not started are skipped, and the model hears this next.

        With images it is a `UserMessage`. What comes too late for that stays in `unheard`, and is what the agent's next
        run begins with.
        """
        message = _as_message(text)
        self._say(SteeringGiven(message.text, message.images))

    def follow_up(self, text: str | UserMessage) -> None:
        """Ask for more: when the run would complete it goes on with this instead.

        With images it is a `UserMessage`. What comes too late for that stays in `unheard`, and is what the agent's next
        run begins with.
        """
        message = _as_message(text)
        self._say(FollowUpGiven(message.text, message.images))

    def _say(self, words: SteeringGiven | FollowUpGiven) -> None:
        with self._speaking:
            if self._over:
                self.agent.left_unsaid.append(UserMessage(words.text, words.images))
                return
            self._unsaid.append(words)
            self._runner.post(words, "drop")

    def answer(self, call: str, yes: bool, text: str = "") -> None:
        """Answer the question about the call with this id. Raises KeyError when none is open."""
        with self._speaking:
            question = self._questions[call]
            if question.is_answered:
                raise KeyError(call)
            question.answer(yes, text)

    async def ask(self, asked: ApprovalAsked) -> bool | str:
        """Wait for `answer`: the approver of a run that was started with `Agent.start`."""
        try:
            return await self._questions[asked.call.id].wait()
        finally:
            self._questions.pop(asked.call.id, None)

    def __aiter__(self) -> AsyncIterator[Step]:
        """Give every step, those that happened already first, until the run is over."""
        return _Steps(self)

    async def step_at(self, position: int) -> Step | None:
        """Return the step at a position in `steps`, as soon as it is there; None if the run is over before."""
        while position >= len(self.steps) and not self._over:
            self._news = self._news or anyio.Event()
            await self._news.wait()
        return self.steps[position] if position < len(self.steps) else None

    # Driving it.

    async def drive(self) -> None:
        """Run to the end, after the run before it. A cancelled run is aborted first, and its log says so.

        Raises what the engine raises, and RunError when the log or a listener failed; the log says so as far
        as it can, and the agent takes no further run.
        """
        async with self.agent.under_way:
            try:
                if not self._taken_up and self.agent.journal.is_under_way:
                    raise RunError(
                        "a run rests already; go on with it, run() without a prompt, before you ask for more"
                    )
                await self._to_its_end()
            finally:
                await self._runner.close()
                await self.agent.run_over()
                with self._speaking:
                    self._runner = Runner(self.agent.program)  # it hears nothing more; the other one holds this run
                    self._over = True
                    self.agent.left_unsaid.extend(UserMessage(words.text, words.images) for words in self._unsaid)
                    self._unsaid.clear()
                self.agent.journal.leave()
                if self._narrator is not None:
                    self._narrator.end()
                self._wake_readers()

    async def _to_its_end(self) -> None:
        try:
            self.agent.program.run()  # raises when an earlier run failed, or the agent was closed
            self._watch()
            self._runner.resume(self._taken_up)
            await self._runner.run(until=RunEnded)
        except anyio.get_cancelled_exc_class():
            await self._aborted()
            raise
        except Exception as error:
            self._record_failure(error)
            raise

    async def _aborted(self) -> None:
        """Abort a run that was cancelled; where no b-thread hears that, break it off."""
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
        """Write down that the run broke off, answer the calls that are open, and close the program.

        A run that had ended keeps its end; what goes wrong here becomes a note of `error`.
        """
        if self.ended is None:
            self.ended = RunEnded("failed", "engine_error", str(error))
            self.agent.journal.break_off(self.ended, error)
        note_failure(error, self.agent.program.close)

    def _watch(self) -> None:
        narrator = () if self._narrator is None else (("on_event", self._narrator.step),)
        self.agent.journal.watch(self._hear, *self.agent.watchers(), *narrator)

    def _hear(self, step: Step) -> None:
        """Know of a step, before the projections and those who look on do."""
        self.steps.append(step)
        if type(step.event) in NEWS:
            self._take_news(step.event)
        if self._news is not None:
            self._wake_readers()

    def _take_news(self, event: Event) -> None:
        match event:
            case RunEnded():
                self.ended = event
            case ApprovalAsked() if self._attended:
                self._questions[event.call.id] = _Question()
            case SteeringGiven() | FollowUpGiven() if event in self._unsaid:
                self._unsaid.remove(event)

    def _wake_readers(self) -> None:
        """Have those who wait for the next step look, once it has been taken into account."""
        news, self._news = self._news, None
        if news is not None:
            news.set()

    def _fail(self, error: Exception) -> None:
        self._runner.fail(error)


class _Steps:
    """The steps of a run as they happen; no generator, so that a reader that leaves early has nothing to clean up."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._position = 0

    def __aiter__(self) -> "_Steps":
        return self

    async def __anext__(self) -> Step:
        step = await self._run.step_at(self._position)
        if step is None:
            raise StopAsyncIteration
        self._position += 1
        return step


def _as_message(said: str | UserMessage) -> UserMessage:
    return UserMessage(said) if isinstance(said, str) else said


class _Question:
    """An open question: the first answer counts, from any thread."""

    def __init__(self) -> None:
        self._answer: bool | str | None = None
        self._answered = Wakeup()

    @property
    def is_answered(self) -> bool:
        return self._answer is not None

    def answer(self, yes: bool, text: str) -> None:
        self._answer = yes or text
        self._answered.set()

    async def wait(self) -> bool | str:
        while self._answer is None:
            await self._answered.wait()
        return self._answer
