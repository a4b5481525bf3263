"""From the bytes of a page to text for a model."""

import codecs
from html.parser import HTMLParser
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
    reader.feed(text)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.pieces).split("\n"))
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    """Collects what a browser would show, a line for each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        elif tag in _BLOCKS:
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._silent and tag in self._silent:
            del self._silent[self._silent.index(tag) :]
        elif tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data.replace("\n", " "))
