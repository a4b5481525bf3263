"""Agents on the command line: a screen, what is typed, commands and signals, from a prompt to an exit code."""

import os
import re
import shlex
import signal
import sys
import termios
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
from attrs import field, frozen

from agent.cli import exit_codes
from agent.cli.arguments import called
from agent.cli.control import decisions
from agent.cli.display import Display, Progress, action_of, command_of, is_error, question_of, refused_by, spent
from agent.cli.exit_codes import of_signal
from agent.cli.mcp_servers import McpServer, one_of, serving
from agent.cli.mistakes import Mistake, say
from agent.cli.prompt import (
    STOPS,
    Person,
    StandingAnswers,
    can_be_heard,
    hear_lines,
    is_in_background,
    is_terminal,
)
from agent.cli.runs import runs_folder
from agent.cli.screen import Screen, Tone, cut, visible, visible_lines
from agent.effects.approval import Approver
from agent.effects.execution import Watcher
from agent.models.model import Piece
from agent.presets.preset import Preset
from agent.projections.narration import StreamEvent
from agent.projections.state import told_to_user
from agent.session.agent import Agent
from agent.session.journal import failure_record
from agent.session.run import Run
from agent.tools.definition import Tool
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump
from agent.vocabulary.errors import AgentError, meant
from agent.vocabulary.events import GateRejected, StopAsked
from agent.vocabulary.messages import UserMessage, one_line
from bp import BProgramError, Step

