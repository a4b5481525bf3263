"""The tools `edit` and `write`: replace one text in a file, or the whole file (S2)."""

import difflib
import io
from collections.abc import Iterator, Sequence
from typing import Annotated

from agent.tools.definition import Tool, tool
from agent.tools.schemas import Path, encoded
from agent.tools.workspace import Files
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

_CONTEXT = 3  # lines around what changed
_MOST_COMPARED = 2000  # lines compared one by one; larger changes are shown as one


def compare(old: str, new: str, path: str) -> tuple[str, int]:
    """Return the unified diff of two texts as one hunk, and the number of the first line that changed."""
    before, after = _lines(old), _lines(new)
    same = _common(before, after)
    ending = _common(before[same:][::-1], after[same:][::-1])
    one, other = before[same : len(before) - ending], after[same : len(after) - ending]
    above, below = before[max(same - _CONTEXT, 0) : same], before[len(before) - ending :][:_CONTEXT]
    changed = "".join([*_signed(" ", above), *_changes(one, other), *_signed(" ", below)])
    around, top = len(above) + len(below), same + 1 - len(above)
    hunk = f"@@ -{_range(top, len(one) + around)} +{_range(top, len(other) + around)} @@\n{changed}"
    name = path.lstrip("/")
    return f"--- a/{name}\n+++ b/{name}\n{hunk}", same + 1


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(before), len(after)))


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Yield the removed, added and unchanged lines from the first change to the last."""
    if max(len(one), len(other)) > _MOST_COMPARED:
        yield from (*_signed("-", one), *_signed("+", other))
        return
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from _signed(" ", one[a:b])
        else:
            yield from (*_signed("-", one[a:b]), *_signed("+", other[c:d]))


def _signed(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(first: int, length: int) -> str:
    """Return a range in diff format; an empty one has the number of the line before it."""
    return f"{first}" if length == 1 else f"{first if length else first - 1},{length}"


def _lines(text: str) -> list[str]:
    """Split at newlines only, not at other line ends of Unicode."""
    return io.StringIO(text, newline="\n").readlines()


_QUOTES, _DOUBLE_QUOTES = "‘’‚‛′‵", "“”„‟″‶«»"
_DASHES = "‐‑‒–—―−﹘﹣－"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_PLAIN = str.maketrans(
    dict.fromkeys(_QUOTES, "'") | dict.fromkeys(_DOUBLE_QUOTES, '"') | dict.fromkeys(_DASHES, "-")
    | dict.fromkeys(_SPACES, " ")
)  # fmt: skip
_MOST_NAMED = 5  # places listed in a message
_MOST_COUNTED = 100


def edited(text: str, old: str, new: str, path: str) -> tuple[str, bool]:
    """Return a text with its only `old` replaced by `new`, and whether the match was exact.

    Otherwise typographic signs match plain ones, and if all line ends of a text are those of Windows, line ends match.
    Raises ToolError, naming `path`, for no match or several, and if nothing would change.
    """
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        text, old, new = (each.replace("\r\n", "\n") for each in (text, old, new))
        after, exact = edited(text, old, new, path)
        return after.replace("\n", "\r\n"), exact
    exactly = _places(text, old)
    places = exactly or _places(text.translate(_PLAIN), old.translate(_PLAIN))  # one for one: offsets stay valid
    if not places:
        raise ToolError(
            f"oldText was not found in {path}; it must match exactly, white space and line breaks included: "
            "read the file again"
        )
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in places[:_MOST_NAMED])
        more = " and more" if len(places) > _MOST_NAMED else ""
        count = f"{_MOST_COUNTED} times or more" if len(places) == _MOST_COUNTED else f"{len(places)} times"
        raise ToolError(
            f"oldText stands {count} in {path} (at lines {lines}{more}); "
            "give more of what is around it, so that it stands there once"
        )
    after = f"{text[: places[0]]}{new}{text[places[0] + len(old) :]}"
    if after == text:
        raise ToolError(f"nothing would change in {path}: what stands there is newText already")
    return after, bool(exactly)


def _places(text: str, wanted: str) -> list[int]:
    """Return the offsets of `wanted`, overlapping ones too, which are ambiguous as well.

    At most as many as are counted, since each search takes time.
    """
    found: list[int] = []
    start = text.find(wanted)
    while start != -1 and len(found) < _MOST_COUNTED:
        found.append(start)
        start = text.find(wanted, start + 1)
    return found


def make_write(files: Files, *, name: str = "write") -> Tool:
    """Return the tool `write`, under any name."""

    @tool(category="write", name=name)
    def write(path: Annotated[str, Path("write")], content: str) -> ToolResult:
        """Write a text file, replacing what was there; missing directories are made.

        Args:
            path: the file, relative or absolute
            content: all of the file's new text
        """
        written = encoded(content, "content", holds_nul=True)
        replace(files, path, written)
        return ToolResult(f"wrote {len(written)} bytes to {path}", details={"bytes": len(written)})

    return write


def replace(files: Files, path: str, content: bytes) -> None:
    """Replace a file's content atomically. Raises ToolError, and then leaves the file as it was."""
    try:
        with files.open_write(path) as file:
            file.write(content)
    except OSError as error:
        if error.strerror is None:  # already a message for the model
            raise
        raise ToolError(f"cannot write {path}: {error.strerror}; the file is as it was") from error


_MOST_BYTES = 50 * 1024 * 1024  # bytes of an editable file


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
        after, exact = edited(text, oldText, newText, path)
        replace(files, path, after.encode("utf-8", "surrogateescape"))
        diff, line = compare(text, after, path)
        shown = diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        tolerated = "" if exact else " (typographic signs in oldText were not exactly those of the file)"
        details = {"diff": shown, "firstChangedLine": line}
        return ToolResult(f"replaced text in {path}, from line {line}{tolerated}\n{shown}", details=details)

    return edit


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolError("oldText is empty; give the text that is to be replaced, or use write for a new file")
    if old == new:
        raise ToolError("oldText and newText are the same; nothing would change")
    encoded(old, "oldText", holds_nul=True)
    encoded(new, "newText", holds_nul=True)


def _read(files: Files, path: str) -> str:
    """Return a file as text from which every byte can be restored."""
    with files.open_read(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ToolError(f"{path} has more than {_MOST_BYTES} bytes; it is too large to be edited")
    return content.decode("utf-8", "surrogateescape")
