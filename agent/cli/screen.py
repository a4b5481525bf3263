"""Output to a terminal that text from models and tools cannot forge: labelled lines, colors and markdown."""

import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import TYPE_CHECKING, Literal, TextIO

from attrs import define, field

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.markdown import Markdown

Tone = Literal[
    "agent",
    "action",
    "output",
    "good",
    "refused",
    "alarm",
    "question",
    "system",
    "title",
    "plain",
    "added",
    "gone",
    "evidence",
]

COLORS: dict[Tone, str] = {
    "agent": "36",  # cyan
    "action": "1",  # bold
    "output": "2",  # dim
    "good": "32",  # green
    "refused": "1;31",  # bold red
    "alarm": "1;97;41",  # white on red
    "evidence": "1;4;31",  # red and underlined
    "question": "1;33",  # bold yellow
    "system": "34",  # blue
    "title": "1;35",  # bold magenta
    "added": "32",
    "gone": "31",
}

NARROWEST, WIDEST, UNKNOWN = 30, 120, 100  # columns
MARGIN = 9  # columns for a label
PAINT = re.compile(r"\x1b\[[0-9;]*m")
FENCE = re.compile(r"^ {0,3}(```|~~~)")
PART = re.compile(r"\s+|\S+")
LABEL = re.compile(r" +|(?:\S+ ){0,2}\S*[^\s.,;:!?] {2,}(?=\S)")
"""The prefix of a line: blanks, or a label of up to three words and two blanks."""

WHOLE: tuple[Tone, ...] = ("action", "question")
"""The tones of commands, which are never wrapped, since users copy them and need to see every blank."""


def visible(text: str) -> str:
    """Return `text` as one line in which everything is visible: unprintable characters are escaped."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of `text`, each visible; tabs are four spaces."""
    return [visible(line) for line in text.expandtabs(4).replace("\r\n", "\n").split("\n")]


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode("unicode_escape").decode("ascii")


