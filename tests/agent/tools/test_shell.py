"""`bash`: a command's end, told in words that the model can act on (S0, S1, S2, S4)."""

import inspect
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent.tools.collections import workspace_tools
from agent.tools.definition import PerAgent, Tool, ToolContext
from agent.tools.output import Retention
from agent.tools.process import ALLOWED_VARIABLES
from agent.tools.shell import NONE_STAYS, Session, ShellOptions, compact, is_interactive, make_shell_tool
from agent.vocabulary.events import AnswerCommitted
from agent.vocabulary.messages import AssistantMessage, ToolResult
from tests.tables import rows

from .conftest import Call

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing", "temporary")]
OF_THE_SHELL_AND_OURS = {"PWD", "SHLVL", "_", "OLDPWD", "BPAGENT_CALL"}
TAIL = Retention(50 * 1024, lines=2000, keep="tail", spill=True)


def shell_in(root: Path, **options: Any) -> Callable[..., Any]:
    tool = make_shell_tool(str(root), ShellOptions(**options))

    async def shell(command: str, **arguments: Any) -> ToolResult:
        return await tool.run({"command": command, **arguments}, ToolContext("call_1"))

    return shell


async def test_s6_1_valid_parameters_give_output(call: Call, root: Path) -> None:
    result = await call("bash", command="pwd; echo out; echo err >&2")

    assert result == ToolResult(
        f"{root}\nout\nerr\n",
        details={"exit_code": 0, "signal": None, "timed_out": False, "truncated": False, "survivors": 0},
    )


async def test_s6_3_output_over_the_limit_is_truncated_with_a_notice(root: Path) -> None:
    result = await workspace_tools(root, output_limit=100)[0].run({"command": "seq 1000"})

    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith("\n999\n1000\n")
    assert "[output truncated: 3793 of 3893 bytes left out here]" in result.text
    assert (result.details["truncated"], result.is_error) == (True, False)
    usual = {name: each.default for name, each in inspect.signature(workspace_tools).parameters.items()}
    assert (usual["output_limit"], usual["timeout"]) == (200 * 1024, 120)  # also S6.4


ENDS: list[tuple[dict[str, Any], str, dict[str, Any], str, bool]] = [
    ({}, "true", {}, "(no output)", False),
    ({}, "echo almost; exit 3", {}, "almost\n[exit code 3]", False),
    ({}, "kill -SEGV $$", {}, "(no output)\n[killed by signal 11 (SIGSEGV)]", True),
    ({}, "sleep 60", {"timeout": 0.3}, "(no output)\n[timed out after 0.3 seconds; the command was killed]", True),
    ({}, "sleep 60 & echo hi", {}, f"hi\n[1 process still running after the command had ended; killed]\n{NONE_STAYS}",
     False),
    ({}, "echo hi", {"timeout": 900}, "hi\n[timeout of 900 seconds clamped to 600, the longest there is]", False),
    ({}, " \n\t", {}, "the command is empty; give one", True),
    ({}, "echo a\0b", {}, "command: a NUL character at byte 6; leave it out", True),
    ({}, "echo \ud800", {}, "command: a lone surrogate at position 5; leave it out", True),
    ({"timeout": None, "longest_timeout": None}, "echo hi", {"timeout": 9000}, "hi\n", False),
    ({"nonzero_is_error": True}, "echo a; exit 3", {}, "a\n[exit code 3]", True),
    ({"prefix": "set -e\n"}, "false; echo on", {}, "(no output)\n[exit code 1]", False),
    ({"separate": True}, "echo out; echo err >&2; exit 3", {}, "stdout:\nout\nstderr:\nerr\n[exit code 3]", False),
    ({"separate": True}, "echo err >&2", {}, "stderr:\nerr\n", False),
    ({"separate": True}, "true", {}, "(no output)", False),
    ({"retention": Retention(1000, lines=2, keep="head")}, "seq 5", {},
     "1\n2\n\n[output truncated: lines 1 to 2 are shown of 5]", False),
    ({"retention": TAIL}, "seq 2000", {}, "".join(f"{number}\n" for number in range(1, 2001)), False),
    ({"env": {"DEPLOY_TOKEN": "given"}}, "echo $DEPLOY_TOKEN", {}, "given\n", False),
]  # fmt: skip


@pytest.mark.slow
@rows(("options", "command", "arguments", "text", "is_error"), ENDS)
async def test_the_end_of_a_command_is_described_in_words(
    root: Path, options: dict[str, Any], command: str, arguments: dict[str, Any], text: str, is_error: bool
) -> None:
    result = await shell_in(root, **options)(command, **arguments)

    assert (result.text, result.is_error) == (text, is_error)
    assert "fullOutputPath" not in result.details


