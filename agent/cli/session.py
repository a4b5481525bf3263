"""One run on the command line: an agent, a screen, a keyboard and signals, from the prompt to an exit code."""

import os
import shlex
import signal
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn

import anyio
from attrs import define, field, frozen

from agent.cli import exit_codes
from agent.cli.display import Display, Progress, command_of, is_error, question_of
from agent.cli.exit_codes import of_signal
from agent.cli.mcp_servers import McpServer, serving
from agent.cli.mistakes import Mistake, say
from agent.cli.prompt import Person, StandingAnswers, can_be_heard, hear_lines, is_terminal, says_stop
from agent.cli.screen import Screen, visible, visible_lines
from agent.effects.approval import Approver
from agent.effects.execution import Watcher
from agent.models.model import Piece
from agent.projections.narration import StreamEvent
from agent.projections.state import told_to_user
from agent.session.agent import Agent
from agent.session.journal import failure_record
from agent.session.run import Run
from agent.tools.definition import Tool
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump
from agent.vocabulary.errors import AgentError
from agent.vocabulary.messages import UserMessage
from bp import BProgramError, Step
from constitution import Policy

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """What signals did to a run: `number` is the first that came, None while there was none, and `name` its name.

    Once there was one, a Ctrl-C after `patience` seconds calls `leave` with the exit code.
    """

    def __init__(self, patience: float = 3.0, leave: "Callable[[int], None] | None" = None) -> None:
        self.number: int | None = None
        self.name = ""
        self._patience = patience
        self._leave = leave or leave_at_once
        self._since = 0.0

    async def watch(self, signals: AsyncIterator[signal.Signals], abort: Callable[[], None]) -> None:
        """Abort at the first signal; leave at a later Ctrl-C if that took too long."""
        async for number in signals:
            self.hear(number, abort)

    def hear(self, number: signal.Signals, abort: Callable[[], None]) -> None:
        """Take a signal: the first one aborts, a later Ctrl-C leaves if that took too long."""
        if self.number is None:
            self.number, self.name, self._since = int(number), number.name, time.monotonic()
            abort()
        elif number == signal.SIGINT and time.monotonic() >= self._since + self._patience:
            self._leave(of_signal(number))


def leave_at_once(code: int) -> NoReturn:
    """End this process and everything that it started."""
    for child in descendants(os.getpid()):
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    sys.stdout.flush()
    os._exit(code)


