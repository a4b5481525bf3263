"""The tool `grep`: lines that match a pattern, with their files and numbers (S2)."""

import os
import pathlib
import resource
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, BinaryIO

from attrs import field, frozen

from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, tool
from agent.tools.files.find import walk
from agent.tools.files.operations import Files
from agent.tools.files.patterns import Engine, Pattern, make_pattern
from agent.tools.output import cut_head, cut_line, tell_cut
from agent.tools.process import Finished, run_process, tool_environment
from agent.tools.schemas import Limits, Path
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

_OUTPUT_LIMIT = 16 << 20  # bytes; a line of output has about twelve
_FINDER = str(pathlib.Path(__file__).with_name("line_finder.py"))


@frozen
class LineSearch:
    """What is looked for, by which engine, for how many seconds at most."""

    pattern: Pattern
    engine: Engine
    ignore_case: bool = False
    timeout: float = 60.0

    async def run(self, descriptors: Sequence[int], most: int) -> dict[int, list[int]]:
        """Return the numbers of matching lines (the first is 1) for each descriptor, at most `most` in each.

        Raises ToolError for a pattern that the engine does not take, or one that takes too long.
        """
        argv = self._rg(descriptors, most) if self.engine == "rg" else self._python(descriptors, most)
        finished = await run_process(
            argv,
            cwd="/",
            env={**tool_environment(), "PYTHONUTF8": "1"},
            timeout=self.timeout,
            output_limit=_OUTPUT_LIMIT,
            pass_fds=descriptors,
        )
        self._check(finished)
        return _numbers(finished.output.splitlines())

    def _rg(self, descriptors: Iterable[int], most: int) -> list[str]:
        case = "--ignore-case" if self.ignore_case else "--case-sensitive"
        options = "--no-config --color=never --no-ignore --no-messages --text --encoding=none"
        output = (
            "--line-number --with-filename --null --no-heading --max-columns=1"  # the lines themselves are left out
        )
        paths = [f"/dev/fd/{descriptor}" for descriptor in descriptors]
        rg = shutil.which("rg") or "rg"
        return [rg, *options.split(), *output.split(), case, f"--max-count={most}", "-e", self.pattern.rg, "--", *paths]

    def _python(self, descriptors: Iterable[int], most: int) -> list[str]:
        flags = "i" if self.ignore_case else "-"
        numbers = [str(descriptor) for descriptor in descriptors]
        return [sys.executable, "-I", "-S", _FINDER, self.pattern.python, flags, str(most), *numbers]

    def _check(self, finished: Finished) -> None:
        if finished.timed_out:
            raise ToolError(
                f"the search took longer than {self.timeout:g} seconds; use a simpler pattern or fewer files"
            )
        failed = finished.exit_code not in (0, 1) if self.engine == "rg" else finished.exit_code != 0
        if failed:
            raise ToolError(f"the search failed: {finished.output[-500:].strip() or finished}")


def best_engine() -> Engine:
    """Return "rg" where that program is on PATH, else "python"."""
    return "rg" if shutil.which("rg") and os.path.isdir("/dev/fd") else "python"


def _numbers(lines: Iterable[str]) -> dict[int, list[int]]:
    found: dict[int, dict[int, None]] = {}
    for descriptor, number in _pairs(lines):
        found.setdefault(descriptor, {})[number] = None
    return {descriptor: list(numbers) for descriptor, numbers in found.items()}


