"""Agents in a sandbox: what is allowed runs inside, a yes lifts what was asked for, and their own things are safe."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.presets import DEFAULT, PRESETS
from agent.presets.equipment import equip
from agent.presets.preset import OptionError
from agent.session.agent import Run
from agent.tools.sandbox import permissions, sandbox
from agent.tools.sandbox.proxy import TO_PROXY
from agent.tools.sandbox.sandbox import Sandbox, why_not
from agent.vocabulary.events import (
    ActionDescribed,
    ApprovalAsked,
    GateRejected,
    SandboxLifted,
    ToolFinished,
    ToolStarted,
)
from bp import BThreadBody, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.tables import rows

Go = Callable[..., Run]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]) -> Path:
    needs("bwrap")
    if why := why_not("bubblewrap"):
        pytest.skip(why)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in TO_PROXY:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def go(make_agent: MakeAgent, workspace: Path, home: Path) -> Go:
    """Runs of the preset `default`, with commands; options of the preset, and of the agent."""

    def go(*commands: Any, preset: Any = DEFAULT, threads: Any = (), approve: Any = None) -> Run:
        steps = [one if not isinstance(one, str) else call("bash", command=one) for one in commands]
        tools = equip(preset, workspace)
        agent = make_agent(*steps, "Done.", tools=tools, preset=preset, threads=threads, approve=approve)
        return agent.run_sync("Go")

    return go


def of_kind(run: Run, kind: Any) -> list[Any]:
    return [event for event in run.events if isinstance(event, kind)]


@pytest.mark.slow
def test_a_command_that_the_judge_allows_wrongly_does_no_harm(go: Go, home: Path, workspace: Path) -> None:
    """The file hides what it does from any judgement of the text that starts it."""
    (home / "canary").write_text("alive")
    (home / ".ssh" / "id_rsa").write_text("TOP-SECRET")
    script = "import os; p = os.path.expanduser; print(open(p('~/.ssh/id_rsa')).read()); "
    (workspace / "test_all.py").write_text(script + "open(p('~/canary'), 'w').write('gone')")
    (workspace / "run.sh").write_text("echo gone > ~/canary; cat ~/.ssh/id_rsa")

    run = go("python3 test_all.py", "sh run.sh; sh run.sh")

    assert of_kind(run, ApprovalAsked) == []
    assert (home / "canary").read_text() == "alive"
    assert "TOP-SECRET" not in str(run.events)
    assert [described.facts.sandbox for described in of_kind(run, ActionDescribed)] == ["bubblewrap"] * 2
    assert run.agent.header()["sandbox"] == "bubblewrap"


@pytest.mark.slow
def test_a_yes_lifts_what_was_asked_for_and_the_question_says_it(go: Go, home: Path) -> None:
    run = go(f"echo 1 > {home}/made; echo 2 > {home}/.profile2", f"echo 3 > {home}/later", approve=lambda _: True)

    asked, later = of_kind(run, ApprovalAsked)
    assert asked.question.splitlines()[-1] == f"a yes lets this one call change {home}/.profile2, change {home}/made"
    assert (home / "made").read_text() == "1\n"
    assert [lifted.rights for lifted in of_kind(run, SandboxLifted)] == [
        (f"write {home}/.profile2", f"write {home}/made"), (f"write {home}/later",)
    ]  # fmt: skip
    assert later.call.id != asked.call.id


@pytest.mark.slow
def test_a_no_lifts_nothing_and_nothing_is_asked_for_what_runs_inside(go: Go, home: Path) -> None:
    run = go(f"echo 1 > {home}/made", "rm -rf build", approve=lambda _: False)

    assert len(of_kind(run, ApprovalAsked)) == 1
    assert of_kind(run, SandboxLifted) == []
    assert not (home / "made").exists()


@pytest.mark.slow
def test_a_command_that_fails_says_what_is_closed_and_can_be_asked_for_again(go: Go, workspace: Path) -> None:
    (workspace / "write.sh").write_text("echo 1 > /usr/made || true\n")
    again = call("bash", command="false", rights=["network"])

    run = go("./reach; false", again, "sh write.sh", "true", approve=lambda _: True)

    told = [finished.result.text for finished in of_kind(run, ToolFinished)]
    closed = ["the network (network)" in text for text in told]
    assert (closed, "blocked" in told[3]) == ([True, False, True, False], False)
    assert all("[blocked by the sandbox, if that was in the way: " in text for text in told[:3])
    assert [started.rights for started in of_kind(run, ToolStarted)] == [(), ("network",), (), ()]


@pytest.mark.slow
def test_a_signal_in_the_sandbox_is_told_with_the_exit_code_that_it_came_as(go: Go) -> None:
    """A program may have exited so; which of both it was is said where bash tells it, of one that it started."""
    run = go("kill -9 $$", "exit 137", "sh -c 'kill -9 $$'; exit $?", "exit 3")

    doubt = "[killed by signal 9 (SIGKILL); or it exited with that code, the sandbox does not tell]"
    doubtful = f"(no output)\n[exit code 137]\n{doubt}"
    first, second, of_bash, last = [told.result.text for told in of_kind(run, ToolFinished)]
    assert (first.startswith(doubtful), second.startswith(doubtful), "killed" in last) == (True, True, False)
    assert "Killed" in of_bash
    assert "\n[killed by signal 9 (SIGKILL)]\n" in of_bash
    session = call("terminal", command="exit 137", persistent=True)
    run = go(session, preset=evolve(DEFAULT, tools="terminal", policy=None))
    [told] = of_kind(run, ToolFinished)
    assert ("[exit code 137]" in told.result.text, "killed" in told.result.text) == (True, False)


def test_rights_are_refused_without_a_user_and_where_they_are_meaningless(go: Go) -> None:
    run = go(*(call("bash", command="true", rights=[right]) for right in ("unconfined", "everything", "write x")))

    assert [rejected.refusals[0].bthread for rejected in of_kind(run, GateRejected)] == ["by_constitution"]
    assert of_kind(run, ToolStarted) == []


@pytest.mark.slow
def test_a_grant_lifts_the_sandbox_of_its_command_alone(go: Go, needs: Callable[[str], Path]) -> None:
    curl = os.path.realpath(needs("curl"))
    preset = evolve(DEFAULT, commands=(f"allow file={curl} -- curl",))

    run = go("curl -sS http://other.invalid/", "curl -sS http://other.invalid/; sh ./x.sh", preset=preset)

    assert [asked.call.id for asked in of_kind(run, ApprovalAsked)] == ["call_2"]
    assert [started.rights for started in of_kind(run, ToolStarted)] == [("network other.invalid",)]


@bthread
def no_network() -> BThreadBody:
    yield sync(refuse=SandboxLifted, because="no network in this project")


def test_a_protocol_may_refuse_to_lift_it(go: Go) -> None:
    wanted = call("bash", command="true", rights=["network"])
    run = go(wanted, approve=lambda _: True, threads=[no_network()])

    (rejected,) = of_kind(run, GateRejected)
    assert str(rejected.refusals[0].because) == "no network in this project"


def test_strict_offers_no_rights_and_begins_no_run_where_there_is_no_sandbox(
    go: Go, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = evolve(DEFAULT, sandbox="strict")
    assert "rights" not in str(equip(strict, workspace)[0].parameters)
    assert "rights" in str(equip(DEFAULT, workspace)[0].parameters)
    monkeypatch.setattr(sandbox, "achieved", lambda writable: "none")
    for wanted in (strict, PRESETS["gated"]):
        with pytest.raises(OptionError, match=r"nothing confines commands here: .* give --sandbox off"):
            equip(wanted, workspace)
    assert go("true").agent.toolbox.sandbox == "none"
    assert equip(evolve(PRESETS["gated"], sandbox="off"), workspace)


def test_gated_does_not_start_where_its_level_leaves_secrets_open(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is told to; with levels that hide them it starts."""
    (workspace / "app").mkdir()
    (workspace / "app" / ".env").write_text("KEY=1")
    gated = PRESETS["gated"]
    if sandbox.achieved((str(workspace),)) in sandbox.NAMESPACED:
        assert equip(gated, workspace)
    monkeypatch.setattr(sandbox, "achieved", lambda writable: "landlock")
    with pytest.raises(OptionError, match=r"the level landlock cannot hide app/\.env in the workspace"):
        equip(gated, workspace)
    assert equip(evolve(gated, sandbox="on"), workspace)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_but_passthrough_is_confined_by_default(preset: str, workspace: Path, home: Path) -> None:
    levels = {tool.sandbox for tool in equip(evolve(PRESETS[preset], tools_file=None), workspace)}

    assert (levels == {""}) == (preset == "passthrough")


