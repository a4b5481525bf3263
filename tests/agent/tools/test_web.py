"""`webfetch` and `websearch`, against servers on loopback, which only an explicit allowance lets them reach (S2)."""

import gzip
import io
import json
import re
from datetime import UTC, datetime
from typing import Any

import anyio
import PIL.Image
import pytest

from agent.tools.collections import CodingOptions, create_all_tools
from agent.tools.web import find_address, is_public, make_webfetch, make_websearch
from agent.vocabulary.errors import ToolError
from tests.tables import rows

from .conftest import Site

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
LOOPBACK = ["127.0.0.1"]


async def fetched(url: str, *, allowed: list[str] = LOOPBACK, size: int = 5 << 20, **arguments: Any) -> Any:
    return await make_webfetch(allowed_addresses=allowed, max_response_size=size).run({"url": url, **arguments})


PAGE = "<html><head><title>T</title></head><body><h1>Hi &amp; bye</h1><p>a <b>b</b><script>no</script></p><li>c</body>"


async def test_a_page_comes_as_markdown_text_or_html(site: Site) -> None:
    url = site.put("/", PAGE, "Text/HTML; charset=utf-8")

    markdown = await fetched(url)

    assert "# Hi & bye\n\na **b**" in markdown.text
    assert (await fetched(url, format="text")).text == "Hi & bye\n\na b\n\n- c"
    assert (await fetched(url, format="html")).text == PAGE
    assert dict(markdown.details) == {
        "url": url, "format": "markdown", "timeout": 30.0, "contentType": "text/html", "fetchedBytes": len(PAGE),
    }  # fmt: skip


@rows(
    ("content", "kind", "text"),
    [
        ('{"a": "<b>"}', "application/json", '{"a": "<b>"}'),
        ("é".encode("latin-1"), "text/plain; charset=iso-8859-1", "é"),
        ("é".encode("utf-16"), "text/plain; charset=utf-8", "é"),
        (b"\xff", "text/plain; charset=no-such-charset", "\ufffd"),
        ("", "text/plain", "(nothing there)"),
        (b"\0\1", "application/octet-stream", "{url} is application/octet-stream, neither text nor a picture"),
    ],
)
async def test_a_page_that_is_no_html_stays_as_it_is(site: Site, content: bytes | str, kind: str, text: str) -> None:
    url = site.put("/x", content, kind)

    assert (await fetched(url)).text == text.replace("{url}", url)


async def test_a_picture_is_an_attachment(site: Site) -> None:
    content = io.BytesIO()
    PIL.Image.new("RGB", (3000, 30)).save(content, "PNG")

    result = await fetched(site.put("/p.png", content.getvalue(), "image/png"))

    assert "image/png, 2000x20 pixels" in result.text
    assert result.images[0].media_type == "image/png"


LARGE = "{url} is larger than 1000 bytes, the most that is fetched"


@rows(
    ("content", "headers", "text"),
    [
        (b"x" * 1000, {}, "x" * 1000),
        (b"x" * 1001, {}, LARGE),
        (b"x" * 300_000, {"X_No_Length": "1"}, LARGE),
        (gzip.compress(b"hello"), {"Content_Encoding": "gzip"}, "hello"),
        (gzip.compress(b"\0" * (40 << 20), 1)[:999], {"Content_Encoding": "gzip"}, LARGE),
        (b"x", {"Content_Encoding": "br"}, "{url} is packed as 'br', which was not asked for"),
        (b"no gzip", {"Content_Encoding": "gzip"}, "{url} sent something that cannot be unpacked: "),
    ],
)
async def test_so_much_is_fetched_and_no_byte_more_unpacked_too(
    site: Site, content: bytes, headers: dict[str, Any], text: str
) -> None:
    url = site.put("/x", content, "text/plain", **headers)

    assert (await fetched(url, size=1000)).text.startswith(text.replace("{url}", url))


async def test_redirects_are_followed_up_to_five(site: Site) -> None:
    end = site.put("/end", "there", "text/plain")
    site.put("/1", "", status=302, Location="/2")
    site.put("/2", "", status=301, Location=end)
    site.put("/round", "", status=302, Location="/round")

    result = await fetched(site.url + "/1")

    assert (result.text, result.details["url"]) == ("there", end)
    assert "redirects more than 5 times" in (await fetched(site.url + "/round")).text


PRIVATE = (
    "http://127.0.0.1:1/", "http://localhost:1/", "http://[::1]:1/", "http://0.0.0.0:1/", "http://2130706433:1/",
    "http://0x7f.1:1/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::ffff:127.0.0.1]:1/",
    "http://[fe80::1]/", "http://192.168.1.1/", "http://100.64.0.1/",
)  # fmt: skip
BAD = {
    "ftp://example.com/": "no web address", "example.com": "no web address", "http://": "no web address",
    "http://user:pass@127.0.0.1/": "user name or password", "http://no.such.host.invalid/": "cannot find",
    "http://127.0.0.1:1/": "cannot fetch", "http://a\0b/": "cannot fetch", "http://127.0.0.1:99999/": "no web address",
    "": "no web address",
}  # fmt: skip
PLACES = ("http://10.0.0.1/", "http://127.0.0.2:1/", "file:///etc/passwd", "gopher://x/")


