"""Tools of MCP servers: one from the package `mcp`, one that sends any bytes, and one over HTTP."""

import base64
import json
import sys
import threading
from contextlib import AbstractAsyncContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import Agent, ScriptedModel, call
from agent.models.scripted import Step
from agent.tools.definition import Tool
from agent.tools.mcp import mcp_tools
from agent.tools.schemas import foreign_shape, schema_for_models
from agent.vocabulary.errors import CannotStart, ToolError
from agent.vocabulary.events import ApprovalAsked, ToolStarted
from agent.vocabulary.messages import ToolMessage
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SERVER = """
import os
from mcp.server import MCPServer

print("Welcome to the server!")
print("It prints a lot.", flush=True)
server = MCPServer("test")

@server.tool()
def add(a: int, b: int = 1) -> str:
    "Add two numbers."
    return str(a + b)

@server.tool()
def fail() -> str:
    "Fail."
    raise ValueError("not today")

@server.tool()
def variable(name: str) -> str:
    "Read a variable."
    return os.environ.get(name, "not set")

@server.tool()
def die() -> str:
    "End the server."
    os._exit(1)

@server.tool()
def run(shell_command: str) -> str:
    "Run."
    print("running", flush=True)
    return "ran"

@server.tool()
def save(filePath: str) -> str:
    "Save."
    return "saved"

@server.tool()
def get(page_url: str) -> str:
    "Get."
    return "got"

@server.tool()
def flood() -> str:
    "Say too much."
    return "x" * 9_000_000

server.run("stdio")
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER)
    return [sys.executable, str(tmp_path / "server.py")]


async def test_the_tools_of_a_server_are_tools_whose_calls_pass_the_gate(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "secret")
    with anyio.fail_after(100):
        async with mcp_tools(command, env={"GIVEN": "yes"}, prefix="t_", categories={"add": "read"}) as listed:
            tools = {tool.name: tool for tool in listed}

            assert (tools["t_add"].description, tools["t_add"].category) == ("Add two numbers.", "read")
            assert tools["t_fail"].category == "write"
            assert (await tools["t_add"].run({"a": 2, "b": 3})).text == "5"
            failed = await tools["t_fail"].run({})
            assert failed.is_error
            assert "fail" in failed.text
            assert (await tools["t_variable"].run({"name": "SECRET_OF_OURS"})).text == "not set"
            assert (await tools["t_variable"].run({"name": "GIVEN"})).text == "yes"
            model = ScriptedModel([[call("t_add", a=1), call("t_add", a=1.5)], "Done."])
            run = await Agent(model, listed, workspace=tmp_path).run("Add")
            assert (await tools["t_die"].run({})).is_error

    answers = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert answers[0] == "2"
    assert "invalid arguments: a: " in answers[1]
    assert "gate_approved" in [event.name for event in run.events]


async def test_an_error_while_its_tools_are_used_is_not_one_of_the_server() -> None:
    own = ExceptionGroup("of the caller", [ValueError("one")])
    for error in (FileNotFoundError("missing"), SystemExit(3), KeyboardInterrupt(), own):
        with pytest.raises(type(error)) as raised:
            async with serve():
                raise error
        assert raised.value is error


async def test_a_folder_or_a_server_that_is_not_there_is_named(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="missing"):
        async with mcp_tools(command, cwd=str(tmp_path / "missing")):
            pass
    with pytest.raises(CannotStart, match="no-such-server"):
        async with mcp_tools(["no-such-server"]):
            pass
    with pytest.raises(CannotStart, match="is no MCP server, or ended at once; it said: gone"):
        async with mcp_tools(["bash", "-c", "echo gone >&2"]):
            pass


@rows(
    "schema",
    [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "no such type"}}},
     {"type": "object", "$ref": "http://127.0.0.1:1/schema"}],
)  # fmt: skip
def test_a_wrong_schema_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(ToolError):
        foreign_shape(schema)


async def test_parameters_that_are_called_so_are_judged_as_commands_paths_and_addresses(
    command: list[str], tmp_path: Path
) -> None:
    steps = [call("run", shell_command="rm -rf /"), call("save", filePath="/etc/cron.d/x")]
    steps += [call("get", page_url="http://example.com"), call("add", a=1), call("run", shell_command="ls")]
    asked: list[str] = []

    def no(question: ApprovalAsked) -> bool:
        asked.append(question.call.tool)
        return False

    with anyio.fail_after(100):
        async with mcp_tools(command) as tools:
            run = await Agent(ScriptedModel([*steps, "Done."]), tools, workspace=tmp_path, approve=no).run("Go")

    assert asked == ["get", "add"]
    assert [event.call.tool for event in run.events if isinstance(event, ToolStarted)] == ["run"]


async def test_a_relative_path_is_judged_where_the_server_runs(command: list[str], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    steps: list[Step] = [call("save", filePath="x.txt"), "Done."]

    with anyio.fail_after(100):
        async with mcp_tools(command, cwd=str(tmp_path)) as tools:
            run = await Agent(ScriptedModel(steps), tools, workspace=workspace).run("Go")

    assert [event for event in run.events if isinstance(event, ToolStarted)] == []


async def test_a_server_that_prints_too_much_does_no_harm(command: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """A line that is no JSON is told once, and an answer that is too long is an error at once."""
    with anyio.fail_after(100):
        async with mcp_tools(command) as listed:
            tools = {tool.name: tool for tool in listed}
            assert [(await tools["run"].run({"shell_command": "ls"})).text for _ in range(2)] == ["ran", "ran"]
            answered = await tools["flood"].run({})

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "lines that are no JSON to its standard output, which are left out: 'Welcome to" in caplog.text
    assert answered.is_error
    assert "longer than 8388608 bytes" in answered.text


# A server that lists and answers what it is told to, however wrong that is.

ANY_SERVER = """
import json, os, sys
tools, results = json.loads(os.environ["TOOLS"]), json.loads(os.environ["RESULTS"])
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    params = asked.get("params", {})
    result = {
        "initialize": lambda: {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                               "serverInfo": {"name": "any", "version": "1"}},
        "tools/list": lambda: {"tools": tools},
        "tools/call": lambda: results[params["name"]],
    }[asked["method"]]()
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
OBJECT = {"type": "object", "properties": {}}


