"""Tools that read, write, edit and list files, on the local file system or another one (S2).

Texts are UTF-8, or what a byte order mark says; an edit keeps the encoding, the mark and the line ends of a file.
"""

import codecs
import difflib
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, BinaryIO

from attrs import evolve, frozen

from agent.tools.definition import PerAgent, Tool, tool
from agent.tools.output import MOST_BYTES, MOST_LINES, Cut, cut_head, size_in_words, tell_lines
from agent.tools.schemas import Limits, Path, encoded
from agent.tools.workspace import Files
from agent.vocabulary.errors import ToolError
from agent.vocabulary.messages import Image, ToolResult

# Reading texts.

_MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be",
}  # fmt: skip
"""Byte order marks and their encodings; that of UTF-32 begins like one of UTF-16."""
_LARGEST_EDITED = 50 * 1024 * 1024  # bytes


def mark_of(content: bytes) -> tuple[bytes, str]:
    """Return the byte order mark of a file and its encoding, UTF-8 without a mark."""
    return next(((mark, name) for mark, name in _MARKS.items() if content.startswith(mark)), (b"", "utf-8"))


def in_utf8(file: BinaryIO) -> BinaryIO:
    """Return a file with a byte order mark in UTF-8 and without the mark, and any other one as it is."""
    mark, encoding = mark_of(file.read(4))
    file.seek(len(mark))
    if encoding == "utf-8":
        return file
    return io.BytesIO(file.read(_LARGEST_EDITED).decode(encoding, "replace").encode("utf-8", "replace"))


_PIECE = 1 << 20  # bytes read at once
_AHEAD = 16  # pieces read after the page, to count lines


@frozen
class Page:
    """Lines `first` to `last` of a file with `total` lines, or more when that is not `exact`.

    `cut`: why requested lines are missing. An empty page has `last` before `first`.
    """

    cut: Cut
    first: int
    last: int
    total: int
    exact: bool = True


def read_page(file: BinaryIO, *, first: int, limit: int | None, most_lines: int, most_bytes: int) -> Page:
    """Return lines from `first` (1 is the first) on: at most `limit`, `most_lines` and `most_bytes` of them.

    Lines are counted for some distance after the page; memory holds a page and one piece.
    """
    end = first + (most_lines + 1 if limit is None else min(limit, most_lines + 1))
    kept, line, piece, ends_open = bytearray(), 1, b"", False
    while line < end and len(kept) <= most_bytes and (piece := file.readline(_PIECE)):
        kept += piece if line >= first else b""
        ends_open = not piece.endswith(b"\n")
        line += not ends_open
    for _ in range(_AHEAD if piece else 0):
        if not (piece := file.read(_PIECE)):
            break
        line += piece.count(b"\n")
        ends_open = not piece.endswith(b"\n")
    cut = cut_head(bytes(kept), most_lines=most_lines, most_bytes=most_bytes)
    return Page(cut, first, first + cut.kept_lines - 1, line - 1 + ends_open, exact=not piece)


class KnownContents:
    """The contents of files as each agent has last read or written them, so that it replaces no other one unseen."""

    def __init__(self) -> None:
        self._digests = PerAgent[dict[str, str]](dict)

    def note(self, files: Files, path: str, file: BinaryIO) -> None:
        """Remember an open file as it is; one that is too large to be edited is not remembered."""
        if os.fstat(file.fileno()).st_size <= _LARGEST_EDITED:
            file.seek(0)
            self._digests.own[files.resolve(path)] = _digest_of(file)

    def note_written(self, files: Files, path: str, content: bytes) -> None:
        """Remember what was written to a file."""
        self._digests.own[files.resolve(path)] = sha256(content).hexdigest()

    def check(self, files: Files, path: str) -> None:
        """Raise ToolError for a file that has other content than the agent has read or written."""
        known = self._digests.own.get(files.resolve(path))
        if known is None:
            return
        with suppress(OSError), files.open_read(path) as file:
            if _digest_of(file) != known:
                raise ToolError(f"{path} has changed since you read it, and was not written; read it again first")


def _digest_of(file: BinaryIO) -> str:
    digest = sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


# Pictures.

LONGEST_EDGE = 2000  # pixels
MOST_PICTURE_BYTES = 20 * 1024 * 1024
MOST_PIXELS = 50_000_000  # 200 MB unpacked

_HEADS = {
    b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF87a": "image/gif", b"GIF89a": "image/gif",
}  # fmt: skip


