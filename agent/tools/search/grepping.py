"""The tool `grep`: lines that match a pattern, with their files and numbers (S2)."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from attrs import field, frozen

from agent.tools.blocking import run_in_background
from agent.tools.cutting import cut_head, tell_cut
from agent.tools.definition import Tool, tool
from agent.tools.files.operations import Files
from agent.tools.marks import Limits, Path
from agent.tools.search.batches import Batches, Opened, search_among
from agent.tools.search.engines import LineSearch, best_engine
from agent.tools.search.matches import LONGEST_LINE, Shown, show_lines
from agent.tools.search.patterns import Engine, make_pattern
from agent.vocabulary.calls import ToolResult

__all__ = ["make_grep"]

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
