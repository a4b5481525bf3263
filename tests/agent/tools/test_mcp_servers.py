"""Tools of MCP servers, against a real one over standard input and output from the package `mcp`."""

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agent import Agent, ScriptedModel, call
from agent.tools.mcp import mcp_tools
from agent.tools.schemas import ForeignShape
from agent.vocabulary.errors import CannotStart, ToolError
from agent.vocabulary.messages import ToolMessage

pytestmark = pytest.mark.anyio

SERVER = """
import os
from mcp.server import MCPServer

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

server.run("stdio")
"""


@pytest.fixture
def anyio_backend() -> str:
    """Starting a server takes a second, and the client is not ours."""
    return "asyncio"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "server.py").write_text(SERVER)
    return [sys.executable, str(tmp_path / "server.py")]


async def test_the_tools_of_a_server_are_tools(
    command: list[str], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "secret")
    with anyio.fail_after(30):
        async with mcp_tools(command, env={"GIVEN": "yes"}, prefix="t_", categories={"add": "read"}) as listed:
            tools = {tool.name: tool for tool in listed}

            assert sorted(tools) == ["t_add", "t_die", "t_fail", "t_variable"]
            assert (tools["t_add"].description, tools["t_add"].category) == ("Add two numbers.", "read")
            assert tools["t_fail"].category == "write"
            assert (await tools["t_add"].run({"a": 2, "b": 3})).text == "5"
            wrong = await tools["t_add"].run({"a": "2"})
            assert wrong.text.startswith("invalid arguments: a: ")
            failed = await tools["t_fail"].run({})
            assert failed.is_error
            assert "fail" in failed.text
            assert (await tools["t_variable"].run({"name": "SECRET_OF_OURS"})).text == "not set"
            assert (await tools["t_variable"].run({"name": "GIVEN"})).text == "yes"


async def test_a_call_passes_the_gate_like_any_other(command: list[str], tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with mcp_tools(command) as tools:
            model = ScriptedModel([[call("add", a=1), call("add", a=1.5)], "Done."])
            run = await Agent(model, tools, workspace=tmp_path).run("Add")

    answers = [message.text for message in run.messages if isinstance(message, ToolMessage)]
    assert answers[0] == "2"
    assert "invalid arguments: a: " in answers[1]
    assert "gate_approved" in [event.name for event in run.events]


async def test_a_server_that_dies_is_an_error_result(command: list[str]) -> None:
    with anyio.fail_after(30):
        async with mcp_tools(command, timeout=10) as tools:
            result = await next(tool for tool in tools if tool.name == "die").run({})

    assert result.is_error


async def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises((CannotStart, ExceptionGroup)) as caught:
        async with mcp_tools(["no-such-server"]):
            pass

    assert "no-such-server" in repr(caught.value)


@pytest.mark.parametrize(
    "schema",
    [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "no such type"}}},
     {"type": "object", "$ref": "http://127.0.0.1:1/schema"}],
)  # fmt: skip
def test_what_is_no_schema_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(ToolError):
        ForeignShape(schema)


def test_a_pattern_that_is_catastrophic_elsewhere_is_checked_at_once(needs: Callable[[str], Path]) -> None:
    shape = ForeignShape({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}})

    assert list(shape.problems({"a": "a" * 40 + "b"}, "")) != []
    assert list(shape.problems({"a": "a" * 40}, "")) == []


def test_frozen_values_are_checked_like_plain_ones() -> None:
    shape = ForeignShape({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}})

    assert list(shape.problems({"a": (1, 2)}, "")) == []
    assert next(shape.problems({"a": (1, "x")}, "")).startswith("a[1]: ")
