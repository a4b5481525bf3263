"""The tool `websearch`: what Exa finds on the web (S2)."""

import json
import os
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import anyio
from attrs import evolve

from agent.tools.definition import Tool, tool
from agent.tools.schemas import Limits
from agent.tools.webfetch import read_bounded
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.errors import ToolError

BASE_URL = "https://api.exa.ai"
KEY_VARIABLE = "EXA_API_KEY"
_MOST_BYTES = 5 * 1024 * 1024


def make_websearch(*, base_url: str = BASE_URL, api_key: str | None = None, timeout: float = 30.0) -> Tool:
    """Return the tool `websearch`. `api_key` is by default that of the environment; `timeout` is in seconds."""

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
                encoding = answer.headers.get("content-encoding", "identity")
                content = await read_bounded(answer.aiter_raw(), encoding, url, _MOST_BYTES)
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise ToolError(f"the search did not answer within {timeout:g} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ToolError(f"the search cannot be reached: {error or type(error).__name__}") from error
    if answer.status_code != 200:
        said = content[:500].decode("utf-8", "replace").replace(key, "(key)")
        raise ToolError(f"the search answered with status {answer.status_code}: {said}")
    return _parsed(content)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the search answered with something that is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("results", []), list):
        raise ToolError("the search answered with something that is no list of results")
    return found


def _tell(found: dict[str, Any], most: int) -> str:
    """Return the context that was made for models or, without one, the results."""
    context = found.get("context")
    if isinstance(context, str) and context.strip():
        return context[:most]
    results = [result for result in found.get("results", []) if isinstance(result, dict)]
    return "\n\n".join(map(_one, results))[:most] or "(nothing was found)"


def _one(result: dict[str, Any]) -> str:
    about = (("Title", "title"), ("URL", "url"), ("Published", "publishedDate"), ("Author", "author"), ("Text", "text"))
    return "\n".join(f"{name}: {result[key]}" for name, key in about if result.get(key))
