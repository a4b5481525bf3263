"""The tool `write`: a whole text file at once (S2)."""

from typing import Annotated

from agent.tools.definition import Tool, tool
from agent.tools.errors import ToolError
from agent.tools.files.operations import Files
from agent.tools.marks import Path
from agent.vocabulary.calls import ToolResult

__all__ = ["encode", "make_write", "replace"]


def make_write(files: Files, *, name: str = "write") -> Tool:
    """Return the tool `write`, under any name."""

    @tool(category="write", name=name)
    def write(path: Annotated[str, Path("write")], content: str) -> ToolResult:
        """Write a text file, replacing what was there; missing directories are made.

        Args:
            path: the file, relative or absolute
            content: all of the file's new text
        """
        encoded = encode(content, "content")
        replace(files, path, encoded)
        return ToolResult(f"wrote {len(encoded)} bytes to {path}", details={"bytes": len(encoded)})

    return write


def encode(text: str, name: str) -> bytes:
    """Return `text` as UTF-8. Raises ToolError, naming the parameter, for a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{name}: a lone surrogate at position {error.start} cannot be written; leave it out"
        ) from error


def replace(files: Files, path: str, content: bytes) -> None:
    """Put `content` in the place of a file, in one step. Raises ToolError when the file is as it was."""
    try:
        with files.open_write(path) as file:
            file.write(content)
    except OSError as error:
        if error.strerror is None:  # the message is ours already
            raise
        raise ToolError(f"cannot write {path}: {error.strerror}; the file is as it was") from error
