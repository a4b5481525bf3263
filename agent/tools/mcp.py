"""The tools of an MCP server: judged by the same gate, and checked against the server's schemas.

    async with mcp_tools(["python", "server.py"]) as tools:
        run = await Agent(model, [*tools, *workspace_tools(folder)]).run("...")

Needs the extra `mcp`. A server's description of its tools is not trusted: each counts as one that writes, unless
`categories` says otherwise. Parameters named like commands, paths or addresses are judged as such. A tool without these
and without a declared category is opaque: the user is asked. A tool that cannot be used is left out with a warning.
"""

import base64
import hashlib
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Literal, TextIO

import anyio
from attrs import evolve

from agent.tools import mcp_relay
from agent.tools.definition import Tool, ToolContext, is_cancellation
from agent.tools.output import keep_head
from agent.tools.process import tool_environment
from agent.tools.schemas import Mark, Path, ShellCommand, Url, foreign_shape
from agent.vocabulary.calls import Category
from agent.vocabulary.errors import CannotStart, ToolError, one_of
from agent.vocabulary.messages import Image, ToolResult

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import Tool as Listed

Declared = Mapping[str, Category | Literal["off"]]
"""The categories of a server's tools by their own names, "*" for all others; "off" leaves a tool out."""


_LONGEST_BEGINNING = 30.0  # seconds for a server to list its tools
_LONGEST_SILENCE = 300.0  # seconds of a server over HTTP
_LONGEST_COMPLAINT = 800  # characters
_OUTPUT_LIMIT = 200 * 1024  # bytes
_MOST_PAGES = 100  # of a list of tools
_LONGEST_NAME = 64  # characters
_LONGEST_DESCRIPTION = 1024  # characters that every provider takes
COMMANDS = frozenset(["command", "cmd", "script", "shell"])
ADDRESSES = frozenset(["url", "urls", "uri", "endpoint", "address"])
PATHS = frozenset(["path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder", "cwd"])
"""Words in the names of parameters, with the meaning of these parameters."""

_SCHEMA = "bpagent/schema"
"""The key of a tool's schema in its metadata."""

_logger = logging.getLogger(__name__)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@asynccontextmanager
async def mcp_tools(
    command: Sequence[str] | str,
    *,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    cwd: str | None = None,
    prefix: str = "",
    categories: Declared | None = None,
    timeout: float = 60.0,
) -> AsyncIterator[tuple[Tool, ...]]:
    """Start an MCP server, or connect to one, and yield its tools while the block lasts.

    command: the words of a command, or the address of a server over HTTP. A command sees the allowed variables and
    `env`; `headers` are sent to an address. `prefix` is put before the names of its tools; `categories`: by
    their original names, "*" for all others; "off" leaves a tool out. `timeout`: in seconds, for each call. Raises
    CannotStart, ToolError, TimeoutError for a server that does not list its tools, and errors of the client.
    """
    program, here = command if isinstance(command, str) else command[0], os.path.abspath(cwd or "")
    if isinstance(command, str) and not command.startswith(("http://", "https://")):
        raise CannotStart(f"{command!r} is no address; give a command as a list of words")
    if isinstance(command, str):
        connecting = partial(_connect, command, headers or {})
    elif shutil.which(program) is None:
        raise CannotStart(f"cannot start {program!r}: no such program on PATH")
    else:
        connecting = partial(_start, command, env, cwd)

    failure: BaseException | None = None  # of the block: kept out of the client's task groups, which would wrap it
    try:
        async with _session(program, connecting) as (session, listed):
            tools = _as_tools(listed, session, prefix, categories or {}, timeout, program)
            try:
                yield tuple(evolve(each, cwd=lambda: here) for each in tools)
            except BaseException as error:
                if is_cancellation(error) and not isinstance(error, KeyboardInterrupt):
                    raise
                failure = error
    except Exception as error:
        reason = one_of(error)
        if failure is None and isinstance(command, str) and not isinstance(reason, ToolError | TimeoutError):
            raise CannotStart(f"cannot reach {command!r}: {reason}") from error
        if failure is None:
            raise reason from error
    if failure is not None:
        raise failure


Streams = tuple[Any, Any]


@asynccontextmanager
async def _start(
    command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, complaints: TextIO
) -> AsyncIterator[Streams]:
    """Start a server and yield the streams of its messages; its standard error goes to `complaints`."""
    from mcp import StdioServerParameters, stdio_client

    argv = ["-I", "-S", mcp_relay.__file__, *command]
    server = StdioServerParameters(command=sys.executable, args=argv, env=tool_environment(env), cwd=cwd)
    async with stdio_client(server, errlog=complaints) as streams:
        yield streams