async def test_s6_6_the_environment_holds_the_allowed_variables_only(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("BASH_ENV", "/nowhere")

    result = await call("bash", command="env")

    assert "secret" not in result.text
    assert {line.partition("=")[0] for line in result.text.splitlines()} <= set(
        ALLOWED_VARIABLES
    ) | OF_THE_SHELL_AND_OURS
    assert f"PATH={os.environ['PATH']}" in result.text.splitlines()


async def test_the_environment_may_be_inherited_and_a_hook_adds_to_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_OURS", "1")
    (root / ".bash_profile").write_text("export FROM_PROFILE=yes\n")

    async def hook(cwd: str) -> dict[str, str]:
        return {"HOOKED": os.path.basename(cwd)}

    def broken(_: str) -> dict[str, str]:
        raise ValueError("no variables today")

    inheriting = shell_in(root, inherit=True, env={"ADDED": "3"}, hook=hook)
    login = shell_in(root, shell=("bash", "-lc"), env={"HOME": str(root)})
    assert (await inheriting("echo $OF_OURS$HOOKED$ADDED")).text == f"1{root.name}3\n"
    assert (await shell_in(root, hook=lambda _: {"HOOKED": "2"})("echo $OF_OURS$HOOKED")).text == "2\n"
    assert (await login("echo $FROM_PROFILE")).text == "yes\n"
    assert (await shell_in(root, hook=broken)("touch ran")).text == "no variables today"
    assert not (root / "ran").exists()


@rows("shell", [("bash", "-c"), ("bash", "-lc"), ("sh", "-c")])
async def test_a_command_may_be_longer_than_a_word_of_the_system(root: Path, shell: tuple[str, ...]) -> None:
    command = f"cat > text <<'end'\n{'y' * 3_000_000}\nend\nwc -c < text; exit 3"

    result = await make_shell_tool(str(root), ShellOptions(shell=shell)).run({"command": command})

    assert result.text == "3000001\n[exit code 3]"


def test_the_gate_sees_the_command(root: Path, tools: Mapping[str, Tool]) -> None:
    prefixed = make_shell_tool(str(root), ShellOptions(prefix="set -e\n"))

    assert tools["bash"].command({"command": "rm -rf /"}) == "rm -rf /"
    assert prefixed.command({"command": "ls"}) == "set -e\nls"
    assert tools["bash"].touches({"command": "rm -rf /"}) == ()
    assert tools["read_file"].command({"path": "a"}) is None


async def test_s2_the_last_2000_lines_are_shown_and_all_of_it_is_in_a_file(root: Path, temporary: Path) -> None:
    result = await shell_in(root, retention=TAIL, form="details")("seq 3000")

    (file,) = temporary.glob("*/*")
    shown = "".join(f"{number}\n" for number in range(1001, 3001))
    assert result.text == f"{shown}\n[output truncated: lines 1001 to 3000 are shown of 3000; all of it is in {file}]"
    assert file.read_text() == "".join(f"{number}\n" for number in range(1, 3001))
    assert file.stat().st_mode & 0o777 == 0o600
    assert result.details["fullOutputPath"] == str(file)
    assert (result.details["truncation"]["kept_lines"], result.details["truncation"]["total_lines"]) == (2000, 3000)


@pytest.mark.slow
async def test_s2_the_last_50_kb_of_whole_lines_are_shown_and_the_file_has_a_quota(root: Path, temporary: Path) -> None:
    def sizes() -> list[int]:
        return sorted(file.stat().st_size for file in temporary.glob("*/*"))

    small = Retention(1000, keep="tail", spill=True, quota=5000)
    wide = await shell_in(root, retention=TAIL)("for i in {1..100}; do printf '%01023d\\n' $i; done")
    much = await shell_in(root, retention=small)("seq 10000")
    async with anyio.create_task_group() as group:
        group.start_soon(shell_in(root, retention=small), "seq 10000; sleep 600")
        while sizes()[:2] != [5000, 5000]:
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()

    assert "[output truncated: lines 51 to 100 are shown of 100 (50 KB limit); all of it is in " in wide.text
    assert wide.text.split("\n")[0].endswith("51")
    assert "its first 4.883 KB is in " in much.text
    assert sizes() == [5000, 102_400], "a command that is given up leaves no file"


# The envelope of S4.


def envelope(result: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(result.text)
    return parsed


async def test_s4_the_observation_is_an_envelope(root: Path) -> None:
    moments = iter(datetime(2026, 5, 29, 15, 48, second, tzinfo=UTC) for second in range(60))
    session = Session(lambda: next(moments))
    tool = make_shell_tool(
        str(root), ShellOptions(form="envelope"), name="run_command", sessions=PerAgent(lambda: session)
    )

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
    assert again["session"] == {
        "started_at": "2026-05-29T15:48:00Z", "steps": 2, "executed_commands": 1, "observations": 2,
    }  # fmt: skip
    assert again["result"]["status"] == "failed"


@pytest.mark.slow
async def test_s4_the_envelope_says_how_a_command_ended_and_keeps_to_6000_and_2000_characters(root: Path) -> None:
    shell = shell_in(root, form="envelope", longest_timeout=600, retention=Retention(64 * 1024))

    cut = envelope(await shell("seq 100000", timeout=900))
    killed = envelope(await shell("kill -9 $$"))["result"]
    left = envelope(await shell("sleep 50 & echo begun"))["result"]
    late = await shell("sleep 30", timeout=0.3)
    waits = envelope(await shell("less /dev/null; echo ran"))["result"]

    assert cut["result"]["output"].startswith("1\n2\n")
    assert cut["result"]["output"].endswith("100000\n[timeout of 900 seconds clamped to 600, the longest there is]")
    assert 5990 < len(cut["result"]["output"]) <= 6000
    assert len(cut["tool"]["raw"]) == 2000
    assert (killed["status"], killed["output"]) == ("killed", "[killed by signal 9 (SIGKILL)]")
    assert left["output"] == f"begun\n[1 process still running after the command had ended; killed]\n{NONE_STAYS}"
    assert late.is_error
    assert envelope(late)["result"] == {
        "status": "timeout", "exit_code": None, "timed_out": True, "interactive": False, "output": "",
    }  # fmt: skip
    assert (waits["interactive"], waits["output"][-4:]) == (True, "ran\n")


async def test_s4_steps_are_turns_where_there_are_any(root: Path) -> None:
    sessions = PerAgent(Session)
    tools = [make_shell_tool(str(root), ShellOptions(form="envelope"), sessions=sessions) for _ in range(2)]
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
        ("man --help", False), ("git rebase -i HEAD~2", True), ("echo vim", False), ("bash < x", False), ("", False),
        ("echo 'unclosed", False), ("A=1 vim", True), ("read -p name? x", True),
    ],
)  # fmt: skip
def test_s4_which_commands_seem_to_wait(command: str, waits: bool) -> None:
    assert is_interactive(command) is waits