@pytest.mark.slow
@pytest.mark.parametrize("tools", ["terminal", "coding", "gated", "command", "declared"])
def test_every_collection_and_a_declared_tool_run_their_commands_inside(
    go: Go, home: Path, tmp_path: Path, tools: Any
) -> None:
    command = f"cd /tmp; echo gone > {home}/canary; echo ran"
    file = tmp_path / "tools.yaml"
    declared = f"cmd: sh\n    args: ['-c', '{command}']\n    parameters: {{}}"
    file.write_text(f"tools:\n  - name: mark\n    description: mark it\n    category: write\n    {declared}\n")
    name = {"terminal": "terminal", "command": "run_command", "declared": "mark"}.get(tools, "bash")
    collection: Any = "workspace" if tools == "declared" else tools
    preset = evolve(DEFAULT, tools=collection, policy=None, tools_file=str(file) if tools == "declared" else None)
    arguments = {"terminal": {"command": command, "persistent": True}, "declared": {}}.get(tools, {"command": command})

    run = go(call(name, arguments), preset=preset)

    (finished,) = of_kind(run, ToolFinished)
    assert "ran" in finished.result.text
    assert not (home / "canary").exists()


@pytest.mark.slow
def test_a_background_process_runs_inside_and_others_reach_it(go: Go, home: Path) -> None:
    server = (
        "import socket; s = socket.create_server(('127.0.0.1', 4712)); print('up', flush=True); s.accept(); s.accept()"
    )
    start = call("bash", command=f'python3 -c "{server}"', background=True)

    run = go(start, "exec 3<>/dev/tcp/127.0.0.1/4712 && echo reached", preset=evolve(DEFAULT, policy=None))

    assert "reached" in of_kind(run, ToolFinished)[1].result.text


