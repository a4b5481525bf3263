"""The input line of the user, below the lines that still change. It uses prompt_toolkit, for terminals only."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field
from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter, WordCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from agent.cli.runs import append_privately
from agent.cli.screen import Screen, Tone, size_of
from agent.vocabulary.calls import ToolCall

KEYS = {"y": "yes", "a": "always", "w": "why"}
"""Keys that answer a question at once, each with its word."""

BEGINNINGS = {"n": "no, ", "e": "edit "}
"""Keys that begin an answer; the user types the rest."""

REST_OF_EDIT = "dit "

REST_OF_NO = re.compile("^no, (?:o?$|o?[,:] ?)")
"""A no without a reason, also with the rest of the word typed after the key n has inserted "no"."""

SETTLED = 0.7
"""Seconds for which a question is open before a single key answers it: earlier keys belong to the text being typed."""

HINT, OF_COMMANDS = "[y/n] [a]lways [e]dit [w]hy > ", "[e]dit "
HINT_OF_OFFER = "[y/n] > "
HINT_OF_BEGUN = "(Enter sends, Esc goes back) > "


@define(eq=False, slots=False)
class Editor:
    """The input line. All functions are called in the event loop's thread.

    history: the file that keeps typed lines, except answers to questions. lines: those above the prompt. prompt: the
    text before the line. question: the call that is asked about, or an offer in words, to which yes and no are the only
    answers; None without a question. hear: takes a line. leave: called at the end of input. interrupt: called at
    Ctrl-C. commands: words with a slash, with their purposes.
    Invariants: `_begun` is the text that a key inserted as the beginning of an answer; when it is deleted, SETTLED
    seconds pass before a letter is a key again. The screen names keys only while they count.
    """

    screen: Screen
    history: Path
    lines: Callable[[], list[tuple[Tone, str]]]
    prompt: Callable[[], str]
    question: Callable[[], ToolCall | str | None]
    hear: Callable[[str], None]
    leave: Callable[[], None]
    interrupt: Callable[[], None]
    commands: dict[str, str]
    _begun: str = field(default="", init=False)
    _asked: ToolCall | str | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)
    _rest: str = field(default="", init=False)  # the rest of a word whose first letter was taken for a key
    _answered: float = field(default=0.0, init=False)
    _session: PromptSession[str] | None = field(default=None, init=False)

    async def run(self, *, typing: bool) -> None:
        """Show the lines, and with `typing` take some, until cancelled or at the end of input."""
        if typing:
            await self._run(create_input(), self._file_history())
            return
        with create_pipe_input() as nothing:
            await self._run(nothing, InMemoryHistory())

    async def _run(self, source: Any, history: History) -> None:
        self._session = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation="… ",
            history=history,
            completer=Completions(self.commands),
            complete_while_typing=Condition(self._is_word_to_complete),
            key_bindings=self._keys(),
            input=source,
            output=_output(self.screen),
            erase_when_done=True,
            refresh_interval=0.5,
            enable_suspend=True,
            reserve_space_for_menu=6,
        )
        self._session.app.min_redraw_interval = 0.05
        self._session.default_buffer.accept_handler = self._accept
        self.screen.beside = self._beside
        try:
            await self._session.prompt_async(handle_sigint=False, set_exception_handler=False)
        except EOFError:
            self.leave()
        finally:
            self.screen.beside = None

    def refresh(self) -> None:
        """Show the lines as they are now."""
        if self._session is not None and self._session.app.is_running:
            self._session.app.invalidate()

    def _beside(self, write: Callable[[], None]) -> None:
        """Write above the changing lines."""
        app = None if self._session is None else self._session.app
        if app is None or not app.is_running:
            return write()
        with suppress(OSError):  # the terminal is gone
            app.renderer.erase()
        write()
        app.invalidate()
        return None

    def _file_history(self) -> History:
        try:
            append_privately(self.history, b"")
        except OSError:
            return InMemoryHistory()
        return PromptHistory(str(self.history))

    def _accept(self, buffer: Buffer) -> bool:
        """Take the line. Returns False: the buffer is emptied."""
        is_answer = self.question() is not None
        if isinstance(buffer.history, PromptHistory):
            buffer.history.is_answer = is_answer
        line = REST_OF_NO.sub("no, ", self._begun + buffer.text).removesuffix(", ") if self._begun else buffer.text
        self._begun = ""
        if line.strip():
            self.screen.labelled("you", line, "question")
        self.hear(line)
        return False

    def _message(self) -> ANSI:
        prompt: tuple[Tone, str] = ("agent", self.prompt())
        if self._answers_at_once():
            hint = HINT if self._command() else HINT.replace(OF_COMMANDS, "")
            prompt = ("question", HINT_OF_OFFER if isinstance(self._asked, str) else hint)
        elif self._is_begun():
            prompt = ("question", HINT_OF_BEGUN + self._begun)
        room = max(size_of(self.screen.stream)[1] - 4, 1)
        return ANSI("\n".join(self.screen.painted(line, tone) for tone, line in (*self.lines()[-room:], prompt)))

    def _is_word_to_complete(self) -> bool:
        buffer = None if self._session is None else self._session.default_buffer
        word = "" if buffer is None else buffer.document.text_before_cursor.rpartition(" ")[2]
        return word[:1] in ("/", "@")

    # Keys.

    def _answers_at_once(self) -> bool:
        """Return whether a single key is an answer: nothing is typed, and the question was shown before the key."""
        return self._is_settled() and self._is_empty() and not self._begun and not self._is_typed_on()

    def _is_empty(self) -> bool:
        return self._session is not None and not self._session.default_buffer.text

    def _is_begun(self) -> bool:
        """Return whether a key has begun the answer to the question that is open."""
        return self._is_settled() and bool(self._begun)

    def _is_typed_on(self) -> bool:
        """Return whether the next key may belong to the word whose first letter was an answer."""
        return bool(self._rest) and asyncio.get_running_loop().time() < self._answered + SETTLED

    def _is_settled(self) -> bool:
        """Return whether the question has been open for SETTLED seconds; restart the clock for another question."""
        question, now = self.question(), asyncio.get_running_loop().time()
        if question is not self._asked:
            self._asked, self._since, self._begun = question, now, ""
        return question is not None and now >= self._since + SETTLED

    def _keys(self) -> KeyBindings:
        keys, at_once, is_begun = KeyBindings(), Condition(self._answers_at_once), Condition(self._is_begun)
        is_of_call = Condition(lambda: not isinstance(self._asked, str))
        for key in (*KEYS, "n"):
            keys.add(key, filter=at_once if key in "yn" else at_once & is_of_call)(self._answer)
        keys.add("e", filter=at_once & Condition(lambda: bool(self._command())))(self._answer)
        keys.add("escape", filter=is_begun, eager=True)(self._take_back)
        keys.add("backspace", filter=is_begun & Condition(self._is_empty))(self._take_back)
        for enter in ("enter", "c-j"):
            keys.add(enter, filter=~is_searching)(self._enter)
        keys.add(Keys.Any, filter=Condition(self._is_typed_on))(self._type_on)
        keys.add("escape", "enter", filter=~is_searching)(lambda event: event.current_buffer.insert_text("\n"))
        keys.add("c-c", filter=~is_searching)(self._interrupt)
        return keys

    def _answer(self, event: KeyPressEvent) -> None:
        if event.data in KEYS:
            event.current_buffer.text = KEYS[event.data]
            event.current_buffer.validate_and_handle()
            self._rest, self._answered = f"{KEYS[event.data][1:]}\n", asyncio.get_running_loop().time()
        else:
            self._begun = BEGINNINGS[event.data]
            event.current_buffer.document = Document(self._command() if event.data == "e" else "")
            if event.data == "e":
                self._rest, self._answered = REST_OF_EDIT, asyncio.get_running_loop().time()

    def _command(self) -> str:
        """Return the command in the question; empty for a call of another tool."""
        return str(self._asked.arguments.get("command", "")) if isinstance(self._asked, ToolCall) else ""

    def _take_back(self, event: KeyPressEvent) -> None:
        self._begun, self._rest, self._since = "", "", asyncio.get_running_loop().time()
        event.current_buffer.reset()

    def _type_on(self, event: KeyPressEvent) -> None:
        """Ignore the rest of a word whose first letter was already the answer; anything else is typed as usual.

        If the user types `edit` in full, the inserted command is removed.
        """
        if event.data == self._rest[0]:
            self._rest, self._answered = self._rest[1:], asyncio.get_running_loop().time()
            if not self._rest:
                event.current_buffer.reset()
        else:
            self._rest = ""
            event.current_buffer.insert_text(event.data if event.data.isprintable() else "")

    def _enter(self, event: KeyPressEvent) -> None:
        is_end_of_word = self._is_typed_on() and self._rest == "\n"
        self._rest = ""
        if not is_end_of_word:
            event.current_buffer.validate_and_handle()
            event.current_buffer.load_history_if_not_yet_loaded()  # else only the next redraw does

    def _interrupt(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text or self._begun:
            self._take_back(event)
        else:
            self.interrupt()


class PromptHistory(FileHistory):
    """The lines that the user typed in all sessions, without answers to questions."""

    is_answer = False

    def append_string(self, string: str) -> None:
        """Keep a line."""
        if not self.is_answer:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Append a line, if the file can be written."""
        with suppress(OSError):
            super().store_string(string)


class Completions(Completer):
    """Completes commands at the beginning of a line, and files after an @."""

    def __init__(self, commands: dict[str, str]) -> None:
        """Complete these commands, each with its purpose."""
        self._commands = WordCompleter(list(commands), meta_dict=commands, sentence=True)
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions of the word before the cursor."""
        word = document.text_before_cursor.rpartition(" ")[2]
        if word.startswith("@"):
            yield from self._files.get_completions(Document(word[1:]), complete_event)
        elif document.text_before_cursor.startswith("/"):
            yield from self._commands.get_completions(document, complete_event)


def _output(screen: Screen) -> Vt100_Output:
    def size() -> Size:
        columns, lines = size_of(screen.stream)
        return Size(rows=lines, columns=columns)

    return Vt100_Output(screen.stream, size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False)