def media_type(head: bytes) -> str | None:
    """Return the media type of a JPG, PNG, GIF or WebP from its first 16 bytes; None for everything else."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _HEADS.items() if head.startswith(start)), None)


def prepare(content: bytes, kind: str, *, resize: bool) -> tuple[Image, str]:
    """Return a picture with edges of at most 2000 pixels (unchanged without `resize`), and its description.

    Raises ToolError for an invalid or too large picture, or without the extra `images`.
    """
    if len(content) > MOST_PICTURE_BYTES:
        raise ToolError(f"the picture has more than {MOST_PICTURE_BYTES} bytes, which cannot be sent; make it smaller")
    return _fitted(content, kind) if resize else (Image(kind, content), kind)


def _fitted(content: bytes, kind: str) -> tuple[Image, str]:
    """Return the picture; a larger one (of an animation the first frame) is scaled down to the limit."""
    form = kind.removeprefix("image/").upper()
    try:
        import PIL.Image
    except ImportError as error:
        raise ToolError("cannot look at pictures: install the extra 'images' (pillow)") from error
    try:
        with PIL.Image.open(io.BytesIO(content), formats=[form]) as opened:
            size = f"{opened.width}x{opened.height}"
            if opened.width * opened.height > MOST_PIXELS:
                raise ToolError(f"the picture claims {size} pixels; that is refused")
            if max(opened.size) <= LONGEST_EDGE:
                opened.load()
                return Image(kind, content), f"{kind}, {size} pixels"
            opened.thumbnail((LONGEST_EDGE, LONGEST_EDGE))
            opened.save(written := io.BytesIO(), format=form)
            words = f"{kind}, {opened.width}x{opened.height} pixels (made smaller, from {size})"
            return Image(kind, written.getvalue()), words
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning) as error:
        raise ToolError(f"the picture claims too many pixels; that is refused: {error}") from error
    except PIL.UnidentifiedImageError as error:  # whose message shows an internal object
        raise ToolError("not a picture that can be read: its format is not known, or it is damaged") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise ToolError(f"not a picture that can be read: {error}") from error


# The tools `read` and `ls`.


def make_read(files: Files, *, resize_pictures: bool = True, known: KnownContents | None = None) -> Tool:
    """Return the tool `read`; pictures are made to fit 2000x2000 pixels unless `resize_pictures` is false."""
    contents = known or KnownContents()

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
            kind = media_type(file.read(16))
            file.seek(0)
            if kind is None:
                contents.note(files, path, file)
                file.seek(0)
                return _text(file, path, offset or 1, limit)
            image, words = prepare(file.read(MOST_PICTURE_BYTES + 1), kind, resize=resize_pictures)
        return ToolResult(f"[picture {path}: {words}]", images=(image,))

    return read


def _text(file: BinaryIO, path: str, first: int, limit: int | None) -> ToolResult:
    size = os.fstat(file.fileno()).st_size
    page = read_page(in_utf8(file), first=first, limit=limit, most_lines=MOST_LINES, most_bytes=MOST_BYTES)
    if first > max(page.total, 1):
        raise ToolError(f"offset {first} is beyond the end of {path}, which has {page.total} lines; begin earlier")
    whole = evolve(page.cut, total_lines=page.total, total_bytes=size)
    text, notice = page.cut.text or "(empty file)", _notice(page)
    return ToolResult(f"{text.rstrip(chr(10))}\n\n[{notice}]" if notice else text, details=whole.details())


def _notice(page: Page) -> str:
    """Return the notice of what is not shown and how to get it; empty at the end of the file."""
    following = f"use offset={page.last + 1} to go on"
    if page.cut.partial_line:
        shown = f"line {page.first} is longer than {size_in_words(MOST_BYTES)}, only its beginning is shown"
        return f"{shown}; {following}" if page.last < page.total else shown
    if page.last >= page.total:
        return ""
    reason = f" ({size_in_words(MOST_BYTES)} limit)" if page.cut.cut_by == "bytes" else ""
    return f"lines {page.first} to {page.last} of {'' if page.exact else 'at least '}{page.total}{reason}; {following}"


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
        if len(names) <= limit:
            return tell_lines(names, empty="(empty directory)")
        notice = f"{limit} of {len(names)} entries; use limit={2 * limit} for more"
        return tell_lines(names[:limit], [notice], empty="", details={"entryLimitReached": limit})

    return ls


# Edits: the difference of two texts, and the replacement of one passage.

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
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
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

    Otherwise typographic signs match plain ones, and line ends of Windows plain ones: lines that stay keep theirs, new
    ones take those of their place. Raises ToolError, naming `path`, for no match or several, and if nothing would
    change.
    """
    is_mixed = text.count("\n") != text.count("\r\n")
    if "\r\n" not in text or (is_mixed and "\r\n" in old + new and old in text):
        return _replaced(text, old, new, path)
    plain, old, new = (each.replace("\r\n", "\n") for each in (text, old, new))
    after, exact = _replaced(plain, old, new, path)
    return _with_line_ends(_lines(after), _lines(plain), re.findall(r"\r?\n", text)), exact


