"""The person at the terminal: typed lines, answers to questions, and what stops a run (S1 6.3, 8.1, 8.3)."""

import math
import os
import re
import select
import shlex
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from agent.cli.display import command_of, question_of
from agent.cli.screen import Screen, visible
from agent.presets.policy_files import RULES_FILE, add_user_rule
from agent.presets.preset import OptionError
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, ApprovalAsked
from bp import Event
from constitution import Action, CommandRule, Policy, grants_for, judge

PIECE = 4096  # bytes read at once
BACKGROUND_PAUSE = 0.2  # seconds between two looks whether the terminal is ours again
LONGEST_LINE = 64 * 1024  # bytes; the beginning of a longer one is forgotten


def is_terminal(descriptor: int = 0) -> bool:
    """Whether a user can type there."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def has_typed(descriptor: int = 0) -> bool:
    """Whether unread input waits there: on a terminal a whole line, or its end."""
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):
        return False


def can_be_heard(descriptor: int = 0) -> bool:
    """Whether lines may come from there: a terminal or a pipe."""
    try:
        return os.isatty(descriptor) or stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        return False


async def hear_lines(hear: Callable[[str], None], at_end: Callable[[], None], descriptor: int = 0) -> None:
    """Call `hear` with each line as it comes, without its end, and `at_end` once when there are no more."""
    waiting = b""
    while piece := await _next_piece(descriptor):
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            hear(_decoded(line))
        waiting = waiting[-LONGEST_LINE:]
    if waiting:
        hear(_decoded(waiting))
    at_end()


async def _next_piece(descriptor: int) -> bytes:
    """Return what came, or nothing at the end: end of input, or a terminal that is gone."""
    try:
        await anyio.wait_readable(descriptor)
        while _is_in_background(descriptor):
            await anyio.sleep(BACKGROUND_PAUSE)
            await anyio.wait_readable(descriptor)
        return os.read(descriptor, PIECE)
    except OSError:
        return b""


def _is_in_background(descriptor: int) -> bool:
    """Whether another job has the terminal, as after `bpagent ... &`: a job that reads then is suspended."""
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # a pipe, or a terminal that does not control us
        return False


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


CANNOT = "taken as yes for once: no rule can allow this always, because {why}"


def says_always(line: str) -> bool:
    """Whether a line answers a question with `always`."""
    return line.strip().lower() == "always"


class StandingAnswers:
    """What was answered with `always` under a policy. It sees the run's events, to know what each call would do."""

    def __init__(self, policy: Policy | None, file: str | Path = RULES_FILE) -> None:
        """Start without answers; rules are added to `file`."""
        self._policy = policy
        self._file = Path(file)
        self._described: tuple[str, Action] | None = None
        self._granted: tuple[CommandRule, ...] = ()

    def see(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, ActionDescribed):
            self._described = (event.call.id, event.facts)

    def cover(self, call: ToolCall) -> bool:
        """Tell whether an answer of this run allows a call that is asked about."""
        action = self._action_of(call)
        if action is None or self._policy is None or not self._granted:
            return False
        return judge(action, self._policy.with_commands(*self._granted)).allowed

    def add(self, call: ToolCall) -> str:
        """Allow a call from now on, as far as a rule can; return what there is to say about that."""
        action = self._action_of(call)
        if action is None or self._policy is None:
            return CANNOT.format(why="nothing is known about what it would do")
        grants = grants_for(action, self._policy)
        if not grants:
            return CANNOT.format(why="it is not a simple command that a rule of the policy asks about")
        try:
            for grant in grants:
                add_user_rule(grant, self._file)
        except (OptionError, OSError) as error:
            return CANNOT.format(why=f"{self._file} cannot be written ({error})")
        self._granted += grants
        said = "; ".join(f"{shlex.join(grant.argv)} ({grant.rule}, {grant.executable})" for grant in grants)
        return f"always allowed from now on: {said}\nwritten to {self._file}"

    def _action_of(self, call: ToolCall) -> Action | None:
        return self._described[1] if self._described is not None and self._described[0] == call.id else None


