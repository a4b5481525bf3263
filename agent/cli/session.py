"""Sessions on the command line: screen, typed lines, commands and signals, from a prompt to an exit code."""

import os
import re
import signal
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from attrs import define, field

from agent.cli.arguments import called
from agent.cli.build import Maker, McpServer, serving
from agent.cli.control import decisions
from agent.cli.display import BY_RULE, Display, Progress, is_error, spent
from agent.cli.errors import OK, of_signal, say
from agent.cli.prompt import (
    STOPS,
    StandingAnswers,
    UserInput,
    can_be_heard,
    hear_lines,
    is_in_background,
    is_terminal,
)
from agent.cli.runs import runs_folder
from agent.cli.screen import Screen, Tone, cut, visible_lines
from agent.cli.undo import how_to_undo, undo_before
from agent.effects.approval import Approver
from agent.page.wording import action_of, refused_by
from agent.presets.configuration import rules_file
from agent.presets.preset import Preset
from agent.projections.narration import StreamEvent
from agent.projections.state import told_to_user
from agent.session.agent import Agent, Run
from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool
from agent.tools.sandbox.sandbox import open_secrets
from agent.tools.snapshots.trees import SnapshotError
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.errors import AgentError, meant, nearest, one_of
from agent.vocabulary.events import GateApproved, GateRejected, StopAsked, ToolFinished, ToolStarted
from agent.vocabulary.messages import UserMessage, one_line
from bp import BProgramError, Step

if TYPE_CHECKING:
    from agent.cli.editor import Editor

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


PATIENCE = 3.0  # seconds after a signal until a Ctrl-C leaves at once


def drive(
    interface: "UserInterface",
    make: Maker,
    prompt: str | UserMessage | None,
    servers: tuple[McpServer, ...] = (),
    prepare: Callable[[Agent], None] = lambda _: None,
) -> Run:
    """Drive one run of an agent to its end, after `prepare`; without a prompt, the run that rests.

    Raises the errors of making and preparing the agent.
    """

    async def run_to_its_end() -> Run:
        async with AsyncExitStack() as stack:
            signals = stack.enter_context(anyio.open_signal_receiver(*HEARD))
            tools = await stack.enter_async_context(serving(servers))
            prepare(stack.enter_context(interface.agent_by(make, tools)))
            async with interface.attended(signals):
                await interface.carry_out(prompt)
        return interface.runs[-1]

    return anyio.run(run_to_its_end)


COMMANDS = {
    "/help": "this list",
    "/model": "show the model; /model NAME continues with another",
    "/tools": "what the model may call",
    "/cost": "turns, calls, tokens and cost so far",
    "/why": "what was refused last, by which b-thread, and why",
    "/show": "the last result of a tool, whole",
    "/undo": "go back to before the last task; files that it wrote can be restored",
    "/stop": "end the run when what was begun is finished; a line that is stop does the same",
    "/abort": "end the run now; Ctrl-C does the same",
    "/quit": "leave; so does Ctrl-D",
}
"""The effects of lines that begin with one of these words, on a terminal."""

WORD = re.compile(r"(/[a-z]+)(?:\s+(.+))?", re.IGNORECASE | re.DOTALL)
ALIKE = 0.75  # the least similarity, from 0 to 1, of a mistyped command; /tmp is none
LEAVING = ("/quit", "/exit")
LONGEST_DECISION = 20_000  # characters
UNDONE = "I took back changes of files; look at these again before you go on"
FOR_TALKS = ("/model", "/undo", *LEAVING)


def _terminal_modes() -> list[Any] | None:
    """Return the modes of the terminal on standard input; None without one."""
    with suppress(termios.error, OSError):
        return termios.tcgetattr(0)
    return None


