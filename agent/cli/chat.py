"""`bpagent chat`: an interactive conversation; its runs share one log, and it can be continued later.

While the agent works, a line answers the open question, or stops the run, or steers it. On a pipe each line is a
prompt, in turn, and the answers go to standard output.
"""

import math
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack

import anyio

from agent.cli.arguments import called
from agent.cli.build import Maker, McpServer, agent_of_log, nameable, new_agent, serving
from agent.cli.errors import FAILED, OK, Mistake
from agent.cli.fork import before_last_prompt
from agent.cli.prompt import is_terminal, read_answer, read_prompt
from agent.cli.runs import find_log, summarize
from agent.cli.screen import Screen, screen_on
from agent.cli.session import HEARD, LEAVING, UserInterface, introduction, print_final_text
from agent.cli.undo import summary_of, tell
from agent.history.branching import beside, fork
from agent.history.changes import file_history, shown
from agent.log.reading import LogError, read_log
from agent.log.writing import check_free
from agent.models.model import ModelError
from agent.models.openai_model import model_from_name
from agent.presets.preset import Preset
from agent.session.agent import Agent
from agent.tools.definition import Tool
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import changes_since, undo
from agent.vocabulary.messages import AssistantMessage, UserMessage

HOW = "/help lists commands, Ctrl-D leaves; while the agent works a line steers it, stop stops it, Ctrl-C aborts it"
LONGEST_CALL = 160  # characters
MISTAKEN = ("exit", "quit")  # for LEAVING
SHOWN_AGAIN = 6  # messages of a conversation that is continued


def execute(arguments: Namespace) -> int:
    """Run the conversation until the user leaves; return the exit code. Raises for wrong input, before a run."""
    screen = screen_on(sys.stderr)
    first = read_prompt(arguments.prompt) if arguments.prompt else None
    preset, make, servers = new_agent(arguments) if arguments.continue_ is None else _continued(arguments)
    return anyio.run(Chat(arguments, screen, preset, present=is_terminal()).talk, make, first, servers)


def _continued(arguments: Namespace) -> tuple[Preset, Maker, tuple[McpServer, ...]]:
    path = find_log(None if arguments.continue_ is True else arguments.continue_)
    check_free(path)
    if not is_terminal() and summarize(path).status == "waiting":  # no user could answer here, and that would be a no
        raise Mistake(f"{path} waits for a decision; bpagent resume {path} --approve CALL, or --reject CALL")
    return agent_of_log(arguments, read_log(path))


Left = int
"""The exit code with which the user has left."""