def _pairs(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    for line in lines:
        name, _, rest = line.removeprefix("/dev/fd/").partition("\0")
        number = rest.partition(":")[0]
        if name.isdigit() and number.isdigit():
            yield int(name), int(number)


_MOST_OPEN = 400
_LOOKED_AT = 8192  # first bytes; with a NUL among them a file is no text


@frozen(eq=False)
class Opened:
    """An open text file, under the name that is shown."""

    name: str
    file: BinaryIO


class Batches:
    """Open files, some at a time. `take` blocks and may run in another thread, `close` never waits for it."""

    def __init__(self, files: Iterable[Opened]) -> None:
        self._files = iter(files)
        self._open: list[Opened] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> list[Opened]:
        """Give the files of the batch before back, and return the next ones; none at the end."""
        with self._lock:
            self._give_back()
            limit = min(_MOST_OPEN, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
            for opened in self._files:
                self._open.append(opened)
                if len(self._open) >= limit or self._closed:
                    break
            batch = list(self._open)
        if self._closed:
            self.close()
        return batch

    def close(self) -> None:
        """Give everything back: now, or when the `take` that is under way ends."""
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._give_back()
            if isinstance(self._files, Iterator) and hasattr(self._files, "close"):
                self._files.close()
            self._lock.release()

    def _give_back(self) -> None:
        while self._open:
            self._open.pop().file.close()


def search_among(files: Files, path: str) -> Iterator[Opened]:
    """Yield the text files at `path`: it itself, or what is below it. The one who takes them closes them.

    Raises PathRefused or OSError for a `path` that cannot be looked into.
    """
    try:
        with files.open_folder(path):
            pass
    except NotADirectoryError:
        yield Opened(path.rstrip("/").rpartition("/")[2], files.open_read(path))
        return
    for found in walk(files, path):
        with suppress(OSError, ToolError):
            if found.is_file and (file := _as_text(found.open())) is not None:
                yield Opened(found.path, file)


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


def make_grep(files: Files, *, engine: Engine | None = None, timeout: float = 60.0) -> Tool:
    """Return the tool `grep`. `engine` is "rg" or "python", by default "rg" where it is; `timeout` in seconds."""

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
            pattern: a regular expression, or a text with `literal`
            path: a directory or a file, relative or absolute
            ignoreCase: take upper and lower case as equal
            literal: take the pattern as a text
            context: lines to show before and after each match
            limit: how many matches, at most
        """
        search = LineSearch(make_pattern(pattern, literal=literal), engine or best_engine(), ignoreCase, timeout)
        batches, answer = Batches(search_among(files, path)), _Answer(limit, context)
        try:
            while not answer.is_full and (batch := await run_in_background(batches.take)):
                lines = await search.run([opened.file.fileno() for opened in batch], answer.room + 1)
                await run_in_background(partial(answer.take, batch, lines))
        finally:
            batches.close()
        return answer.result()

    return grep


@frozen(eq=False)
class _Answer:
    """What has been found so far: at most `limit` matches, and whether there are more."""

    limit: int
    context: int
    shown: list[Shown] = field(init=False, factory=list)
    counts: list[int] = field(init=False, factory=list)  # matches of each file, those beyond the limit included

    @property
    def room(self) -> int:
        return max(self.limit - sum(self.counts), 0)

    @property
    def is_full(self) -> bool:
        return sum(self.counts) > self.limit

    def take(self, batch: Sequence[Opened], lines: dict[int, list[int]]) -> None:
        """Take what was found in a batch. Blocks."""
        for opened in batch:
            numbers = lines.get(opened.file.fileno(), [])
            if numbers and self.room:
                self.shown.extend(show_lines(opened.file, opened.name, numbers[: self.room], self.context))
            self.counts.append(len(numbers))

    def result(self) -> ToolResult:
        """Return what the model is told."""
        cut = cut_head("\n".join(line.text for line in self.shown).encode("utf-8", "replace"), most_lines=10**9)
        notices, details = [], dict[str, Any]()
        if self.is_full:
            notices.append(f"the first {self.limit} matches; use limit={2 * self.limit} for more, or a finer pattern")
            details["matchLimitReached"] = self.limit
        if any(line.cut for line in self.shown):
            notices.append(f"lines were cut at {LONGEST_LINE} characters; use read to see them whole")
            details["linesTruncated"] = True
        return tell_cut(cut, notices, empty="(no matches)", details=details)
