"""The tools `read_file`, `write_file` and `list_directory` over a workspace (S0 6.2)."""

import os
from typing import Annotated

from agent.tools.definition import Tool, tool
from agent.tools.files.writing import make_write
from agent.tools.marks import Path
from agent.tools.output import keep_head
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolResult

__all__ = ["make_list_directory", "make_read_file", "make_write_file"]


def make_read_file(workspace: Workspace, *, output_limit: int) -> Tool:
    """Return the tool `read_file`; `output_limit` is in bytes."""

    @tool(category="read", parallel=True)
    def read_file(path: Annotated[str, Path("read")]) -> ToolResult:
        """Read a text file.

        Args:
            path: the file, absolute or relative to the workspace
        """
        with workspace.open_read(path) as file:
            content = file.read(output_limit + 1)
            total = max(os.fstat(file.fileno()).st_size, len(content))
        details = {"bytes": total, "truncated": len(content) > output_limit}
        return ToolResult(keep_head(content, output_limit, total) or "(empty file)", details=details)

    return read_file


def make_write_file(workspace: Workspace) -> Tool:
    """Return the tool `write_file`."""

    return make_write(workspace, name="write_file")


def make_list_directory(workspace: Workspace, *, output_limit: int) -> Tool:
    """Return the tool `list_directory`; `output_limit` is in bytes."""

    @tool(category="read", parallel=True)
    def list_directory(path: Annotated[str, Path("list")] = ".") -> ToolResult:
        """List a directory: one name per line, sorted, directories with a / at the end.

        Args:
            path: the directory, absolute or relative to the workspace
        """
        entries = workspace.list(path)
        names = "\n".join(f"{entry.name}/" if entry.is_directory else entry.name for entry in entries)
        listing = names.encode("utf-8", "replace")
        details = {"entries": len(entries), "truncated": len(listing) > output_limit}
        return ToolResult(keep_head(listing, output_limit, len(listing)) or "(empty directory)", details=details)

    return list_directory
