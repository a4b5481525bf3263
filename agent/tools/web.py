"""Web tools: `webfetch` for public addresses, and `websearch` by Exa (S2)."""

import codecs
import ipaddress
import json
import os
import socket
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from attrs import evolve, frozen

from agent.tools.blocking import run_in_background, unwind
from agent.tools.definition import Tool, tool
from agent.tools.files import media_type, prepare
from agent.tools.output import size_in_words
from agent.tools.schemas import Limits, Url
from agent.vocabulary.errors import ToolError
from agent.vocabulary.messages import ToolResult

if TYPE_CHECKING:
    import httpx2


_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16", "2001::/23", "100::/64",
                    "2002::/16", "64:ff9b:1::/48")
)  # fmt: skip
"""Networks of special purpose (IANA) that some versions of `ipaddress` take for global ones, and dead tunnels."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


async def find_address(host: str, port: int, allowed: Iterable[str] = ()) -> str:
    """Return the address to connect to for `host`. Raises ToolError if one of its addresses is not public.

    `allowed`: permitted addresses that are not public, such as "127.0.0.1".
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"cannot find {host}: {getattr(error, 'strerror', None) or error}") from error
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    exempt = frozenset(allowed)
    for address in addresses:
        if address not in exempt and not is_public(address):
            raise ToolError(f"{host} leads to {address}, which is not a public address; only those may be reached")
    if not addresses:
        raise ToolError(f"cannot find {host}: it has no address")
    return addresses[0]


def is_public(text: str) -> bool:
    """Return whether an address is public, also an IPv6 form of an IPv4 address."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.ipv4_mapped
        address = inner or address
    is_special = address.is_multicast or address.is_reserved or address.is_loopback or address.is_link_local
    return address.is_global and not is_special and not any(address in network for network in _NOT_PUBLIC)


_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {"User-Agent": "bpagent", "Accept": "text/html, text/*, application/json, image/*, */*;q=0.5",
            "Accept-Encoding": "gzip, deflate"}  # fmt: skip


@frozen
class Fetched:
    """A fetched page. `url` is the one after redirects, `content_type` in small letters without parameters."""

    url: str
    content_type: str
    charset: str | None
    content: bytes


async def fetch(url: str, *, timeout: float, most_bytes: int, allowed: Iterable[str] = ()) -> Fetched:
    """Return the page at `url`. `timeout`: in seconds, for all requests together.

    `allowed`: permitted addresses that are not public. Raises ToolError if the page cannot or may not be reached, takes
    too long, is too large, or is an error.
    """
    import httpx2

    try:
        with anyio.fail_after(timeout):
            async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout) as client:
                here = httpx2.URL(url)
                for _ in range(_MOST_REDIRECTS + 1):
                    response = await client.send(await _request(client, here, tuple(allowed)), stream=True)
                    try:
                        if response.status_code not in _REDIRECTS or "location" not in response.headers:
                            return await _read(response, str(here), most_bytes)
                        here = here.join(response.headers["location"])
                    finally:
                        await response.aclose()
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise ToolError(f"{url} did not answer within {timeout:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OverflowError, OSError) as error:
        raise ToolError(f"cannot fetch {url}: {error or type(error).__name__}") from error
    raise ToolError(f"{url} redirects more than {_MOST_REDIRECTS} times")


async def _request(client: "httpx2.AsyncClient", url: "httpx2.URL", allowed: tuple[str, ...]) -> "httpx2.Request":
    """Return a request to the checked address, with the host's name for the server and TLS."""
    if url.scheme not in ("http", "https") or not url.host or not 0 < (url.port or 80) < 65536:
        raise ToolError(f"{str(url)[:200]!r} is no web address; it must begin with http:// or https://")
    if url.userinfo:
        raise ToolError("the address holds a user name or password; leave them out")
    address = await find_address(url.host, url.port or (443 if url.scheme == "https" else 80), allowed)
    headers = {**_HEADERS, "Host": url.netloc.decode("ascii")}
    target = url.copy_with(host=f"[{address}]" if ":" in address else address)
    return client.build_request("GET", target, headers=headers, extensions={"sni_hostname": url.host})


async def _read(response: Any, url: str, most_bytes: int) -> Fetched:
    if response.status_code >= 400:
        raise ToolError(f"{url} answered with status {response.status_code} {response.reason_phrase}".rstrip())
    kind = response.headers.get("content-type", "").partition(";")[0]
    content = await read_bounded(response, url, most_bytes)
    return Fetched(url, kind.strip().lower(), response.charset_encoding, content)


async def read_bounded(response: "httpx2.Response", url: str, most_bytes: int) -> bytes:
    """Return all that a server sends, decompressed. Raises ToolError beyond `most_bytes`."""
    length, encoding = (response.headers.get(f"content-{name}", "").strip().lower() for name in ("length", "encoding"))
    too_large = ToolError(f"{url} is larger than {size_in_words(most_bytes)}, the most that is fetched")
    if length.isdigit() and int(length) > most_bytes:
        raise too_large
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ToolError(f"{url} is packed as {encoding[:40]!r}, which was not asked for")
    unpacker = None if encoding in ("", "identity") else zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    content, pieces = bytearray(), response.aiter_raw()
    try:
        while (piece := await anext(pieces, None)) is not None:
            content += piece if unpacker is None else unpacker.decompress(piece, most_bytes + 1 - len(content))
            if len(content) > most_bytes:
                raise too_large
    except zlib.error as error:
        raise ToolError(f"{url} sent something that cannot be unpacked: {error}") from error
    finally:
        await unwind(pieces)
    return bytes(content)


