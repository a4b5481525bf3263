"""The tools `find` (S2) and `list_files` (S3): files whose paths match a glob pattern."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from agent.tools.cutting import cut_head, tell_cut
from agent.tools.definition import Tool, tool
from agent.tools.files.operations import Files
from agent.tools.marks import Limits, Path
from agent.tools.search.globs import make_glob
from agent.tools.search.walking import walk
from agent.vocabulary.calls import ToolResult

__all__ = ["make_find", "make_list_files"]

MOST_RESULTS = 1000


def make_find(files: Files) -> Tool:
    """Return the tool `find`."""

    @tool(category="read", parallel=True)
    def find(
        pattern: str,
        path: Annotated[str, Path("list")] = ".",
        limit: Annotated[int, Limits(minimum=1)] = MOST_RESULTS,
    ) -> ToolResult:
        """Find files by a glob pattern; you get their paths, relative to the directory that is searched.

        Hidden files are found; what .gitignore leaves out is not. You get at most 1000 paths and 50 KB, whichever
        comes first.

        Args:
            pattern: such as *.py (in any directory), src/**/*.py or **/*.{js,ts}
            path: the directory to search, relative or absolute
            limit: how many paths, at most
        """
        glob = make_glob(pattern, anywhere=True)
        return _tell((found.path for found in walk(files, path) if glob.matches(found.path)), limit)

    return find


def make_list_files(files: Files) -> Tool:
    """Return the tool `list_files`, which keeps to the root of `files`."""

    @tool(category="read", parallel=True)
    def list_files(pattern: str = "**/*") -> ToolResult:
        """List the files of the workspace whose paths match a glob pattern.

        Hidden files are listed where the pattern names the dot.

        Args:
            pattern: such as *.py (directly in the workspace), **/*.py or src/**/*.{js,ts}
        """
        glob = make_glob(pattern, hidden=False)
        return _tell(
            (found.path for found in walk(files, ".", all_files=True) if glob.matches(found.path)), MOST_RESULTS
        )

    return list_files


def _tell(found: Iterator[str], limit: int) -> ToolResult:
    paths = list(islice(found, limit + 1))
    cut = cut_head("\n".join(paths[:limit]).encode("utf-8", "replace"), most_lines=limit)
    if len(paths) <= limit:
        return tell_cut(cut, [], empty="(no files match)")
    notice = f"the first {limit} files; use limit={2 * limit} for more, or a finer pattern"
    return tell_cut(cut, [notice], empty="(no files match)", details={"resultLimitReached": limit})
