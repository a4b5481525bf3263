"""What an edit changed, as a unified diff with line numbers that other programs understand too."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

__all__ = ["Difference", "compare"]

_CONTEXT = 3  # lines around what changed
_MOST_COMPARED = 2000  # lines in which single changes are looked for; more are shown as one change

Operation = tuple[str, int, int, int, int]  # as difflib has them: what happened, and where in both sides


@frozen
class Difference:
    """A unified diff, and the number of the first line that changed."""

    diff: str
    first_changed_line: int


def compare(old: str, start: int, end: int, new: str, path: str) -> Difference:
    """Return what changes when characters `start` to `end` of `old` become `new`. Looks at the lines near by only."""
    begin = old.rfind("\n", 0, start) + 1
    finish = len(old) if (newline := old.find("\n", end)) == -1 else newline + 1
    before, after = _lines(old[begin:finish]), _lines(old[begin:start] + new + old[end:finish])
    above, below = _lines(old[_lines_back(old, begin) : begin]), _lines(old[finish : _lines_on(old, finish)])
    same = _common(before, after)
    operations = _operations(above, before, after, below, same)
    first = old.count("\n", 0, start) + 1  # the line with which `before` begins
    sides = [*above, *before, *below], [*above, *after, *below]
    hunks = "".join(_hunks(operations, *sides, first - len(above)))
    name = path.lstrip("/")
    return Difference(f"--- a/{name}\n+++ b/{name}\n{hunks}", first + same)


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(before), len(after)))


def _operations(
    above: Sequence[str], before: Sequence[str], after: Sequence[str], below: Sequence[str], same: int
) -> list[Operation]:
    """Return what happened; the lines around, and those with which both sides begin or end, stay as they are."""
    room = min(len(before), len(after)) - same
    ending = _common(before[::-1][:room], after[::-1][:room])
    one, other = before[same : len(before) - ending], after[same : len(after) - ending]
    start = len(above) + same
    if max(len(one), len(other)) > _MOST_COMPARED:
        inner: list[Operation] = [("replace", 0, len(one), 0, len(other))]
    else:
        inner = list(difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes())
    moved = [(tag, start + a, start + b, start + c, start + d) for tag, a, b, c, d in inner]
    after_one, after_other, rest = start + len(one), start + len(other), ending + len(below)
    around = ("equal", 0, start, 0, start), ("equal", after_one, after_one + rest, after_other, after_other + rest)
    return [around[0], *moved, around[1]]


class _Known(difflib.SequenceMatcher[str]):
    """Groups what is known. What a matcher finds by itself may lie at the edge of the text, and cannot be applied."""

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self._operations = operations

    def get_opcodes(self) -> Any:
        return self._operations


def _hunks(operations: list[Operation], old: Sequence[str], new: Sequence[str], first: int) -> Iterator[str]:
    """Yield the lines of the diff; `first` is the number of the first line of both sides."""
    for group in _Known(operations).get_grouped_opcodes(_CONTEXT):
        old_range = _range(first, group[0][1], group[-1][2])
        new_range = _range(first, group[0][3], group[-1][4])
        yield f"@@ -{old_range} +{new_range} @@\n"
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (_line(" ", line) for line in old[old_start:old_end])
            else:
                yield from (_line("-", line) for line in old[old_start:old_end])
                yield from (_line("+", line) for line in new[new_start:new_end])


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(first: int, start: int, end: int) -> str:
    """Return a range as a diff has it; an empty one is named by the line before it."""
    length = end - start
    line = first + start
    return f"{line}" if length == 1 else f"{line if length else line - 1},{length}"


def _lines(text: str) -> list[str]:
    """Split at newlines only: other line ends of Unicode are part of a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _lines_back(text: str, position: int) -> int:
    for _ in range(_CONTEXT):
        if position == 0:
            break
        position = text.rfind("\n", 0, position - 1) + 1
    return position


def _lines_on(text: str, position: int) -> int:
    for _ in range(_CONTEXT):
        newline = text.find("\n", position)
        if newline == -1:
            return len(text)
        position = newline + 1
    return position