JUDGING = [name for name, preset in PRESETS.items() if preset.policy not in (None, "passthrough")]
TOUCHES = (
    "cat {own}/rules.yaml",
    "echo 'allow: all' > {own}/rules.yaml",
    "cp evil.yaml {own}/rules.yaml",
    "ln {own}/rules.yaml rules.yaml",
    "mv {own}/runs elsewhere",
    "rm -rf {own}",
    "cat {own}/key",
    "sed -i s/ask/allow/ {own}/rules.yaml",
    "grep -r key {own}",
    "tee -a {log} < evil.yaml",
    "echo forged >> {log}",
    "tmux send-keys -t 0 yes Enter",
    "screen -S x -X stuff yes",
    "bpagent resume x --approve call_1",
    "kill -9 $PPID",
    "kill -9 {pid}",
    "kill -- -{pid}",
    "cat /proc/{pid}/cmdline",
    "xxd /proc/{pid}/mem",
    "ls /proc/{pid}/fd",
    "python -m agent.cli resume x",
    "python -c 'from agent.cli import main; main()'",
    "python -c 'import os; os.kill(os.getppid(), 9)'",
    "python -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"y\")'",
    "echo x > {program}/threads/judging.py",
    "sed -i s/deny/allow/ {program}/../constitution/judge.py",
    "rm -rf {program}",
    "mv {program} elsewhere",
    "pkill bpagent",
)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "own"))
    (tmp_path / "own" / "runs").mkdir(parents=True)
    (tmp_path / "own" / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "own" / "key").write_bytes(b"k" * 32)
    return tmp_path / "own"


