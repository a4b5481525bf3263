"""`bash`: a command's end, told in words that the model can act on."""

import inspect
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent.tools import output as spilling
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool, ToolContext
from agent.tools.output import Retention
from agent.tools.process import ALLOWED_VARIABLES
from agent.tools.shell import Session, ShellOptions, compact, is_interactive, make_shell_tool
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import AnswerCommitted
from agent.vocabulary.messages import AssistantMessage
from tests.tables import rows

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


@rows("size", [131_070, 131_071, 131_072, 3_000_000])
async def test_a_command_may_be_longer_than_an_argument(call: Call, size: int) -> None:
    script = "cat; echo begun; x=$(cat <<'END'\n"
    command = script + "y" * (size - len(script) - 24) + "\nEND\n); echo ${#x}; exit"

    result = await call("bash", command=command + " 7")

    assert result.text.startswith("begun\n")
    assert result.text.endswith("[exit code 7]")


@rows("command", ["echo a\0b", "echo \ud800"])
async def test_what_no_shell_can_take_is_an_error(call: Call, command: str) -> None:
    result = await call("bash", command=command)

    assert result.is_error
    assert "leave it out" in result.text
    result.text.encode()


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


# `bash` and `run_command` by option: what is kept, how it is told, what a command sees (S1, S2, S4).


TAIL = Retention(50 * 1024, lines=2000, keep="tail", spill=True)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(spilling, "_folders", {})
    return folder


async def test_s2_the_last_2000_lines_are_shown_and_all_of_it_is_in_a_file(root: Path, temporary: Path) -> None:
    result = await shell_in(root, retention=TAIL, form="details")("seq 3000")

    (file,) = temporary.glob("*/*")
    shown = "".join(f"{number}\n" for number in range(1001, 3001))
    assert result.text == f"{shown}\n[output truncated: lines 1001 to 3000 are shown of 3000; all of it is in {file}]"
    assert file.read_text() == "".join(f"{number}\n" for number in range(1, 3001))
    assert file.stat().st_mode & 0o777 == 0o600
    assert result.details["fullOutputPath"] == str(file)
    assert result.details["truncation"]["kept_lines"] == 2000
    assert result.details["truncation"]["total_lines"] == 3000


async def test_s2_the_last_50_kb_of_whole_lines_are_shown(root: Path) -> None:
    result = await shell_in(root, retention=TAIL)("for i in {1..100}; do printf '%01023d\\n' $i; done")

    assert "[output truncated: lines 51 to 100 are shown of 100 (50 KB limit); all of it is in " in result.text
    assert result.text.startswith("0")
    assert result.text.split("\n")[0].endswith("51")


async def test_the_file_has_a_quota_which_is_said(root: Path, temporary: Path) -> None:
    small = Retention(1000, keep="tail", spill=True, quota=5000)

    result = await shell_in(root, retention=small)("seq 10000")

    (file,) = temporary.glob("*/*")
    assert file.stat().st_size == 5000
    assert f"its first 4.883 KB is in {file}]" in result.text


async def test_the_first_lines_may_be_kept_instead(root: Path) -> None:
    result = await shell_in(root, retention=Retention(1000, lines=2, keep="head"))("seq 5")

    assert result.text == "1\n2\n\n[output truncated: lines 1 to 2 are shown of 5]"


async def test_errors_may_stand_on_their_own(root: Path) -> None:
    shell = shell_in(root, separate=True)

    assert (await shell("echo out; echo err >&2; exit 3")).text == "stdout:\nout\nstderr:\nerr\n[exit code 3]"
    assert (await shell("echo err >&2")).text == "stderr:\nerr\n"
    assert (await shell("true")).text == "(no output)"
    flood = await shell("head -c 300000 /dev/zero >&2; echo done")
    assert flood.text.startswith("stdout:\ndone\nstderr:\n")
    assert flood.details["truncated"]


async def test_s2_an_exit_code_may_be_an_error(root: Path) -> None:
    result = await shell_in(root, nonzero_is_error=True)("echo a; exit 3")

    assert (result.text, result.is_error) == ("a\n[exit code 3]", True)
    assert not (await shell_in(root, nonzero_is_error=True)("true")).is_error


