"""Show matching lines of a file with the lines around them (S2): `name:12: match` and `name-13: context`."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from attrs import frozen

from agent.tools.cutting import cut_line

__all__ = ["LONGEST_LINE", "Shown", "show_lines"]

LONGEST_LINE = 500  # characters
_READ_AT_ONCE = 4 * LONGEST_LINE + 8  # bytes of a line that are looked at


@frozen
class Shown:
    """One line of the answer; `cut` tells that the file's line is longer."""

    text: str
    cut: bool


def show_lines(file: BinaryIO, name: str, matches: Sequence[int], context: int) -> Iterator[Shown]:
    """Yield the lines with the numbers `matches` (sorted, from 1), and `context` lines before and after each, once."""
    file.seek(0)
    wanted = iter(matches)
    here = next(wanted, None)
    until = 0  # the last line of the context of a match that has been
    for number, line in _numbered(file, (matches[-1] if matches else 0) + context):
        while here is not None and here < number:
            until, here = here + context, next(wanted, None)
        is_match = number == here
        if is_match or number <= until or (here is not None and number >= here - context):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            shown = cut_line(text, LONGEST_LINE)
            yield Shown(f"{name}{':' if is_match else '-'}{number}: {shown}", shown != text)


def _numbered(file: BinaryIO, last: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines up to `last` with their numbers; of a long one the beginning."""
    for number in range(1, last + 1):
        line = piece = file.readline(_READ_AT_ONCE)
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(1 << 20)
        if not line:
            return
        yield number, line
