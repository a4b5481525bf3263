"""The tool `ls`: what is in a directory (S2)."""

from typing import Annotated

from agent.tools.cutting import MOST_BYTES, cut_head, tell_cut
from agent.tools.definition import Tool, tool
from agent.tools.files.operations import Files
from agent.tools.marks import Limits, Path
from agent.vocabulary.calls import ToolResult

__all__ = ["make_ls"]

MOST_ENTRIES = 500


def make_ls(files: Files) -> Tool:
    """Return the tool `ls`."""

    @tool(category="read", parallel=True)
    def ls(
        path: Annotated[str, Path("list")] = ".", limit: Annotated[int, Limits(minimum=1)] = MOST_ENTRIES
    ) -> ToolResult:
        """List a directory: one name per line, sorted, hidden ones too, directories with a / at the end.

        You get at most 500 entries and 50 KB, whichever comes first.

        Args:
            path: the directory, relative or absolute
            limit: how many entries, at most
        """
        entries = sorted(files.list(path), key=lambda entry: (entry.name.lower(), entry.name))
        names = [f"{entry.name}/" if entry.is_directory else entry.name for entry in entries]
        shown = cut_head("\n".join(names[:limit]).encode("utf-8", "replace"), most_lines=limit, most_bytes=MOST_BYTES)
        if len(names) <= limit:
            return tell_cut(shown, [], empty="(empty directory)")
        notice = f"{limit} of {len(names)} entries; use limit={2 * limit} for more"
        return tell_cut(shown, [notice], empty="(empty directory)", details={"entryLimitReached": limit})

    return ls
