"""Text that cannot fake the screen, colors where a terminal shows them, and lines broken between words."""

import os
import re
import shutil
import textwrap
from collections.abc import Mapping
from typing import Literal, TextIO

from attrs import define, field

PART = re.compile(r"\s+|\S+")


@define
class Flow:
    """Where text stands that flows on between two columns. A blank is held back until the word behind it is there.

    Nothing that was shown moves: a word whose first part had room stays on its line.
    """

    left: int
    right: int
    column: int = 0
    blank: str = ""

    def add(self, lines: list[str]) -> str:
        """Return what is to be shown of further text, given as the lines that it has."""
        shown = self._flowing(lines[0])
        for line in lines[1:]:
            shown += self._newline() + self._flowing(line)
        return shown

    def _flowing(self, line: str) -> str:
        shown = ""
        for part in PART.findall(line):
            if part.isspace():
                self.blank += part
            else:
                shown += self._placed(part)
        return shown

    def _placed(self, word: str) -> str:
        """Return a word with what stands before it: the blank, or the beginning of a line."""
        begins = self.blank or self.column == self.left
        if begins and self.column > self.left and self.column + len(self.blank) + len(word) > self.right:
            before = self._newline()
        else:
            before, self.column = self.blank, self.column + len(self.blank)
        self.blank = ""
        self.column += len(word)
        return before + word

    def _newline(self) -> str:
        self.column, self.blank = self.left, ""
        return "\n" + " " * self.left


Tone = Literal["agent", "action", "output", "good", "refused", "alarm", "question", "system", "title", "plain"]

COLORS: dict[Tone, str] = {
    "agent": "36",  # cyan
    "action": "1",  # bold
    "output": "2",  # dim
    "good": "32",  # green
    "refused": "1;31",  # bold red
    "alarm": "1;97;41",  # white on red
    "question": "1;33",  # bold yellow
    "system": "34",  # blue
    "title": "1;35",  # bold magenta
}

NARROWEST, WIDEST = 40, 120  # columns
SAVE, RESTORE, UP, ERASE, DELETE_LINE = "\x1b7", "\x1b8", "\x1b[1A", "\r\x1b[K", "\x1b[M"
MARGIN = 9  # columns for a label


def visible(text: str) -> str:
    """Return `text` as one line in which everything can be seen: what is not printable is shown as an escape."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of `text`, each visible; tabs are four spaces."""
    return [visible(line) for line in text.expandtabs(4).replace("\r\n", "\n").split("\n")]


def _wrapped(line: str, width: int) -> list[str]:
    """Cut a line between words; a long word (a path, to be copied) stays whole."""
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=True) or [""]


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode("unicode_escape").decode("ascii")


@define(eq=False)
class Screen:
    """A stream to show lines on. `colored`: it understands ANSI colors. `width` in columns.

    `streams`: text is shown as it comes, as on every terminal. `moves`: its cursor can be moved; then, while something
    goes on, it has a status line above the line on which people type, which makes way for whatever is shown. A screen
    that is gone (a closed terminal, a reader that left) shows nothing any more; where it is `needed`, as what is shown
    is all that a command does, the disk that is full is an OSError.
    Invariant: `line_is_open` while the cursor stands behind something on its line; the next line begins a new one.
    """

    stream: TextIO
    colored: bool = False
    moves: bool = False
    streams: bool = False
    width: int = 100
    needed: bool = False
    line_is_open: bool = False
    is_gone: bool = False
    has_status: bool = False
    flow: Flow = field(factory=lambda: Flow(MARGIN, WIDEST))

    def status(self, text: str) -> None:
        """Show what goes on just now, in the place of what was shown of that before; only where the cursor moves."""
        if not self.moves or self.line_is_open:
            return
        line = self.painted(text[: self.width - 1], "output")
        self._write(f"{SAVE}{UP}{ERASE}{line}{RESTORE}" if self.has_status else f"{line}\n")
        self.has_status = True

    def clear_status(self) -> None:
        """Take the status line away."""
        if self.has_status:
            self.has_status = False
            self._write(f"{ERASE}{UP}{ERASE}")

    def entered(self) -> None:
        """Keep a line that the user has typed and entered; the status line above it goes."""
        self.line_is_open = False
        if self.has_status:
            self.has_status = False
            self._write(f"{UP}{UP}{DELETE_LINE}\x1b[1B\r")

    def piece(self, label: str, text: str, tone: Tone) -> None:
        """Show a piece of text as it comes, under a label when it begins; the next line begins a new one."""
        self.clear_status()
        first = "" if self.line_is_open else f"{label:{MARGIN}}"
        if not self.line_is_open:
            self.flow = Flow(MARGIN, self.width, column=MARGIN)
        self._write(self.painted(first + self.flow.add(visible_lines(text)), tone))
        self.line_is_open = True

    def line(self, text: str = "", tone: Tone = "plain") -> None:
        """Show one line of text that is visible already."""
        self.clear_status()
        beginning = "\n" if self.line_is_open else ""
        self.line_is_open = False
        self._write(f"{beginning}{self.painted(text, tone)}\n")

    def labelled(self, label: str, text: str, tone: Tone) -> None:
        """Show lines under a label, which tells them apart where there are no colors."""
        lines = [part for line in visible_lines(text) for part in _wrapped(line, self.width - MARGIN)]
        for number, line in enumerate(lines):
            self.line(f"{label if number == 0 else '':{MARGIN}}{line}".rstrip(), tone)

    def paragraph(self, text: str, indent: str = "") -> None:
        """Show text in as many lines as it takes, all but the first indented."""
        first, *others = _wrapped(visible(text), self.width - len(indent))
        for line in (first, *(f"{indent}{line}" for line in others)):
            self.line(line)

    def ask(self, question: str) -> None:
        """Show a question and stay on its line."""
        self.clear_status()
        self._write(self.painted(question, "question") + " ")
        self.line_is_open = True

    def painted(self, text: str, tone: Tone) -> str:
        """Return `text` in the color of `tone`, where there are colors."""
        return f"\x1b[{COLORS[tone]}m{text}\x1b[0m" if self.colored and tone in COLORS else text

    def _write(self, text: str) -> None:
        if self.is_gone:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError as error:
            self.is_gone = True
            if self.needed and not isinstance(error, BrokenPipeError):
                raise


def screen_on(stream: TextIO, environ: Mapping[str, str] = os.environ, *, needed: bool = False) -> Screen:
    """Return a screen on `stream`. On a terminal text streams; a dumb one has no colors and no status line.

    NO_COLOR takes the colors away, and nothing else.
    """
    is_terminal = stream.isatty()
    moves = is_terminal and environ.get("TERM") != "dumb"
    colored = moves and not environ.get("NO_COLOR")
    columns = shutil.get_terminal_size().columns if is_terminal else 100
    return Screen(stream, colored, moves, is_terminal, min(max(columns, NARROWEST), WIDEST), needed)
