"""`terminal`: single commands, and a session that nothing a command does can break (S1 6.1, 6.4, 6.5)."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, call, resume
from agent.effects.execution import describe
from agent.presets import PRESETS
from agent.tools.definition import Toolbox, ToolContext
from agent.tools.sandbox.sandbox import Level, Sandbox, why_not
from agent.tools.shell import ShellOptions
from agent.tools.terminal import FOR_A_CHANGE, FOR_A_FORM, FOR_A_VALUE, NOTHING_KEPT, SESSION_IS_OPEN, make_terminal
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import CallAnswered, ToolFinished
from agent.vocabulary.messages import ToolResult
from constitution import judge
from tests.agent.conftest import MakeAgent
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing")]
Terminal = Callable[..., Any]


@pytest.fixture
def terminal(root: Path) -> Terminal:
    tool = make_terminal(str(root), ShellOptions(timeout=100))

    async def terminal(command: str | None = None, **arguments: Any) -> ToolResult:
        return await tool.run(arguments if command is None else {"command": command, **arguments})

    terminal.tool = tool  # type: ignore[attr-defined]
    return terminal


async def kept(terminal: Terminal, command: str) -> str:
    result = await terminal(command, persistent=True)
    assert NOTHING_KEPT not in result.text, result.text
    text: str = result.text
    return text


async def test_a_session_keeps_its_directory_and_plain_variables(terminal: Terminal, root: Path) -> None:
    (root / "sub").mkdir()
    await kept(terminal, "cd sub; X='a  b'; export Y=$'c\\nd' Z=; N=\"it's \\\"\"")

    text = await kept(terminal, 'pwd; echo "[$X]" "[$Y]" "[${Z-none}]" "$N"; bash -c \'echo [$X][$Y]\'; cd - ')

    assert text == f"{root}/sub\n[a  b] [c\nd] [] it's \"\n[a b][c d]\n{root}\n"


async def test_single_commands_keep_nothing_nor_does_a_closed_session_and_there_is_one(
    terminal: Terminal, root: Path
) -> None:
    """Each step: the command, how it is given, what is answered, and whether a session is open then."""
    place = f"{root}\n[]\n"
    for command, more, text, is_open in (
        ("cd /; X=1", {}, "(no output)", False),
        ("pwd; echo [$X]; exit 3", {}, f"{place}[exit code 3]", False),
        (None, {"persistent": True}, "[session opened]", True),
        ("echo hi", {}, SESSION_IS_OPEN, None),
        (None, {"persistent": True}, "[session is open already]", True),
        ("cd /; X=1; echo hi", {"persistent": True}, "hi\n", True),
        (None, {"close": True}, "[session closed]", False),
        ("pwd; echo [$X]", {}, place, False),
        (None, {"close": True}, "[no session is open]", False),
        ("echo last", {"persistent": True, "close": True}, "last\n[session closed]", False),
        (None, {}, "give a command, persistent=true to open a session, or close=true to close it", None),
        (" ", {}, "the command is empty; give one", None),
        ("a\0", {"persistent": True}, "command: a NUL character at byte 1; leave it out", None),
        ("\ud800", {"persistent": True}, "command: a lone surrogate at position 0; leave it out", None),
    ):
        result = await terminal(command, **more)
        state = {True: "open", False: "closed", None: None}[is_open]
        assert (result.text, result.is_error, result.details.get("terminal")) == (text, is_open is None, state)


COMMANDS = (
    "exit 0", "exit 5", "echo 'open", 'echo "open $(', "cat <<END\nopen", "set -e; false", "exec >/dev/null 2>&1",
    "exec 3>&1 1>&2", "set -u; echo $NOT_SET", "trap 'echo bye' EXIT", "return 3", "set -x", "if true; then",
    "set +eux; readonly R=1; R=2", "unset -f __bpagent_leave2", "break", ")", "shopt -s extdebug",
    "echo ': complete'; printf '/etc\\0\\0\\0'", "IFS=/", "function cd { echo no; }; unset -f cd", "set -o posix",
)  # fmt: skip


@pytest.mark.slow
async def test_a_session_survives_any_command(terminal: Terminal, root: Path) -> None:
    (root / "sub").mkdir()
    await kept(terminal, "cd sub; X=kept; export Y=too")
    lost = []
    for command in COMMANDS:
        await kept(terminal, command)
        await kept(terminal, "set +eux")
        if await kept(terminal, 'echo "$PWD $X"; bash -c "echo \\$X \\$Y"') != f"{root}/sub kept\nkept too\n":
            lost.append(command)

    assert lost == []


@pytest.mark.slow
@rows(
    "command",
    [
        "exec true", "kill -9 $$", "trap 'X=2' EXIT; X=3; exit 0", "set -n",
        *(f"printf '{state}' >&201; kill -9 $$" for state in (
            "x", r"\0", r"/\0end", r"/\0X=3\0", r"a\0end\0", r"/\0else\0end\0", r"\377\0end\0",
        )),
    ],
)  # fmt: skip
async def test_a_session_is_unchanged_by_a_command_that_reports_no_state_or_nonsense_and_says_so(
    terminal: Terminal, command: str
) -> None:
    await kept(terminal, "X=1")

    result = await terminal(f"X=2; {command}", persistent=True)

    assert result.text.endswith(NOTHING_KEPT)
    assert await kept(terminal, "echo $X") == "1\n"


@pytest.mark.slow
async def test_a_timeout_ends_the_command_and_keeps_the_session(terminal: Terminal, root: Path) -> None:
    await kept(terminal, "X=1")

    result = await terminal("X=2; sleep 60", persistent=True, timeout=0.5)

    assert result.is_error
    assert result.text == f"(no output)\n[timed out after 0.5 seconds; the command was killed]\n{NOTHING_KEPT}"
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


@pytest.mark.slow
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
    assert facts.resolved[f"{root}/sub/x"] == f"{root}/sub/x"
    assert facts.command == "rm -r x"


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


# A command cannot make a session run text that the gate never judged, nor make later commands mean something else.


EVERYWHERE = "for fd in 200 201 202; do printf '%s\\0{}end\\0' \"$PWD\" >&$fd; done 2>/dev/null; kill -9 $$"
FUNCTION = r"function f\nf () \n{ \n:\n}\n"
WAYS = {
    "a state of shell text": EVERYWHERE.replace("{}end", r"echo forged\n\0echo forged\n"),
    "shell text in a value": EVERYWHERE.format(r"X=$(echo forged >&2)\0"),
    "shell text in a name": EVERYWHERE.format(r"X;echo forged=v\0"),
    "an option in a name": EVERYWHERE.format(r"-f=v\0"),
    "shell text in an option": EVERYWHERE.format(r"__bpagent_options=xtrace;echo forged:xtrace\n echo forged\0"),
    "shell text after a function": EVERYWHERE.format(FUNCTION + r"echo forged\n\0"),
    "shell text in the line after a function": EVERYWHERE.format(FUNCTION.replace(r"}\n", r"}; echo forged\n") + r"\0"),
    "a document that begins after a function": EVERYWHERE.format(FUNCTION + r"cat <<X; echo forged\n\0"),
    "shell text in the name of a function": EVERYWHERE.format(FUNCTION.replace("f ()", "f;echo forged;f ()") + r"\0"),
    "shell text in an array": EVERYWHERE.format(r'array L\ndeclare -a L=([0]="$(echo forged >&2)")\n\0'),
    "shell text after an array": EVERYWHERE.format(r'array L\ndeclare -a L=([0]="1"); echo forged\n\0'),
    "an array of the shell": EVERYWHERE.format(r'array L\ndeclare -A BASH_ALIASES=([ls]="echo forged")\n\0'),
    "shell text after an alias": EVERYWHERE.format(r"alias x\nalias x='y'; echo forged\n\0"),
    "a function in the environment": EVERYWHERE.format(r"BASH_FUNC_ls%%%%=() { echo forged; }\0"),
    "a function for other programs": "sh() { echo forged; }; pwd() { echo forged; }; export -f sh pwd",
    "a script that every shell reads": "echo 'echo forged' > f; export BASH_ENV=$PWD/f ENV=$PWD/f",
    "the same, written by itself": "echo 'echo forged' > f; " + EVERYWHERE.format(r"BASH_ENV=f\0"),
    "an option in the text of a function": EVERYWHERE.format(FUNCTION.replace("{", "-S touch forged") + r"\0"),
    "functions by words of ours": "builtin() { command echo forged; }; trap() { builtin; }; eval() { builtin; }",
    "aliases by words of ours": "shopt -s expand_aliases; alias builtin='echo forged' eval='echo forged' x='y; forged'",
    "functions by words of the state": "declare() { echo forged; }; alias() { declare; }; set() { declare; }; L=(1)",
    "a function for missing programs": "command_not_found_handle() { echo forged; }",
    "a trap": "trap 'echo forged' EXIT DEBUG ERR; trap - EXIT",
    "another path, computed": "export PATH='$(echo forged >&2)'",
    "a prompt that is traced": "export PS4='$(echo forged >&2)'",
    "a command for a prompt": "PROMPT_COMMAND='echo forged'; PROMPT_COMMAND=('echo forged')",
    "a number that is a command": "export N='a[$(echo forged >&2)0]'",
    "the same in an array": "N=('a[$(echo forged >&2)0]')",
    "letters between words": "export IFS=o",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [True, False])
async def test_a_command_runs_where_it_was_judged_or_not_at_all(
    sequential: bool, root: Path, make_agent: MakeAgent
) -> None:
    (root / "sub").mkdir()
    calls = [call("terminal", command=command, persistent=True) for command in ("cd sub; sleep 0.2", "pwd")]
    preset = evolve(PRESETS["default"], sequential=sequential)

    run = await make_agent(calls, "Done.", tools=[make_terminal(str(root))], preset=preset).run("Go")

    last = [step.event.result.text for step in run.steps if isinstance(step.event, CallAnswered)][-1]
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

    last = [step.event.result.text for step in run.steps if isinstance(step.event, CallAnswered)][-1]
    assert last.endswith(f"{root}/sub\n")


async def test_a_prompt_that_the_shell_removes_itself_is_not_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment exports PS1, and a shell that is not interactive unsets it."""
    monkeypatch.setenv("PS1", "(venv) $ ")
    terminal = make_terminal(str(root), ShellOptions(timeout=100, inherit=True))

    assert (await terminal.run({"command": "echo one", "persistent": True})).text == "one\n"
    assert "not kept: PS1" in (await terminal.run({"command": "PS1='new '", "persistent": True})).text
    await terminal.run({"close": True})