@rows(
    ("url", "allowed", "location", "problem"),
    [
        *((url, [], "", "not a public address") for url in PRIVATE),
        *((url, LOOPBACK, "", problem) for url, problem in BAD.items()),
        *(("", LOOPBACK, url, "not a public address|no web address") for url in PLACES),
    ],
)
async def test_only_public_addresses_are_reached_also_by_a_redirect(
    site: Site, url: str, allowed: list[str], location: str, problem: str
) -> None:
    url = site.put("/r", "", status=302, Location=location) if location else url

    result = await fetched(url, allowed=allowed)

    assert result.is_error
    assert re.search(problem, result.text)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The addresses that the next look-ups of names give."""
    answers: list[list[str]] = []

    async def look_up(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", (address, port)) for address in answers.pop(0)]

    monkeypatch.setattr(anyio, "getaddrinfo", look_up)
    return answers


async def test_the_address_that_was_checked_is_the_one_that_is_reached(site: Site, answers: list[list[str]]) -> None:
    """A name that means another address a moment later: it is looked up once, and the request goes to the answer."""
    site.put("/", "reached", "text/plain")
    answers += [["127.0.0.1"], ["10.0.0.1"]]
    port = int(site.url.rpartition(":")[2])

    result = await fetched(f"http://rebinding.example:{port}/")

    assert (result.text, len(answers)) == ("reached", 1)
    assert site.asked[0][1]["Host"] == f"rebinding.example:{port}"


async def test_one_private_address_among_public_ones_is_enough_to_refuse(answers: list[list[str]]) -> None:
    answers.append(["93.184.216.34", "127.0.0.1"])

    with pytest.raises(ToolError, match=r"127\.0\.0\.1, which is not a public address"):
        await find_address("two.example", 80)


@rows(
    ("address", "public"),
    [("93.184.216.34", True), ("2606:2800:220:1::1", True), ("127.0.0.1", False), ("224.0.0.1", False),
     ("255.255.255.255", False),
     ("::ffff:10.0.0.1", False), ("2002:7f00:1::", False), ("64:ff9b::7f00:1", False), ("64:ff9b::5db8:d822", True),
     ("fc00::1", False), ("::", False), ("198.18.0.1", False), ("192.0.2.1", False),
     ("192.0.0.8", False), ("192.0.0.9", False), ("fec0::1", False), ("3fff::1", False), ("5f00::1", False)],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


async def test_an_error_status_and_a_slow_server_are_errors(site: Site) -> None:
    site.put("/slow", "late")

    assert (await fetched(site.url + "/none")).text == f"{site.url}/none answered with status 404 Not Found"
    late = await fetched(site.url + "/slow", timeout=0.3)
    assert late.text == f"{site.url}/slow did not answer within 0.3 seconds"
    assert (await fetched(site.url + "/slow", timeout=121)).text.startswith("invalid arguments: timeout")
    in_milliseconds = make_webfetch(allowed_addresses=LOOPBACK, default_timeout=300)
    assert "within 0.3 seconds" in (await in_milliseconds.run({"url": site.url + "/slow"})).text


async def searched(site: Site, **arguments: Any) -> Any:
    return await make_websearch(base_url=site.url, api_key="k1").run({"query": "bees", **arguments})


async def test_a_search_asks_exa_and_tells_what_it_found(site: Site) -> None:
    found = {"results": [{"title": "Bees", "url": "https://b.example", "text": "They fly."}, {"title": "No text"}, 5]}
    site.put("/search", json.dumps(found), "application/json")

    result = await searched(site, numResults=3, livecrawl="preferred", type="deep", contextMaxCharacters=500)

    path, headers, body = site.asked[0]
    assert (path, headers["x-api-key"]) == ("/search", "k1")
    assert json.loads(body) == {
        "query": "bees", "type": "deep", "numResults": 3,
        "contents": {"text": True, "livecrawl": "preferred", "context": {"maxCharacters": 500}},
    }  # fmt: skip
    assert result.text == "Title: Bees\nURL: https://b.example\nText: They fly.\n\nTitle: No text"
    assert dict(result.details) == {"query": "bees", "numResults": 3, "livecrawl": "preferred", "type": "deep"}


async def test_the_context_made_for_models_is_preferred_and_cut(site: Site) -> None:
    site.put("/search", json.dumps({"results": [{"title": "x"}], "context": "c" * 20_000}), "application/json")

    assert (await searched(site)).text == "c" * 10_000
    defaults = json.loads(site.asked[0][2])
    assert (defaults["numResults"], defaults["type"], defaults["contents"]["livecrawl"]) == (8, "auto", "fallback")


@rows(
    ("status", "content", "problem"),
    [(401, '{"error": "bad key k1"}', "status 401: "), (200, "no json", "no JSON"), (200, "[]", "no list of results"),
     (200, '{"results": {}}', "no list of results"), (200, '{"results": []}', "(nothing was found)")],
)  # fmt: skip
async def test_a_search_that_fails_says_why_and_never_the_key(
    site: Site, status: int, content: str, problem: str
) -> None:
    site.put("/search", content, "application/json", status)

    result = await searched(site)

    assert problem in result.text
    assert "k1" not in result.text


async def test_the_options_of_the_coding_tools_reach_webfetch_and_its_description(site: Site) -> None:
    options = CodingOptions(max_response_size=2 * 1024 * 1024, allowed_addresses=tuple(LOOPBACK))
    webfetch = create_all_tools(options=options)["webfetch"]

    assert not (await webfetch.run({"url": site.put("/", PAGE), "format": "text"})).is_error
    assert "At most 2 MB" in webfetch.description
    assert f"The current year is {datetime.now(UTC).year}." in make_websearch().description