PROMPTS = 3  # how often one question is put


def approval_question(command: str) -> str:
    """Return the one line that asks for approval: the command exactly as proposed, what cannot be seen escaped."""
    return f"Approve command: {visible(command)}? (yes/no)"


ANSWERS = {"yes": True, "y": True, "no": False, "n": False}
NO_BECAUSE = re.compile(r"no?\s*[,:](.*)", re.IGNORECASE | re.DOTALL)
HOW_TO_ANSWER = "answer yes, no, always, or no, REASON (the model is told the reason)"


def read_answer(line: str) -> bool | str | None:
    """Return what a line answers: True, False, the reason of `no, REASON`, or None when it is neither yes nor no."""
    because = NO_BECAUSE.fullmatch(line.strip())
    if because is not None:
        return because[1].strip() or False
    return ANSWERS.get(line.strip().lower())


def says_stop(line: str) -> bool:
    """Whether a line is "stop" or "/stop" and nothing else, in any case."""
    return line.strip().lower() in ("stop", "/stop")


def has_letters_of_stop(line: str) -> bool:
    """Whether a line holds the letters of "stop", in a word or alone (S1 7.3)."""
    return "stop" in line.lower()


STOPS = {"word": says_stop, "letters": has_letters_of_stop}
"""Which typed lines stop a run, by the option `stop_text`."""


class Person:
    """The user at the terminal: lines go to the open question, and one that says stop stops the run.

    `present` is false when standard input is no terminal; then no question is asked.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        present: bool,
        stop: Callable[[], None],
        stops: Callable[[str], bool] = says_stop,
        otherwise: Callable[[str], None] | None = None,
        standing: StandingAnswers | None = None,
    ) -> None:
        """Make a person; `stop` is called for each line that `stops`, `otherwise` for those that answer nothing.

        `standing` keeps what is answered with `always`; without it that is no answer.
        """
        self._screen = screen
        self._present = present
        self._stop = stop
        self._stops = stops
        self._otherwise = otherwise
        self._standing = standing
        self._gone = False
        self._question: MemoryObjectSendStream[str] | None = None

    def hear(self, line: str) -> None:
        """Take a line that was typed. Lines before a question do not answer it."""
        self._screen.entered()
        if self._stops(line):
            self._stop()
        elif self._question is not None:
            self._question.send_nowait(line)
        elif self._otherwise is not None:
            self._otherwise(line)

    def leave(self) -> None:
        """Note that nothing will be typed any more: open and later questions are answered with no."""
        self._gone = True
        if self._question is not None:
            self._question.close()

    async def answer(self, asked: ApprovalAsked) -> bool | str | None:
        """Put the question and return the answer: the approver of an agent."""
        if not self._present:
            return None
        if self._standing is not None and self._standing.cover(asked.call):
            said = f"{approval_question(command_of(asked.call))} yes, as you said always"
            self._screen.labelled("system", said, "system")
            return True
        if self._gone:
            return "end of input"
        self._question, lines = anyio.create_memory_object_stream[str](math.inf)
        self._screen.labelled("question", question_of(asked), "question")
        try:
            with lines, self._question:
                return await self._dialog(asked.call, lines.receive)
        finally:
            self._question = None

    async def _dialog(self, call: ToolCall, next_line: Callable[[], Awaitable[str]]) -> bool | str:
        for number in range(PROMPTS):
            if number:
                self._screen.labelled("system", HOW_TO_ANSWER, "system")
            self._screen.ask(approval_question(command_of(call)))
            try:
                line = await next_line()
            except anyio.EndOfStream:
                return "end of input"
            if self._standing is not None and says_always(line):
                self._screen.labelled("system", self._standing.add(call), "system")
                return True
            answer = read_answer(line)
            if answer is not None:
                return answer
        return f"neither yes nor no, {PROMPTS} times"