class Chat:
    """One conversation: a run for each typed prompt, and another agent after /model and /undo."""

    def __init__(self, arguments: Namespace, screen: Screen, preset: Preset, *, present: bool) -> None:
        """Make a conversation; `present`: on a terminal."""
        self._arguments, self._screen, self._present = arguments, screen, present
        self._said, self._lines = anyio.create_memory_object_stream[str | Left](math.inf)
        say = self._said.send_nowait
        self._interface = UserInterface(screen, preset, present=present, shows_final_text=present, talk=say, leave=say)
        self._tools: tuple[Tool, ...] = ()
        self._seat = ExitStack()  # holds the agent

    async def talk(self, make: Maker, first: str | UserMessage | None, servers: Sequence[McpServer] = ()) -> int:
        """Start one run after the other, until the user leaves. Raises the errors of making the agent."""
        async with AsyncExitStack() as stack:
            stack.enter_context(self._said)
            stack.enter_context(self._lines)
            signals = stack.enter_context(anyio.open_signal_receiver(*HEARD))
            self._tools = await stack.enter_async_context(serving(servers))
            stack.enter_context(self._seat)
            self._introduce(self._have_agent(make))
            async with self._interface.attended(signals):
                code = await self._converse(first)
            if self._present and self._agent.messages:
                again = called("chat", "--continue", str(self._agent.log_path))
                self._interface.display.system(f"{again} continues this conversation")
        return code

    def _have_agent(self, make: Maker) -> Agent:
        self._agent = self._seat.enter_context(self._interface.agent_by(make, self._tools))
        return self._agent

    async def _converse(self, first: str | UserMessage | None) -> int:
        prompt: str | UserMessage | Left | None = first
        if self._agent.journal.is_under_way:
            self._interface.display.system("the last run was interrupted, and continues")
            prompt = None
        elif not first:
            prompt = await self._next_prompt()
        while not isinstance(prompt, Left):
            run = await self._interface.carry_out(prompt)
            if run is None:
                return FAILED
            if not self._present:
                print_final_text(run)
                sys.stdout.flush()
            prompt = await self._next_prompt()
        return prompt

    async def _next_prompt(self) -> str | UserMessage | Left:
        """Return the next prompt of the user: the next line that is neither empty nor a command."""
        while True:
            if self._present and not self._screen.moves:
                self._screen.ask("you >")
            line = await self._lines.receive()
            if isinstance(line, Left):
                return line
            word, _, argument = line.strip().partition(" ")
            if self._present and word.lower() in LEAVING:
                return OK
            if self._present and line.strip().lower() in MISTAKEN:
                self._interface.display.system("/quit leaves; so does Ctrl-D")
            elif self._present and word.lower() in ("/undo", "/model"):
                await self._offer_files(self._change(word.lower(), argument.strip()))
            elif line.strip() and (prompt := self._read(line)) is not None:
                return prompt

    def _read(self, line: str) -> str | UserMessage | None:
        """Return the prompt of a line with the files that it names; None if a file cannot be included."""
        try:
            return read_prompt(line, self._interface.display.system) if self._present else line
        except (Mistake, OSError) as error:
            self._interface.display.system(str(error))
            return None

    def _change(self, word: str, argument: str) -> tuple[Snapshots, str] | None:
        """Continue with another model, or from before the last task; return the snapshot before that task.

        A failure is shown, and changes nothing.
        """
        path, before = self._agent.log_path, None
        assert path is not None
        try:
            recorded = read_log(path)
            if word == "/undo":
                kept = file_history(recorded)
                path, prompt, step = before_last_prompt(path)
                before = next(((kept.snapshots, name) for number, name in kept.names if number >= step), None)
                self._interface.display.system(f"undone: {prompt}")
            else:
                model = model_from_name(argument, os.environ, api=self._arguments.api)
                about = {**(recorded.header.get("about") or {}), "model": nameable(argument)}
                header = {**recorded.header, "model": model.name, "about": about}
                path = fork(recorded, len(recorded.records), beside(path), header)  # a header never changes
                self._arguments.model = argument
        except (ModelError, LogError, Mistake, OSError) as error:
            self._interface.display.system(str(error))
            return None
        self._seat.close()
        agent = self._have_agent(agent_of_log(self._arguments, read_log(path))[1])
        self._interface.display.system(introduction(agent))
        return before if word == "/undo" else None

    async def _offer_files(self, before: tuple[Snapshots, str] | None) -> None:
        """List the files that calls changed since a snapshot; on a yes, restore those without other changes."""
        if before is None:
            return
        try:
            changes = [each for each in shown(changes_since(*before).values()) if each.by]
            told = [f"{each.kind}: {each.path}" for each in changes]
            self._interface.display.system("\n".join([*told, summary_of(changes) or "it changed no file"]))
            if not changes:
                return
            if not await self._agrees("Restore these files? (yes/no)"):
                self._interface.display.system("files stay as they are")
                return
            tell(self._screen, undo(*before))
        except SnapshotError as error:
            self._interface.display.system(f"not restored: {error}")

    async def _agrees(self, offer: str) -> bool:
        """Ask until the answer is yes or no; leaving is a no."""
        self._interface.offer = offer
        try:
            while True:
                self._screen.ask(offer)
                line = await self._lines.receive()
                if isinstance(line, Left) or line.strip().lower() in LEAVING:
                    self._said.send_nowait(line)
                    return False
                if (answer := read_answer(line)) is not None:
                    return answer is True
                self._interface.display.system("answer yes or no")
        finally:
            self._interface.offer = None

    # Output.

    def _introduce(self, agent: Agent) -> None:
        how = f"\n{HOW}" if self._present else ""
        self._interface.display.system(f"{introduction(agent)}{how}")
        for message in agent.messages[-SHOWN_AGAIN:] if self._present else ():
            match message:
                case UserMessage(text=text) if text.strip():
                    self._screen.labelled("you", text, "question")
                case AssistantMessage(text=text) if text.strip():
                    self._screen.markdown("agent", text, "agent")
                case _:
                    pass