def test_a_compacted_text_keeps_its_ends_and_says_how_long_it_was() -> None:
    assert compact("x" * 100, 100) == "x" * 100
    assert compact("a" * 50 + "b" * 51, 60) == "aaaaaaaaaaaaaa\n[... 101 characters in all ...]\nbbbbbbbbbbbbb"
    assert len(compact("x" * 101, 10)) == 10


def test_s1_a_timeout_lies_in_the_band_and_the_description_tells_options(root: Path) -> None:
    band = ShellOptions(timeout=120, shortest_timeout=60, longest_timeout=300)
    tool = make_shell_tool(str(root), ShellOptions(timeout=None, longest_timeout=None, retention=TAIL))

    assert band.seconds(None) == (120, "")
    assert band.seconds(61) == (61, "")
    assert band.seconds(5) == (60, "[timeout of 5 seconds raised to 60, the shortest there is]")
    assert band.seconds(301) == (300, "[timeout of 301 seconds clamped to 300, the longest there is]")
    assert band.timeout_words == "seconds until the command is killed, at least 60, at most 300"
    assert "as long as it takes" in tool.description
    assert "the last 51200 bytes or 2000 lines, and all of it goes to a file" in tool.description
    assert tool.parameters["properties"]["timeout"]["description"] == "seconds until the command is killed"


REDRAWN = "[lines that were redrawn: 1; their last states are shown]\n"
READABLE = [
    ("\x1b[31mred\x1b[0m \x1b]0;title\x07end\n", "red end\n"),
    ("\x1b]8;;https://a\x1b\\link\x1b]8;;\x1b\\\x1b(B\x1b=\n", "link\n"),
    ("".join(f"\rprogress {n} %" for n in range(100)) + "\ndone\n", f"progress 99 %\ndone\n{REDRAWN}"),
    ("1 %\r2 %\r\n", f"2 %\r\n{REDRAWN}"),
    ("a\r\nb\r\n", "a\r\nb\r\n"),
    ("N\bNA\bAME\n", "NAME\n"),
    ("caf\u00e9 \u65e5\u672c \U0001f600 \t|\f\n", "caf\u00e9 \u65e5\u672c \U0001f600 \t|\f\n"),
    ("\x7fELF\0\0\0\1" * 100, "[binary output, 800 bytes, not shown; write it to a file]\n"),
]


async def test_output_is_shown_as_a_person_reads_it(root: Path, call: Call) -> None:
    for printed, shown in READABLE:
        (root / "printed").write_bytes(printed.encode())
        assert (await call("bash", command="cat printed")).text == shown