@define(eq=False, slots=False)
class UserInterface:
    """The user interface of agents: the screen, the typed lines, and the run under way, if there is one.

    preset: decides which lines stop, and which calls `always` can allow. present: a user can answer; elsewhere: one can
    on the page of `view --follow`; approver: answers instead. watch: called with the agent at every step, after it was
    shown. tells: called with the events of S2, pieces included. draws: makes another display of the steps of an agent.
    talk: takes lines between runs, and commands that change the conversation; without it there is one run. leave:
    called with an exit code when the user leaves. rules: the file that `always` adds to. interrupted_by: the first
    signal of the last run.
    """

    screen: Screen
    preset: Preset
    present: bool = field(factory=is_terminal)
    elsewhere: bool = False
    approver: Approver | None = None
    watch: Callable[[Agent], None] | None = None
    tells: Callable[[StreamEvent], None] | None = None
    draws: Callable[[Agent], Callable[[Step], None]] | None = None
    shows_final_text: bool = False
    talk: Callable[[str], None] | None = None
    leave: Callable[[int], None] | None = None
    rules: Path = field(factory=rules_file)
    runs: list[Run] = field(factory=list, init=False)
    run: Run | None = field(default=None, init=False)
    agent: Agent | None = field(default=None, init=False)
    interrupted_by: int | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)
    _warned: float = field(default=-PATIENCE, init=False)
    _draw: Callable[[Step], None] | None = field(default=None, init=False)
    _refused: GateRejected | None = field(default=None, init=False)
    _editor: "Editor | None" = field(default=None, init=False)
    offer: str | None = field(default=None, init=False)  # a question without a call, which takes yes and no
    display: Display = field(init=False)
    _progress: Progress = field(init=False)
    _modes: list[Any] | None = field(factory=_terminal_modes, init=False)

    def __attrs_post_init__(self) -> None:
        self.standing = StandingAnswers(self.preset.judging_policy(), self.rules)
        self._person = UserInput(
            self.screen,
            present=self.present,
            elsewhere=self.elsewhere,
            stop=self._stop,
            stops=self._stops,
            command=self.obey,
            otherwise=self._hear,
            standing=self.standing,
        )

    @contextmanager
    def agent_by(self, make: Maker, tools: tuple[Tool, ...]) -> Iterator[Agent]:
        """Make an agent that works here while the block lasts. Raises the errors of making it."""
        asks: Any = self.approver or self._person.answer
        shows = {"on_step": self._show, "on_text": self._stream, "on_output": self._print, "on_event": self.tells}
        with make(tools, approve=asks, **shows) as agent:
            self.agent = agent
            self.display = Display(
                self.screen,
                agent.totals,
                agent.journal.tracker,
                shows_final_text=self.shows_final_text,
                attempts=self.preset.attempts,
            )
            self._progress = Progress(agent.totals)
            self._draw = self.draws and self.draws(agent)
            for step in agent.journal.unfinished:  # of a resumed run: they were shown when they happened
                self.standing.see(step.event)
                self.display.take_up(step)
            yield agent
            self.agent = None

    @asynccontextmanager
    async def attended(self, signals: AsyncIterator[signal.Signals]) -> AsyncIterator[None]:
        """Handle signals and input while the block lasts. Raises the errors of the block, not in a group."""

        async def hear_signals() -> None:
            async for number in signals:
                self.interrupt(number)

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hear_signals)
                tasks.start_soon(self._listen)
                yield
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            alone = one_of(group)
            raise alone from alone.__cause__

    async def carry_out(self, prompt: str | UserMessage | None) -> Run | None:
        """Drive one run to its end, and return it; None when no further run is possible."""
        assert self.agent is not None
        self.interrupted_by = None
        try:
            async with self.agent.start(prompt) as run, decisions(self.agent.log_path, self.decide, self._unreachable):
                self.run = run
                self.runs.append(run)
                async for _ in run:
                    pass
        except (BProgramError, AgentError) as error:
            tell_failure(error)
            return None
        finally:
            self.run = None
        self._tell_changes(run)
        return run

    def _tell_changes(self, run: Run) -> None:
        try:
            told = how_to_undo(run.changes, run.log)
        except SnapshotError as error:
            told = f"what changed is not known: {error}"
        if told:
            self.display.system(told)

    # Input.

    async def _listen(self) -> None:
        """Pass typed lines on, until the end of input."""
        has_editor = self.screen.moves and self.present and is_terminal() and not is_in_background()
        async with anyio.create_task_group() as tasks:
            if self.screen.moves:
                tasks.start_soon(self._edit, has_editor)
            if can_be_heard() and not has_editor:
                await hear_lines(self._person.hear, self._left)
            elif not has_editor:
                self._left()

    async def _edit(self, typing: bool) -> None:
        """Show the lines that change, with the input line below."""
        from agent.cli.editor import Editor  # 0.1 s

        self._editor = Editor(
            self.screen,
            runs_folder().with_name("history"),
            lines=self._live,
            prompt=self._prompt,
            question=self._question,
            hear=self._person.hear,
            leave=self._left,
            interrupt=self.interrupt,
            commands={name: purpose for name, purpose in COMMANDS.items() if self.talk or name not in FOR_TALKS},
        )
        await self._editor.run(typing=typing)

    def _left(self) -> None:
        self._person.leave()
        if self.leave is not None:
            self.leave(OK)

    def _hear(self, line: str) -> None:
        """Handle a line that answers no question: on a terminal it steers the run, else it is a prompt."""
        if self.run is not None and self.present:
            if line.strip():
                self.run.steer(line)
                self.display.system("heard: the model reads it before it goes on")
        elif self.talk is not None:
            self.talk(line)

    def _stops(self, line: str) -> bool:
        """Return whether a line stops the run. In a conversation on a pipe it is a prompt instead."""
        return self.run is not None and (self.present or self.talk is None) and STOPS[self.preset.stop_text](line)

    def _stop(self) -> None:
        """Stop the run; the second time abort it, since a running tool may never end."""
        if self.run is not None and any(isinstance(step.event, StopAsked) for step in self.run.steps):
            self.run.abort("stop was said twice")
        elif self.run is not None:
            self.run.stop()

    def _unreachable(self, why: str) -> None:
        """Let no question wait for a page that cannot answer."""
        if self.elsewhere:
            self._person.elsewhere = False
            self.display.system(f"no page can answer: {why}")
            if not self.present:
                self._person.leave()

    async def decide(self, decision: Mapping[str, Any]) -> str:
        """Carry out a decision from outside of the terminal; return why that is impossible, or an empty text."""
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
            case "undo" if self.run is not None:
                return await self._undo(self.run, decision.get("step"))
            case _:
                return "there is no such decision"
        return ""

    async def _undo(self, run: Run, step: object) -> str:
        """Take back what was changed from a step on, and have the model told; return why not, or what was left."""
        over = {step.event.call.id for step in run.steps if isinstance(step.event, ToolFinished)}
        if any(isinstance(step.event, ToolStarted) and step.event.call.id not in over for step in run.steps):
            return "a call is running; undo when it has ended, or after a stop"
        if run.log is None or type(step) is not int:
            return "there is no such step"
        try:
            undone = await run_in_background(partial(undo_before, run.log, step))
        except (SnapshotError, AgentError) as error:
            return str(error)
        if undone.restored:
            run.steer(f"{UNDONE}: {', '.join(undone.restored)}")
        self.display.system(f"from outside, undone: {', '.join(undone.restored) or 'nothing'}")
        return "; ".join(f"left: {path} ({why})" for path, why in undone.left.items())

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Abort the run at a signal; between runs, and at signals other than Ctrl-C, leave.

        At a prompt a Ctrl-C leaves only if another one came at most `PATIENCE` seconds before. A Ctrl-C at least
        `PATIENCE` seconds after the signal ends this process with its children.
        """
        if self.run is None and self.present and number == signal.SIGINT and time.monotonic() > self._warned + PATIENCE:
            self._warned = time.monotonic()
            self.display.system("another Ctrl-C leaves; so do Ctrl-D and /quit")
        elif self.leave is not None and (self.run is None or number != signal.SIGINT):
            self.leave(of_signal(number))
        if self.run is None:
            return
        self.screen.line_is_open = self.present  # a terminal shows ^C there
        if self.interrupted_by is None:
            self.interrupted_by, self._since = int(number), time.monotonic()
            self.run.abort(number.name)
        elif number == signal.SIGINT and time.monotonic() >= self._since + PATIENCE:
            if self._modes is not None:  # an editor that cannot clean up leaves the terminal without echo
                with suppress(termios.error, OSError):
                    termios.tcsetattr(0, termios.TCSANOW, self._modes)
            sys.stdout.flush()
            os._exit(of_signal(number))

    # Commands.

    def obey(self, line: str) -> bool:
        """Return whether a line looks like a command; then carry it out, or list the commands."""
        found = WORD.fullmatch(line.strip())
        if not self.present or found is None or self.agent is None:
            return False
        word, argument = found[1].lower(), found[2] or ""
        if argument and word not in COMMANDS and not nearest(word, COMMANDS, most=1, cutoff=ALIKE):
            return False
        if argument and word in COMMANDS and word != "/model":
            self.display.system(f"{word} stands alone on its line")
        elif word in ("/stop", "/abort"):
            if self.run is None:
                self.display.system("nothing is under way")
            elif word == "/abort":
                self.run.abort()
            else:
                self._stop()
        elif self.talk is not None and (word in ("/undo", *LEAVING) or (word == "/model" and argument)):
            if self.run is not None:
                ends = "the conversation ends with this run"
                self.display.system(ends if word in LEAVING else f"{word} comes after this run")
            self.talk(line.strip())
        elif word == "/show":
            self.screen.labelled("", self.display.last_result or "no tool has run yet", "output")
        else:
            self.display.system(self._told(word, self.agent))
        return True

    def _told(self, word: str, agent: Agent) -> str:
        """Return the answer to a command that changes nothing."""
        match word:
            case "/help":
                return "\n".join(f"{name:11}{purpose}" for name, purpose in COMMANDS.items())
            case "/model":
                return f"model {agent.model.name}; /model NAME continues with another"
            case "/tools":
                return ", ".join(agent.toolbox.names) or "no tools"
            case "/cost":
                return spent(agent.totals.turns, agent.totals.tool_starts, agent.totals.usage)
            case "/why" if self._refused is not None:
                call, refused = self._refused.call, refused_by(self._refused.refusals)
                more = called("why", str(agent.log_path), call.id)
                return "\n".join((action_of(call), *(f"refused by {line}" for line in refused), f"more: {more}"))
            case "/why":
                return "nothing was refused yet"
        if word in FOR_TALKS:
            return f"{word} is for bpagent chat; a run ends with /stop or /abort"
        return f"there is no {word}; {meant(word, COMMANDS)}"

    # Output.

    def _show(self, step: Step) -> None:
        if isinstance(step.event, GateRejected):
            self._refused = step.event
        self.standing.see(step.event)
        (self._draw or self.display.show)(step)
        if self._draw is not None and isinstance(step.event, ToolFinished):
            self.display.clear_output()
        if isinstance(step.event, GateApproved) and self.standing.is_granted(step.event.call):
            self.display.about(step.event.call, BY_RULE)
        self._progress.fold(step.event)
        if self.watch is not None and self.agent is not None:
            self.watch(self.agent)

    def _stream(self, text: str) -> None:
        if self._draw is None:
            self.display.stream(text)
        self._progress.hear()
        self._print("")

    def _print(self, text: str) -> None:
        """Take a piece of the output of a tool, and show the lines that change as they are now."""
        self.display.output(text)
        if self._editor is not None:
            self._editor.refresh()

    def _live(self) -> list[tuple[Tone, str]]:
        status = self._progress.text()
        return [*self.display.live(), *([("output", cut(status, self.screen.width - 1))] if status else [])]  # type: ignore[list-item]

    def _prompt(self) -> str:
        if not self.present:
            return ""
        return "you > " if self.run is None and self.talk is not None else "> "

    def _question(self) -> ToolCall | str | None:
        """Return the call or the offer in the question to the user; None without a user who types."""
        if not self.present:
            return None
        return self.offer if self._person.asked is None else self._person.asked.call


def introduction(agent: Agent) -> str:
    """Return the introduction of an agent: model, preset, workspace and log, a line each."""
    said = f"model {agent.model.name}, preset {agent.preset.name}\nworkspace {agent.toolbox.workspace.root}"
    level, root = agent.toolbox.sandbox, agent.toolbox.workspace.root
    if level == "none":
        said += "\nsandbox none: commands run unconfined, see bpagent doctor"
    elif readable := open_secrets(level, root):
        said += f"\nsandbox landlock: it cannot hide {', '.join(readable)}, so commands can read them"
    return f"{said}\nlog {agent.log_path}"


def tell_failure(error: Exception) -> None:
    """Show why a run failed: because of a b-thread, the log, or a listener."""
    if isinstance(error.__cause__, BrokenPipeError):  # the reader of our output has gone
        raise error.__cause__
    say(f"the run broke off: {error}")


def print_final_text(run: Run, *, was_shown: bool = False) -> None:
    """Print the final text, unless it is an error, which was shown already, and the partial results of work.

    A text that `was_shown` on the terminal is not repeated.
    """
    is_interrupted = run.state.objective is not None and run.status != "completed"  # S1 7.2, 7.3
    if was_shown and sys.stdout.isatty() and not is_interrupted:
        return
    if run.text and not is_error(run.status):
        print_text(f"{run.text}\n\n{told_to_user(run.state)}" if is_interrupted else run.text)


def print_text(text: str) -> None:
    """Print a text, on a terminal with all of it visible."""
    print("\n".join(visible_lines(text)) if sys.stdout.isatty() else text)