@rows(
    ("recorded", "value"),
    [
        ({"of an earlier version": {"A": "1"}}, ""),
        ({"changed": {"A": "1"}, "of a later version": {}}, "1"),
    ],
)
async def test_a_session_in_the_log_of_another_version_goes_on(
    recorded: dict[str, Any], value: str, terminal: Terminal, root: Path
) -> None:
    details = {"cwd": str(root), "terminal": "open", "variables": recorded}
    terminal.tool.restores(ToolFinished(ToolCall("1", "terminal"), ToolResult("", details=details)))  # type: ignore[attr-defined]

    assert await kept(terminal, "echo [$A]") == f"[{value}]\n"


@pytest.mark.slow
@rows("way", WAYS)
async def test_no_text_of_an_earlier_command_runs_in_a_later_one_that_does_not_name_it(
    terminal: Terminal, root: Path, way: str
) -> None:
    await terminal(close=True)
    await terminal("true", persistent=True)

    await terminal(WAYS[way], persistent=True)

    later = await terminal(
        "ls; bash -c pwd; missing; (( N + 1 )); x='no no'; printf '<%s>' $x; echo done; set -x; (exit 3)",
        persistent=True,
    )
    assert "forged" not in later.text
    assert "<no><no>done" in later.text
    assert later.details["exit_code"] == 3
    assert later.details["cwd"] == str(root)


