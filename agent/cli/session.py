"""One run on the command line: an agent, a screen, a keyboard and signals, from the prompt to an exit code."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
from attrs import field, frozen

from agent.cli import exit_codes
from agent.cli.display import Display
from agent.cli.keyboard import can_be_heard, hear_lines, is_terminal
from agent.cli.mistakes import say
from agent.cli.person import Person, says_stop
from agent.cli.progress import Progress
from agent.cli.screen import Screen
from agent.cli.serving import McpServer, serving
from agent.cli.signals import HEARD, Interruption
from agent.cli.standing_answers import StandingAnswers
from agent.effects.approval import Approver
from agent.effects.streaming import Watcher
from agent.session.agent import Agent
from agent.session.journal import failure_record
from agent.session.run import Run
from agent.tools.definition import Tool
from agent.vocabulary.errors import AgentError
from bp import BProgramError, Step
from constitution import Policy

__all__ = ["Maker", "Onlookers", "Outcome", "Session", "introduction", "lead", "listen", "over", "tell_failure"]

Maker = Callable[[Approver, Callable[[Step], None], Watcher | None, tuple[Tool, ...]], Agent]
"""Makes the agent of a session: from who is asked, what is called with steps and pieces of text, and more tools."""


@frozen
class Outcome:
    """How a session ended: the run, the exit code of the command, and the last record when the engine failed.

    `was_shown`: the last words stand on the screen already.
    """

    run: Run
    code: int
    was_shown: bool = False
    failure: dict[str, Any] | None = None


@frozen(eq=False)
class Onlookers:
    """Who is told every step: the screen, the status line, and the answers that were given with `always`."""

    display: Display
    progress: Progress
    standing: StandingAnswers

    def show(self, step: Step) -> None:
        """Show a step as it happens."""
        self.standing.see(step.event)
        self.display.show(step)
        self.progress.fold(step.event)

    def take_up(self, agent: Agent) -> None:
        """Take the steps of a run into account that goes on: they were shown when they happened."""
        for step in agent.journal.unfinished:
            self.standing.see(step.event)
            self.display.take_up(step)


@frozen(eq=False)
class Session:
    """What a run is led with.

    Without a `prompt` the run goes on that rests.
    `present`: somebody can answer. `approver` answers instead of that person. `watch` is called with every step,
    after it was shown. `shows_final_text`: on the screen too. `stops`: which typed lines stop the run.
    `max_iterations`: what is shown as the limit. `policy`: what questions come from, so that `always` is an answer.
    `servers`: whose tools there are too.
    """

    make: Maker
    prompt: str | None
    screen: Screen
    present: bool = field(factory=is_terminal)
    approver: Approver | None = None
    watch: Callable[[Step], None] | None = None
    shows_final_text: bool = False
    stops: Callable[[str], bool] = says_stop
    max_iterations: int | None = None
    policy: Policy | None = None
    servers: tuple[McpServer, ...] = ()


def lead(session: Session) -> Outcome:
    """Lead a run to its end. Raises what making the agent raises."""
    return anyio.run(_lead, session)


async def _lead(session: Session) -> Outcome:
    onlookers, interruption = _onlookers(session), Interruption()
    running: list[Run] = []
    person = _person(session, onlookers.standing, running)
    async with AsyncExitStack() as stack:
        signals = stack.enter_context(anyio.open_signal_receiver(*HEARD))
        tools = await stack.enter_async_context(serving(session.servers))
        shown = _shown(onlookers, session.watch)
        made = session.make(session.approver or person.answer, shown, onlookers.display.stream, tools)
        agent = stack.enter_context(made)
        onlookers.take_up(agent)
        try:
            async with agent.start(session.prompt) as run, anyio.create_task_group() as tasks:
                running.append(run)
                tasks.start_soon(interruption.watch, signals, lambda: _abort(run, interruption, session))
                tasks.start_soon(listen, person)
                tasks.start_soon(onlookers.progress.show)
                await over(run)
                tasks.cancel_scope.cancel()
        except (BProgramError, AgentError) as error:
            tell_failure(error)
    return _outcome(running[0], interruption, was_shown=onlookers.display.has_streamed(running[0].text))


def _onlookers(session: Session) -> Onlookers:
    display = Display(session.screen, shows_final_text=session.shows_final_text, max_iterations=session.max_iterations)
    return Onlookers(display, Progress(session.screen), StandingAnswers(session.policy))


def _person(session: Session, standing: StandingAnswers, running: list[Run]) -> Person:
    def stop() -> None:
        for run in running:
            run.stop()

    return Person(session.screen, present=session.present, stop=stop, stops=session.stops, standing=standing)


def _shown(onlookers: Onlookers, watch: Callable[[Step], None] | None) -> Callable[[Step], None]:
    def show(step: Step) -> None:
        onlookers.show(step)
        if watch is not None:
            watch(step)

    return show


def _outcome(run: Run, interruption: Interruption, *, was_shown: bool) -> Outcome:
    last = run.steps[-1] if run.steps else None
    broke_off = run.ended is not None and (last is None or last.event != run.ended)
    failure = failure_record(last, run.ended) if run.ended is not None and broke_off else None
    code = exit_codes.of_run(run.status, interruption.number, run.reason)
    return Outcome(run, code, was_shown, failure)


async def listen(person: Person) -> None:
    """Give what is typed to the person, until the end of input."""
    if can_be_heard():
        await hear_lines(person.hear, person.leave)
    else:
        person.leave()


def _abort(run: Run, interruption: Interruption, session: Session) -> None:
    session.screen.line_is_open = session.present  # a terminal shows ^C there
    run.abort(interruption.name)


def introduction(agent: Agent) -> str:
    """Return what is said about an agent before it begins: its model, preset and workspace, a line each."""
    return f"model {agent.model.name}, preset {agent.preset.name}\nworkspace {agent.toolbox.workspace.root}"


async def over(run: Run) -> None:
    """Wait for the end of a run."""
    async for _ in run:
        pass


def tell_failure(error: Exception) -> None:
    """Say why a run broke off: a b-thread, the log, or whoever looks on."""
    if isinstance(error.__cause__, BrokenPipeError):  # nobody reads our output any more
        raise error.__cause__
    say(f"the run broke off: {error}")
