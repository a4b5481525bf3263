"""Print the lines of open files in which a pattern matches: a program of its own, so that it can be killed.

    python -I -S line_finder.py PATTERN FLAGS MOST DESCRIPTOR...

For each line one line is printed: the descriptor, a NUL, the line's number. `FLAGS` may hold an i; `MOST` lines of
each file are named. Whole pieces are searched at once: a line that matches alone matches in its piece, too, at
the same place, so that only what was found there has to be looked at once more, alone.
"""

import os
import re
import sys

_PIECE = 4 << 20  # bytes read at once
_LONGEST = 64 << 20  # bytes of a line; a longer one is searched in parts


def find_lines(content: bytes, in_piece: "re.Pattern[str]", in_line: "re.Pattern[str]") -> list[int]:
    """Return the numbers of the lines in `content` that match, from 0."""
    text = content.decode("utf-8", "surrogateescape")
    found, number, position, counted = [], 0, 0, 0
    while position < len(text) and (match := in_piece.search(text, position)) is not None:
        begin = text.rfind("\n", 0, match.start()) + 1
        end = len(text) if (newline := text.find("\n", begin)) == -1 else newline
        if begin == len(text):
            break
        if in_line.search(text[begin:end]):
            number += text.count("\n", counted, begin)
            counted = begin
            found.append(number)
        position = end + 1
    return found


def search(descriptor: int, in_piece: "re.Pattern[str]", in_line: "re.Pattern[str]", most: int) -> None:
    """Print up to `most` lines of one file."""
    rest, number, printed = b"", 1, 0
    while printed < most:
        piece = os.read(descriptor, _PIECE)
        content = rest + piece
        cut = content.rfind(b"\n") + 1 if piece else len(content)
        cut = len(content) if cut == 0 and len(content) > _LONGEST else cut
        for line in find_lines(content[:cut], in_piece, in_line)[: most - printed]:
            print(f"{descriptor}\0{number + line}")
            printed += 1
        number += content.count(b"\n", 0, cut)
        rest = content[cut:]
        if not piece:
            return


def main(arguments: list[str]) -> None:
    """Search the files whose descriptors are given."""
    pattern, flags, most, *descriptors = arguments
    options = re.IGNORECASE if "i" in flags else 0
    for descriptor in descriptors:
        search(int(descriptor), re.compile(pattern, options | re.MULTILINE), re.compile(pattern, options), int(most))


if __name__ == "__main__":
    main(sys.argv[1:])
