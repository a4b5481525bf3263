"""The tools over a command that runs a shell elsewhere; here a local bash stands for the other machine (S2)."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent.tools.collections import CodingOptions, create_all_tools
from agent.tools.definition import ToolContext
from agent.tools.output import Retention
from agent.tools.remote import RemoteCommands, RemoteFiles
from agent.tools.shell import ShellOptions
from agent.vocabulary.calls import ToolResult
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]
CONNECT = ("bash", "-c")


async def run(root: Path, command: str, options: ShellOptions | None = None, **arguments: Any) -> ToolResult:
    place = CodingOptions(
        files=RemoteFiles(CONNECT, str(root)),
        commands=RemoteCommands(CONNECT),
        shell=options or ShellOptions(timeout=20),
    )
    bash = create_all_tools(".", place)["bash"]
    return await bash.run({"command": command, **arguments}, ToolContext("1"))


async def test_commands_run_there_with_output_and_exit_code(root: Path) -> None:
    result = await run(root, "pwd; echo err >&2; cat; exit 3")

    assert result.text == f"{root}\nerr\n[exit code 3]"
    assert result.details["exit_code"] == 3


async def test_streams_variables_prefix_and_limits_go_along(root: Path) -> None:
    options = ShellOptions(
        separate=True, env={"ADDED": "it's $HOME"}, prefix="set -u; ", retention=Retention(100, keep="tail"), timeout=20
    )

    assert (await run(root, 'echo "$ADDED"; echo err >&2', options)).text == "stdout:\nit's $HOME\nstderr:\nerr\n"
    assert "[output truncated: " in (await run(root, "seq 1000", options)).text


async def test_a_timeout_ends_the_connection(root: Path) -> None:
    result = await run(root, "echo begun; sleep 60", timeout=0.5)

    assert result.text == "begun\n[timed out after 0.5 seconds; the command was killed]"


@rows("command", ["a\0b", "\ud800", " "])
async def test_what_no_shell_can_take_is_an_error(root: Path, command: str) -> None:
    assert (await run(root, command)).is_error


async def test_a_long_command_and_odd_characters_pass(root: Path) -> None:
    assert (await run(root, f": '{'x' * 400_000}'; echo \"é'$((1+1))\"")).text == "é'2\n"


async def test_a_directory_that_is_not_there_is_an_error_and_nothing_runs(root: Path, tmp_path: Path) -> None:
    result = await run(tmp_path / "none", "touch ran")

    assert result.details["exit_code"] != 0
    assert not (Path.cwd() / "ran").exists()


async def test_a_command_that_cannot_connect_is_an_error(root: Path) -> None:
    tools = create_all_tools(".", CodingOptions(files=RemoteFiles(("no-such-ssh",), str(root))))

    for name, arguments in (("read", {"path": "a"}), ("ls", {}), ("write", {"path": "a", "content": "x"})):
        result = await tools[name].run(arguments)
        assert result.is_error
        assert "cannot start 'no-such-ssh'" in result.text


async def test_names_of_any_kind_are_safe_there(root: Path) -> None:
    tools = create_all_tools(".", CodingOptions(files=RemoteFiles(CONNECT, str(root))))

    for name in ("a b", "$(touch x)", "'; touch x; '", "-rf", "new\nline", "é"):
        assert not (await tools["write"].run({"path": name, "content": name})).is_error
        assert (await tools["read"].run({"path": name})).text == name

    assert sorted(os.listdir(root)) == sorted(["a b", "$(touch x)", "'; touch x; '", "-rf", "new\nline", "é"])


async def test_a_file_there_keeps_its_mode_and_a_link_stays_one(root: Path) -> None:
    (root / "script").write_text("old")
    (root / "script").chmod(0o750)
    (root / "link").symlink_to("script")
    edit = create_all_tools(".", CodingOptions(files=RemoteFiles(CONNECT, str(root))))["edit"]

    await edit.run({"path": "link", "oldText": "old", "newText": "new"})

    assert (root / "link").is_symlink()
    assert ((root / "script").read_text(), (root / "script").stat().st_mode & 0o777) == ("new", 0o750)
    assert sorted(os.listdir(root)) == ["link", "script"]