@asynccontextmanager
async def _connect(address: str, headers: Mapping[str, str], complaints: TextIO) -> AsyncIterator[Streams]:
    """Connect to a server over HTTP and yield the streams of its messages; `complaints` gets its error codes."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: httpx2.Response) -> None:
        if response.is_error:
            complaints.write(f"{response.status_code} {response.reason_phrase}\n")

    limits = httpx2.Timeout(_LONGEST_BEGINNING, read=_LONGEST_SILENCE)
    client = httpx2.AsyncClient(headers=dict(headers), timeout=limits, event_hooks={"response": [note]})
    async with client, streamable_http_client(address, http_client=client) as streams:
        yield streams


@asynccontextmanager
async def _session(
    program: str, connecting: Callable[[TextIO], AbstractAsyncContextManager[Streams]]
) -> AsyncIterator[tuple["ClientSession", list["Listed"]]]:
    """Begin a session with a server; yield it and its tools. An error at its start includes its output."""
    try:
        from mcp import ClientSession
    except ImportError as error:
        raise ToolError("MCP servers need the extra 'mcp': pip install 'bpagent[mcp]'") from error

    async def tell(params: Any) -> None:
        _logger.warning("the MCP server %s: %s", program, params.data)

    begun = False
    with TemporaryFile("w+", errors="replace") as complaints:
        try:
            async with (
                connecting(complaints) as (messages, requests),
                ClientSession(_Readable(messages, program), requests, logging_callback=tell) as session,
            ):
                with anyio.fail_after(_LONGEST_BEGINNING):
                    await session.initialize()
                    listed = [each async for each in _listed(session)]
                begun = True
                yield session, listed
        except Exception as error:
            if begun:
                raise
            if isinstance(error, FileNotFoundError):
                raise CannotStart(f"cannot start {program!r}: {error}") from error
            complaints.seek(0)
            said = complaints.read().strip()[-_LONGEST_COMPLAINT:]
            if not said:
                raise
            raise CannotStart(f"{program!r} is no MCP server, or ended at once; it said: {said}") from error


async def _listed(session: "ClientSession") -> AsyncIterator["Listed"]:
    from mcp.types import PaginatedRequestParams

    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        for listed in page.tools:
            yield listed
        if not (cursor := page.next_cursor):
            return


class _Readable:
    """The messages of a server in a form that the client accepts, which else would refuse all of a list for one flaw.

    Results are not checked against a server's own schemas: the model is to read them however they are.
    """

    def __init__(self, messages: Any, program: str) -> None:
        self._messages, self._program = messages, program

    def __getattr__(self, name: str) -> Any:
        return getattr(self._messages, name)

    async def __aenter__(self) -> "_Readable":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> "_Readable":
        return self

    async def __anext__(self) -> Any:
        message = await anext(self._messages)
        result = getattr(getattr(message, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            result["tools"] = [row for each in result["tools"] if (row := self._row(each)) is not None]
        elif isinstance(result, dict) and not result.keys().isdisjoint(["content", "structuredContent"]):
            message.message.result = _readable_answer(result)
        return message

    def _row(self, listed: Any) -> dict[str, Any] | None:
        """Return what we use of a listed tool, or None. Its schema is kept where the client does not read it."""
        row = listed if isinstance(listed, dict) else {}
        name, schema = row.get("name"), row.get("inputSchema")
        written = {"type": "object", **({} if schema is None else schema)} if isinstance(schema, dict | None) else {}
        if not isinstance(name, str) or not name or written.get("type") != "object":
            _leave_out(self._program, name, "it has no name, or its parameters are no object")
            return None
        texts = {key: row[key] for key in ("title", "description") if isinstance(row.get(key), str)}
        known = {word: value for word, value in written.items() if value is not None}
        if known.get("properties") == []:  # PHP's empty object
            known["properties"] = {}
        return {"name": name, **texts, "inputSchema": {"type": "object"}, "_meta": {_SCHEMA: known}}


def _leave_out(program: str, name: object, why: object) -> None:
    _logger.warning("the MCP server %s: its tool %r is left out: %s", program, name, why)


def _readable_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what we use of the answer to a call."""
    parts, structured = answer.get("content"), answer.get("structuredContent")
    parts = parts if isinstance(parts, list) else [] if parts is None else [parts]
    if structured is not None and not isinstance(structured, dict):
        parts, structured = [*parts, structured], None
    content = [_readable_part(part) for part in parts]
    kept = {} if structured is None else {"structuredContent": structured}
    return {"content": content, "isError": answer.get("isError") is True, **kept}


def _readable_part(part: Any) -> Any:
    """Return a part of a result, as text if it has no form that the client knows."""
    from mcp.types import ContentBlock
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(ContentBlock).validate_python(part, by_name=False)
    except ValidationError:
        return {"type": "text", "text": part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)}
    return part


