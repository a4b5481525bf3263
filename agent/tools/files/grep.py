"""The tool `grep`: lines that match a pattern, with their files and numbers (S2)."""

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from typing import Annotated, Any, BinaryIO

from attrs import field, frozen

from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, tool
from agent.tools.files.find import walk
from agent.tools.output import cut_line, tell_lines
from agent.tools.patterns import LinePattern
from agent.tools.schemas import Limits, Path
from agent.tools.workspace import Files
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

_LOOKED_AT = 8192  # first bytes; with a NUL among them a file is no text

Opened = tuple[str, BinaryIO]  # a text file, and the name that is shown


def text_files(files: Files, path: str) -> Generator[Opened]:
    """Yield the text files at `path`: it itself, or what is below it. The one who takes them closes them.

    Raises PathRefused or OSError for a `path` that cannot be looked into.
    """
    try:
        with files.open_folder(path):
            pass
    except NotADirectoryError:
        yield path.rstrip("/").rpartition("/")[2], files.open_read(path)
        return
    for found in walk(files, path):
        with suppress(OSError, ToolError):
            if found.is_file and (file := _as_text(found.open())) is not None:
                yield found.path, file


def _as_text(file: BinaryIO) -> BinaryIO | None:
    """Return the file, or close it when it holds no text."""
    try:
        if b"\0" not in os.pread(file.fileno(), _LOOKED_AT, 0):
            return file
    except BaseException:
        file.close()
        raise
    file.close()
    return None


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


MOST_MATCHES = 100


def make_grep(files: Files) -> Tool:
    """Return the tool `grep`."""

    @tool(category="read", parallel=True)
    async def grep(
        pattern: str,
        path: Annotated[str, Path("read")] = ".",
        ignoreCase: bool = False,  # noqa: N803, as in S2
        literal: bool = False,
        context: Annotated[int, Limits(minimum=0, maximum=100)] = 0,
        limit: Annotated[int, Limits(minimum=1)] = MOST_MATCHES,
    ) -> ToolResult:
        """Search files for a pattern; you get the lines that match, with file and line number.

        Hidden files are searched; what .gitignore leaves out and what is no text is not. You get at most 100 matches
        and 50 KB, whichever comes first; lines are cut at 500 characters.

        Args:
            pattern: a regular expression as RE2 has them, or a text with `literal`
            path: a directory or a file, relative or absolute
            ignoreCase: take upper and lower case as equal
            literal: take the pattern as a text
            context: lines to show before and after each match
            limit: how many matches, at most
        """
        answer = _Answer(_sought(pattern, literal=literal, ignore_case=ignoreCase), limit, context)
        try:
            await run_in_background(lambda: answer.search(text_files(files, path)))
        finally:
            answer.given_up.set()
        return answer.result()

    return grep


def _sought(pattern: str, *, literal: bool, ignore_case: bool) -> LinePattern:
    try:
        return LinePattern(pattern, literal=literal, ignore_case=ignore_case)
    except ValueError as error:
        cure = "" if literal else "; literal=true takes a text as it is"
        raise ToolError(f"{error}{cure}") from error


@frozen(eq=False)
class _Answer:
    """The matches found so far: at most `limit` matches, and whether there are more."""

    sought: LinePattern
    limit: int
    context: int
    shown: list[Shown] = field(init=False, factory=list)
    counts: list[int] = field(init=False, factory=list)  # matches of each file, those beyond the limit included
    given_up: threading.Event = field(init=False, factory=threading.Event)

    @property
    def room(self) -> int:
        return max(self.limit - sum(self.counts), 0)

    @property
    def is_full(self) -> bool:
        return sum(self.counts) > self.limit

    def search(self, opened: Generator[Opened]) -> None:
        """Search file after file, until the answer is full or given up. Blocks."""
        with closing(opened):
            for name, file in opened:
                with file:
                    if self.given_up.is_set():
                        return
                    self._take(name, file)
                if self.is_full:
                    return

    def _take(self, name: str, file: BinaryIO) -> None:
        numbers = self.sought.lines(file, self.room + 1)
        if numbers and self.room:
            self.shown.extend(show_lines(file, name, numbers[: self.room], self.context))
        self.counts.append(len(numbers))

    def result(self) -> ToolResult:
        """Return what the model is told."""
        notices, details = [], dict[str, Any]()
        if self.is_full:
            notices.append(f"the first {self.limit} matches; use limit={2 * self.limit} for more, or a finer pattern")
            details["matchLimitReached"] = self.limit
        if any(line.cut for line in self.shown):
            notices.append(f"lines were cut at {LONGEST_LINE} characters; use read to see them whole")
            details["linesTruncated"] = True
        return tell_lines([line.text for line in self.shown], notices, empty="(no matches)", details=details)
