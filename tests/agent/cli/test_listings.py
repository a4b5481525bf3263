"""What is there: `bpagent --help`, `tools` and `presets`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.screen import Screen
from agent.presets.shipped import PRESETS, PURPOSES
from tests.agent.cli.sessions import Command, environment


def test_help_names_every_command_and_the_exit_codes(command: Command) -> None:
    said = command("--help")

    assert said.code == 0
    assert all(re.search(rf"^    {name} ", said.out, re.M) for name in ("demo", "run", "check", "replay", "tools"))
    assert "6 replay differs" in said.out


def test_alone_it_shows_what_to_type_first_and_every_command(command: Command) -> None:
    said = command()

    first = [line.split("  ")[2] for line in said.err.splitlines() if line.startswith("    bpagent")]
    words = said.err.partition("All commands:")[2].split()
    assert (said.code, said.out) == (2, "")
    assert first == ["bpagent demo", "bpagent chat --model http://127.0.0.1:8080/v1", "bpagent check 'rm -rf /'"]
    assert "demo" in words
    assert [name for name in re.findall(r"^    ([a-z-]+) ", command("--help").out, re.M) if name not in words] == []
    assert "bpagent --help" in said.err


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
    assert "bash            write, from agent.tools.shell" in said.out
    assert "- command (string): the command, as bash understands it" in said.out
    assert "- timeout (number or null, optional): " in said.out


def test_tools_as_json_are_their_schemas(command: Command) -> None:
    tools = [json.loads(line) for line in command("tools", "--json").out.splitlines()]

    files = ["read_file", "write_file", "list_directory"]
    coding = ["edit", "grep", "find", "todoread", "todowrite", "websearch", "webfetch", "task"]
    assert [tool["name"] for tool in tools] == ["bash", *files, "process_output", "process_stop", *coding]
    assert tools[1]["category"] == "read"
    assert tools[1]["parameters"]["required"] == ["path"]
    assert tools[1]["source"] == "agent.tools.collections"


def test_presets_are_a_table_whose_differences_come_first(command: Command) -> None:
    lines = command("presets").out.splitlines()

    assert ["different", *PRESETS] in [line.split() for line in lines]
    assert any(line.split() == ["max_failures", "5", "none", "5", "none", "none", "none"] for line in lines)
    assert any(line.split() == ["mode", "interactive"] for line in lines[lines.index("the same in all") :])
    assert max(map(len, lines)) <= 100


def test_each_preset_says_what_it_is_for(command: Command) -> None:
    said = " ".join(command("presets").out.split())

    assert list(PURPOSES) == list(PRESETS)
    for name, purpose in PURPOSES.items():
        assert f"{name} for {purpose}" in said


def test_on_a_narrow_screen_presets_are_two_tables(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.cli.presets.screen_on", lambda stream, **_: Screen(stream, columns=80))

    lines = command("presets").out.splitlines()

    headings = [line.split()[1:] for line in lines if line.startswith("different")]
    assert headings == [["default", "workspace", "autonomous"], ["coding", "gated", "passthrough"]]
    assert max(map(len, lines)) <= 80


def test_one_preset_is_shown_whole_with_what_is_not_as_in_default(command: Command) -> None:
    said = command("presets", "autonomous").out

    assert re.search(r"^\* max_iterations +25$", said, re.M)
    assert re.search(r"^  max_failures +5$", said, re.M)
    assert "You are an agent that works on a task" in said


def test_presets_as_json_are_their_options(command: Command) -> None:
    found = [json.loads(line) for line in command("presets", "--json").out.splitlines()]

    assert [preset["name"] for preset in found] == [*PRESETS]
    assert [json.loads(command("presets", "coding", "--json").out)] == [
        preset for preset in found if preset["name"] == "coding"
    ]


@pytest.mark.parametrize("name", ["demo", "run", "check", "replay", "tools", "presets"])
def test_every_command_has_help(name: str, command: Command) -> None:
    said = command(name, "--help")

    assert said.code == 0
    assert said.out.startswith(f"usage: bpagent {name}")
