"""From the bytes of a page to text for a model."""

import codecs
import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from agent.tools.errors import ToolError

__all__ = ["Format", "decode", "to_format"]

Format = Literal["text", "markdown", "html"]

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_SILENT = frozenset(["script", "style", "noscript", "template", "svg", "head"])
_BLOCKS = frozenset(
    """address article aside blockquote br dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p
    pre section table tr ul title""".split()  # noqa: SIM905
)

_RAW = ("script", "style")  # in which nothing but their own end is a tag
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_QUOTED_END = re.compile(r"""[^>"']*(?:(?:"[^"]*"|'[^']*')[^>"']*)*>""")


def decode(content: bytes, charset: str | None) -> str:
    """Return bytes as text: by a byte order mark, else the charset that was named, else UTF-8."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(name, "replace")
    try:
        return content.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")


def to_format(text: str, wanted: Format, *, is_html: bool) -> str:
    """Return a page in the wanted format; what is no HTML stays as it is. Raises ToolError without the extra `web`."""
    if not is_html or wanted == "html":
        return text
    return _markdown(text) if wanted == "markdown" else _text(text)


def _markdown(text: str) -> str:
    try:
        import html_to_markdown
    except ImportError as error:
        raise ToolError("markdown needs the extra 'web' (html-to-markdown), not installed; use format text") from error
    try:
        return str(html_to_markdown.convert(text).content)
    except Exception as error:
        raise ToolError(f"the page cannot be made markdown: {error}; use format text or html") from error


def _text(text: str) -> str:
    reader = _Reader()
    for name, closing, content in _tags_and_texts(text):
        reader.take(name, closing, content)
    lines = (" ".join(line.split()) for line in "".join(reader.pieces).split("\n"))
    return "\n".join(line for line in lines if line)


def _tags_and_texts(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield tags as (name, whether it ends something, ""), and texts as ("", False, text), in time linear in the page.

    What is never closed (a comment, a tag, a script) lasts until the end of the page, as in a browser. The parser of
    Python's library looks for such ends again and again: a page made for that would take it for ever.
    """
    position, quotes_close = 0, True
    while position < len(text):
        begin = text.find("<", position)
        if begin != position:
            yield "", False, html.unescape(text[position : len(text) if begin == -1 else begin])
        if begin == -1:
            return
        tag = _TAG.match(text, begin)
        if tag is None and text[begin + 1 : begin + 2] not in ("!", "?", "/"):
            yield "", False, "<"
            position = begin + 1
            continue
        end = _QUOTED_END.match(text, tag.end()) if tag is not None and quotes_close else None
        quotes_close = quotes_close and (tag is None or end is not None)
        position = _end_of(text, begin) if end is None else end.end()
        if tag is not None:
            name, closing = tag[2].lower(), bool(tag[1])
            yield name, closing, ""
            if name in _RAW and not closing:
                last = re.compile(f"</{name}", re.IGNORECASE).search(text, position)
                position = len(text) if last is None else last.start()
            elif text[position - 2] == "/" and name in _SILENT:
                yield name, True, ""


def _end_of(text: str, begin: int) -> int:
    """Return where the comment, declaration or tag that begins there is over: the end of the page if it never is."""
    mark = "-->" if text.startswith("<!--", begin) else ">"
    found = text.find(mark, begin + 1)
    return len(text) if found == -1 else found + len(mark)


class _Reader:
    """Collects what a browser would show, a line for each block."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._silent: list[str] = []
        self._open = Counter[str]()

    def take(self, name: str, closing: bool, text: str) -> None:
        """Take a tag, or a text, which has no name."""
        if name == "body":
            self._silent.clear()  # the head need not be closed
            self._open.clear()
        elif name in _SILENT:
            self._change_silence(name, closing)
        elif name in _BLOCKS:
            self.pieces.append("\n")
        elif name in ("td", "th") and not closing:
            self.pieces.append(" ")
        elif not name and not self._silent:
            self.pieces.append(text.replace("\n", " "))

    def _change_silence(self, name: str, closing: bool) -> None:
        """A tag that ends something ends all that was begun in it."""
        if not closing:
            self._silent.append(name)
            self._open[name] += 1
            return
        while self._open[name]:
            self._open[self._silent.pop()] -= 1