def serve(
    *tools: Any, results: dict[str, Any] | None = None, **options: Any
) -> AbstractAsyncContextManager[tuple[Tool, ...]]:
    env = {"TOOLS": json.dumps(tools), "RESULTS": json.dumps(results or {})}
    return mcp_tools([sys.executable, "-c", ANY_SERVER], env=env, **options)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def resource(**more: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "repo://a/b", **more}}


DATA = base64.b64encode(b"data").decode()
LINK = {"type": "resource_link", "uri": "file:///srv/q3.txt", "name": "report", "description": "third quarter"}
ITEMS = {"items": [{"name": "pear", "price": 2.5}, {"name": "Äpfel", "price": 3}], "more": False}
ANSWERS: list[tuple[Any, Any, list[str], list[str]]] = [  # content, structured content, said, pictures
    ([text("got it"), resource(text="THE BODY")], None, ["got it", "repo://a/b", "THE BODY"], []),
    ([resource(mimeType="text/plain", blob=DATA)], None, ["[resource repo://a/b]\ndata"], []),
    ([resource(mimeType="application/json; charset=utf-8", blob=DATA)], None, ["[resource repo://a/b]\ndata"], []),
    ([resource(mimeType="application/zip", blob="UEsDBAA")], None, ["repo://a/b", "application/zip, 5 bytes"], []),
    ([resource(blob="x")], None, ["repo://a/b", "damaged"], []),
    ([resource(mimeType="image/png", blob=DATA)], None, ["repo://a/b", "image/png"], ["image/png"]),
    ([LINK], None, ["report", "file:///srv/q3.txt", "third quarter"], []),
    ([{"type": "image", "data": DATA, "mimeType": "image/png"}], None, ["[picture: image/png]"], ["image/png"]),
    ([text("a"), {"type": "image", "data": "x", "mimeType": "image/png"}], None, ["a\n[picture", "damaged"], []),
    *(
        ([{"type": "image", "data": data, "mimeType": "image/png"}], None, ["[picture: image/png]"], ["image/png"])
        for data in (f"data:image/png;base64,{DATA}", DATA.rstrip("="), f"{DATA[:3]}\n{DATA[3:]}", "_-8")
    ),
    ([text("a"), {"type": "image", "data": "%%%", "mimeType": "image/png"}], None, ["a\n[picture", "damaged"], []),
    ([{"type": "image", "data": DATA, "mimeType": "image/svg+xml"}], None, ["[picture]\ndata"], []),
    ([{"type": "audio", "data": "UklGRgA=", "mimeType": "audio/wav"}], None, ["[audio: audio/wav, 5 bytes"], []),
    ([text("a"), {"type": "hologram", "of": "b"}], None, ["a", '{"type": "hologram", "of": "b"}'], []),
    ([], ITEMS, ["pear", "Äpfel", "2.5"], []),
    ([text("2 items returned")], ITEMS, ["2 items returned", "pear"], []),
    ([], None, ["(no output)"], []),
    (None, ITEMS, ["pear"], []),
    ("plain", None, ["plain"], []),
    (text("alone"), None, ["alone"], []),
    ([], [7, "eight"], ['[7, "eight"]'], []),
]  # fmt: skip


