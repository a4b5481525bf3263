"""B-threads as lanes in the terminal: a row for each event, a column for each b-thread, from its first deed on."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from agent.cli.screen import Screen, Tone, visible, visible_lines
from agent.history.playback import Shadow
from agent.page.model import MARKS, PageModel
from agent.vocabulary.encoding import to_record
from bp import BProgram, BThread, Step

SIGNS = {letter: sign for letter, sign, _, _ in MARKS}
RANKS = {letter: rank for rank, (letter, _, _, _) in enumerate(MARKS)}
TONES: dict[str, Tone] = {"x": "alarm", "q": "system", "c": "output", "w": "question", "b": "question", "h": "output"}
LINES = 5  # of one text, at most
NARROW = 100  # columns; on narrower screens the lanes stand closer


class Lanes:
    """Draws the steps of a run as they happen; give `show` to an agent as its `on_step`.

    brief: only events that have something to say to people, with what they say.
    """

    def __init__(self, screen: Screen, bthreads: Sequence[BThread], *, brief: bool = False) -> None:
        self._screen = screen
        self._brief = brief
        self._shadow = Shadow(lambda listeners: BProgram(*bthreads, listeners=listeners))
        self._model = PageModel()
        self._named = 0  # lanes whose name was shown
        self._blank = " " if screen.width >= NARROW else ""

    def show(self, step: Step) -> None:
        """Show a step."""
        parts = len(self._model.parts)
        self._model.take(self._shadow.take(to_record(step)))
        row, told = self._model.rows[-1], self._model.parts[parts:]
        if self._brief and told and told[0]["label"] == "told":  # the refusal stands just above
            return
        if told or not self._brief:
            self._name_new(row["marks"])
            self._draw(row, told)

    @staticmethod
    def legend(screen: Screen) -> None:
        """Show what the signs mean."""
        screen.labelled("", "   ".join(f"{sign} {meaning}" for _, sign, _, meaning in MARKS), "system")

    def _name_new(self, marks: Sequence[Sequence[Any]]) -> None:
        """Start a lane, with its name, for each b-thread that appears for the first time."""
        names = list(self._model.lanes)
        needed = max([self._named, *(mark[0] + 1 for mark in marks)])
        for number in range(self._named, needed):
            self._screen.line(f"{self._bars(number)}╷ {visible(names[number])}", "output", whole=True)
        self._named = needed

    def _bars(self, number: int) -> str:
        return f"│{self._blank}" * number

    def _draw(self, row: dict[str, Any], told: Sequence[dict[str, Any]]) -> None:
        signs, refused = self._signs(row["marks"])
        label, text = (told[0]["label"], told[0]["text"]) if told else (row["name"], row["of"])
        tone: Tone = "alarm" if refused else self._tone(told[0]) if told else "output"
        before = len(self._bars(self._named)) + len(f" {label:10} ")
        lines = self._lines(text, told, max(self._screen.width - before, 12))
        self._screen.line(signs + self._screen.painted(f" {label:10} {next(lines, '')}", tone), whole=True)
        for line in lines:
            lit: Tone = "refused" if line.startswith("-") else "good" if line.startswith("+") else tone
            bars = self._screen.painted(self._bars(self._named), "output")
            self._screen.line(f"{bars} {'':10} {self._screen.painted(line, lit)}".rstrip(), whole=True)

    def _signs(self, marks: Sequence[Sequence[Any]]) -> tuple[str, bool]:
        """Return one sign for each lane, and whether one of them is a refusal."""
        best: dict[int, str] = {}
        for lane, letter, *_ in marks:
            if lane not in best or RANKS[letter] < RANKS[best[lane]]:
                best[lane] = letter
        bar, paint = self._screen.painted("│", "output"), self._screen.painted
        letters = (best.get(lane) for lane in range(self._named))
        signs = (paint(SIGNS[letter], TONES[letter]) if letter else bar for letter in letters)
        return "".join(sign + self._blank for sign in signs), "x" in best.values()

    @staticmethod
    def _lines(text: str, told: Sequence[dict[str, Any]], room: int) -> Iterator[str]:
        """Yield the lines of a row, cut to fit: the first ones of a text, the changed ones of a file."""
        texts = [text, *(part["text"] for part in told[1:])]
        lines = [part for each in texts for line in visible_lines(each.strip("\n")) for part in _wrapped(line, room)]
        yield from lines[:LINES]
        if len(lines) > LINES:
            yield f"… {len(lines) - LINES} more lines"
        yield from (line[:room] for part in told for line in part.get("diff", ()) if line[:1] in "+-")

    @staticmethod
    def _tone(part: dict[str, Any]) -> Tone:
        tones: dict[str, Tone] = {
            "person": "question", "agent": "agent", "call": "action", "refused": "refused", "question": "question",
            "end": "title",
        }  # fmt: skip
        return tones.get(part["kind"].partition(" ")[0], "output")


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, drop_whitespace=False, break_on_hyphens=False) or [""]
