"""Tools of MCP servers, against a real one over standard input and output from the package `mcp`."""

import sys
from pathlib import Path

import anyio
import pytest

from agent import Agent, ScriptedModel, call
from agent.models.scripted import Step
from agent.tools.mcp import mcp_tools
from agent.tools.schemas import foreign_shape
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


async def test_an_error_while_its_tools_are_used_is_not_one_of_the_server(command: list[str], tmp_path: Path) -> None:
    with pytest.RaisesGroup(FileNotFoundError, allow_unwrapped=True, flatten_subgroups=True):
        async with mcp_tools(command):
            (tmp_path / "missing").read_text()


async def test_a_folder_or_a_server_that_is_not_there_is_named(command: list[str], tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="missing"):
        async with mcp_tools(command, cwd=str(tmp_path / "missing")):
            pass
    with pytest.raises((CannotStart, ExceptionGroup), match="no-such-server"):
        async with mcp_tools(["no-such-server"]):
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