def _as_tools(
    listed: Sequence["Listed"],
    session: "ClientSession",
    prefix: str,
    declared: Declared,
    timeout: float,
    program: str,
) -> Iterator[Tool]:
    """Yield the tools of a server that can be used and are not off. Raises ToolError if it has none of a name."""
    known: dict[str, Listed] = {}
    for each in listed:
        if known.setdefault(each.name, each) is not each:
            _leave_out(program, each.name, "its name is that of another one")
    for name in declared.keys() - known.keys() - {"*"}:
        raise ToolError(f"{program} has no tool {name!r}, which `categories` names; it has: {', '.join(known)}")
    shortened = {name: _NOT_IN_NAMES.sub("_", f"{prefix}{name}")[:_LONGEST_NAME] for name in known}
    for name, each in known.items():
        category = declared.get(name) or declared.get("*")
        if category == "off":
            continue
        called = shortened[name]
        if list(shortened.values()).count(called) > 1 and called != f"{prefix}{name}":
            called = f"{called[:-7]}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"
        try:
            yield _as_tool(each, called, session, category, timeout, program)
        except ToolError as error:
            _leave_out(program, name, error)


def _as_tool(
    listed: "Listed",
    name: str,
    session: "ClientSession",
    declared: Category | None,
    timeout: float,
    program: str,
) -> Tool:
    category, shape = declared or "write", foreign_shape((listed.meta or {})[_SCHEMA])
    marks = tuple(_marks(shape.written, category))

    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        return _result(await session.call_tool(listed.name, arguments))

    description = (listed.description or listed.title or listed.name).strip()
    if len(description) > _LONGEST_DESCRIPTION:
        description = f"{description[: _LONGEST_DESCRIPTION - 4]} ..."
    return Tool(
        name=name,
        description=description,
        shape=shape,
        function=run,
        category=category,
        marks=marks,
        opaque=not marks and declared is None,
        timeout=timeout,
        source=f"the MCP server {program}",
    )


def _marks(schema: Mapping[str, Any], category: Category) -> Iterator[tuple[str, Mark, object]]:
    """Yield the marks of parameters by their names: commands, paths, addresses."""
    properties = schema.get("properties")
    for name in properties if isinstance(properties, Mapping) else ():
        words = frozenset(re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[A-Z])", str(name).lower()))
        if words & COMMANDS:
            yield name, ShellCommand(), None
        elif words & ADDRESSES:
            yield name, Url(), None
        elif words & PATHS:
            yield name, Path("read" if category == "read" else "write"), None


def _result(answered: Any) -> ToolResult:
    """Return a server's answer: its texts, pictures as attachments, and a line about what else there is."""
    images: list[Image] = []
    texts = [_told(part, images) for part in getattr(answered, "content", ())]
    structured = getattr(answered, "structured_content", None)
    if structured is not None and not _is_told(structured, "\n".join(texts)):
        texts.append(json.dumps(structured, ensure_ascii=False))
    written = "\n".join(texts).encode("utf-8", "replace")
    text = keep_head(written, _OUTPUT_LIMIT, len(written)) or "(no output)"
    return ToolResult(text, is_error=bool(getattr(answered, "is_error", False)), images=images)


def _told(part: Any, images: list[Image]) -> str:
    """Return a part of an answer in words; a picture is added to `images`."""
    if part.type == "text":
        return str(part.text)
    if part.type == "resource_link":
        words = (part.name, str(part.uri), part.mime_type, part.description)
        return f"[link to a resource: {', '.join(filter(None, words))}]"
    if part.type != "resource":
        return _decoded(part.data, part.mime_type, "picture" if part.type == "image" else part.type, images)
    about = f"resource {part.resource.uri}"
    text = getattr(part.resource, "text", None)
    if text is None:
        return _decoded(part.resource.blob, part.resource.mime_type or "", about, images)
    return f"[{about}]\n{text}"


def _decoded(data: str, kind: str, about: str, images: list[Image]) -> str:
    """Return binary data in words: a text is shown, a picture added to `images`, all else is named."""
    try:
        content = _bytes_in(data)
    except ValueError:
        return f"[{about}: {kind}, which is damaged: it is no base64]"
    if _TEXTS.match(kind):
        return f"[{about}]\n{content.decode('utf-8', 'replace')}"
    if not kind.startswith("image/"):
        return f"[{about}: {kind or 'binary'}, {len(content)} bytes, which are not shown]"
    images.append(Image(kind, content))
    return f"[{about}: {kind}]"


_TEXTS = re.compile(r"text/|[^;]*\b(json|xml|yaml|toml|javascript|typescript|sql|x-sh)\b")
"""Kinds of data that are text, SVG pictures among them."""


def _bytes_in(data: str) -> bytes:
    """Return what base64 holds, also in a data URL, in lines, without padding or in the alphabet of URLs.

    Raises ValueError for anything else, or nothing.
    """
    digits = "".join(data.rpartition(",")[2].split()).translate(_OF_URLS).rstrip("=")
    content = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    if not content:
        raise ValueError("there is nothing")
    return content


_OF_URLS = str.maketrans("-_", "+/")


def _is_told(value: Any, text: str) -> bool:
    """Return whether a text has each word and number of a value: most servers give both forms of the same."""
    if isinstance(value, Mapping | list):
        parts = value.values() if isinstance(value, Mapping) else value
        return all(_is_told(part, text) for part in parts)
    said = value if isinstance(value, str) else json.dumps(value)
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) for form in (said, json.dumps(said)[1:-1]))
