"""`bpagent chat`: an interactive conversation; its runs share one log, and it can be continued later.

While the agent works, a line is an answer to the question that is open, or stops the run, or steers it. On a pipe each
line is a prompt, in turn, and the answers go to standard output.
"""

import math
import re
import signal
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import anyio
from attrs import frozen

from agent.cli import exit_codes
from agent.cli.arguments import called
from agent.cli.build import agent_of_log, new_agent, servers_of, servers_of_log
from agent.cli.display import Display, Progress, action_of, refused_by, spent
from agent.cli.mcp_servers import McpServer, serving
from agent.cli.mistakes import Mistake
from agent.cli.prompt import STOPS, Person, StandingAnswers, has_typed, is_terminal
from agent.cli.prompt_files import read_prompt
from agent.cli.runs import find_log, summarize
from agent.cli.screen import Screen, screen_on
from agent.cli.session import (
    HEARD,
    Interruption,
    Maker,
    Onlookers,
    introduction,
    listen,
    over,
    print_final_text,
    tell_failure,
)
from agent.log.reading import read_log
from agent.log.writing import check_free
from agent.presets.preset import Preset
from agent.session.agent import Agent
from agent.session.run import Run
from agent.vocabulary.errors import AgentError, meant
from agent.vocabulary.events import GateRejected
from agent.vocabulary.messages import AssistantMessage, UserMessage
from bp import BProgramError, Step

LEAVING = ("/quit", "/exit")
WORD = re.compile(r"/\w+")  # what other programs take for a command to themselves
HOW = "/help lists commands, Ctrl-D leaves; while the agent works a line steers it, stop stops it, Ctrl-C aborts it"
COMMANDS = {
    "/help": "this list",
    "/model": "which model answers, and how to go on with another",
    "/tools": "what the model may call",
    "/cost": "turns, calls, tokens and cost so far",
    "/why": "what was refused last, by which b-thread, and why",
    "/stop": "end the run when what was begun is finished; a line that is stop does the same",
    "/abort": "end the run now; Ctrl-C does the same",
    "/quit": "leave; so does Ctrl-D",
}
"""What a line that is one word with a slash does, on a terminal."""
SHOWN_AGAIN = 6  # messages of a conversation that is continued


def execute(arguments: Namespace) -> int:
    """Talk until the person leaves; return the exit code. Raises for wrong input, before anything happens."""
    screen = screen_on(sys.stderr)
    first = read_prompt(arguments.prompt) if arguments.prompt else None
    preset, make, servers = _continued(arguments) if arguments.continue_ is not None else _new(arguments)
    return anyio.run(Chat(screen, preset, present=is_terminal()).talk, make, first, servers)


def _new(arguments: Namespace) -> tuple[Preset, Maker, tuple[McpServer, ...]]:
    return (*new_agent(arguments), servers_of(arguments))


def _continued(arguments: Namespace) -> tuple[Preset, Maker, tuple[McpServer, ...]]:
    path = find_log(None if arguments.continue_ is True else arguments.continue_)
    check_free(path)
    if not is_terminal() and summarize(path).status == "waiting":  # no user could answer here, and that would be a no
        raise Mistake(f"{path} waits for a decision; bpagent resume {path} --approve CALL, or --reject CALL")
    recorded = read_log(path)
    return (*agent_of_log(arguments, recorded), servers_of_log(arguments, recorded))


@frozen
class Left:
    """The person has left, with this exit code."""

    code: int


