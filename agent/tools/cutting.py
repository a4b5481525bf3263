"""Keep the first or the last lines of a text, by lines and by bytes, and say what was left out (S2).

Lines end with a newline; a text without one at its end has a last line all the same. Whole lines are kept, unless
the one line at the edge is longer than all that may be kept: then a part of it is.
"""

import codecs
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import asdict, frozen

from agent.vocabulary.calls import ToolResult

__all__ = ["MOST_BYTES", "MOST_LINES", "Cut", "cut_head", "cut_line", "cut_tail", "size_in_words", "tell_cut"]

MOST_LINES, MOST_BYTES = 2000, 50 * 1024
"""What `read`, `bash`, `grep`, `find` and `ls` show of a long text."""

_CONTINUATION = range(0x80, 0xC0)  # bytes of UTF-8 that do not begin a character


@frozen
class Cut:
    """What was kept of a text. `cut_by` names the limit that was met, None when everything is there.

    `partial_line`: the line at the edge is shown in part.
    """

    text: str
    cut_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int
    partial_line: bool = False

    def details(self) -> dict[str, Any]:
        """Return the numbers for a tool's details: `truncation` is there only when something was left out."""
        numbers = {name: value for name, value in asdict(self).items() if name != "text"}
        return {} if self.cut_by is None else {"truncation": numbers}


def cut_head(content: bytes, *, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES) -> Cut:
    """Keep the beginning of `content`: at most so many lines, and so many bytes."""
    lines = _lines(content)
    kept, size = 0, 0
    while kept < min(len(lines), most_lines) and size + len(lines[kept]) <= most_bytes:
        size += len(lines[kept])
        kept += 1
    if kept == 0 and lines and most_lines > 0:
        return _cut(_whole_characters(lines[0][:most_bytes]), "bytes", lines, content, 1, partial=True)
    cut_by: Literal["lines", "bytes"] = "lines" if kept == most_lines else "bytes"
    return _cut(content[:size], cut_by if kept < len(lines) else None, lines, content, kept)


def cut_tail(content: bytes, *, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES) -> Cut:
    """Keep the end of `content`: at most so many lines, and so many bytes."""
    lines = _lines(content)
    kept, size = 0, 0
    while kept < min(len(lines), most_lines) and size + len(lines[-kept - 1]) <= most_bytes:
        size += len(lines[-kept - 1])
        kept += 1
    if kept == 0 and lines and most_lines > 0:
        return _cut(from_character(lines[-1][-most_bytes:]), "bytes", lines, content, 1, partial=True)
    cut_by: Literal["lines", "bytes"] = "lines" if kept == most_lines else "bytes"
    return _cut(content[len(content) - size :], cut_by if kept < len(lines) else None, lines, content, kept)


def tell_cut(cut: Cut, notices: Sequence[str], *, empty: str, details: Mapping[str, Any] | None = None) -> ToolResult:
    """Return what was kept of a list, or `empty`; the reasons why it is not all stand after it in brackets."""
    reasons = [*notices, *([] if cut.cut_by is None else [f"{size_in_words(MOST_BYTES)} limit reached"])]
    text = cut.text.rstrip("\n") or empty
    return ToolResult(
        f"{text}\n\n[{'. '.join(reasons)}]" if reasons else text, details={**cut.details(), **(details or {})}
    )


def cut_line(line: str, most: int) -> str:
    """Return a line with at most `most` characters, and a mark where more were."""
    return line if len(line) <= most else f"{line[:most]}... [line cut]"


def from_character(tail: bytes) -> bytes:
    """Drop the rest of a character that was cut in two: at most three bytes."""
    start = next((index for index, byte in enumerate(tail[:4]) if byte not in _CONTINUATION), None)
    if start is None:
        return tail if len(tail) > 3 else b""
    return tail[start:]


def size_in_words(count: int) -> str:
    """Return a number of bytes as people say it: 51200 is 50 KB."""
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 1024:.4g} KB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.4g} MB"


def _lines(content: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _cut(
    kept: bytes,
    cut_by: Literal["lines", "bytes"] | None,
    lines: list[bytes],
    content: bytes,
    count: int,
    *,
    partial: bool = False,
) -> Cut:
    text = kept.decode("utf-8", "replace")
    return Cut(text, cut_by, len(lines), len(content), count, len(kept), partial)


def _whole_characters(head: bytes) -> bytes:
    return codecs.getincrementaldecoder("utf-8")("replace").decode(head).encode("utf-8")