def descendants(process: int) -> list[int]:
    """Return the numbers of all processes below `process`, as far as the system tells."""
    children = _children()
    found: list[int] = []
    level = [process]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parent = int(status.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    return children


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


@define(eq=False)
class Onlookers:
    """Who is told every step: the screen, the status line, and the answers that were given with `always`.

    `draw` shows steps in the place of the display.
    """

    display: Display
    progress: Progress
    standing: StandingAnswers
    draw: Callable[[Step], None] | None = None

    def show(self, step: Step) -> None:
        """Show a step as it happens."""
        self.standing.see(step.event)
        (self.draw or self.display.show)(step)
        self.progress.fold(step.event)

    def take_up(self, agent: Agent) -> None:
        """Take the steps of a run into account that goes on: they were shown when they happened."""
        for step in agent.journal.unfinished:
            self.standing.see(step.event)
            self.display.take_up(step)


@frozen(eq=False)
class Session:
    """What a run is led with.

    Without a `prompt` the run goes on that rests. `present`: a user can answer. `approver` answers instead of that
    person. `watch` is called with the agent at every step, after it was shown. `shows_final_text`: on the screen too.
    `stops`: which typed lines stop the run. `max_iterations`, `attempts`: what is shown as the limits. `policy`: what
    questions come from, so that `always` is an answer. `servers`: whose tools there are too. `tells` is called with the
    events of S2, pieces included. `again`: options that have to be given again to go on with the run. `draws` makes
    what shows the steps of an agent in another way.
    """

    make: Maker
    prompt: str | UserMessage | None
    screen: Screen
    present: bool = field(factory=is_terminal)
    approver: Approver | None = None
    watch: Callable[[Agent], None] | None = None
    shows_final_text: bool = False
    stops: Callable[[str], bool] = says_stop
    max_iterations: int | None = None
    attempts: int = 0
    policy: Policy | None = None
    servers: tuple[McpServer, ...] = ()
    tells: Callable[[StreamEvent], None] | None = None
    again: str = ""
    draws: Callable[[Agent], Callable[[Step], None]] | None = None


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
        agents: list[Agent] = []
        shown = _shown(onlookers, session.watch, agents)
        streamed = onlookers.display.stream if session.draws is None else None
        made = session.make(session.approver or person.answer, shown, streamed, tools)
        agent = stack.enter_context(made)
        agents.append(agent)
        onlookers.draw = session.draws and session.draws(agent)
        onlookers.take_up(agent)
        agent.on_event = _heard_by(*filter(None, (onlookers.progress.hear, session.tells)))
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


def _heard_by(*listeners: Callable[[StreamEvent], None]) -> Callable[[StreamEvent], None]:
    def tell(event: StreamEvent) -> None:
        for listener in listeners:
            listener(event)

    return tell


def _onlookers(session: Session) -> Onlookers:
    display = Display(
        session.screen,
        shows_final_text=session.shows_final_text,
        max_iterations=session.max_iterations,
        attempts=session.attempts,
    )
    return Onlookers(display, Progress(session.screen), StandingAnswers(session.policy))


def _person(session: Session, standing: StandingAnswers, running: list[Run]) -> Person:
    def stop() -> None:
        for run in running:
            run.stop()

    return Person(session.screen, present=session.present, stop=stop, stops=session.stops, standing=standing)


def _shown(
    onlookers: Onlookers, watch: Callable[[Agent], None] | None, agents: Sequence[Agent]
) -> Callable[[Step], None]:
    def show(step: Step) -> None:
        onlookers.show(step)
        if watch is not None:
            watch(agents[0])

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
    said = f"model {agent.model.name}, preset {agent.preset.name}\nworkspace {agent.toolbox.workspace.root}"
    unconfined = agent.toolbox.sandbox == "none"
    return f"{said}\nsandbox none: commands run unconfined, see bpagent doctor" if unconfined else said


async def over(run: Run) -> None:
    """Wait for the end of a run."""
    async for _ in run:
        pass


def tell_failure(error: Exception) -> None:
    """Say why a run broke off: a b-thread, the log, or a listener failed."""
    if isinstance(error.__cause__, BrokenPipeError):  # the reader of our output has gone
        raise error.__cause__
    say(f"the run broke off: {error}")


def print_record(agent: Agent) -> None:
    """Print the latest record as it stands in the log."""
    print(agent.journal.last_record, flush=True)


def check_partials(arguments: Namespace, secrets: Iterable[str]) -> None:
    """Raise Mistake where `--partials` has no place."""
    if arguments.partials and (list(secrets) or not arguments.json):
        raise Mistake("--partials goes with --json, and not with --secret: a secret in two pieces could not be masked")


def print_partial(event: StreamEvent) -> None:
    """Print a piece of the model's text, reasoning or calls, or of a tool's output, as it comes."""
    match event:
        case StreamEvent("message_update", piece=Piece("arguments", text, number, tool)):
            print(dump({"partial": "arguments", "number": number, "tool": tool, "text": text}), flush=True)
        case StreamEvent("message_update", piece=Piece(kind, text)):
            print(dump({"partial": kind, "text": text}), flush=True)
        case StreamEvent("tool_execution_update", call=ToolCall(id=call), text=piece):
            print(dump({"partial": "output", "call": call, "text": piece}), flush=True)
        case _:
            pass


def options_again(arguments: Namespace) -> str:
    """Return the options that a log alone does not hold: own b-threads, monitors, other models, servers."""
    own = [name for name in arguments.protocol if ":" in name]
    given = {"protocol": own, **{name: getattr(arguments, name) for name in ("monitor", "auditor", "role", "mcp")}}
    return " ".join(f"--{name} {shlex.quote(_anywhere(value))}" for name, values in given.items() for value in values)


def _anywhere(name: str) -> str:
    """Return `FILE.py:NAME`, or a pair `NAME=FILE.py:NAME`, as it can be given in any folder; others as they are."""
    key, equals, what = name.rpartition("=")
    file, _, attribute = what.rpartition(":")
    return f"{key}{equals}{Path(file).absolute()}:{attribute}" if file.endswith(".py") else name


def print_outcome(outcome: Outcome, session: Session, *, as_json: bool) -> None:
    """Print how a run ended: its last words, or what it waits for."""
    if outcome.run.status == "waiting":
        _say_what_it_waits_for(outcome.run, session.screen, session.again)
    if not as_json:
        print_final_text(outcome.run, was_shown=outcome.was_shown)
    elif outcome.failure is not None:
        print(outcome.run.agent.journal.last_record, flush=True)


def print_final_text(run: Run, *, was_shown: bool = False) -> None:
    """Print the last words, unless they are an error: those were told already; and what work left behind.

    On a terminal they are not printed once more when they `was_shown` there as they came.
    """
    if was_shown and sys.stdout.isatty() and not _is_interrupted_work(run):
        return
    if run.text and not is_error(run.status):
        text = f"{run.text}\n\n{told_to_user(run.state)}" if _is_interrupted_work(run) else run.text
        print("\n".join(visible_lines(text)) if sys.stdout.isatty() else text)


def _is_interrupted_work(run: Run) -> bool:
    """Whether an objective was pursued, and the run ended before it was complete (S1 7.2, 7.3)."""
    return run.state.objective is not None and run.status != "completed"


def _say_what_it_waits_for(run: Run, screen: Screen, again: str) -> None:
    """Say which calls wait, why, and how to decide; such a run has a log, from which it goes on."""
    for asked in run.waiting_for:
        screen.labelled("question", f"{asked.call.id}: {command_of(asked.call)}\n{question_of(asked)}", "question")
    log, call = shlex.quote(str(run.log)), shlex.quote(run.waiting_for[0].call.id)
    log = f"{log} {again}" if again else log
    screen.labelled("system", "the run rests until somebody decides:", "system")
    screen.line(f"    bpagent resume {visible(log)} --approve {visible(call)}", "action")
    screen.line(f"    bpagent resume {visible(log)} --reject {visible(call)} --because TEXT", "action")