@pytest.mark.slow
@rows(
    ("earlier", "later", "text"),
    [
        ("f() { cat <<X\nhi $1\nX\n}", "f you", "hi you\n"),
        ("shopt -s extglob\ng() { case $1 in @(a|b)) echo yes ;; esac; }", "g b", "yes\n"),
        ("h() { i; }; i() { echo deep; }; unset -f i; i() { echo down; }", "h", "down\n"),
        ("L=('a b' \"it's\" '\"q\\')", 'echo "${L[@]}"', "a b it's \"q\\\n"),
        ("declare -A M=(['k 1']='x]')", 'echo "${M[k 1]}"', "x]\n"),
        ("shopt -s expand_aliases; alias hi='echo hi'", "hi you", "hi you\n"),
        ("mkdir bin; printf '#!/bin/sh\\necho ours' > bin/our; chmod +x bin/our; PATH=$PWD/bin:$PATH", "our", "ours\n"),
        ("set -o pipefail -u; shopt -s nullglob", "printf '<%s>' no*; false | true", "<>\n[exit code 1]"),
        ("f() { echo one; }; L=(1); unset -f f; unset L", "type -t f; echo ${L-none}", "none\n"),
    ],
)  # fmt: skip
async def test_functions_arrays_aliases_options_and_the_path_stay_also_when_a_run_is_resumed(
    terminal: Terminal, root: Path, earlier: str, later: str, text: str
) -> None:
    await terminal(close=True)
    result = await terminal(earlier, persistent=True)
    resumed = make_terminal(str(root))
    resumed.restores(ToolFinished(ToolCall("1", "terminal"), result))  # type: ignore[misc]

    assert result.text == "(no output)"
    assert await kept(terminal, "true") == "(no output)"
    assert await kept(terminal, later) == text
    assert (await resumed.run({"command": later, "persistent": True})).text == text


