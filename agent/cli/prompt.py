"""Input of the user: prompts with the files in them, typed lines, answers to questions, and lines that stop a run.

Questions and answers are those of S1 6.3, 8.1 and 8.3.
"""

import math
import os
import re
import shlex
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from attrs import define, field

from agent.cli.arguments import called
from agent.cli.display import question_of
from agent.cli.errors import Mistake, say
from agent.cli.screen import Screen, visible
from agent.page.wording import command_of
from agent.presets.configuration import add_user_rule, rules_file
from agent.presets.preset import OptionError
from agent.tools.files import media_type
from agent.vocabulary.calls import ToolCall, background_mark
from agent.vocabulary.events import ActionDescribed, ApprovalAsked
from agent.vocabulary.messages import INCLUDED, Image, UserMessage
from bp import Event
from constitution import Action, CommandRule, Policy, Verdict, judge
from constitution.grants import grants_for

PIECE = 4096  # bytes read at once
BACKGROUND_PAUSE = 0.2  # seconds between two checks whether the terminal is ours again
LONGEST_LINE = 64 * 1024  # bytes; the beginning of a longer one is forgotten


def is_terminal(descriptor: int = 0) -> bool:
    """Return whether the descriptor is a terminal, where a user can type."""
    return os.isatty(descriptor)


def can_be_heard(descriptor: int = 0) -> bool:
    """Return whether lines may come from the descriptor: it is a terminal or a pipe."""
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
    """Return the next bytes; none at the end of input, or if the terminal is gone."""
    try:
        await anyio.wait_readable(descriptor)
        while is_in_background(descriptor):
            await anyio.sleep(BACKGROUND_PAUSE)
            await anyio.wait_readable(descriptor)
        return os.read(descriptor, PIECE)
    except OSError:
        return b""


def is_in_background(descriptor: int = 0) -> bool:
    """Return whether another job has the terminal, as after `bpagent ... &`: reading would suspend this one."""
    try:
        return os.tcgetpgrp(descriptor) != os.getpgrp()
    except OSError:  # a pipe, or a terminal that does not control us
        return False


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


CANNOT = "taken as yes for once: no rule can allow this always, because {why}"
INSTEAD = "run exactly this instead: "


@define(eq=False)
class StandingAnswers:
    """The user's answers for more than one call; `see` takes the facts of each call from the run's events.

    file: the one for new rules, by default that of the user.
    """

    policy: Policy | None
    file: Path = field(factory=rules_file)
    _described: tuple[str, Action] | None = field(default=None, init=False)
    _granted: tuple[CommandRule, ...] = field(default=(), init=False)
    _edited: set[str] = field(factory=set, init=False)

    def see(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, ActionDescribed):
            self._described = (event.call.id, event.facts)

    def cover(self, call: ToolCall) -> str:
        """Return why an answer of this run allows the call in a question; empty if none does."""
        command = call.arguments.get("command")
        if isinstance(command, str) and command in self._edited and not background_mark(call.arguments):
            self._edited.discard(command)
            return "as you wrote it"
        known = self._known(call)
        if known is None or not self._granted:
            return ""
        action, policy = known
        return "as you said always" if judge(action, policy.with_commands(*self._granted)).allowed else ""

    def is_granted(self, call: ToolCall) -> bool:
        """Return whether only a rule of the user makes a question about a call unnecessary."""
        known = self._known(call)
        return known is not None and judge(*known).granted

    def add(self, call: ToolCall) -> str:
        """Allow a call from now on, as far as a rule can; return the message for the user about it."""
        grants = self._grants(call)
        if isinstance(grants, str):
            return CANNOT.format(why=grants)
        try:
            for grant in grants:
                add_user_rule(grant, self.file)
        except (OptionError, OSError) as error:
            return CANNOT.format(why=f"{self.file} cannot be written ({error})")
        self._granted += grants
        return f"always allowed from now on: {_told(grants)}\nwritten to {self.file}"

    def offer(self, call: ToolCall) -> str:
        """Return the calls that the answer always would allow, in words; empty if it would be no more than a yes."""
        grants = self._grants(call)
        return "" if isinstance(grants, str) else f"always would allow: {_told(grants)}"

    def edit(self, command: str) -> str:
        """Note a command that the user wrote; the model is told it, and its proposal of it needs no answer."""
        self._edited.add(command)
        return f"{INSTEAD}{command}"

    def evidence(self, call: ToolCall) -> str:
        """Return the reasons of a question: each rule with the words of the command that it rests on."""
        known = self._known(call)
        if known is None:
            return "nothing more is known about it"
        verdict = judge(*known)
        return "\n".join((f"rule {verdict.rule} ({verdict.category}): {verdict.explanation}", *tell_evidence(verdict)))

    def _grants(self, call: ToolCall) -> tuple[CommandRule, ...] | str:
        """Return the rules that would allow a call, or the reason why none can."""
        known = self._known(call)
        if known is None:
            return "nothing is known about what it would do"
        return grants_for(*known) or "it is not a simple command that a rule of the policy asks about"

    def _known(self, call: ToolCall) -> tuple[Action, Policy] | None:
        """Return what a call would do, and the policy that judges it; None where one of them is not known."""
        if self.policy is None or self._described is None or self._described[0] != call.id:
            return None
        return self._described[1], self.policy


