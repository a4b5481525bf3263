"""The tool `edit`: one text in a file becomes another, and every other byte stays (S2)."""

from typing import Annotated

from agent.tools.definition import Tool, tool
from agent.tools.errors import ToolError
from agent.tools.files.differences import compare
from agent.tools.files.operations import Files
from agent.tools.files.spans import find_span, with_line_ends
from agent.tools.files.writing import encode, replace
from agent.tools.marks import Path
from agent.vocabulary.calls import ToolResult

__all__ = ["make_edit"]

_MOST_BYTES = 50 * 1024 * 1024  # of a file that is edited


def make_edit(files: Files) -> Tool:
    """Return the tool `edit`."""

    @tool(category="write")
    def edit(path: Annotated[str, Path("write")], oldText: str, newText: str) -> ToolResult:  # noqa: N803, as in S2
        """Replace one text in a file by another. The old text must stand there exactly once.

        It must match exactly, white space and line breaks included; only typographic quotes, dashes and spaces may
        be written plainly. You get a unified diff of what changed.

        Args:
            path: the file, relative or absolute
            oldText: what stands there now
            newText: what shall stand there
        """
        _check(oldText, newText)
        text = _read(files, path)
        span = find_span(text, oldText, path)
        new = with_line_ends(newText, text, span)
        if text[span.start : span.end] == new:
            raise ToolError(f"nothing would change in {path}: what stands there is newText already")
        replace(files, path, f"{text[: span.start]}{new}{text[span.end :]}".encode("utf-8", "surrogateescape"))
        return _changed(text, span.start, span.end, new, path, exact=span.exact)

    return edit


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError("oldText is empty; give the text that is to be replaced, or use write for a new file")
    if old == new:
        raise ToolError("oldText and newText are the same; nothing would change")
    encode(old, "oldText")
    encode(new, "newText")


def _read(files: Files, path: str) -> str:
    """Return a file so that each of its bytes can be written back as it was."""
    with files.open_read(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ToolError(f"{path} has more than {_MOST_BYTES} bytes; it is too large to be edited")
    return content.decode("utf-8", "surrogateescape")


def _changed(text: str, start: int, end: int, new: str, path: str, *, exact: bool) -> ToolResult:
    difference = compare(text, start, end, new, path)
    tolerated = "" if exact else " (typographic signs or line ends in oldText were not exactly those of the file)"
    shown = difference.diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    details = {"diff": shown, "firstChangedLine": difference.first_changed_line}
    sentence = f"replaced text in {path}, from line {difference.first_changed_line}{tolerated}"
    return ToolResult(f"{sentence}\n{shown}", details=details)