if TYPE_CHECKING:
    from agent.cli.editor import Editor

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """The signals that a run received: `number` is the first that came, None while there was none, and `name` its name.

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


Maker = Callable[[Approver, Callable[[Step], None], Watcher | None, Watcher | None, tuple[Tool, ...]], Agent]
"""Makes the agent of a session: from who is asked, what is called with steps, pieces of text and pieces of output, and
more tools."""


@frozen
class Outcome:
    """The end of a session: the run, the exit code of the command, and the last record when the engine failed.

    `was_shown`: the last words stand on the screen already.
    """

    run: Run
    code: int
    was_shown: bool = False
    failure: dict[str, Any] | None = None


@frozen(eq=False)
class Session:
    """The settings of a session on a screen, which leads one run.

    Without a `prompt` the run goes on that rests. `present`: a user can answer. `approver` answers instead of that
    person. `watch` is called with the agent at every step, after it was shown. `shows_final_text`: on the screen too.
    `preset`: what is shown as the limits, which typed lines stop, and what `always` can allow. `servers`: whose tools
    there are too. `tells` is called with the events of S2, pieces included. `again`: options that have to be given
    again to go on with the run. `draws` makes what shows the steps of an agent in another way.
    """

    make: Maker
    prompt: str | UserMessage | None
    screen: Screen
    present: bool = field(factory=is_terminal)
    approver: Approver | None = None
    watch: Callable[[Agent], None] | None = None
    shows_final_text: bool = False
    preset: Preset | None = None
    servers: tuple[McpServer, ...] = ()
    tells: Callable[[StreamEvent], None] | None = None
    again: str = ""
    draws: Callable[[Agent], Callable[[Step], None]] | None = None


def lead(session: Session) -> Outcome:
    """Lead a run to its end. Raises what making the agent raises."""
    return anyio.run(_lead, session)


async def _lead(session: Session) -> Outcome:
    desk = Desk(
        session.screen,
        session.preset,
        present=session.present,
        approver=session.approver,
        watch=session.watch,
        shows_final_text=session.shows_final_text,
        draws=session.draws,
    )
    async with AsyncExitStack() as stack:
        signals = stack.enter_context(anyio.open_signal_receiver(*HEARD))
        tools = await stack.enter_async_context(serving(session.servers))
        agent = stack.enter_context(desk.agent_by(session.make, tools))
        agent.on_event = session.tells
        async with desk.attended(signals):
            await desk.carry_out(session.prompt)
    run = desk.runs[-1]
    return _outcome(run, desk.interruption, was_shown=desk.display.has_streamed(run.text))


COMMANDS = {
    "/help": "this list",
    "/model": "which model answers; /model NAME goes on with another",
    "/tools": "what the model may call",
    "/cost": "turns, calls, tokens and cost so far",
    "/why": "what was refused last, by which b-thread, and why",
    "/show": "the last result of a tool, whole",
    "/undo": "go back to before the last task; files stay as they are",
    "/stop": "end the run when what was begun is finished; a line that is stop does the same",
    "/abort": "end the run now; Ctrl-C does the same",
    "/quit": "leave; so does Ctrl-D",
}
"""The effect of a line that begins with one of these words, on a terminal."""

WORD = re.compile(r"(/[a-z]+)(?:\s+(\S+))?", re.IGNORECASE)  # what other programs take for a command to themselves
LEAVING = ("/quit", "/exit")
LONGEST_DECISION = 20_000  # characters
FOR_TALKS = ("/model", "/undo", *LEAVING)


class Desk:
    """The user's side of working agents: the screen, the typed lines, and the run that is under way, if there is one.

    `talk` takes what is typed between runs, and commands that change the conversation; without it there is one run.
    """

    def __init__(
        self,
        screen: Screen,
        preset: Preset | None,
        *,
        present: bool,
        approver: Approver | None = None,
        watch: Callable[[Agent], None] | None = None,
        shows_final_text: bool = False,
        talk: Callable[[str], None] | None = None,
        leave: Callable[[int], None] | None = None,
        draws: Callable[[Agent], Callable[[Step], None]] | None = None,
    ) -> None:
        """Make a desk; `present`: a user can type. `leave` is called with an exit code when that user leaves."""
        self._draws = draws
        self._draw: Callable[[Step], None] | None = None
        self.screen, self.present = screen, present
        self.display = Display(
            screen,
            shows_final_text=shows_final_text,
            max_iterations=preset.max_iterations if preset else None,
            attempts=preset.attempts if preset else 0,
        )
        self.standing = StandingAnswers(preset.judging_policy() if preset else None)
        self.interruption = Interruption(leave=self._leave_at_once)
        self.runs: list[Run] = []
        self.run: Run | None = None
        self.agent: Agent | None = None
        self._approver, self._watch, self._talk, self._leave = approver, watch, talk, leave
        self._progress = Progress()
        self._refused: GateRejected | None = None
        self._says_stop = STOPS[preset.stop_text if preset else "word"]
        self._modes = terminal_modes()
        self._editor: Editor | None = None
        self._person = Person(
            screen,
            present=present,
            stop=self._stop,
            stops=self._stops,
            command=self.obey,
            otherwise=self._hear,
            standing=self.standing,
        )

    @contextmanager
    def agent_by(self, make: Maker, tools: tuple[Tool, ...]) -> Iterator[Agent]:
        """Have an agent at work here while the block lasts. Raises what making it raises."""
        with make(self._approver or self._person.answer, self._show, self._stream, self._print, tools) as agent:
            self.agent = agent
            self._draw = self._draws and self._draws(agent)
            for step in agent.journal.unfinished:  # of a run that goes on: they were shown when they happened
                self.standing.see(step.event)
                self.display.take_up(step)
            yield agent
            self.agent = None

    @asynccontextmanager
    async def attended(self, signals: AsyncIterator[signal.Signals]) -> AsyncIterator[None]:
        """Hear signals and the user while the block lasts. Raises what the block raises, as itself."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear_signals, signals)
                tasks.start_soon(self._listen)
                yield
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            alone = one_of(group)
            raise alone from alone.__cause__

    async def carry_out(self, prompt: str | UserMessage | None) -> Run | None:
        """Have one run to its end, and return it; None when there can be no other."""
        assert self.agent is not None
        self.interruption = Interruption(leave=self._leave_at_once)
        try:
            async with self.agent.start(prompt) as run, decisions(self.agent.log_path, self.decide):
                self.run = run
                self.runs.append(run)
                await over(run)
        except (BProgramError, AgentError) as error:
            tell_failure(error)
            return None
        finally:
            self.run = None
        return run

    # What the user says.

    async def _listen(self) -> None:
        """Give what is typed to the person, until the end of input."""
        has_editor = self.screen.moves and self.present and is_terminal() and not is_in_background()
        async with anyio.create_task_group() as tasks:
            if self.screen.moves:
                tasks.start_soon(self._edit, has_editor)
            if can_be_heard() and not has_editor:
                await hear_lines(self._person.hear, self._left)
            elif not has_editor:
                self._left()

    async def _edit(self, typing: bool) -> None:
        """Show the lines that change, and have lines typed below them."""
        from agent.cli.editor import Cockpit, Editor  # 0.1 s

        words = {name: purpose for name, purpose in COMMANDS.items() if self._talk or name not in FOR_TALKS}
        hear, left = self._person.hear, self._left
        cockpit = Cockpit(self._live, self._prompt, self._question, hear, left, self._ctrl_c, words)
        self._editor = Editor(self.screen, cockpit, runs_folder().with_name("history"))
        await self._editor.run(typing=typing)

    def _left(self) -> None:
        self._person.leave()
        if self._leave is not None:
            self._leave(exit_codes.OK)

    def _hear(self, line: str) -> None:
        """Take a line that answers no question: it steers the run on a terminal, else it is a prompt."""
        if self.run is not None and self.present:
            if line.strip():
                self.run.steer(line)
                self.display.system("heard: the model reads it before it goes on")
        elif self._talk is not None:
            self._talk(line)

    def _stops(self, line: str) -> bool:
        """Return whether a line stops the run. In a conversation on a pipe it is a prompt instead."""
        return self.run is not None and (self.present or self._talk is None) and self._says_stop(line)

    def _stop(self) -> None:
        """Stop the run; the second time abort it, as what runs may never finish."""
        if self.run is not None and any(isinstance(step.event, StopAsked) for step in self.run.steps):
            self.run.abort("stop was said twice")
        elif self.run is not None:
            self.run.stop()

    def decide(self, decision: Mapping[str, Any]) -> str:
        """Carry out what was decided outside of the terminal; return why that cannot be, or nothing."""
        text = one_line(str(decision.get("text") or ""), LONGEST_DECISION)
        match decision.get("do"):
            case "stop":
                self._stop()
            case "steer" if text and self.run is not None:
                self.run.steer(text)
                self.display.system(f"from outside, to the model: {text}")
            case "approve" | "reject" as answer:
                said = "yes" if answer == "approve" else f"no, {text}" if text else "no"
                return "" if self._person.decide(str(decision.get("call")), said) else "this question is not open"
            case _:
                return "there is no such decision"
        return ""

    async def _hear_signals(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Abort the run at a signal; between runs, and for any but Ctrl-C, leave."""
        async for number in signals:
            self._interrupt(number)

    def _ctrl_c(self) -> None:
        self._interrupt(signal.SIGINT)

    def _interrupt(self, number: signal.Signals) -> None:
        if self._leave is not None and (self.run is None or number != signal.SIGINT):
            self._leave(of_signal(number))
        if self.run is not None:
            self.screen.line_is_open = self.present  # a terminal shows ^C there
            self.interruption.hear(number, self._abort)

    def _abort(self) -> None:
        if self.run is not None:
            self.run.abort(self.interruption.name)

    def _leave_at_once(self, code: int) -> NoReturn:
        set_terminal_modes(self._modes)
        leave_at_once(code)

    # Commands.

    def obey(self, line: str) -> bool:
        """Tell whether a line looks like a command to us; then carry it out, or say what there is."""
        found = WORD.fullmatch(line.strip())
        if not self.present or found is None or self.agent is None:
            return False
        word, argument = found[1].lower(), found[2] or ""
        if argument and word != "/model":
            return False
        if word in ("/stop", "/abort"):
            self._end_by(word)
        elif self._talk is not None and (word in ("/undo", *LEAVING) or (word == "/model" and argument)):
            if self.run is not None:
                ends = "the conversation ends with this run"
                self.display.system(ends if word in LEAVING else f"{word} comes after this run")
            self._talk(line.strip())
        elif word == "/show":
            self.screen.labelled("", self.display.last_result or "no tool has run yet", "output")
        else:
            self.display.system(self._told(word, self.agent))
        return True

    def _end_by(self, word: str) -> None:
        if self.run is None:
            self.display.system("nothing is under way")
        elif word == "/abort":
            self._abort()
        else:
            self._stop()

    def _told(self, word: str, agent: Agent) -> str:
        """Return what there is to say to a command that changes nothing."""
        match word:
            case "/help":
                return "\n".join(f"{name:11}{purpose}" for name, purpose in COMMANDS.items())
            case "/model":
                return f"model {agent.model.name}; /model NAME goes on with another"
            case "/tools":
                return ", ".join(agent.toolbox.names) or "no tools"
            case "/cost":
                return spent(agent.totals.turns, agent.totals.tool_starts, agent.totals.usage)
            case "/why":
                return self._why(agent)
        if word in FOR_TALKS:
            return f"{word} is for bpagent chat; a run ends with /stop or /abort"
        return f"there is no {word}; {meant(word, COMMANDS)}"

    def _why(self, agent: Agent) -> str:
        if self._refused is None:
            return "nothing was refused yet"
        call, refused = self._refused.call, refused_by(self._refused.refusals)
        more = called("why", str(agent.log_path), call.id)
        return "\n".join((action_of(call), *(f"refused by {line}" for line in refused), f"more: {more}"))

    # What is shown.

    def _show(self, step: Step) -> None:
        if isinstance(step.event, GateRejected):
            self._refused = step.event
        self.standing.see(step.event)
        (self._draw or self.display.show)(step)
        self._progress.fold(step.event)
        if self._watch is not None and self.agent is not None:
            self._watch(self.agent)

    def _stream(self, text: str) -> None:
        if self._draw is None:
            self.display.stream(text)
        self._progress.hear()
        self._refresh()

    def _print(self, text: str) -> None:
        self.display.output(text)
        self._refresh()

    def _refresh(self) -> None:
        if self._editor is not None:
            self._editor.refresh()

    def _live(self) -> list[tuple[Tone, str]]:
        status = self._progress.text()
        return [*self.display.live(), *([("output", cut(status, self.screen.width - 1))] if status else [])]  # type: ignore[list-item]

    def _prompt(self) -> str:
        if not self.present:
            return ""
        return "you > " if self.run is None and self._talk is not None else "> "

    def _question(self) -> ToolCall | None:
        return None if self._person.asked is None else self._person.asked.call


def terminal_modes() -> list[Any] | None:
    """Return how the terminal on standard input is set; None where there is none."""
    try:
        return termios.tcgetattr(0)
    except (termios.error, OSError):
        return None


def set_terminal_modes(modes: list[Any] | None) -> None:
    """Set the terminal as it was; an editor that cannot clean up leaves it without echo."""
    if modes is not None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, modes)


def _outcome(run: Run, interruption: Interruption, *, was_shown: bool) -> Outcome:
    last = run.steps[-1] if run.steps else None
    broke_off = run.ended is not None and (last is None or last.event != run.ended)
    failure = failure_record(last, run.ended) if run.ended is not None and broke_off else None
    code = exit_codes.of_run(run.status, interruption.number, run.reason)
    return Outcome(run, code, was_shown, failure)


def introduction(agent: Agent) -> str:
    """Return what is said about an agent before it begins: its model, preset and workspace, a line each."""
    said = f"model {agent.model.name}, preset {agent.preset.name}\nworkspace {agent.toolbox.workspace.root}"
    unconfined = agent.toolbox.sandbox == "none"
    return f"{said}\nsandbox none: commands run unconfined, see bpagent doctor" if unconfined else said


async def over(run: Run) -> None:
    """Wait for the end of a run."""
    async for _ in run:
        pass


LONGEST_FAILURE = 160  # characters


def tell_failure(error: Exception) -> None:
    """Say why a run broke off: a b-thread, the log, or a listener failed."""
    if isinstance(error.__cause__, BrokenPipeError):  # the reader of our output has gone
        raise error.__cause__
    text, cause = str(error), error.__cause__
    if cause is not None and len(text) > LONGEST_FAILURE:  # it names an event, facts and all
        text = f"{text[:LONGEST_FAILURE]} …: {type(cause).__name__}: {cause}"
    say(f"the run broke off: {text}")


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
    """Return whether an objective was pursued, and the run ended before it was complete (S1 7.2, 7.3)."""
    return run.state.objective is not None and run.status != "completed"


def _say_what_it_waits_for(run: Run, screen: Screen, again: str) -> None:
    """Say which calls wait, why, and how to decide; such a run has a log, from which it goes on."""
    for asked in run.waiting_for:
        screen.labelled("question", f"{asked.call.id}: {command_of(asked.call)}\n{question_of(asked)}", "question")
    log, call = shlex.quote(str(run.log)), shlex.quote(run.waiting_for[0].call.id)
    log = f"{log} {again}" if again else log
    screen.labelled("system", "the run rests until a user decides:", "system")
    screen.line(f"    bpagent resume {visible(log)} --approve {visible(call)}", "action")
    screen.line(f"    bpagent resume {visible(log)} --reject {visible(call)} --because TEXT", "action")
