"""Bounds of output: keeps its beginning, its end or both, by bytes and lines, and all of it in a file."""

import atexit
import codecs
import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from attrs import asdict, evolve, field, frozen, validators

from agent.vocabulary.messages import ToolResult

_CONTINUATION = bytes(range(0x80, 0xC0))  # UTF-8 continuation bytes


def keep_head(content: bytes, limit: int, total: int) -> str:
    """Return the first `limit` bytes as text, with a notice if `total` is more than that."""
    if total <= limit:
        return content.decode("utf-8", "replace")
    return f"{_head(content[:limit])}\n[output truncated: the first {limit} of {total} bytes]"


def _head(content: bytes) -> str:
    """Return the text of the beginning of an output, without an incomplete character at its end."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(content)


def _tail(content: bytes) -> bytes:
    """Drop the incomplete character at the beginning: at most three bytes."""
    dropped = min(len(content), 4) - len(content[:4].lstrip(_CONTINUATION))
    return content if dropped > 3 else content[dropped:]


MOST_LINES, MOST_BYTES = 2000, 50 * 1024
"""Limits of the text that `read`, `bash`, `grep`, `find` and `ls` show."""


@frozen
class Cut:
    """The kept part of a text. `cut_by`: the limit that was reached, None if everything is there.

    `partial_line`: the line at the edge is incomplete.
    """

    text: str
    cut_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    kept_lines: int
    kept_bytes: int
    partial_line: bool = False

    def details(self) -> dict[str, Any]:
        """Return the numbers for a tool's details; `truncation` only if something was left out."""
        numbers = {name: value for name, value in asdict(self).items() if name != "text"}
        return {} if self.cut_by is None else {"truncation": numbers}


def cut_head(content: bytes, *, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES) -> Cut:
    """Keep the beginning of `content`, up to both limits."""
    return _cut(content, most_lines, most_bytes, at_end=False)


def _cut(content: bytes, most_lines: int, most_bytes: int, *, at_end: bool) -> Cut:
    lines = io.BytesIO(content).readlines()
    nearest = lines[::-1] if at_end else lines
    count, size = 0, 0
    while count < min(len(lines), most_lines) and size + len(nearest[count]) <= most_bytes:
        size += len(nearest[count])
        count += 1
    cut_by: Literal["lines", "bytes"] | None = None
    if partial := count == 0 and bool(lines) and most_lines > 0:
        kept = _tail(nearest[0][-most_bytes:]) if at_end else _head(nearest[0][:most_bytes]).encode()
        cut_by = "bytes"
    else:
        kept = content[len(content) - size :] if at_end else content[:size]
        if count < len(lines):
            cut_by = "lines" if count == most_lines else "bytes"
    text = kept.decode("utf-8", "replace")
    return Cut(text, cut_by, len(lines), len(content), count + partial, len(kept), partial)


def tell_lines(
    lines: Sequence[str], notices: Sequence[str] = (), *, empty: str, details: Mapping[str, Any] | None = None
) -> ToolResult:
    """Return the lines of a list, or `empty`, with notices of what is missing in brackets after it."""
    cut = cut_head("\n".join(lines).encode("utf-8", "replace"), most_lines=max(len(lines), 1))
    reasons = [*notices, *([] if cut.cut_by is None else [f"{size_in_words(MOST_BYTES)} limit reached"])]
    text = cut.text.rstrip("\n") or empty
    return ToolResult(
        f"{text}\n\n[{'. '.join(reasons)}]" if reasons else text, details={**cut.details(), **(details or {})}
    )


def cut_line(line: str, most: int) -> str:
    """Return a line with at most `most` characters, and a mark if it was cut."""
    return line if len(line) <= most else f"{line[:most]}... [line cut]"