async def test_everything_that_an_answer_holds_is_shown_or_named() -> None:
    """Errors, too, and answers that are not as the server's own schema says."""
    wants = {"type": "object", "properties": {"wanted": {"type": "string"}}, "required": ["wanted"]}
    names = [f"t{number}" for number in range(len(ANSWERS))]
    tools = [{"name": name, "inputSchema": OBJECT, "outputSchema": wants} for name in names]
    results = {
        name: {"content": content, "isError": bool(number % 2), **({"structuredContent": data} if data else {})}
        for number, (name, (content, data, _, _)) in enumerate(zip(names, ANSWERS, strict=True))
    }
    with anyio.fail_after(100):
        async with serve(*tools, results=results) as listed:
            told = [await tool.run({}) for tool in listed]

    for number, (result, (_, _, words, pictures)) in enumerate(zip(told, ANSWERS, strict=True)):
        assert [word for word in words if word not in result.text] == [], result.text
        assert [image.media_type for image in result.images] == pictures
        assert result.is_error is bool(number % 2)


BOTH_FORMS: list[tuple[str, Any, bool]] = [  # text, data, whether the text says less
    (json.dumps(ITEMS, indent=2), ITEMS, False),
    (json.dumps(ITEMS, ensure_ascii=False), ITEMS, False),
    ("pear: 2.5, Äpfel: 3, more: false", ITEMS, False),
    ("hello", {"result": "hello"}, False),
    ("10 results", {"pages": 1}, True),
    ("done", {"answer": "done it"}, True),
]


async def test_data_that_the_text_tells_already_are_not_shown_again() -> None:
    results = {str(n): {"content": [text(row[0])], "structuredContent": row[1]} for n, row in enumerate(BOTH_FORMS)}
    with anyio.fail_after(100):
        async with serve(*({"name": name, "inputSchema": OBJECT} for name in results), results=results) as tools:
            shown = [(await tool.run({})).text for tool in tools]

    for told, (words, data, says_less) in zip(shown, BOTH_FORMS, strict=True):
        assert told == (f"{words}\n{json.dumps(data, ensure_ascii=False)}" if says_less else words)


def with_property(name: str, **part: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {"a": part}}}


async def test_a_tool_that_cannot_be_used_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    bad = [
        with_property("b1", type="any"), with_property("b2", **{"$ref": "https://example.com/schema.json"}),
        with_property("b3", type="string", pattern="^a\\Z"), with_property("b4", type="string", required=True),
        with_property("b5", type="integer", exclusiveMinimum=True), {"name": "b6", "inputSchema": {"type": "array"}},
        {"name": "b7", "inputSchema": [1]}, {"name": "b8", "inputSchema": {"type": "object", "required": "a"}},
        {"name": "b9", "inputSchema": {"type": "object", "properties": {"a": "string"}}},
        {"inputSchema": OBJECT}, {"name": "", "inputSchema": OBJECT}, None,
    ]  # fmt: skip
    good = [
        {"name": "get", "inputSchema": OBJECT}, {"name": "null", "inputSchema": None}, {"name": "absent"},
        {"name": "bare", "inputSchema": {"properties": {"a": {"type": "string"}}}},
        {"name": "nulls", "inputSchema": {"type": "object", "properties": None, "required": None}},
        {"name": "php", "inputSchema": {"type": "object", "properties": []}},
        {"name": "odd", "inputSchema": OBJECT, "description": 5, "annotations": "none", "outputSchema": []},
    ]  # fmt: skip
    with anyio.fail_after(100):
        async with serve(*bad, *good, {"name": "get"}) as tools:
            names = [tool.name for tool in tools]

    assert names == ["get", "null", "absent", "bare", "nulls", "php", "odd"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == len(bad) + 1, said
    assert all("is left out: " in each and "\n" not in each for each in said), said
    assert any("its tool 'b1' is left out: no JSON Schema that can be used: " in each for each in said), said


async def test_names_that_are_equal_when_shortened_are_told_apart_and_tools_can_be_left_out() -> None:
    long = "x" * 70
    listed = [{"name": name, "inputSchema": OBJECT} for name in (f"{long}a", f"{long}b", "a.b", "a_b", "a b", "c", "d")]
    with anyio.fail_after(100):
        async with serve(*listed, categories={"c": "off"}) as tools:
            names = [tool.name for tool in tools]
        async with serve(*listed, categories={"*": "off", "c": "read"}) as tools:
            assert [(tool.name, tool.category) for tool in tools] == [("c", "read")]
        with pytest.raises(ToolError, match=r"has no tool 'e', which `categories` names; it has: .*, c, d"):
            async with serve(*listed, categories={"e": "off"}):
                pass

    assert len(set(names)) == len(names) == 6
    assert {"a_b", "d"} <= set(names)
    assert all(len(name) <= 64 and name.replace("_", "").isalnum() for name in names)


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object"},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "properties": {"type": {"type": "array"}, "properties": {"type": ["object", "null"]}}},
    {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, {"type": "object"}]}, "b": True}},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "array", "items": True}}}},
    {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "object"}}},
    {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "array"}}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
     "properties": {"a": {"type": "array", "items": [{"type": "string"}, {"type": "array"}]}}},
    {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}], "additionalItems": False}}},
    {"type": "object", "definitions": {"A": {"type": "array", "items": [True]}},
     "properties": {"a": {"$ref": "#/definitions/A"}}},
    {"type": "object", "oneOf": [{"properties": {"a": {"type": "array"}}, "required": ["a"]},
                                 {"properties": {"b": {"type": "object"}}, "required": ["b"]}]},
    {"type": "object", "$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"type": "array"}}}}},
    {"type": "object", "allOf": [{"$ref": "#"}, {"properties": {"a": {"default": {"type": "object"}}}}]},
]  # fmt: skip