async def test_the_gate_reads_what_stands_with_each_command(terminal: Terminal, root: Path) -> None:
    toolbox = Toolbox([terminal.tool], Workspace(root))  # type: ignore[attr-defined]
    await kept(terminal, "publish() { git push --force; }; shopt -s expand_aliases; alias up=publish")

    facts = describe(ToolCall("1", "terminal", {"command": "up", "persistent": True}), toolbox)

    assert judge(facts).level.value == "ask"
    command = facts.command or ""
    assert command.startswith("shopt -s expand_aliases\npublish () \n{")
    assert command.endswith("\nup")
    behind = {"command": "up", "background": True}
    assert describe(ToolCall("1", "terminal", behind), toolbox).command == "up"
    await terminal(close=True)
    assert describe(ToolCall("1", "terminal", {"command": "up"}), toolbox).command == "up"


async def test_a_command_that_was_judged_before_a_function_changed_does_not_run(
    root: Path, make_agent: MakeAgent
) -> None:
    calls = [call("terminal", command=text, persistent=True) for text in ("f() { echo one; }; sleep 0.1", "echo two")]
    preset = evolve(PRESETS["default"], sequential=False)

    run = await make_agent(calls, "Done.", tools=[make_terminal(str(root))], preset=preset).run("Go")

    answers = [step.event.result.text for step in run.steps if isinstance(step.event, CallAnswered)]
    changed = "judged before functions, aliases or options of the session changed; give the command again"
    assert answers[-1] in ("two\n", changed)


@pytest.mark.slow
@rows(
    ("command", "note"),
    [
        ("export PATH=/x:$PATH HOME=/x; IFS=,; unset LANG", f"[not kept: HOME, IFS, LANG: {FOR_A_CHANGE}]"),
        ("builtin() { :; }; L=('$(x)'); M=(1); alias x='a; b'", NOTHING_KEPT),
        ("eval() { :; }; L=('$(x)'); alias x='a; b'", f"[not kept: array L, function eval, alias x: {FOR_A_FORM}]"),
        ("rm() { :; }; cd() { :; }", f"[not kept: function cd, function rm: {FOR_A_FORM}]"),
        ("ours() { :; }; echo > ours; chmod +x ours; PATH=:$PATH", f"[not kept: function ours: {FOR_A_FORM}]"),
        ("shopt -s expand_aliases; alias rm='echo' if=echo", f"[not kept: alias if, alias rm: {FOR_A_FORM}]"),
        ("shopt -u expand_aliases; alias new='echo'", f"[not kept: alias new: {FOR_A_FORM}]"),
        ("X='$(x)'; Y=$'\\xff'; printf -v Z '%70000s' z", f"[not kept: X, Y, Z: {FOR_A_VALUE}]"),
        (
            "for n in {1..9}; do alias a$n='b;c'; done",
            "[not kept: alias a1, alias a2, alias a3, alias a4, alias a5, alias a6, alias a7, alias a8, 1 more: "
            f"{FOR_A_FORM}]",
        ),
    ],
)  # fmt: skip
async def test_the_answer_names_what_a_session_does_not_keep(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: str, note: str
) -> None:
    monkeypatch.setenv("LANG", "C.UTF-8")
    await terminal(close=True)
    before = (await terminal("echo $HOME ${X-none} ${L-none}", persistent=True)).text

    result = await terminal(command, persistent=True)

    assert result.text.splitlines() == ["(no output)", note]
    after = await terminal("echo $HOME ${X-none} ${L-none}; type eval x 2>/dev/null | grep -v builtin", persistent=True)
    assert after.text == f"{before}[exit code 1]"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["landlock", "namespaces", "bubblewrap"])
async def test_a_session_in_a_sandbox_stays_and_is_no_wider_after_a_call_with_more_rights(
    level: Level, root: Path
) -> None:
    if why := why_not(level):
        pytest.skip(f"needs {level}: {why}")
    beyond = root.parent / "beyond"
    beyond.mkdir()
    terminal = make_terminal(str(root), ShellOptions(sandbox=Sandbox((str(root),), level)))
    mark = {"command": f"mark() {{ echo marked; echo x > {beyond}/$1; }} 2>&1; L=(1 2)", "persistent": True}

    await terminal.run(mark)
    allowed = await terminal.run(
        {"command": "mark one; PATH=/x:$PATH", "persistent": True}, ToolContext(rights=(f"write {beyond}",))
    )
    refused = await terminal.run({"command": 'mark two; echo "${L[@]}" ${PATH%%:*}', "persistent": True})

    assert allowed.text.startswith("marked")
    assert refused.text.startswith("marked")
    assert "1 2 /x\n" in refused.text
    assert os.listdir(beyond) == ["one"]
