"""`terminal`: single commands, and a session that nothing a command does can break (S1 6.1, 6.4, 6.5)."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.effects.execution import describe
from agent.tools.definition import ToolContext
from agent.tools.process import ALLOWED_VARIABLES
from agent.tools.shell import ShellOptions
from agent.tools.terminal import NOTHING_KEPT, SESSION_IS_OPEN, make_terminal
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall, ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]
Terminal = Callable[..., Any]


def current_umask() -> int:
    before = os.umask(0o022)
    os.umask(before)
    return before


@pytest.fixture
def terminal(root: Path) -> Terminal:
    tool = make_terminal(str(root), ShellOptions(timeout=20))

    async def terminal(command: str | None = None, **arguments: Any) -> ToolResult:
        return await tool.run(arguments if command is None else {"command": command, **arguments})

    terminal.tool = tool  # type: ignore[attr-defined]
    return terminal


async def kept(terminal: Terminal, command: str) -> str:
    result = await terminal(command, persistent=True)
    assert NOTHING_KEPT not in result.text, result.text
    text: str = result.text
    return text


async def test_single_commands_keep_nothing(terminal: Terminal, root: Path) -> None:
    await terminal("cd /; X=1")
    result = await terminal("pwd; echo [$X]; exit 3")

    assert result.text == f"{root}\n[]\n[exit code 3]"
    assert (result.details["cwd"], result.details["exit_code"], result.details["terminal"]) == (str(root), 3, "closed")


async def test_a_session_keeps_its_directory_and_plain_variables(terminal: Terminal, root: Path) -> None:
    (root / "sub").mkdir()
    await kept(terminal, "cd sub; X='a  b'; export Y=$'c\\nd' Z=; N=\"it's \\\"\"")

    text = await kept(terminal, 'pwd; echo "[$X]" "[$Y]" "[${Z-none}]" "$N"; bash -c \'echo [$X][$Y]\'; cd - ')

    assert text == f"{root}/sub\n[a  b] [c\nd] [] it's \"\n[][c d]\n{root}\n"


async def test_a_session_starts_from_a_bare_environment(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALLOWED_VARIABLES:
        monkeypatch.delenv(name, raising=False)

    for command in ("X=1", "export TERM=vt100; unset LANG"):
        assert await kept(terminal, command) == "(no output)"
    assert await kept(terminal, "echo $X $TERM $SHELL; ls -d /") == "1 vt100 /bin/sh\n/\n"


async def test_options_functions_and_aliases_hold_for_one_command(terminal: Terminal) -> None:
    everything = "umask 077; shopt -s extglob expand_aliases; alias hi='echo hello'; set -efu; f() { :; }"
    await terminal(everything, persistent=True)

    what_is_there = "umask; echo $-; shopt -q extglob || echo no; hi 2>/dev/null || f 2>/dev/null || echo none"

    assert await kept(terminal, what_is_there) == f"{oct(current_umask())[2:]:>04}\nhBc\nno\nnone\n"


async def test_only_one_session_exists_and_a_single_command_is_refused_while_it_is_open(terminal: Terminal) -> None:
    opened = await terminal(persistent=True)
    refused = await terminal("echo hi")

    assert opened.text == "[session opened]"
    assert opened.details["terminal"] == "open"
    assert (refused.text, refused.is_error) == (SESSION_IS_OPEN, True)
    assert (await terminal(persistent=True)).text == "[session is open already]"
    assert (await terminal("echo hi", persistent=True)).text == "hi\n"


async def test_closing_forgets_everything(terminal: Terminal, root: Path) -> None:
    await kept(terminal, "cd /; X=1")

    closed = await terminal(close=True)

    assert closed.text == "[session closed]"
    assert dict(closed.details) == {"cwd": str(root), "terminal": "closed"}
    assert (await terminal("pwd; echo [$X]")).text == f"{root}\n[]\n"
    assert (await terminal(close=True)).text == "[no session is open]"
    last = await terminal("echo last", persistent=True, close=True)
    assert last.text == "last\n[session closed]"
    assert last.details["terminal"] == "closed"


async def test_exit_codes_travel_beside_the_output(terminal: Terminal) -> None:
    result = await terminal("printf '%s' 'exit_code=0 : complete'; (exit 7)", persistent=True)

    assert result.text == "exit_code=0 : complete\n[exit code 7]"
    assert result.details["exit_code"] == 7
    assert not result.is_error


@pytest.mark.parametrize(
    "command",
    [
        "exit 0", "exit 5", "echo 'open", 'echo "open $(', "cat <<END\nopen", "set -e; false",
        "exec >/dev/null 2>&1",
        "exec 3>&1 1>&2", "set -u; echo $NOT_SET", "trap 'echo bye' EXIT", "kill -0 $$", "return 3", "set -x",
        "if true; then", "readonly R=1; R=2", "unset -f __bpagent_leave2", "break", ")",
        "shopt -s extdebug",
        "echo ': complete'; printf '/etc\\0\\0\\0'", "IFS=/", "function cd { echo no; }; unset -f cd",
        "set -o posix",
    ],
)  # fmt: skip
async def test_a_session_survives(terminal: Terminal, root: Path, command: str) -> None:
    (root / "sub").mkdir()
    await kept(terminal, "cd sub; X=kept; export Y=too")

    await kept(terminal, command)

    assert await kept(terminal, 'echo "$PWD $X"; bash -c "echo \\$X \\$Y"') == f"{root}/sub kept\ntoo\n"


@pytest.mark.parametrize("command", ["exec true", "kill -9 $$", "trap 'X=2' EXIT; X=3; exit 0", "set -n"])
async def test_what_leaves_no_word_changes_nothing_and_that_is_said(
    terminal: Terminal, root: Path, command: str
) -> None:
    await kept(terminal, "X=1")

    result = await terminal(f"X=2; {command}", persistent=True)

    assert result.text.endswith(NOTHING_KEPT)
    assert await kept(terminal, "echo $X") == "1\n"


async def test_a_timeout_ends_the_command_and_keeps_the_session(terminal: Terminal, root: Path) -> None:
    await kept(terminal, "X=1")

    result = await terminal("X=2; echo begun; sleep 60", persistent=True, timeout=0.5)

    assert result.is_error
    assert result.text == f"begun\n[timed out after 0.5 seconds; the command was killed]\n{NOTHING_KEPT}"
    assert result.details["terminal"] == "open"
    assert await kept(terminal, "echo $X") == "1\n"


async def test_a_session_whose_directory_is_gone_does_not_run_elsewhere(terminal: Terminal, root: Path) -> None:
    (root / "sub").mkdir()
    await kept(terminal, "cd sub")
    (root / "sub").rmdir()

    result = await terminal("touch here", persistent=True)

    assert result.is_error
    assert result.text == f"the session's directory {root}/sub is gone; close the session with close=true"
    assert os.listdir(root) == []


async def test_variables_of_a_call_are_not_carried_into_the_next(terminal: Terminal) -> None:
    first = await kept(terminal, "echo $BPAGENT_CALL; echo $SHLVL")

    second = await kept(terminal, "echo $BPAGENT_CALL; echo $SHLVL")

    assert first.splitlines()[0] != second.splitlines()[0]
    assert first.splitlines()[1] == second.splitlines()[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "give a command, persistent=true to open a session, or close=true to close it"),
        ({"command": " "}, "the command is empty"),
        ({"command": "a\0", "persistent": True}, "a NUL character at byte 1"),
        ({"command": "\ud800", "persistent": True}, "a lone surrogate at position 0"),
        ({"command": 1}, "invalid arguments"),
    ],
)
async def test_bad_input_is_an_error(terminal: Terminal, arguments: dict[str, Any], problem: str) -> None:
    result = await terminal(**arguments)

    assert result.is_error
    assert problem in result.text


async def test_a_long_command_and_a_long_state_pass(terminal: Terminal) -> None:
    assert (await kept(terminal, f"X={'x' * 3_000_000}; echo ${{#X}}")).startswith("3000000\n[not kept: X: ")
    assert await kept(terminal, f"X={'x' * 60_000}; Y=${{X:1}}; export Z=${{X:2}}; echo ${{#X}}") == "60000\n"
    assert await kept(terminal, "echo ${#X} ${#Y} ${#Z}") == "60000 59999 59998\n"


async def test_the_gate_sees_where_a_command_of_the_session_starts(terminal: Terminal, root: Path) -> None:
    toolbox = Toolbox([terminal.tool], Workspace(root))  # type: ignore[attr-defined]
    (root / "sub").mkdir()
    call = ToolCall("1", "terminal", {"command": "rm -r x", "persistent": True})

    assert describe(call, toolbox).cwd == str(root)
    await kept(terminal, "cd sub")

    facts = describe(call, toolbox)
    assert facts.cwd == f"{root}/sub"
    assert dict(facts.resolved) == {"x": f"{root}/sub/x"}
    assert facts.command == "rm -r x"


async def test_an_open_quote_is_told_without_the_words_of_the_session(root: Path) -> None:
    terminal = make_terminal(str(root))

    answer = await terminal.run({"command": 'echo "abc', "persistent": True})

    assert "unexpected EOF" in answer.text
    assert "__bpagent" not in answer.text


async def test_the_envelope_of_s4_holds_in_a_session_too(root: Path) -> None:
    terminal = make_terminal(str(root), ShellOptions(form="envelope", compact=500))
    (root / "sub").mkdir()

    first = await terminal.run({"command": "cd sub", "persistent": True}, ToolContext("call_1"))
    lost = await terminal.run({"command": "echo begun; kill -9 $$", "persistent": True})
    last = await terminal.run({"command": "pwd", "close": True})

    told = json.loads(first.text)
    assert told["schema"] == "z2e.tool_observation.v1"
    assert told["tool"] == {
        "tool": "terminal", "call_id": "call_1", "command": "cd sub", "workdir": str(root), "raw": "",
    }  # fmt: skip
    assert first.details["cwd"] == f"{root}/sub"
    assert json.loads(lost.text)["result"]["output"].endswith(NOTHING_KEPT)
    assert json.loads(last.text)["result"]["output"] == f"{root}/sub\n[session closed]"
    (root / "sub").rmdir()
