"""What is there: `bpagent --help`, `tools` and `presets`."""

import json
import re
import subprocess
import sys

import pytest

from tests.agent.cli.sessions import Command, environment


def test_help_names_every_command_and_the_exit_codes(command: Command) -> None:
    said = command("--help")

    assert said.code == 0
    assert all(re.search(rf"^    {name} ", said.out, re.M) for name in ("demo", "run", "check", "replay", "tools"))
    assert "6 replay differs" in said.out


def test_help_imports_nothing_heavy() -> None:
    """Well under 0.2 s: what takes time must not even be imported."""
    statements = "import sys\nfrom agent.cli import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"

    finished = subprocess.run([sys.executable, "-c", statements], capture_output=True, text=True, env=environment())

    heavy = {
        "anyio",
        "asyncio",
        "attr",
        "attrs",
        "cattrs",
        "openai",
        "tree_sitter",
        "agent.agent",
        "bp",
        "constitution",
    }
    assert heavy.isdisjoint(finished.stderr.split())


def test_the_version_is_there(command: Command) -> None:
    assert command("--version").out.startswith("bpagent")


def test_tools_have_category_parameters_and_origin(command: Command) -> None:
    said = command("tools")

    assert said.code == 0
    assert "bash            write, from agent.tools.shell.command_tool" in said.out
    assert "- command (string): the command, as bash understands it" in said.out
    assert "- timeout (number or null, optional): " in said.out


def test_tools_as_json_are_their_schemas(command: Command) -> None:
    tools = [json.loads(line) for line in command("tools", "--json").out.splitlines()]

    assert [tool["name"] for tool in tools] == ["bash", "read_file", "write_file", "list_directory"]
    assert tools[1]["category"] == "read"
    assert tools[1]["parameters"]["required"] == ["path"]
    assert tools[1]["source"] == "agent.tools.file_tools"


def test_presets_are_a_table_whose_differences_come_first(command: Command) -> None:
    lines = command("presets").out.splitlines()

    assert lines[0].split() == ["different", "default", "workspace"]
    assert any(line.split() == ["max_failures", "5", "none"] for line in lines)
    assert any(line.split() == ["max_iterations", "20", "20"] for line in lines)


@pytest.mark.parametrize("name", ["demo", "run", "check", "replay", "tools", "presets"])
def test_every_command_has_help(name: str, command: Command) -> None:
    said = command(name, "--help")

    assert said.code == 0
    assert said.out.startswith(f"usage: bpagent {name}")
