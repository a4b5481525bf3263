"""`bash`: a command's end, told in words that the model can act on."""

import inspect
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool, ToolContext
from agent.tools.process import ALLOWED_VARIABLES

from .conftest import Call

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]
OF_THE_SHELL_AND_OURS = {"PWD", "SHLVL", "_", "OLDPWD", "BPAGENT_CALL"}


async def test_s6_1_valid_parameters_give_output(call: Call, root: Path) -> None:
    result = await call("bash", command="pwd; echo out; echo err >&2")

    assert result.text == f"{root}\nout\nerr\n"
    assert not result.is_error
    assert dict(result.details) == {
        "exit_code": 0, "signal": None, "timed_out": False, "truncated": False, "survivors": 0
    }  # fmt: skip


async def test_s6_2_invalid_parameters_give_a_validation_error(call: Call) -> None:
    result = await call("bash", comand="ls", timeout="5")

    assert result.is_error
    assert result.text == (
        "invalid arguments: command: missing; timeout: expected a number, found '5'; "
        "comand: unknown; use command, timeout"
    )


async def test_s6_3_output_over_the_limit_is_truncated_with_a_notice(root: Path) -> None:
    bash = workspace_tools(root, output_limit=100)[0]

    result = await bash.run({"command": "seq 1000"})

    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith("\n999\n1000\n")
    assert "[output truncated: 3793 of 3893 bytes left out here]" in result.text
    assert result.details["truncated"]
    assert not result.is_error


async def test_s6_3_the_limit_is_200_kb_unless_said_otherwise(call: Call) -> None:
    result = await call("bash", command="head -c 300000 /dev/zero | tr '\\0' x")

    assert result.text.count("x") == 200 * 1024


async def test_s6_4_a_command_over_its_time_is_killed_and_answered_as_an_error(call: Call) -> None:
    result = await call("bash", command="echo begun; sleep 60", timeout=0.3)

    assert result.is_error
    assert result.text == "begun\n[timed out after 0.3 seconds; the command was killed]"
    assert result.details["timed_out"]


async def test_s6_4_the_time_is_120_seconds_unless_said_otherwise_and_at_most_600(root: Path, call: Call) -> None:
    default = inspect.signature(workspace_tools).parameters["timeout"].default
    result = await call("bash", command="echo hi", timeout=900)

    assert default == 120
    assert result.text == "hi\n[timeout of 900 seconds clamped to 600, the longest there is]"


async def test_s6_6_the_environment_holds_the_allowed_variables_only(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("BASH_ENV", "/nowhere")

    result = await call("bash", command="env")

    names = {line.partition("=")[0] for line in result.text.splitlines()}
    assert "secret" not in result.text
    assert names <= set(ALLOWED_VARIABLES) | OF_THE_SHELL_AND_OURS
    assert f"PATH={os.environ['PATH']}" in result.text.splitlines()


async def test_s6_13_declared_variables_are_passed(root: Path) -> None:
    bash = workspace_tools(root, env={"DEPLOY_TOKEN": "given"})[0]

    assert (await bash.run({"command": "echo $DEPLOY_TOKEN"})).text == "given\n"


async def test_an_exit_code_is_named_and_is_no_error(call: Call) -> None:
    result = await call("bash", command="echo almost; exit 3")

    assert (result.text, result.is_error) == ("almost\n[exit code 3]", False)
    assert result.details["exit_code"] == 3


async def test_a_death_by_signal_is_an_error_and_named(call: Call) -> None:
    result = await call("bash", command="kill -SEGV $$")

    assert result.text == "(no output)\n[killed by signal 11 (SIGSEGV)]"
    assert result.is_error
    assert result.details["signal"] == 11


async def test_no_output_is_said(call: Call) -> None:
    assert (await call("bash", command="true")).text == "(no output)"


async def test_what_outlived_the_command_is_said(call: Call) -> None:
    result = await call("bash", command="sleep 60 & echo hi")

    assert result.text == "hi\n[1 process still running after the command had ended; killed]"
    assert not result.is_error


@pytest.mark.parametrize("size", [131_070, 131_071, 131_072, 3_000_000])
async def test_a_command_may_be_longer_than_an_argument(call: Call, size: int) -> None:
    script = "cat; echo begun; x=$(cat <<'END'\n"
    command = script + "y" * (size - len(script) - 24) + "\nEND\n); echo ${#x}; exit"

    result = await call("bash", command=command + " 7")

    assert result.text.startswith("begun\n")
    assert result.text.endswith("[exit code 7]")


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"], ids=["NUL", "surrogate"])
async def test_what_no_shell_can_take_is_an_error(call: Call, command: str) -> None:
    result = await call("bash", command=command)

    assert result.is_error
    assert "leave it out" in result.text
    result.text.encode()


async def test_a_deleted_workspace_is_an_error(call: Call, root: Path) -> None:
    root.rmdir()

    result = await call("bash", command="pwd")

    assert result.is_error
    assert "does not exist" in result.text


async def test_progress_is_shown_while_the_command_runs(tools: Mapping[str, Tool]) -> None:
    pieces: list[str] = []

    await tools["bash"].run({"command": "echo a; sleep 0.05; echo b"}, ToolContext("call_1", pieces.append))

    assert "".join(pieces) == "a\nb\n"


async def test_progress_is_shown_at_most_twenty_times_a_second(tools: Mapping[str, Tool]) -> None:
    pieces: list[str] = []
    began = time.monotonic()

    command = "for ((i = 0; i < 300; i++)); do echo $i; read -t 0.002 < <(:) || :; done"
    await tools["bash"].run({"command": command}, ToolContext("call_1", pieces.append))

    assert "".join(pieces) == "".join(f"{number}\n" for number in range(300))
    assert len(pieces) <= 2 + (time.monotonic() - began) / 0.05


async def test_the_gate_sees_the_command(tools: Mapping[str, Tool]) -> None:
    assert tools["bash"].command({"command": "rm -rf /"}) == "rm -rf /"
    assert tools["bash"].touches({"command": "rm -rf /"}) == ()
    assert tools["read_file"].command({"path": "a"}) is None
