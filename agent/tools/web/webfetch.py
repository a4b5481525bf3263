"""The tool `webfetch`: what is at an address, as markdown, text, HTML or picture (S2)."""

from collections.abc import Iterable
from typing import Annotated

from agent.tools.blocking import run_in_background
from agent.tools.definition import Tool, tool
from agent.tools.errors import ToolError
from agent.tools.files.pictures import media_type, prepare
from agent.tools.marks import Limits, Url
from agent.tools.web.fetching import Fetched, fetch
from agent.tools.web.pages import Format, decode, to_format
from agent.vocabulary.calls import ToolResult

__all__ = ["make_webfetch"]

LONGEST_TIMEOUT = 120  # seconds
_MOST_CHARACTERS = 200_000  # that the model is shown; the rest is named
_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = ("application/json", "application/xml", "application/javascript", "application/yaml", "")


def make_webfetch(
    *,
    max_response_size: int = 5 * 1024 * 1024,
    default_timeout: int = 30_000,
    allowed_addresses: Iterable[str] = (),
) -> Tool:
    """Return the tool `webfetch`.

    `max_response_size` is in bytes after unpacking, `default_timeout` in milliseconds (S2). Only public addresses
    are reached, and `allowed_addresses` ("127.0.0.1").
    """
    exempt = tuple(allowed_addresses)

    @tool(category="read", parallel=True)
    async def webfetch(
        url: Annotated[str, Url()],
        format: Format = "markdown",
        timeout: Annotated[float, Limits(above=0, maximum=LONGEST_TIMEOUT)] | None = None,
    ) -> ToolResult:
        """Fetch what is at an address of the web. Nothing is changed by it.

        Pages come as markdown unless you ask for text or html; pictures come as attachments. At most 5 MB are
        fetched, and only from public addresses.

        Args:
            url: the address, beginning with http:// or https://
            format: how a page is given
            timeout: seconds to wait, at most 120
        """
        seconds = default_timeout / 1000 if timeout is None else timeout
        fetched = await fetch(url, timeout=seconds, most_bytes=max_response_size, allowed=exempt)
        details = {
            "url": fetched.url, "format": format, "timeout": seconds, "contentType": fetched.content_type,
            "fetchedBytes": len(fetched.content),
        }  # fmt: skip
        return await run_in_background(lambda: _result(fetched, format, details))

    return webfetch


def _result(fetched: Fetched, wanted: Format, details: dict[str, object]) -> ToolResult:
    kind = media_type(fetched.content[:16])
    if kind is not None:
        picture = prepare(fetched.content, kind, resize=True)
        return ToolResult(f"[picture {fetched.url}: {picture}]", details=details, images=(picture.image,))
    is_text = fetched.content_type.startswith("text/") or fetched.content_type.endswith(("+json", "+xml"))
    if not is_text and fetched.content_type not in _TEXTS:
        raise ToolError(f"{fetched.url} is {fetched.content_type}, neither text nor a picture")
    text = to_format(decode(fetched.content, fetched.charset), wanted, is_html=fetched.content_type in _HTML)
    return ToolResult(_cut(text) or "(nothing there)", details=details)


def _cut(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    return f"{text[:_MOST_CHARACTERS]}\n\n[the first {_MOST_CHARACTERS} of {len(text)} characters are shown]"
