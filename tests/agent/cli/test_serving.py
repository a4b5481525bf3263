"""Servers: of tools (`--mcp`), and of models over both wire formats."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.build import read_server
from agent.cli.errors import Mistake
from tests.agent.cli.sessions import Command, RunOf, Script, answers_in
from tests.agent.models.hostile_server import Server
from tests.agent.models.shapes import ended, streamed, words

SERVER = """
import os
from mcp.server import MCPServer
from tests.tables import rows

server = MCPServer("test")

@server.tool()
def add(a: int, b: int = 1) -> str:
    "Add two numbers."
    return f"{a + b} {os.environ.get('GIVEN', '')}"

server.run("stdio")
"""


@pytest.fixture
def server(tmp_path: Path) -> str:
    """How a server is started."""
    pytest.importorskip("mcp")
    (tmp_path / "server.py").write_text(SERVER)
    return f"{sys.executable} {tmp_path}/server.py"


@pytest.mark.slow
def test_a_run_has_the_tools_of_the_servers_that_are_named(
    command: Command, script: Script, workspace: Path, log: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under their names or a prefix, with variables whose values are in no log, through the same gate."""
    monkeypatch.setenv("HIDDEN", "hidden")
    model = script(
        {"calls": [{"tool": "add", "arguments": {"a": 1}}, {"tool": "n_add", "arguments": {"a": 1, "b": 4}}]},
        {"calls": [{"tool": "n_add", "arguments": {"a": "x"}}]},
        "Done.",
    )
    servers = ("--mcp", f"[*=write]: {server}", "--mcp", f"n[add=write]: GIVEN=$HIDDEN {server}")

    said = command("run", "add", "--model", model, "--workspace", workspace, "--log", log, *servers)

    assert said.code == 0, said.err
    assert answers_in(log)[:2] == ["2 ", "5 hidden"]
    assert answers_in(log)[2].startswith("not executed: invalid arguments: a:")
    names = [json.loads(line).get("name") for line in log.read_text().splitlines()]
    assert names.count("gate_approved") == 2
    header = json.loads(log.read_text().splitlines()[0])
    assert header["about"]["mcp"].splitlines() == list(servers[1::2])


@pytest.mark.slow
def test_a_configuration_names_servers_and_tools_lists_them(command: Command, tmp_path: Path, server: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"preset: default\nmcp:\n  - 'calc: {server}'\n")

    said = command("tools", "--config", config, "--json")

    tools = {tool["name"]: tool for tool in map(json.loads, said.out.splitlines())}
    assert tools["calc_add"]["category"] == "write"
    assert tools["calc_add"]["source"] == f"the MCP server {sys.executable}"
    assert set(tools["calc_add"]["parameters"]["properties"]) == {"a", "b"}


@pytest.mark.slow
def test_reading_a_log_starts_no_server(
    command: Command, script: Script, workspace: Path, log: Path, server: str
) -> None:
    """A run is resumed with its servers given again; the message says how."""
    model = script({"calls": [{"tool": "add", "arguments": {"a": 1}}]}, "Done.")
    command("run", "add", "--model", model, "--workspace", workspace, "--log", log, "--mcp", server)
    lines = log.read_text().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if '"name":"call_answered"' in line)
    log.write_text("".join(lines[: cut + 1]))

    without = command("resume", log)
    resumed = command("resume", log, "--mcp", server)

    assert without.code == 2
    assert f"give them again: --mcp '{server}'" in without.err
    assert (resumed.code, resumed.out) == (0, "Done.\n")


@pytest.mark.slow
def test_a_silent_mcp_server_is_not_waited_for_forever(
    run_of: RunOf, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.mcp._LONGEST_BEGINNING", 0.2)

    said = command(*run_of("Done."), "--mcp", "sleep 60")

    assert said.code == 2
    assert "it does not say what tools it has" in said.err


@pytest.mark.slow
def test_tools_of_one_name_are_told_apart_by_a_prefix(run_of: RunOf, command: Command, server: str) -> None:
    said = command(*run_of("Done."), "--mcp", server, "--mcp", server)

    assert said.code == 2
    assert "has a tool 'add', and there is one already; give the server a name: --mcp 'NAME: ...'" in said.err


def test_a_row_is_read_as_a_shell_reads_it() -> None:
    found = read_server("notes: A=1 B=${HOME_OF} program 'two words' C=d", {"HOME_OF": "/h"})

    assert (found.prefix, found.command) == ("notes_", ("program", "two words", "C=d"))
    assert found.variables == {"A": "1", "B": "/h"}
    assert "/h" not in repr(found)


def test_a_program_with_a_colon_in_its_name_is_a_program() -> None:
    assert read_server("/opt/a:b/run x", {}).command == ("/opt/a:b/run", "x")
    with pytest.raises(Mistake):
        read_server("a:", {})


# `--api responses`: the command over the other wire format, from the first request to a run that goes on.


@pytest.fixture
def wire() -> Iterator[Server]:
    wire = Server()
    yield wire
    wire.close()


def writing(path: str) -> tuple[dict[str, object], ...]:
    call = {"call_id": "a", "name": "write_file"}
    return (*streamed("x", 0, call, json.dumps({"path": path, "content": "hi"})), ended())


@pytest.mark.slow
def test_a_run_goes_on_over_the_wire_that_it_began_with(
    command: Command, wire: Server, workspace: Path, log: Path
) -> None:
    wire.stream(*writing("a.txt"))
    wire.stream(*words("responses", "Written."))
    where = ("--workspace", workspace, "--log", log)
    command("run", "go", "--model", f"{wire.url}#any", "--api", "responses", *where)
    lines = log.read_text().splitlines(keepends=True)
    asked_again = [number for number, line in enumerate(lines) if '"name":"inference_requested"' in line][-1]
    log.write_text("".join(lines[: asked_again + 1]))
    wire.stream(*words("responses", "Written, I think."))

    said = command("resume", log)

    assert (said.code, said.out) == (0, "Written, I think.\n"), said.err
    assert (workspace / "a.txt").read_text() == "hi"
    assert [line for line, _, _ in wire.requests] == ["POST /v1/responses HTTP/1.1"] * 3
