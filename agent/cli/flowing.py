"""Text that comes in pieces, broken between words where a line is full, before anybody knows what comes next."""

import re

from attrs import define

__all__ = ["Flow"]

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