def _with_line_ends(after: Sequence[str], before: Sequence[str], ends: Sequence[str]) -> str:
    """Join lines; `ends`: the line ends of the lines `before`."""
    same = _common(before, after)
    ending = _common(before[same:][::-1], after[same:][::-1])
    moved, changed = len(after) - len(before), len(before) - ending

    def end_of(at: int) -> str:
        place = min(at, changed - 1) if at < changed + moved else at - moved
        return ends[max(0, min(place, len(ends) - 1))]

    return "".join(f"{line[:-1]}{end_of(at)}" if line.endswith("\n") else line for at, line in enumerate(after))


def _replaced(text: str, old: str, new: str, path: str) -> tuple[str, bool]:
    """Return a text with its only `old` replaced, and whether the match was exact."""
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
    found, start = list[int](), text.find(wanted)
    while start != -1 and len(found) < _MOST_COUNTED:
        found.append(start)
        start = text.find(wanted, start + 1)
    return found


# The tools `write` and `edit`.


def make_write(files: Files, *, name: str = "write", known: KnownContents | None = None) -> Tool:
    """Return the tool `write`, under any name. `known`: shared with the tools that read."""
    contents = known or KnownContents()

    @tool(category="write", name=name)
    def write(path: Annotated[str, Path("write")], content: str) -> ToolResult:
        """Write a text file, replacing what was there; missing directories are made.

        A file that has changed since you read it is not replaced: read it again first.

        Args:
            path: the file, relative or absolute
            content: all of the file's new text
        """
        written = encoded(content, "content", holds_nul=True)
        contents.check(files, path)
        replace(files, path, written)
        contents.note_written(files, path, written)
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


def make_edit(files: Files, *, known: KnownContents | None = None) -> Tool:
    """Return the tool `edit`."""
    contents = known or KnownContents()

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
        if not oldText:
            raise ToolError("oldText is empty; give the text that is to be replaced, or use write for a new file")
        if oldText == newText:
            raise ToolError("oldText and newText are the same; nothing would change")
        for name, given in (("oldText", oldText), ("newText", newText)):
            encoded(given, name, holds_nul=True)
        text, mark, encoding = _read(files, path)
        after, exact = edited(text, oldText, newText, path)
        if not (newText.isascii() or _is_whole(text)):
            raise ToolError(f"{path} is not in UTF-8, and what else it is in is not known; {_CURE_OF_ENCODING}")
        written = mark + after.encode(encoding, "surrogateescape")
        replace(files, path, written)
        contents.note_written(files, path, written)
        diff, line = compare(text, after, path)
        shown = diff.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        tolerated = "" if exact else " (typographic signs in oldText were not exactly those of the file)"
        details = {"diff": shown, "firstChangedLine": line}
        return ToolResult(f"replaced text in {path}, from line {line}{tolerated}\n{shown}", details=details)

    return edit


_CURE_OF_ENCODING = "give a newText in ASCII, or convert the file first (iconv -f ENCODING -t UTF-8)"


def _read(files: Files, path: str) -> tuple[str, bytes, str]:
    """Return a file as text from which every byte can be restored, its byte order mark and its encoding."""
    with files.open_read(path) as file:
        content = file.read(_LARGEST_EDITED + 1)
    if len(content) > _LARGEST_EDITED:
        raise ToolError(f"{path} has more than {_LARGEST_EDITED} bytes; it is too large to be edited")
    mark, encoding = mark_of(content)
    try:
        return content[len(mark) :].decode(encoding, "surrogateescape"), mark, encoding
    except UnicodeDecodeError:  # its beginning is no mark
        return content.decode("utf-8", "surrogateescape"), b"", "utf-8"


def _is_whole(text: str) -> bool:
    """Return whether a text holds no bytes of an unknown encoding."""
    return text.encode("utf-8", "replace") == text.encode("utf-8", "surrogateescape")