class Chat:
    """One conversation: who types, what is shown, and the run that is under way, if there is one."""

    def __init__(self, screen: Screen, preset: Preset, *, present: bool) -> None:
        """Make a conversation; `present`: on a terminal."""
        self._screen = screen
        self._present = present
        self._display = Display(
            screen, shows_final_text=present, max_iterations=preset.max_iterations, attempts=preset.attempts
        )
        self._onlookers = Onlookers(self._display, Progress(screen), StandingAnswers(preset.judging_policy()))
        self._interruption = Interruption()
        self._run: Run | None = None
        self._agent: Agent | None = None
        self._refused: GateRejected | None = None
        self._said, self._lines = anyio.create_memory_object_stream[str | Left](math.inf)
        self._person = Person(
            screen,
            present=present,
            stop=self._stop,
            stops=self._stops,
            otherwise=self._hear,
            standing=self._onlookers.standing,
        )
        self._says_stop = STOPS[preset.stop_text]

    async def talk(self, make: Maker, first: str | UserMessage | None, servers: Sequence[McpServer] = ()) -> int:
        """Have one run after the other, until the person leaves. Raises what making the agent raises."""
        async with AsyncExitStack() as stack:
            for stream in (self._said, self._lines):
                stack.enter_context(stream)
            signals = stack.enter_context(anyio.open_signal_receiver(*HEARD))
            tools = await stack.enter_async_context(serving(servers))
            agent = stack.enter_context(make(self._person.answer, self._show, self._display.stream, tools))
            self._agent = agent
            agent.on_event = self._onlookers.progress.hear
            self._introduce(agent)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, signals)
                tasks.start_soon(self._listen)
                tasks.start_soon(self._onlookers.progress.show)
                code = await self._converse(agent, first)
                tasks.cancel_scope.cancel()
            if self._present and agent.messages:
                again = called("chat", "--continue", str(agent.log_path))
                self._display.system(f"{again} goes on with this conversation")
        return code

    async def _converse(self, agent: Agent, first: str | UserMessage | None) -> int:
        prompt: str | UserMessage | Left | None = first
        if agent.journal.is_under_way:
            self._display.system("the last run was interrupted, and goes on")
            prompt = None
        elif not first:
            prompt = await self._next_prompt()
        while not isinstance(prompt, Left):
            if not await self._carry_out(agent, prompt):
                return exit_codes.FAILED
            prompt = await self._next_prompt()
        return prompt.code

    async def _carry_out(self, agent: Agent, prompt: str | UserMessage | None) -> bool:
        """Have one run to its end; tell whether there can be another."""
        self._interruption = Interruption()
        try:
            async with agent.start(prompt) as run:
                self._run = run
                await over(run)
        except (BProgramError, AgentError) as error:
            tell_failure(error)
            return False
        finally:
            self._run = None
        if not self._present:
            print_final_text(run)
            sys.stdout.flush()
        return True

    async def _next_prompt(self) -> str | Left:
        """Return what the person asks for next: the next line that is not empty."""
        while True:
            line = await self._next_line()
            if isinstance(line, Left):
                return line
            if line.strip() in LEAVING:
                return Left(exit_codes.OK)
            if line.strip() and not self._is_command(line):
                return line

    async def _next_line(self) -> str | Left:
        """Return what is typed next; what was typed before it was asked for is shown where it belongs."""
        is_there = self._lines.statistics().current_buffer_used > 0 or has_typed()
        if self._present and not is_there:
            self._screen.ask("you >")
        line = await self._lines.receive()
        if self._present and is_there and isinstance(line, str) and line.strip():
            self._screen.labelled("you", line, "question")
        return line

    def _is_command(self, line: str) -> bool:
        """Tell whether a line looks like a command to us; then carry it out, or say what there is."""
        word = line.strip().lower()
        if not self._present or WORD.fullmatch(word) is None:
            return False
        if word in ("/stop", "/abort") and self._run is None:
            self._display.system("nothing is under way")
        elif word == "/abort":
            self._abort()
        elif word in LEAVING:
            self._display.system("the conversation ends with this run")
            self._said.send_nowait(Left(exit_codes.OK))
        else:
            self._display.system(self._told(word))
        return True

    def _told(self, word: str) -> str:
        """Return what there is to say to a command that changes nothing."""
        match word, self._agent:
            case "/help", _:
                return "\n".join(f"{name:11}{purpose}" for name, purpose in COMMANDS.items())
            case "/model", Agent() as agent:
                again = called("chat", "--continue", str(agent.log_path), "--model", "NAME")
                return f"model {agent.model.name}; another: {LEAVING[0]}, then {again}"
            case "/tools", Agent() as agent:
                return ", ".join(agent.toolbox.names) or "no tools"
            case "/cost", Agent(totals=totals):
                return spent(totals.turns, totals.tool_starts, totals.usage)
            case "/why", Agent() as agent:
                return self._why(agent)
        return f"there is no {word}; {meant(word, COMMANDS)}"

    def _why(self, agent: Agent) -> str:
        if self._refused is None:
            return "nothing was refused yet"
        call, refused = self._refused.call, refused_by(self._refused.refusals)
        more = called("why", str(agent.log_path), call.id)
        return "\n".join((action_of(call), *(f"refused by {line}" for line in refused), f"more: {more}"))

    # What people do.

    def _hear(self, line: str) -> None:
        """Take a line that answers no question: it steers the run on a terminal, else it is the next prompt."""
        if self._run is None or not self._present:
            self._said.send_nowait(line)
        elif line.strip() and not self._is_command(line):
            self._run.steer(line)
            self._display.system("heard: the model reads it before it goes on")

    def _stops(self, line: str) -> bool:
        """Whether a line stops the run: one that is under way, and on a terminal; else it is a prompt."""
        return self._run is not None and self._present and self._says_stop(line)

    def _stop(self) -> None:
        if self._run is not None:
            self._run.stop()

    async def _listen(self) -> None:
        await listen(self._person)
        self._said.send_nowait(Left(exit_codes.OK))

    async def _watch(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Abort the run at a signal; between runs, and for any but Ctrl-C, leave."""
        async for number in signals:
            if self._run is None or number != signal.SIGINT:
                self._said.send_nowait(Left(exit_codes.of_signal(number)))
            if self._run is not None:
                self._screen.line_is_open = self._present  # a terminal shows ^C there
                self._interruption.hear(number, self._abort)

    def _abort(self) -> None:
        if self._run is not None:
            self._run.abort(self._interruption.name)

    # What is shown.

    def _show(self, step: Step) -> None:
        if isinstance(step.event, GateRejected):
            self._refused = step.event
        self._onlookers.show(step)

    def _introduce(self, agent: Agent) -> None:
        how = f"\n{HOW}" if self._present else ""
        self._display.system(f"{introduction(agent)}\nlog {agent.log_path}{how}")
        self._onlookers.take_up(agent)
        if self._present:
            for message in agent.messages[-SHOWN_AGAIN:]:
                match message:
                    case UserMessage(text=text) if text.strip():
                        self._screen.labelled("you", text, "question")
                    case AssistantMessage(text=text) if text.strip():
                        self._screen.labelled("agent", text, "agent")
                    case _:
                        pass