async def test_s2_without_a_default_timeout_none_is_set_and_any_may_be_asked_for(root: Path) -> None:
    shell = shell_in(root, timeout=None, longest_timeout=None)

    assert (await shell("echo hi", timeout=9000)).text == "hi\n"
    assert (await shell("sleep 30", timeout=0.2)).text == (
        "(no output)\n[timed out after 0.2 seconds; the command was killed]"
    )


async def test_the_environment_may_be_inherited_and_a_hook_adds_to_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_OURS", "1")
    asked: list[str] = []

    async def hook(cwd: str) -> dict[str, str]:
        asked.append(cwd)
        return {"HOOKED": "2"}

    inheriting = shell_in(root, inherit=True, env={"ADDED": "3"}, hook=hook)

    assert (await inheriting("echo $OF_OURS$HOOKED$ADDED")).text == "123\n"
    assert asked == [str(root)]
    assert (await shell_in(root, hook=lambda _: {"HOOKED": "2"})("echo $OF_OURS$HOOKED")).text == "2\n"


async def test_a_hook_that_raises_is_an_error_and_nothing_runs(root: Path) -> None:
    def hook(_: str) -> dict[str, str]:
        raise ValueError("no variables today")

    result = await shell_in(root, hook=hook)("touch ran")

    assert (result.text, result.is_error) == ("no variables today", True)
    assert not (root / "ran").exists()


async def test_s2_a_prefix_stands_before_every_command_and_the_gate_sees_it(root: Path) -> None:
    tool = make_shell_tool(str(root), ShellOptions(prefix="set -e\n"))

    assert (await tool.run({"command": "false; echo on"})).text == "(no output)\n[exit code 1]"
    assert tool.command({"command": "ls"}) == "set -e\nls"


async def test_s4_a_login_shell_runs_the_profile(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".bash_profile").write_text("export FROM_PROFILE=yes\n")

    shell = shell_in(root, shell=("bash", "-lc"), env={"HOME": str(root)})

    assert (await shell("echo $FROM_PROFILE")).text == "yes\n"


@rows("command", ["", "  \n\t"])
async def test_s4_an_empty_command_is_refused(root: Path, command: str) -> None:
    result = await shell_in(root)(command)

    assert (result.text, result.is_error) == ("the command is empty; give one", True)