def _told(grants: Iterable[CommandRule]) -> str:
    return "; ".join(f"{shlex.join(grant.argv)} ({grant.rule}, {grant.executable})" for grant in grants)


def tell_evidence(verdict: Verdict) -> list[str]:
    """Return the evidence of a verdict: positions in the command and their meanings, a line each."""
    told = []
    for evidence in filter(lambda evidence: evidence.text, verdict.evidence):
        place = f"characters {evidence.start} to {evidence.end}: " if evidence.end else ""
        meant = " ".join(evidence.argv)
        means = f", which means {visible(meant)}" if meant and meant != evidence.text else ""
        told.append(f"evidence: {place}{visible(evidence.text)}{means}")
    return told


PROMPTS = 3  # how often one question is put


def approval_question(command: str) -> str:
    """Return the line that asks for approval: the command exactly as proposed, invisible characters escaped."""
    return f"Approve command: {visible(command)}? (yes/no)"


ANSWERS = {"yes": True, "y": True, "no": False, "n": False}
NO_BECAUSE = re.compile(r"no?\s*[,:](.*)", re.IGNORECASE | re.DOTALL)
EDITED = re.compile(r"edit\s+(\S.*)", re.IGNORECASE | re.DOTALL)
MORE_ANSWERS = "also: always; no, REASON for the model; edit COMMAND; why (the evidence)"
HOW_TO_ANSWER = f"answer yes or no; {MORE_ANSWERS}"


def read_answer(line: str) -> bool | str | None:
    """Return the answer of a line: True, False, the reason of `no, REASON`, or None when it is neither yes nor no."""
    because = NO_BECAUSE.fullmatch(line.strip())
    if because is not None:
        return because[1].strip() or False
    return ANSWERS.get(line.strip().lower())


def says_stop(line: str) -> bool:
    """Return whether a line is "stop" or "/stop" and nothing else, in any case."""
    return line.strip().lower() in ("stop", "/stop")


def has_letters_of_stop(line: str) -> bool:
    """Return whether a line contains the letters "stop", in a word or alone (S1 7.3)."""
    return "stop" in line.lower()


STOPS = {"word": says_stop, "letters": has_letters_of_stop}
"""Predicates of the typed lines that stop a run, by the value of the option `stop_text`."""


