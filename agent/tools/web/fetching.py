"""Fetch one resource over http or https, within bounds: addresses, redirects, time, and bytes after unpacking.

check the URL -> find an address and check it -> connect to exactly that address -> a redirect: all of it again
"""

import zlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

import anyio
from attrs import frozen

from agent.models.http_stream import unwind
from agent.tools.cutting import size_in_words
from agent.tools.errors import ToolError
from agent.tools.web.addresses import find_address

if TYPE_CHECKING:
    import httpx2

__all__ = ["Fetched", "fetch", "read_bounded"]

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {"User-Agent": "bpagent", "Accept": "text/html, text/*, application/json, image/*, */*;q=0.5",
            "Accept-Encoding": "gzip, deflate"}  # fmt: skip


@frozen
class Fetched:
    """What came back. `url` is the one after redirects, `content_type` in small letters without parameters."""

    url: str
    content_type: str
    charset: str | None
    content: bytes


async def fetch(url: str, *, timeout: float, most_bytes: int, allowed: Iterable[str] = ()) -> Fetched:
    """Return what is at `url`. `timeout` is in seconds, for everything together.

    Raises ToolError for what cannot or may not be reached, takes too long, is too large, or answers with an error.
    `allowed` are addresses that may be reached although they are not public.
    """
    import httpx2

    try:
        with anyio.fail_after(timeout):
            async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout) as client:
                return await _follow(client, url, most_bytes, tuple(allowed))
    except TimeoutError as error:
        raise ToolError(f"{url} did not answer within {timeout:g} seconds") from error
    except httpx2.TimeoutException as error:
        raise ToolError(f"{url} did not answer within {timeout:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OverflowError, OSError) as error:
        raise ToolError(f"cannot fetch {url}: {error or type(error).__name__}") from error


async def _follow(client: "httpx2.AsyncClient", url: str, most_bytes: int, allowed: tuple[str, ...]) -> Fetched:
    import httpx2

    here = httpx2.URL(url)
    for _ in range(_MOST_REDIRECTS + 1):
        request = await _request(client, here, allowed)
        response = await client.send(request, stream=True)
        try:
            if response.status_code not in _REDIRECTS or "location" not in response.headers:
                return await _read(response, str(here), most_bytes)
            here = here.join(response.headers["location"])
        finally:
            await response.aclose()
    raise ToolError(f"{url} redirects more than {_MOST_REDIRECTS} times")


async def _request(client: "httpx2.AsyncClient", url: "httpx2.URL", allowed: tuple[str, ...]) -> "httpx2.Request":
    """Return a request to the checked address, with the name of the host where the server and TLS look for it."""
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
    length = response.headers.get("content-length", "")
    if length.isdigit() and int(length) > most_bytes:
        raise _too_large(url, most_bytes)
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    content = await read_bounded(response.aiter_raw(), encoding, url, most_bytes)
    return Fetched(url, kind.strip().lower(), _charset(parameters), content)


async def read_bounded(pieces: AsyncIterator[bytes], encoding: str, url: str, most_bytes: int) -> bytes:
    """Return all pieces, unpacked, and end them. Raises ToolError for more than `most_bytes`; no more is unpacked."""
    unpacker = _unpacker(encoding, url)
    content = bytearray()
    try:
        while (piece := await anext(pieces, None)) is not None:
            room = most_bytes + 1 - len(content)
            content += piece if unpacker is None else unpacker.decompress(piece, room)
            if len(content) > most_bytes:
                raise _too_large(url, most_bytes)
    except zlib.error as error:
        raise ToolError(f"{url} sent something that cannot be unpacked: {error}") from error
    finally:
        await unwind(pieces)
    return bytes(content)


def _unpacker(encoding: str, url: str) -> Any:
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ToolError(f"{url} is packed as {encoding[:40]!r}, which was not asked for")
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)


def _too_large(url: str, most_bytes: int) -> ToolError:
    return ToolError(f"{url} is larger than {size_in_words(most_bytes)}, the most that is fetched")


def _charset(parameters: str) -> str | None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset":
            return value.strip("\"' ") or None
    return None
