"""A command cannot make a session run text that the gate never judged, nor make later commands mean something else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, call, resume
from agent.presets.shipped import PRESETS
from agent.tools.shell import ShellOptions
from agent.tools.terminal import FOR_A_CHANGE, FOR_A_FORM, FOR_A_VALUE, NOTHING_KEPT, make_terminal
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import CallAnswered
from tests.agent.conftest import MakeAgent

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]
Terminal = Callable[[str], Any]

EVERYWHERE = "for fd in 200 201 202; do printf '%s\\0{}end\\0\\0\\0' \"$PWD\" >&$fd; done 2>/dev/null; kill -9 $$"
WAYS = {
    "a state of shell text": EVERYWHERE.replace("{}end", r"echo forged\n\0echo forged\n").replace(r"\0\0\0", r"\0"),
    "shell text in a value": EVERYWHERE.format(r"exported\0X\0$(echo forged >&2)\0"),
    "shell text in a name": EVERYWHERE.format(r"inner\0X;echo forged\0v\0"),
    "an option in a name": EVERYWHERE.format(r"inner\0-f\0v\0"),
    "a function in the environment": EVERYWHERE.format(r"exported\0BASH_FUNC_ls%%%%\0() { echo forged; }\0"),
    "a script that every shell reads": "echo 'echo forged' > f; export BASH_ENV=$PWD/f ENV=$PWD/f",
    "the same, written by itself": "echo 'echo forged' > f; " + EVERYWHERE.format(r"exported\0BASH_ENV\0f\0"),
    "a function by the name of a program": "ls() { echo forged; }; export -f ls",
    "a function by the name of a builtin": "echo() { command echo forged; }; builtin() { :; }",
    "an alias": "shopt -s expand_aliases; alias ls='echo forged'",
    "a trap": "trap 'echo forged' EXIT DEBUG ERR; trap - EXIT",
    "another path": 'printf "#!/bin/sh\\necho forged\\n" > ls; chmod +x ls; export PATH="$PWD:$PATH"',
    "another path, computed": 'printf "#!/bin/sh\\necho forged\\n" > ls; chmod +x ls; declare -x P"ATH"="$PWD:$PATH"',
    "a prompt that is traced": "export PS4='$(echo forged >&2)'; set -x",
    "a number that is a command": "export N='a[$(echo forged >&2)0]'",
    "letters between words": "export IFS=o",
}  # fmt: skip


@pytest.fixture
def terminal(root: Path) -> Terminal:
    tool = make_terminal(str(root), ShellOptions(timeout=20))

    async def terminal(command: str) -> ToolResult:
        return await tool.run({"command": command, "persistent": True})

    return terminal


@pytest.mark.parametrize("sequential", [True, False])
async def test_a_command_runs_where_it_was_judged_or_not_at_all(
    sequential: bool, root: Path, make_agent: MakeAgent
) -> None:
    (root / "sub").mkdir()
    calls = [call("terminal", command=command, persistent=True) for command in ("cd sub; sleep 0.2", "pwd")]
    preset = evolve(PRESETS["default"], sequential=sequential)

    run = await make_agent(calls, "Done.", tools=[make_terminal(str(root))], preset=preset).run("Go")

    last = [step.event.result for step in run.steps if isinstance(step.event, CallAnswered)][-1]
    moved = f"judged where the session was, in {root}; it is in {root}/sub now; give the command again"
    assert last in ([f"{root}/sub\n"] if sequential else [f"{root}\n", moved])


async def test_an_approved_command_runs_in_another_process_where_it_was_judged(root: Path, tmp_path: Path) -> None:
    (root / "sub").mkdir()
    log, tools = tmp_path / "log.jsonl", [make_terminal(str(root))]
    there = call("terminal", command="cd sub", persistent=True)
    asked = call("terminal", command="git reset --hard; pwd", persistent=True).with_id("asked")
    with Agent(ScriptedModel([there, asked]), tools, approve="later", log=log) as agent:
        await agent.run("Go")

    with resume(log, ScriptedModel(["Done."]), [make_terminal(str(root))]) as agent:
        agent.decide("asked", True)
        run = await agent.run()

    last = [step.event.result for step in run.steps if isinstance(step.event, CallAnswered)][-1]
    assert last.endswith(f"{root}/sub\n")


@pytest.mark.parametrize("way", WAYS)
async def test_no_text_of_an_earlier_command_runs_in_a_later_one(terminal: Terminal, way: str) -> None:
    await terminal("true")

    await terminal(WAYS[way])

    later = await terminal("ls; bash -c ls; sh -c ls; (( N + 1 )); x='no no'; printf '<%s>' $x; echo done; set -x; :")
    assert "forged" not in later.text
    assert "<no><no>done" in later.text


@pytest.mark.parametrize(
    ("command", "note"),
    [
        (
            "export PATH=/x:$PATH HOME=/x; IFS=,; unset LANG",
            f"[not kept: HOME, IFS, LANG, PATH: {FOR_A_CHANGE}]",
        ),
        (
            "f() { :; }; L=(1 2); declare -A M=([a]=b)",
            f"[not kept: array L, array M, function f: {FOR_A_FORM}]",
        ),
        (
            "X='$(x)'; Y=$'\\xff'; printf -v Z '%70000s' z",
            f"[not kept: X, Y, Z: {FOR_A_VALUE}]",
        ),
        (
            "f1() { :; }; for n in 2 3 4 5 6 7 8 9 10 11; do eval \"f$n() { :; }\"; done",
            "[not kept: function f1, function f10, function f11, function f2, function f3, function f4, function f5, "
            f"function f6, 3 more: {FOR_A_FORM}]",
        ),
    ],
)  # fmt: skip
async def test_what_is_not_kept_is_said(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: str, note: str
) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    before = (await terminal("echo $PATH $HOME ${X-none} ${L-none}")).text

    result = await terminal(command)

    assert result.text.splitlines() == ["(no output)", note]
    after = await terminal("echo $PATH $HOME ${X-none} ${L-none}; type f f1 2>/dev/null")
    assert after.text == f"{before}[exit code 1]"


@pytest.mark.parametrize(
    "written",
    ["x", r"\0", r"/\0end\0\0", r"/\0inner\0X\0", r"a\0end\0\0\0", r"/\0else\0X\0v\0end\0\0\0", r"\377\0end\0\0\0"],
)  # fmt: skip
async def test_nonsense_leaves_the_session_as_it_was(terminal: Terminal, written: str) -> None:
    await terminal("X=1")

    result = await terminal(f"X=2; printf '{written}' >&201; kill -9 $$")

    assert result.text.endswith(NOTHING_KEPT)
    assert (await terminal("echo $X")).text == "1\n"


async def test_variables_keep_their_place_and_those_that_were_given_can_go(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    await terminal("A=inner; export B=outer; unset TZ; export USER; declare +x TERM")

    text = (await terminal("bash -c 'echo ${A-none} $B ${TZ-none}'; echo $A")).text

    assert text == "none outer none\ninner\n"