@define(eq=False)
class UserInput:
    """The input of the user: lines answer the open question, and one that is stop stops the run.

    `present` is false when standard input is no terminal; then no question is asked, unless `decide` may bring the
    answer from `elsewhere`. stop: called for each line that `stops`. command: returns whether a line was a command.
    otherwise: called with all other lines. standing: keeps answers with `always`. asked: the open question.
    """

    screen: Screen
    present: bool
    stop: Callable[[], None]
    stops: Callable[[str], bool] = says_stop
    command: Callable[[str], bool] = lambda _: False
    otherwise: Callable[[str], None] = lambda _: None
    standing: StandingAnswers = field(factory=lambda: StandingAnswers(None))
    elsewhere: bool = False
    asked: ApprovalAsked | None = field(default=None, init=False)
    _gone: bool = field(default=False, init=False)
    _lines: MemoryObjectSendStream[str] | None = field(default=None, init=False)

    def hear(self, line: str) -> None:
        """Handle a typed line. Lines that were typed before a question do not answer it."""
        self.screen.line_is_open = False
        if self.stops(line):
            self.stop()
        elif self.command(line):
            return
        elif self._lines is not None and self.present:
            self._lines.send_nowait(line)
        else:
            self.otherwise(line)

    def decide(self, call: str, answer: str) -> bool:
        """Answer the question about this call as if the answer was typed; return whether it is open."""
        if self._lines is None or self.asked is None or self.asked.call.id != call:
            return False
        self.screen.labelled("system", f"answered from outside: {answer}", "system")
        self._lines.send_nowait(answer)
        return True

    def leave(self) -> None:
        """Note the end of the input: from now on questions are answered with no, or by another process."""
        self._gone = not self.elsewhere
        if self._lines is not None and self._gone:
            self._lines.close()

    async def answer(self, asked: ApprovalAsked) -> bool | str | None:
        """Put the question and return the answer: the approver of an agent."""
        if not (self.present or self.elsewhere):
            return None
        if covered := self.standing.cover(asked.call):
            self.screen.labelled("system", f"{approval_question(command_of(asked.call))} yes, {covered}", "system")
            return True
        if self._gone:
            return "end of input"
        self._lines, lines = anyio.create_memory_object_stream[str](math.inf)
        self.asked = asked
        self.screen.labelled("question", question_of(asked), "question")
        if offered := self.standing.offer(asked.call):
            self.screen.labelled("", offered, "output")
        if self.present and self.screen.beside is None:  # the editor names the keys
            self.screen.labelled("", MORE_ANSWERS, "output")
        if self.elsewhere:
            self.screen.labelled("", f"{called('view', '--follow')} shows a page that takes the answer", "output")
        try:
            with lines, self._lines:
                return await self._dialog(asked.call, lines.receive)
        finally:
            self._lines, self.asked = None, None

    async def _dialog(self, call: ToolCall, next_line: Callable[[], Awaitable[str]]) -> bool | str:
        for number in range(PROMPTS):
            if number:
                self.screen.labelled("system", HOW_TO_ANSWER, "system")
            self.screen.ask(approval_question(command_of(call)))
            try:
                line = await self._next_answer(call, next_line)
            except anyio.EndOfStream:
                return "end of input"
            if (answer := self._read(call, line)) is not None:
                return answer
        return f"neither yes nor no, {PROMPTS} times"

    async def _next_answer(self, call: ToolCall, next_line: Callable[[], Awaitable[str]]) -> str:
        """Return the next line that does not only ask for the evidence."""
        while (line := await next_line()).strip().lower() == "why":
            self.screen.labelled("", self.standing.evidence(call), "output")
            self.screen.ask(approval_question(command_of(call)))
        return line

    def _read(self, call: ToolCall, line: str) -> bool | str | None:
        """Return the answer of a line, as `read_answer`, after carrying out `edit` and `always`."""
        edited = EDITED.fullmatch(line.strip())
        if edited is not None and command_of(call) == call.arguments.get("command"):
            return self.standing.edit(edited[1])
        if line.strip().lower() == "always":
            self.screen.labelled("system", self.standing.add(call), "system")
            return True
        return read_answer(line)


LONGEST_FILE = 256 * 1024
"""Bytes of one text file that a prompt may include."""

LARGEST_PICTURE = 10 * 1024 * 1024
"""Bytes of one picture."""

REFERENCE = re.compile(r"(?<!\S)@(\S+)")
PUNCTUATION = ".,;:!?)\"'"


def read_prompt(given: str, tell: Callable[[str], None] = say) -> str | UserMessage:
    """Return the prompt of an argument, with the files that it names; a message when pictures are among them.

    Raises Mistake for an empty prompt, and for an invalid file; OSError for an unreadable one.
    """
    if given == "-":
        return _checked(sys.stdin.buffer.read().decode("utf-8-sig", "replace").rstrip("\r\n"))
    texts, pictures = [_checked(given)], []
    for path in _files_in(given, tell):
        content = path.read_bytes() if path.stat().st_size <= LARGEST_PICTURE else b"\0"
        kind = media_type(content[:16])
        if kind is None:
            texts.append(f'{INCLUDED}"{path}">\n{_text(path, content)}\n</file>')
        else:
            pictures.append(Image(kind, content))
    text = "".join(texts)
    return UserMessage(text, tuple(pictures)) if pictures else text


def _checked(prompt: str) -> str:
    if not prompt.strip():
        raise Mistake("the prompt is empty; say what the agent is to do")
    return prompt


def _files_in(prompt: str, tell: Callable[[str], None]) -> list[Path]:
    """Return the files that a prompt names, each once. A word with @ that names none stays, and the user is warned."""
    found: dict[Path, None] = {}
    for word in REFERENCE.findall(prompt):
        path = next((path for path in map(Path, (word, word.rstrip(PUNCTUATION))) if os.path.isfile(path)), None)
        if path is None:
            tell(f"@{word} names no file here, so the model is given these words as they are")
        else:
            found[path] = None
    return list(found)


def _text(path: Path, content: bytes) -> str:
    if path.stat().st_size > LONGEST_FILE:
        limit = f"a prompt includes {LONGEST_FILE // 1024} KB of a file at most"
        raise Mistake(f"@{path} is too long: {limit}; leave the @ out, the agent can read it with its tools")
    try:
        return content.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError as error:
        raise Mistake(f"@{path} is neither a text in UTF-8 nor a picture; leave the @ out") from error