def envelope(result: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(result.text)
    return parsed


async def test_s4_the_observation_is_an_envelope(root: Path) -> None:
    moments = iter(datetime(2026, 5, 29, 15, 48, second, tzinfo=UTC) for second in range(60))
    session = Session(lambda: next(moments))
    tool = make_shell_tool(str(root), ShellOptions(form="envelope"), name="run_command", session=session)

    result = await tool.run({"command": "echo hi; exit 3"}, ToolContext("call_7"))

    assert envelope(result) == {
        "schema": "z2e.tool_observation.v1",
        "timestamp": "2026-05-29T15:48:01Z",
        "session": {"started_at": "2026-05-29T15:48:00Z", "steps": 1, "executed_commands": 1, "observations": 1},
        "tool": {
            "tool": "run_command", "call_id": "call_7", "command": "echo hi; exit 3", "workdir": str(root),
            "raw": "hi\n",
        },
        "result": {"status": "completed", "exit_code": 3, "timed_out": False, "interactive": False, "output": "hi\n"},
    }  # fmt: skip
    assert not result.is_error
    again = envelope(await tool.run({"command": ""}, ToolContext("call_8")))
    assert tool.name == "run_command"
    assert again["session"] == {
        "started_at": "2026-05-29T15:48:00Z", "steps": 2, "executed_commands": 1, "observations": 2,
    }  # fmt: skip
    assert again["result"]["status"] == "failed"


async def test_s4_output_is_compacted_to_6000_characters_and_raw_to_2000(root: Path) -> None:
    shell = shell_in(root, form="envelope", retention=Retention(64 * 1024))

    told = envelope(await shell("seq 100000"))

    assert len(told["result"]["output"]) == 6000
    assert len(told["tool"]["raw"]) == 2000
    assert told["result"]["output"].startswith("1\n2\n")
    assert told["result"]["output"].endswith("99999\n100000\n")


async def test_s4_a_timeout_keeps_what_came_before(root: Path) -> None:
    result = await shell_in(root, form="envelope")("echo begun; sleep 30", timeout=0.3)

    told = envelope(result)["result"]
    assert told == {
        "status": "timeout", "exit_code": None, "timed_out": True, "interactive": False, "output": "begun\n",
    }  # fmt: skip
    assert result.is_error


async def test_s4_the_envelope_says_what_its_fields_do_not(root: Path) -> None:
    """A timeout that was cut down, a signal, and processes that were left; it keeps to its 6000 characters."""
    shell = shell_in(root, form="envelope", longest_timeout=600)

    cut = envelope(await shell("seq 100000", timeout=900))["result"]
    killed = envelope(await shell("kill -9 $$"))["result"]
    left = envelope(await shell("sleep 50 & echo begun"))["result"]

    assert cut["output"].endswith("100000\n[timeout of 900 seconds clamped to 600, the longest there is]")
    assert 5990 < len(cut["output"]) <= 6000
    assert (killed["status"], killed["output"]) == ("killed", "[killed by signal 9 (SIGKILL)]")
    assert left["output"] == "begun\n[1 process still running after the command had ended; killed]"


async def test_s4_steps_are_turns_where_there_are_any(root: Path) -> None:
    session = Session()
    tools = [make_shell_tool(str(root), ShellOptions(form="envelope"), session=session) for _ in range(2)]
    for event in (AnswerCommitted("d0", AssistantMessage("a")), AnswerCommitted("d1", AssistantMessage("b"))):
        for tool in tools:
            assert tool.hears is not None
            tool.hears(event)

    told = [envelope(await tool.run({"command": "true"}))["session"] for tool in (*tools, tools[0])]

    assert [(one["steps"], one["executed_commands"]) for one in told] == [(2, 1), (2, 2), (2, 3)]


@rows(
    ("command", "waits"),
    [
        ("vim a", True), ("sudo vim a", True), ("ls && /usr/bin/top", True), ("python", True), ("python x.py", False),
        ("python -i x.py", True), ("ssh host", True), ("ssh host ls", False), ("docker run -it x", True),
        ("man --help", False),
        ("git rebase -i HEAD~2", True), ("echo vim", False), ("bash < x", False), ("", False),
        ("echo 'unclosed", False),
        ("A=1 vim", True), ("read -p name? x", True),
    ],
)  # fmt: skip
def test_s4_which_commands_seem_to_wait(command: str, waits: bool) -> None:
    assert is_interactive(command) is waits


def test_a_compacted_text_keeps_its_ends_and_says_how_long_it_was() -> None:
    assert compact("x" * 100, 100) == "x" * 100
    assert compact("a" * 50 + "b" * 51, 60) == "aaaaaaaaaaaaaa\n[... 101 characters in all ...]\nbbbbbbbbbbbbb"
    assert len(compact("x" * 101, 10)) == 10


async def test_what_options_mean_is_told_to_the_model(root: Path) -> None:
    tool = make_shell_tool(str(root), ShellOptions(timeout=None, longest_timeout=None, retention=TAIL))

    assert "as long as it takes" in tool.description
    assert "the last 51200 bytes or 2000 lines, and all of it goes to a file" in tool.description
    assert tool.parameters["properties"]["timeout"]["description"] == "seconds until the command is killed"


def test_s1_a_timeout_lies_in_the_band_unless_a_shorter_one_is_the_rule() -> None:
    band = ShellOptions(timeout=120, shortest_timeout=60, longest_timeout=300)

    assert band.seconds(None) == (120, "")
    assert band.seconds(61) == (61, "")
    assert band.seconds(5) == (60, "[timeout of 5 seconds raised to 60, the shortest there is]")
    assert band.seconds(301) == (300, "[timeout of 301 seconds clamped to 300, the longest there is]")
    assert band.timeout_words == "seconds until the command is killed, at least 60, at most 300"
    assert evolve(band, timeout=0.5).seconds(0.1)[0] == 0.5


async def test_a_command_that_is_given_up_leaves_no_file(root: Path, temporary: Path) -> None:
    import anyio

    shell = shell_in(root, retention=Retention(10, keep="tail", spill=True))
    with anyio.move_on_after(0.5):
        await shell("seq 1000; sleep 60")

    assert list(temporary.glob("*/*")) == []
    assert os.listdir(root) == []


# What the tests of commands share: a shell tool with options, called with a command.


Shell = Callable[..., Any]


def shell_in(root: Path, **options: Any) -> Shell:
    tool = make_shell_tool(str(root), ShellOptions(**options))

    async def shell(command: str, **arguments: Any) -> ToolResult:
        return await tool.run({"command": command, **arguments}, ToolContext("call_1"))

    return shell