def flaws(part: Any, where: str = "") -> list[str]:
    """Return what a strict provider refuses in a schema."""
    if not isinstance(part, dict):
        return [f"{where}: {part!r}"]
    kinds = part["type"] if isinstance(part.get("type"), list) else [part.get("type")]
    found = [
        f"{where}: no {word}"
        for kind, word in (("object", "properties"), ("array", "items"))
        if kind in kinds and word not in part
    ]
    if not where:
        found += [word for word in ("oneOf", "anyOf", "allOf", "enum", "not", "$ref", "$schema") if word in part]
    inner = {f"{word}.{name}": each for word in ("properties", "$defs") for name, each in part.get(word, {}).items()}
    inner |= {f"anyOf.{number}": each for number, each in enumerate(part.get("anyOf", []))}
    inner |= {
        word: part[word] for word in ("items", "additionalProperties") if not isinstance(part.get(word, True), bool)
    }
    inner |= {"items": part["items"]} if "items" in part else {}
    return [*found, *(flaw for name, each in inner.items() for flaw in flaws(each, f"{where}/{name}"))]


@rows("schema", SCHEMAS)
def test_schemas_are_sent_as_strict_providers_take_them_and_arguments_checked_by_the_servers_own(schema: Any) -> None:
    sent = schema_for_models(schema)

    assert flaws(sent) == []
    assert foreign_shape(schema).written == sent
    assert schema_for_models(sent) == sent
    assert ("a" in sent["properties"]) is ('"a"' in json.dumps(schema))


def test_a_list_of_schemas_for_elements_is_of_an_older_draft_where_no_draft_is_named() -> None:
    a = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False}
    shape = foreign_shape({"type": "object", "properties": {"a": a}})

    assert shape.problems({"a": ["x", 1]}) == ()
    assert shape.problems({"a": ["x", "y"]}) != ()
    assert shape.problems({"a": ["x", 1, 2]}) != ()


async def test_the_servers_own_schema_checks_and_a_long_description_is_cut() -> None:
    either = {"type": "object", "oneOf": [{"properties": {"cmd": {"type": "string"}}, "required": ["cmd"]},
                                          {"properties": {"id": {"type": "integer"}}, "required": ["id"]}]}  # fmt: skip
    with anyio.fail_after(100):
        async with serve({"name": "do", "inputSchema": either, "description": "long " * 400}) as (do,):
            pass

    assert len(do.description) == 1024
    assert do.parameters["properties"].keys() == {"cmd", "id"}
    assert do.command({"cmd": "ls"}) == "ls"
    assert not do.check({"id": 1})
    assert do.check({})


class OverHttp(BaseHTTPRequestHandler):
    """Answers each message in JSON, to those who know the key."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "http", "version": "1"}},
            "tools/list": {"tools": [{"name": "get", "inputSchema": None}]},
            "tools/call": {"content": [text("got it")]},
        }  # fmt: skip
        status = 401 if self.headers["X-Key"] != "sesame" else 200 if "id" in asked else 202
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]} if status == 200 else None
        self._send(status, b"" if answer is None else json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._send(405, b"")

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


async def test_a_server_over_http_is_reached_with_its_headers_or_named() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), OverHttp) as server, anyio.fail_after(100):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/mcp"
        async with mcp_tools(address, headers={"X-Key": "sesame"}) as (get,):
            assert (await get.run({})).text == "got it"
            assert get.source == f"the MCP server {address}"
        with pytest.raises(CannotStart, match=f"'{address}' is no MCP server, or ended at once; it said: 401"):
            async with mcp_tools(address):
                pass
        server.shutdown()
    with pytest.raises(CannotStart, match=f"cannot reach '{address}': "):
        async with mcp_tools(address):
            pass
    with pytest.raises(CannotStart, match=r"'python server.py' is no address; give a command as a list of words"):
        async with mcp_tools("python server.py"):
            pass
