"""The person at the terminal: what is asked, what is answered, and what stops a run (S1 6.3, 8.1, 8.3)."""

import math
import re
from collections.abc import Awaitable, Callable

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from agent.cli.screen import Screen, visible
from agent.cli.standing_answers import StandingAnswers, says_always
from agent.cli.telling import command_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAsked

__all__ = ["STOPS", "Person", "approval_question", "has_letters_of_stop", "read_answer", "says_stop"]

PROMPTS = 3  # how often one question is put


def approval_question(command: str) -> str:
    """Return the one line that asks for approval: the command exactly as proposed, what cannot be seen escaped."""
    return f"Approve command: {visible(command)}? (yes/no)"


def read_answer(line: str) -> bool | None:
    """Return what a line answers, or None when that is neither yes nor no."""
    return {"yes": True, "y": True, "no": False, "n": False}.get(line.strip().lower())


def says_stop(line: str) -> bool:
    """Whether a line holds the word "stop"."""
    return re.search(r"\bstop\b", line, re.IGNORECASE) is not None


def has_letters_of_stop(line: str) -> bool:
    """Whether a line holds the letters of "stop", in a word or alone (S1 7.3)."""
    return "stop" in line.lower()


STOPS = {"word": says_stop, "letters": has_letters_of_stop}
"""Which typed lines stop a run, by the option `stop_text`."""


class Person:
    """Whoever types: lines go to the open question, and one that says stop stops the run.

    `present` is false when standard input is no terminal; then nobody is asked.
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
        self._screen.labelled("question", asked.question, "question")
        try:
            with lines, self._question:
                return await self._dialog(asked.call, lines.receive)
        finally:
            self._question = None

    async def _dialog(self, call: ToolCall, next_line: Callable[[], Awaitable[str]]) -> bool | str:
        for _ in range(PROMPTS):
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