Format = Literal["text", "markdown", "html"]

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def decode(content: bytes, charset: str | None) -> str:
    """Return bytes as text: by a byte order mark, else the given charset, else UTF-8."""
    for mark, name in _MARKS:
        if content.startswith(mark):
            return content.decode(name, "replace")
    try:
        return content.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")


def to_format(text: str, wanted: Format, *, is_html: bool) -> str:
    """Return a page in the wanted format; unchanged if it is not HTML. Raises ToolError without the extra `web`."""
    if not is_html or wanted == "html":
        return text
    try:
        import html_to_markdown
    except ImportError as error:
        raise ToolError(f"{wanted} needs the extra 'web' (html-to-markdown), not installed; use format html") from error
    options = html_to_markdown.ConversionOptions(output_format="plain" if wanted == "text" else "markdown")
    try:
        return str(html_to_markdown.convert(text, options).content).strip()
    except Exception as error:
        raise ToolError(f"the page cannot be made {wanted}: {error}; use format html") from error


LONGEST_TIMEOUT = 120  # seconds
_MOST_CHARACTERS = 200_000  # shown to the model
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

    return evolve(webfetch, description=webfetch.description.replace("5 MB", size_in_words(max_response_size)))


def _result(fetched: Fetched, wanted: Format, details: dict[str, object]) -> ToolResult:
    kind = media_type(fetched.content[:16])
    if kind is not None:
        image, words = prepare(fetched.content, kind, resize=True)
        return ToolResult(f"[picture {fetched.url}: {words}]", details=details, images=(image,))
    is_text = fetched.content_type.startswith("text/") or fetched.content_type.endswith(("+json", "+xml"))
    if not is_text and fetched.content_type not in _TEXTS:
        raise ToolError(f"{fetched.url} is {fetched.content_type}, neither text nor a picture")
    text = to_format(decode(fetched.content, fetched.charset), wanted, is_html=fetched.content_type in _HTML)
    if len(text) > _MOST_CHARACTERS:
        notice = f"[the first {_MOST_CHARACTERS} of {len(text)} characters are shown]"
        text = f"{text[:_MOST_CHARACTERS]}\n\n{notice}"
    return ToolResult(text or "(nothing there)", details=details)


BASE_URL = "https://api.exa.ai"
KEY_VARIABLE = "EXA_API_KEY"
_MOST_BYTES = 5 * 1024 * 1024


def make_websearch(*, base_url: str = BASE_URL, api_key: str | None = None, timeout: float = 30.0) -> Tool:
    """Return the tool `websearch`. `api_key`: by default from the environment; `timeout`: in seconds."""

    @tool(category="read", parallel=True)
    async def websearch(
        query: Annotated[str, Limits(max_length=2000)],
        numResults: Annotated[int, Limits(minimum=1, maximum=10)] = 8,  # noqa: N803, as in S2
        livecrawl: Literal["fallback", "preferred"] = "fallback",
        type: Literal["auto", "fast", "deep"] = "auto",
        contextMaxCharacters: Annotated[int, Limits(minimum=1, maximum=100_000)] = 10_000,  # noqa: N803
    ) -> ToolResult:
        """Search the web; you get what pages say about it, with their addresses.

        Args:
            query: what to look for
            numResults: how many results, at most 10
            livecrawl: "fallback" crawls a page where nothing is stored, "preferred" rather than take what is stored
            type: "auto", "fast" for quick results, "deep" for thorough ones
            contextMaxCharacters: how many characters of all results together
        """
        key = api_key or os.environ.get(KEY_VARIABLE)
        if not key:
            raise ToolError(f"websearch needs a key: set {KEY_VARIABLE}, or give api_key")
        contents = {"text": True, "livecrawl": livecrawl, "context": {"maxCharacters": contextMaxCharacters}}
        asked = {"query": query, "type": type, "numResults": numResults, "contents": contents}
        found = await _ask(f"{base_url.rstrip('/')}/search", key, asked, timeout)
        details = {"query": query, "numResults": numResults, "livecrawl": livecrawl, "type": type}
        return ToolResult(_tell(found, contextMaxCharacters), details=details)

    year = datetime.now(UTC).year
    dated = f"{websearch.description}\n\nThe current year is {year}. Use it when you search for something recent."
    return evolve(websearch, description=dated)


async def _ask(url: str, key: str, asked: dict[str, Any], timeout: float) -> dict[str, Any]:
    import httpx2

    try:
        with anyio.fail_after(timeout):
            async with (
                httpx2.AsyncClient(timeout=timeout) as client,
                client.stream("POST", url, json=asked, headers={"x-api-key": key, "Accept-Encoding": "gzip"}) as answer,
            ):
                content = await read_bounded(answer, url, _MOST_BYTES)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise ToolError(f"the search did not answer within {timeout:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ToolError(f"the search cannot be reached: {error or type(error).__name__}") from error
    if answer.status_code != 200:
        said = content[:500].decode("utf-8", "replace").replace(key, "(key)")
        raise ToolError(f"the search answered with status {answer.status_code}: {said}")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the search answered with something that is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("results", []), list):
        raise ToolError("the search answered with something that is no list of results")
    return found


def _tell(found: dict[str, Any], most: int) -> str:
    context = found.get("context")
    if isinstance(context, str) and context.strip():
        return context[:most]
    results = [result for result in found.get("results", []) if isinstance(result, dict)]
    return "\n\n".join(map(_one, results))[:most] or "(nothing was found)"


def _one(result: dict[str, Any]) -> str:
    about = (("Title", "title"), ("URL", "url"), ("Published", "publishedDate"), ("Author", "author"), ("Text", "text"))
    return "\n".join(f"{name}: {result[key]}" for name, key in about if result.get(key))