def columns_of(text: str) -> int:
    """Return the columns that a text takes on a terminal: Chinese, Japanese and Korean characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, columns: int) -> str:
    """Return a text cut to this number of columns, with an ellipsis if it is cut."""
    if columns_of(text) <= columns:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(columns - 1, 0)).rstrip() + "…"


def wrapped(line: str, columns: int) -> list[str]:
    """Wrap a line between words. A word of ASCII (a path, to be copied) stays whole, others are cut if they must.

    Further lines are indented like the first, or like the text beside its label.
    """
    label = LABEL.match(line)
    hang = label.end() if label is not None and label.end() <= columns // 2 else 0
    if line.isascii():
        indent = " " * hang
        cut = textwrap.wrap(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        return cut or [""]
    from rich.cells import chop_cells

    lines = [""]
    for part in PART.findall(line):
        if columns_of(lines[-1]) + columns_of(part) <= columns:
            lines[-1] += part
        elif not part.isspace():
            pieces = [part] if part.isascii() else chop_cells(part, columns - hang)
            first = f"{lines.pop()}{pieces.pop(0)}" if not lines[-1].strip() else None
            lines += [*([first] if first else []), *(f"{'':{hang}}{piece}" for piece in pieces)]
    return [each.rstrip() for each in lines]


@define
class Blocks:
    """Text that comes in pieces. `rest` follows the last complete block of markdown."""

    rest: str = ""

    def add(self, text: str) -> Iterator[str]:
        """Take more text; yield the blocks that it completes: those before an empty line outside of fenced code."""
        self.rest += text
        while (end := self._end()) is not None:
            block, self.rest = self.rest[:end].strip("\n"), self.rest[end:].lstrip("\n")
            if block.strip():
                yield block

    def finish(self) -> Iterator[str]:
        """Yield the rest as the last block."""
        block, self.rest = self.rest.strip("\n"), ""
        if block.strip():
            yield block

    def _end(self) -> int | None:
        """Return where the first block of `rest` ends, None while it may still grow."""
        fence, position = "", 0
        lines = self.rest.split("\n")
        for line in lines[:-1]:
            mark = FENCE.match(line)
            if mark is not None and fence in ("", mark[1]):
                fence = "" if fence else mark[1]
            elif not fence and not line.strip() and position:
                return position
            position += len(line) + 1
        return None


@define(eq=False)
class Screen:
    """A stream to show lines on. `colored`: it understands ANSI colors. `columns`: its width, None: the terminal's.

    `streams`: it is a terminal, and text is shown as it comes. `moves`: its cursor can be moved; then the lines that
    change (the model's unfinished paragraph, the output of a tool, the status) are below all others, and `beside`
    writes above them. A closed terminal or pipe ignores further output; if the screen is `needed`, since its output is
    the only result of a command, a full disk raises OSError. Invariant: `line_is_open` while the cursor is behind text
    on its line; the next line begins a new one.
    """

    stream: TextIO
    colored: bool = False
    moves: bool = False
    streams: bool = False
    columns: int | None = UNKNOWN
    needed: bool = False
    line_is_open: bool = False
    is_gone: bool = False
    beside: Callable[[Callable[[], None]], None] | None = None
    blocks: Blocks = field(factory=Blocks)
    has_begun_text: bool = False

    @property
    def width(self) -> int:
        """Its present width in columns."""
        return self.columns or min(max(size_of(self.stream)[0], NARROWEST), WIDEST)

    def piece(self, label: str, text: str, tone: Tone) -> None:
        """Take a piece of text; complete blocks are shown under a label."""
        for block in self.blocks.add(text):
            self._show_block(label, block, tone)

    def end_of_text(self, label: str, tone: Tone) -> None:
        """Show the rest of a text that came in pieces."""
        for block in self.blocks.finish():
            self._show_block(label, block, tone)
        self.has_begun_text = False

    def _show_block(self, label: str, block: str, tone: Tone) -> None:
        if self.has_begun_text:
            self.line()
        self.markdown("" if self.has_begun_text else label, block, tone)
        self.has_begun_text = True

    def line(self, text: str = "", tone: Tone = "plain", *, whole: bool = False) -> None:
        """Show a line of text that is visible already; on a terminal in as many as it takes, unless it stays whole."""
        lines = [text] if whole or not self._is_too_long(text, tone) else wrapped(text, self.width)
        beginning = "\n" if self.line_is_open else ""
        self.line_is_open = False
        self._write(beginning + "".join(f"{self.painted(line, tone)}\n" for line in lines))

    def _is_too_long(self, text: str, tone: Tone) -> bool:
        return self.streams and tone not in WHOLE and columns_of(PAINT.sub("", text)) > self.width

    def labelled(self, label: str, text: str, tone: Tone) -> None:
        """Show lines under a label, which distinguishes them without colors."""
        lines = [part for line in visible_lines(text) for part in wrapped(line, self.width - MARGIN)]
        for number, line in enumerate(lines):
            self.line(f"{label if number == 0 else '':{MARGIN}}{line}".rstrip(), tone)

    def markdown(self, label: str, text: str, tone: Tone) -> None:
        """Show text under a label as rendered markdown; unchanged without a terminal."""
        if not self.moves:
            self.labelled(label, text, tone)
            return
        for line in self.rendered(_markdown("\n".join(visible_lines(text))), self.width - MARGIN):
            self.line(f"{self.painted(f'{label:{MARGIN}}', tone)}{line}".rstrip())
            label = ""

    def rendered(self, what: "RenderableType", columns: int) -> list[str]:
        """Return the lines that `rich` renders, without empty ones at both ends and doubled ones within."""
        from rich.console import Console

        console = Console(
            file=StringIO(),
            width=columns,
            force_terminal=True,
            color_system="standard" if self.colored else None,
            legacy_windows=False,
            emoji=False,
            highlight=False,
        )
        with console.capture() as captured:
            console.print(what)
        lines = [line.rstrip() for line in captured.get().strip("\n").split("\n")]
        return [line for place, line in enumerate(lines) if line or lines[place - 1]]

    def paragraph(self, text: str) -> None:
        """Show wrapped text, also without a terminal."""
        for line in wrapped(visible(text), self.width):
            self.line(line)

    def ask(self, question: str) -> None:
        """Show a question, and stay on its line unless the answer is typed on a line of its own."""
        if self.beside is not None:
            self.line(question, "question")
        else:
            self._write(self.painted(question, "question") + " ")
            self.line_is_open = True

    def painted(self, text: str, tone: Tone) -> str:
        """Return `text` in the color of `tone`, if there are colors."""
        return f"\x1b[{COLORS[tone]}m{text}\x1b[0m" if self.colored and tone in COLORS else text

    def _write(self, text: str) -> None:
        if self.is_gone:
            return
        if self.beside is not None:
            self.beside(lambda: self._put(text))
        else:
            self._put(text)

    def _put(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError as error:
            self.is_gone = True
            if self.needed and not isinstance(error, BrokenPipeError):
                raise


def _markdown(text: str) -> "Markdown":
    """Return markdown to be rendered. Links show their address, so that their text cannot hide it."""
    from rich.markdown import Heading, Markdown

    class Left(Heading):
        LEVEL_ALIGN = {**Heading.LEVEL_ALIGN, "h1": "left"}  # noqa: RUF012, as there

    class Text(Markdown):
        elements = {**Markdown.elements, "heading_open": Left}  # noqa: RUF012, as there

    return Text(text, hyperlinks=False, code_theme="ansi_dark", justify="left")


def size_of(stream: TextIO) -> tuple[int, int]:
    """Return columns and lines of the terminal behind a stream; 80 and 24 if unknown."""
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return columns or 80, lines or 24


def screen_on(stream: TextIO, environ: Mapping[str, str] = os.environ, *, needed: bool = False) -> Screen:
    """Return a screen on `stream`. On a terminal text streams; a dumb one has no colors and nothing moves there.

    NO_COLOR removes the colors alone.
    """
    is_terminal = stream.isatty()
    moves = is_terminal and environ.get("TERM") != "dumb"
    colored = moves and not environ.get("NO_COLOR")
    return Screen(stream, colored, moves, is_terminal, None if is_terminal else UNKNOWN, needed)
