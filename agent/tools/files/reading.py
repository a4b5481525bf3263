"""The tool `read`: a page of a text file, or a picture (S2)."""

import os
from typing import Annotated, BinaryIO

from attrs import evolve

from agent.tools.cutting import MOST_BYTES, MOST_LINES, size_in_words
from agent.tools.definition import Tool, tool
from agent.tools.errors import ToolError
from agent.tools.files.operations import Files
from agent.tools.files.pages import Page, read_page
from agent.tools.files.pictures import MOST_PICTURE_BYTES, media_type, prepare
from agent.tools.marks import Limits, Path
from agent.vocabulary.calls import ToolResult

__all__ = ["make_read"]


def make_read(files: Files, *, resize_pictures: bool = True) -> Tool:
    """Return the tool `read`; pictures are made to fit 2000x2000 pixels unless `resize_pictures` is false."""

    @tool(category="read", parallel=True)
    def read(
        path: Annotated[str, Path("read")],
        offset: Annotated[int, Limits(minimum=1)] | None = None,
        limit: Annotated[int, Limits(minimum=1)] | None = None,
    ) -> ToolResult:
        """Read a text file, or look at a picture (JPG, PNG, GIF, WebP).

        Of a text you get at most 2000 lines and 50 KB, whichever comes first; read on with `offset`. Pictures come
        as attachments, no larger than 2000x2000 pixels.

        Args:
            path: the file, relative or absolute
            offset: the line to begin with; the first line is 1
            limit: how many lines, at most
        """
        with files.open_read(path) as file:
            kind = media_type(_head(file))
            if kind is None:
                return _text(file, path, offset or 1, limit)
            picture = prepare(file.read(MOST_PICTURE_BYTES + 1), kind, resize=resize_pictures)
        return ToolResult(f"[picture {path}: {picture}]", images=(picture.image,))

    return read


def _head(file: BinaryIO) -> bytes:
    head = file.read(16)
    file.seek(0)
    return head


def _text(file: BinaryIO, path: str, first: int, limit: int | None) -> ToolResult:
    page = read_page(file, first=first, limit=limit, most_lines=MOST_LINES, most_bytes=MOST_BYTES)
    if first > max(page.total, 1):
        raise ToolError(f"offset {first} is beyond the end of {path}, which has {page.total} lines; begin earlier")
    notice = _notice(page)
    whole = evolve(page.cut, total_lines=page.total, total_bytes=os.fstat(file.fileno()).st_size)
    text = page.cut.text or "(empty file)"
    return ToolResult(_with_notice(text, notice), details=whole.details())


def _with_notice(text: str, notice: str) -> str:
    return f"{text.rstrip(chr(10))}\n\n[{notice}]" if notice else text


def _notice(page: Page) -> str:
    """Say what is not shown, and how to get it; nothing when the page reaches the end of the file."""
    following = f"use offset={page.last + 1} to go on"
    if page.cut.partial_line:
        shown = f"line {page.first} is longer than {size_in_words(MOST_BYTES)}, only its beginning is shown"
        return f"{shown}; {following}" if page.last < page.total else shown
    if page.last >= page.total:
        return ""
    reason = f" ({size_in_words(MOST_BYTES)} limit)" if page.cut.cut_by == "bytes" else ""
    return f"lines {page.first} to {page.last} of {page.total}{reason}; {following}"