@pytest.mark.slow
@pytest.mark.parametrize("preset", JUDGING)
def test_commands_and_calls_that_touch_them_are_denied_and_not_asked_about(
    preset: str, make_agent: MakeAgent, workspace: Path, own: Path
) -> None:
    log, program = workspace / "log.jsonl", workspace / ".venv" / "lib" / "site-packages" / "agent"
    (workspace / "evil.yaml").write_text("allow: all")
    (workspace / "link").symlink_to(log)
    commands = [touch.format(own=own, log=log, pid=os.getpid(), program=program) for touch in TOUCHES]
    calls = [call("bash", command=each) for each in commands]
    calls += [call("write_file", path=name, content="forged") for name in ("log.jsonl", "link")]
    chosen = evolve(PRESETS[preset], sandbox="off", max_iterations=50, max_failures=None)
    tools = equip(evolve(chosen, tools="workspace", tools_file=None), workspace)
    made = make_agent(*calls, "Done.", tools=tools, preset=chosen, log=log, approve=lambda _: True)

    done = made.run_sync("Go")

    assert of_kind(done, ApprovalAsked | ToolStarted) == []
    assert len(of_kind(done, GateRejected)) == len(calls)
    assert (own / "rules.yaml").read_text() == "rules: []\n"


def test_no_right_and_no_file_tool_makes_them_writable_and_the_log_is_not_read(
    make_agent: MakeAgent, workspace: Path, own: Path
) -> None:
    rights = [f"write {own}/rules.yaml"], [f"write {own.parent}"], ["write /"]
    tools, log = equip(PRESETS["default"], workspace), workspace / "log.jsonl"
    (workspace / "link").symlink_to(log)
    steps = [*(call("bash", command="true", rights=right) for right in rights), call("read_file", path="log.jsonl")]
    steps += [call("write_file", path=name, content="forged") for name in ("log.jsonl", "link")]

    done = make_agent(*steps, "Done.", tools=tools, log=log, approve=lambda _: True).run_sync("Go")

    assert of_kind(done, ToolStarted) == []


def test_the_program_and_its_python_are_read_only_in_the_sandbox(
    workspace: Path, needs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for commands of which no text tells what they do, and through other names of its files."""
    needs("bwrap")
    (workspace / "lib" / "agent").mkdir(parents=True)
    (workspace / "lib" / "agent" / "judging.py").write_text("deny")
    monkeypatch.setattr(permissions, "PYTHON", (str(workspace / "lib" / "agent"),))
    monkeypatch.setattr(permissions, "program_folders", permissions.program_folders.__wrapped__)
    made = Sandbox((str(workspace),), "bubblewrap")

    command = (
        "cd lib/agent; echo allow > judging.py; ln judging.py ../x; mv ../agent ../y; rm -r ../agent; echo ok > ../z"
    )
    subprocess.run([*made.prefix(str(workspace)), "sh", "-c", command], check=False, capture_output=True)

    assert (workspace / "lib" / "agent" / "judging.py").read_text() == "deny"
    assert sorted(os.listdir(workspace / "lib")) == ["agent", "z"]


@pytest.mark.slow
def test_programs_planted_in_the_workspace_do_not_start_a_command(
    go: Go, home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the workspace's environment first on PATH, as an activated one has it."""
    planted = workspace / ".venv" / "bin"
    planted.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{planted}:{os.environ['PATH']}")
    for name in ("bwrap", "nsenter", "prlimit", "bash", "python3", "sh"):
        (planted / name).write_text(f"#!/bin/sh\necho gone > {home}/canary-{name}\n")
        (planted / name).chmod(0o755)

    session = call("terminal", command="true", persistent=True)
    run = go("echo inside", call("bash", command="echo out", rights=["unconfined"]), approve=lambda _: True)
    go(session, preset=evolve(DEFAULT, tools="terminal", policy=None))

    assert of_kind(run, ToolFinished)[-1].result.text == "out\n"
    assert [file.name for file in home.glob("canary*")] == []


STARTS = """
import sys
started = []
sys.addaudithook(lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork") else None)
from agent.presets import DEFAULT
from agent.presets.equipment import equip
equip(DEFAULT.with_options({"sandbox": sys.argv[1]}), ".")
print(bool(started), "agent.tools.sandbox.sandbox" in sys.modules)
"""


@pytest.mark.slow
@rows(("wanted", "outcome"), [("off", "False False\n"), ("on", "True True\n")])
def test_without_a_sandbox_none_is_looked_for(wanted: str, outcome: str, tmp_path: Path) -> None:
    """Unit tests of those who embed an agent start nothing."""
    command = [sys.executable, "-c", STARTS, wanted]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == outcome