def size_in_words(count: int) -> str:
    """Return a number of bytes in words: 51200 is 50 KB."""
    for power, name in ((3, "GB"), (2, "MB"), (1, "KB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.4g} {name}"
    return f"{count} bytes"


CODES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]"
)  # colours, movements, titles and other sequences of terminals
UNREADABLE = re.compile("[\0-\x06\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
STATES = re.compile(r"(?m)^(?:[^\r\n]*\r)+(?=[^\r\n])")
BINARY_FROM = 0.1  # of the characters


def readable(text: str, size: int) -> str:
    """Return an output as a person reads it: without codes for a terminal, of a line that is redrawn its last state.

    Of one that is no text only its `size` in bytes is told.
    """
    if len(UNREADABLE.findall(text)) > BINARY_FROM * len(text):
        return f"[binary output, {size_in_words(size)}, not shown; write it to a file]\n"
    text = without_backspaces(CODES.sub("", text))
    shown, redrawn = STATES.subn("", text)
    left_out = f"\n[lines that were redrawn: {redrawn}; their last states are shown]\n"
    return shown.rstrip("\n") + left_out if redrawn else shown


def without_backspaces(text: str) -> str:
    """Return a text in which each backspace has removed the character before it, as in pages of `man`."""
    if "\b" not in text:
        return text
    kept = list[str]()
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


MOST_KEPT = 512 * 1024 * 1024  # bytes of all files together

_folders: dict[int, str] = {}  # by process ID, since a forked process needs its own


def _folder() -> str:
    """Return the folder of this process; created on first use, and again if it was removed."""
    from agent.tools.temporary import make_folder  # a slow import (4 ms)

    if (kept := outputs_folder()) is not None:
        return kept
    folder = make_folder("outputs")
    atexit.register(folder.remove)
    _folders[os.getpid()] = folder.path
    return folder.path


def outputs_folder() -> str | None:
    """Return the real path of the folder with this process's complete outputs; None if there is none."""
    folder = _folders.get(os.getpid())
    return folder if folder is not None and os.path.isdir(folder) else None


def _make_room(folder: str, size: int) -> None:
    """Remove the oldest files until `size` more bytes fit."""
    with os.scandir(folder) as entries:
        found = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
    total = sum(os.lstat(path).st_size for _, path in found)
    for _, path in found:
        if total + size <= MOST_KEPT:
            return
        total -= os.lstat(path).st_size
        os.unlink(path)


class Spill:
    """A file with the first `quota` bytes of an output."""

    def __init__(self, quota: int) -> None:
        from tempfile import mkstemp  # a slow import

        self.path: str | None = None
        self._quota, self._written, self._problem = quota, 0, ""
        self._file: BinaryIO | None = None
        try:
            folder = _folder()
            _make_room(folder, quota)
            descriptor, self.path = mkstemp(prefix="output-", suffix=".txt", dir=folder)
            self._file = os.fdopen(descriptor, "wb", buffering=0)
        except OSError as error:
            self._problem = str(error.strerror)

    def add(self, piece: bytes) -> None:
        """Write the next bytes, as far as they fit."""
        rest = memoryview(piece)[: self._quota - self._written]
        try:
            while rest and self._file is not None and not self._problem:
                count = self._file.write(rest) or 0
                self._written += count
                rest = rest[count:]
        except OSError as error:  # the disk is full: the command goes on
            self._problem = str(error.strerror)

    def close(self) -> None:
        """Close the descriptor."""
        if self._file is not None:
            self._file.close()

    def told(self) -> str:
        """Return a sentence with the place of the output."""
        if self._problem:
            return f"all of it could not be kept: {self._problem}"
        part = "all of it" if self._written < self._quota else f"its first {size_in_words(self._written)}"
        return f"{part} is in {self.path}"


QUOTA = 64 * 1024 * 1024  # bytes of one output in a file


@frozen
class Retention:
    """Bounds of an output: `limit` bytes, `lines` lines, and which end is kept; `spill`: all of it goes to a file."""

    limit: int = field(default=200 * 1024, validator=validators.ge(1))
    lines: int | None = None
    keep: Literal["both", "head", "tail"] = "both"
    spill: bool = False
    quota: int = QUOTA

    def collector(self) -> "Retained":
        """Return a collector for one output."""
        return Retained(self)


class Retained:
    """The kept part of one output; memory holds the limit and one piece."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._total = 0
        self._newlines = 0
        half, whole = retention.limit // 2, retention.limit + 1  # one more byte shows that there was more
        rooms = {"both": (retention.limit - half, half), "head": (whole, 0), "tail": (0, whole)}
        self._head_room, self._tail_room = rooms[retention.keep]
        self._head, self._tail = bytearray(), bytearray()
        self._spill: Spill | None = None

    def add(self, piece: bytes) -> None:
        """Add the next bytes."""
        self._total += len(piece)
        self._newlines += piece.count(b"\n")
        if self._retention.spill and self._total > self._retention.limit:
            self._spilled().add(piece)
        room = self._head_room - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        del self._tail[: max(0, len(self._tail) - self._tail_room)]

    def readable(self, text: str) -> str:
        """Return what was the `text` of this output as a person reads it."""
        return readable(text, self._total)

    @property
    def is_empty(self) -> bool:
        """Return whether there was no output."""
        return not self._total

    @property
    def truncated(self) -> bool:
        """Return whether something was left out."""
        if self._retention.keep != "both":
            return self._cut().cut_by is not None
        return self._left_out > 0 or self._newlines > (self._retention.lines or self._newlines)

    @property
    def path(self) -> str | None:
        """The file with all of the output, after a call of `text`; None if nothing was left out."""
        return None if self._spill is None else self._spill.path

    def _spilled(self) -> Spill:
        if self._spill is None:
            self._spill = Spill(self._retention.quota)
            self._spill.add(bytes(self._head + self._tail))
        return self._spill

    def text(self) -> str:
        """Return the kept text, with a notice of what is missing; invalid UTF-8 becomes U+FFFD."""
        where = ""
        if self._retention.spill and self.truncated:
            self._spilled().close()
            where = self._spilled().told()
        if self._retention.keep == "both":
            return self._within_lines(self._ends()) + (f"\n[{where}]" if where else "")
        cut = self._cut()
        if cut.cut_by is None:
            return cut.text
        reasons = [self._notice(cut), *filter(None, [where])]
        return f"{cut.text.rstrip(chr(10))}\n\n[{'; '.join(reasons)}]"

    def details(self) -> dict[str, Any]:
        """Return the numbers for a tool's details; empty if nothing was left out."""
        numbers = self._cut().details() if self._retention.keep != "both" else {}
        return numbers | ({"fullOutputPath": self.path} if self.path else {})

    def drop(self) -> None:
        """Remove the file of an output that will not be shown."""
        if self._spill is not None:
            self._spill.close()
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)

    @property
    def _left_out(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def _ends(self) -> str:
        if not self._left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = _head(bytes(self._head)), _tail(bytes(self._tail)).decode("utf-8", "replace")
        return f"{head}\n[output truncated: {self._left_out} of {self._total} bytes left out here]\n{tail}"

    def _within_lines(self, text: str) -> str:
        most, lines = self._retention.lines, text.splitlines(keepends=True)
        if most is None or len(lines) <= most:
            return text
        head, tail = lines[: most - most // 2], lines[len(lines) - most // 2 :]
        notice = f"[output truncated: {len(lines) - most} of {len(lines)} lines left out here]\n"
        return "".join([*head, notice, *tail])

    def _cut(self) -> Cut:
        window, most = bytes(self._head or self._tail), self._retention.lines or 10**12
        cut = _cut(window, most, self._retention.limit, at_end=self._retention.keep == "tail")
        total_lines = self._newlines + (not window.endswith(b"\n") and self._total > 0)
        if self._total > len(window) and cut.cut_by is None:
            cut = evolve(cut, cut_by="bytes")
        return evolve(cut, total_bytes=self._total, total_lines=max(total_lines, cut.kept_lines))

    def _notice(self, cut: Cut) -> str:
        is_head = self._retention.keep == "head"
        first = 1 if is_head else cut.total_lines - cut.kept_lines + 1
        if cut.partial_line:
            shown = f"the {'beginning' if is_head else 'end'} of line {first} is shown"
        else:
            shown = f"lines {first} to {first + cut.kept_lines - 1} are shown"
        limit = f" ({size_in_words(self._retention.limit)} limit)" if cut.cut_by == "bytes" else ""
        return f"output truncated: {shown} of {cut.total_lines}{limit}"
