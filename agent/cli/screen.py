"""Text that cannot fake the screen, and colors where a terminal shows them."""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Literal, TextIO

from attrs import frozen

__all__ = ["Screen", "Tone", "screen_on", "visible", "visible_lines"]

Tone = Literal["agent", "action", "output", "good", "refused", "question", "system", "title", "plain"]

COLORS: dict[Tone, str] = {
    "agent": "36",  # cyan
    "action": "1",  # bold
    "output": "2",  # dim
    "good": "32",  # green
    "refused": "1;31",  # bold red
    "question": "1;33",  # bold yellow
    "system": "34",  # blue
    "title": "1;35",  # bold magenta
}

NARROWEST, WIDEST = 40, 120  # columns


def visible(text: str) -> str:
    """Return `text` as one line in which everything can be seen: what is not printable is shown as an escape."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of `text`, each visible; tabs are four spaces."""
    return [visible(line) for line in text.expandtabs(4).replace("\r\n", "\n").split("\n")]


def _escaped(char: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char) or char.encode("unicode_escape").decode("ascii")


@frozen
class Screen:
    """A stream to show lines on. `colored`: it understands ANSI colors. `width` in columns."""

    stream: TextIO
    colored: bool = False
    width: int = 100

    def line(self, text: str = "", tone: Tone = "plain") -> None:
        """Show one line of text that is visible already."""
        self._write(self.painted(text, tone) + "\n")

    def labelled(self, label: str, text: str, tone: Tone) -> None:
        """Show lines under a label, which tells them apart where there are no colors."""
        for number, line in enumerate(visible_lines(text)):
            self.line(f"{label if number == 0 else '':9}{line}".rstrip(), tone)

    def ask(self, question: str) -> None:
        """Show a question and stay on its line."""
        self._write(self.painted(question, "question") + " ")

    def painted(self, text: str, tone: Tone) -> str:
        """Return `text` in the color of `tone`, where there are colors."""
        return f"\x1b[{COLORS[tone]}m{text}\x1b[0m" if self.colored and tone in COLORS else text

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def screen_on(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> Screen:
    """Return a screen on `stream`; colored on a terminal, unless NO_COLOR is set or the terminal is a dumb one."""
    stream = stream or sys.stderr
    is_terminal = stream.isatty()
    colored = is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    columns = shutil.get_terminal_size().columns if is_terminal else 100
    return Screen(stream, colored, min(max(columns, NARROWEST), WIDEST))
