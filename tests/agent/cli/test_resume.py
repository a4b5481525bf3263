"""`bpagent resume` and `bpagent runs`: killed runs, decisions that come later, and what cannot go on."""

import json
import os
import shlex
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.runs import runs_folder
from tests.agent.cli.sessions import Command, RunOf, SlowTool, Start, answers_in, bash, records
from tests.outside.driving import processes_in
from tests.tables import rows

RISKY = "touch .git/config; echo ran >> ran.txt"


@pytest.fixture
def waiting(command: Command, run_of: RunOf, log: Path) -> Path:
    """The log of a run that waits for a decision."""
    words = run_of(bash("echo one >> notes.txt"), bash(RISKY), "Done.")
    assert command(*words, "--approvals", "later", "--log", log).code == 5
    return log


@pytest.fixture
def cut(command: Command, run_of: RunOf, workspace: Path, log: Path) -> Callable[[str], Path]:
    """`cut("tool_started")`: a log that ends with the first such record."""

    def make(name: str) -> Path:
        assert command(*run_of(bash("echo one >> notes.txt; echo hi"), "Done."), "--log", log).code == 0
        (workspace / "notes.txt").unlink()
        lines = log.read_text().splitlines(keepends=True)
        last = next(number for number, line in enumerate(lines) if f'"name":"{name}"' in line)
        log.write_text("".join(lines[: last + 1]))
        return log

    return make


# Killed


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_commands_end_with_a_program_that_is_killed(
    run_of: RunOf, start: Start, workspace: Path, log: Path, slow_tool: SlowTool, sandbox: str
) -> None:
    """Also those that left their session, in a sandbox and without one."""
    left = 'setsid sh -c "echo > other; exec sleep 4321.5" & '
    running = start(*run_of(bash(left + slow_tool.command), "Done."), "--log", log, "--sandbox", sandbox)
    slow_tool.wait_for_start()
    assert len(processes_in(workspace)) >= 2
    running.send_signal(signal.SIGKILL)
    running.wait()

    while processes_in(workspace):  # the time limit of a test ends it
        time.sleep(0.02)


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_a_super_step_goes_on(
    run_of: RunOf, start: Start, process: Command, workspace: Path, log: Path
) -> None:
    """A b-thread of the run kills its own process."""
    rules = workspace.parent / "rules.py"
    rules.write_text(KILLER)
    protocol = ("--protocol", f"{rules}:killer")
    killed = start(*run_of(bash("echo one >> notes.txt"), "Done."), "--log", log, *protocol)
    assert killed.wait() == -signal.SIGKILL
    (workspace / "spared").write_text("")

    said = process("resume", log, *protocol)

    assert (said.code, said.out) == (0, "Done.\n"), said.err
    assert (workspace / "notes.txt").read_text() == "one\n"


KILLER = """\
import os, signal
from pathlib import Path
from agent.events import CallAnswered
from bp import bthread, sync


@bthread
def killer():
    yield sync(wait_for=CallAnswered)
    if not (Path(__file__).parent / "workspace" / "spared").exists():
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_tool_that_had_started_is_answered_as_interrupted_and_a_torn_line_is_cut_off(
    command: Command, cut: Callable[[str], Path], workspace: Path
) -> None:
    log = cut("tool_started")
    before = len(records(log))
    log.write_text(log.read_text() + '{"step":7,"super')

    said = command("resume", log, "--json")

    assert said.code == 0
    assert [json.loads(line) for line in said.out.splitlines()] == records(log)[before:]
    assert "was torn, and is cut off" in said.err
    assert answers_in(log) == ["interrupted, outcome unknown: it was running when the process that ran it ended"]
    assert not (workspace / "notes.txt").exists()
    assert command("replay", log).out.startswith("equal: ")


# Decided later


@pytest.mark.slow
def test_a_decision_of_yes_runs_the_call(command: Command, waiting: Path, workspace: Path) -> None:
    said = command("resume", waiting, "--approve", "call_2")

    assert (said.code, said.out) == (0, "Done.\n")
    assert (workspace / "ran.txt").read_text() == "ran\n"
    assert (workspace / "notes.txt").read_text() == "one\n"
    assert f"action   {RISKY}\nanswer   approved\n" in said.err
    assert said.err.count("action ") == 1
    assert command("replay", waiting).code == 0


@pytest.mark.slow
def test_without_a_decision_the_run_keeps_waiting_and_the_model_reads_a_no(
    command: Command, waiting: Path, workspace: Path
) -> None:
    before = waiting.read_bytes()
    said = command("resume", waiting)

    assert (said.code, said.out) == (5, "")
    assert "question call_2: touch .git/config; echo ran >> ran.txt" in said.err
    assert f"bpagent resume {waiting} --approve call_2" in said.err
    assert waiting.read_bytes() == before
    assert command("resume", waiting, "--reject", "call_2", "--because", "it is Friday").code == 0
    assert answers_in(waiting)[1].startswith("rejected:")
    assert "it is Friday" in answers_in(waiting)[1]
    assert not (workspace / "ran.txt").exists()
    again = command("resume", waiting, "--approve", "call_2")
    assert (again.code, "the run is over: completed (answered); no call waits" in again.err) == (2, True)
    waiting.write_text(waiting.read_text().replace("it is Friday", "it is Monday", 1))
    assert "does not follow the line before it" in command("resume", waiting).err


@pytest.mark.slow
@rows(
    ("words", "sentence"),
    [
        (("--approve", "nosuch"), "there is no call 'nosuch' in this run; waiting: call_2"),
        (("--approve", "call_1"), "the call 'call_1' was answered already; waiting: call_2"),
        (("--approve", "call_2", "--reject", "call_2"), "the call 'call_2' has been decided already"),
    ],
)
def test_a_decision_about_no_open_question_exits_with_2_and_changes_nothing(
    words: tuple[str, ...], sentence: str, command: Command, waiting: Path
) -> None:
    before = waiting.read_bytes()

    said = command("resume", waiting, *words)

    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[-1] == f"bpagent: {sentence}"
    assert waiting.read_bytes() == before


# What cannot go on


def test_a_changed_record_exits_with_6_and_a_log_without_a_prompt_with_2(command: Command, waiting: Path) -> None:
    kept = waiting.read_text()
    waiting.write_text(kept.replace('"name":"gate_approved"', '"name":"gate_rejected"', 1))
    changed = command("resume", waiting)
    waiting.write_text(kept.split("\n", 1)[0] + "\n")
    empty = command("resume", waiting)

    assert (changed.code, changed.out.startswith("different: after ")) == (6, True)
    assert (empty.code, "holds no prompt: it was undone, or none was given; begin a new run" in empty.err) == (2, True)


@pytest.mark.slow
def test_resume_needs_the_declared_secret_again(
    command: Command, run_of: RunOf, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cret-s3cret")
    words = run_of(bash("touch .git/config # s3cret-s3cret"), "It was s3cret-s3cret.")
    assert command(*words, "--approvals", "later", "--secret", "DEPLOY_TOKEN", "--log", log).code == 5
    monkeypatch.delenv("DEPLOY_TOKEN")

    forgotten = command("resume", log, "--approve", "call_1")
    monkeypatch.setenv("DEPLOY_TOKEN", "s3cret-s3cret")
    said = command("resume", log, "--approve", "call_1")

    assert forgotten.code == 2
    assert "there is no variable $DEPLOY_TOKEN" in forgotten.err
    assert (said.code, said.out) == (0, "It was s3cret-s3cret.\n")
    assert "s3cret" not in log.read_text()


# The folder


@pytest.mark.slow
def test_runs_are_listed_with_their_status_and_go_on_by_the_beginning_of_their_id(
    command: Command, run_of: RunOf
) -> None:
    command(*run_of("Done."))
    command(*run_of(bash(RISKY), "Done."), "--approvals", "later")

    said = command("runs", "--json")
    done, careful = sorted(map(json.loads, said.out.splitlines()), key=lambda run: str(run["status"]))

    assert (done["status"], done["prompt"], done["turns"], done["preset"]) == ("completed", "go", 1, "default")
    assert (careful["status"], careful["waiting"]) == ("waiting", ["call_1"])
    table = command("runs").out
    assert f"bpagent resume {careful['id']} --approve call_1" in table
    assert command("resume", careful["id"][:-1], "--approve", "call_1").code == 0
    assert command("replay", careful["id"]).code == 0


def test_a_log_without_a_task_is_empty_and_has_no_call_to_explain(command: Command, cut: Callable[[str], Path]) -> None:
    runs_folder().mkdir(parents=True)
    log = runs_folder() / "1.jsonl"
    log.write_bytes(cut("prompt_given").read_bytes().splitlines(keepends=True)[0])

    said = command("runs", "--json")

    assert [json.loads(line)["status"] for line in said.out.splitlines()] == ["empty"]
    assert "interrupted runs go on" not in command("runs").err
    assert "the model asked for no call in this run" in command("why", "1").err


@pytest.mark.slow
def test_without_a_log_the_latest_run_is_taken_and_named(run_of: RunOf, command: Command) -> None:
    command(*run_of("Earlier."))
    (earlier,) = runs_folder().iterdir()
    os.utime(earlier, (1, 1))
    command(*run_of(bash("echo hi"), "Later."))
    (latest,) = set(runs_folder().iterdir()) - {earlier}

    said = {name: command(*name.split()) for name in ("why", "why call_1", "view", "replay", "resume")}
    said["what-if"] = command("what-if", "--without", "by_constitution")

    assert {name: each.code for name, each in said.items()} == dict.fromkeys(said, 0)
    assert {name: f"the latest run: {latest}" in each.err for name, each in said.items()} == dict.fromkeys(said, True)
    assert "call_1" in said["why"].out
    assert "echo hi" in said["why call_1"].out
    assert said["view"].out == f"{latest.with_suffix('.html')}\n"
    assert said["resume"].out == "Later.\n"
    assert f"no log 'call_7', and the latest run, {latest.stem}, has no such call" in command("why", "call_7").err
    assert f"bpagent chat --continue {latest}" in said["resume"].err.replace("\n         ", " ")


@pytest.mark.slow
def test_runs_are_listed_in_the_order_in_which_they_were_written_to(run_of: RunOf, command: Command) -> None:
    command(*run_of("One."))
    command(*run_of("Another."))
    first, last = sorted(runs_folder().iterdir(), reverse=True)
    os.utime(first, (86400, 86400))

    heading, *listed = command("runs").out.splitlines()

    assert heading.split()[:2] == ["id", "written"]
    assert [line.split()[0] for line in listed] == [first.stem, last.stem]
    assert listed[0].split()[1] in ("01-01", "01-02", "01-03")


def test_runs_are_listed_with_folder_cost_and_end_for_their_owner_only(
    run_of: RunOf, command: Command, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "elsewhere"))
    paid = {"say": "Done.", "usage": {"input_tokens": 1000, "output_tokens": 500}}
    prices = "prices=script=100/200"
    command(*run_of(paid), "--option", prices)

    (run,) = [json.loads(line) for line in command("runs", "--json").out.splitlines()]

    assert (run["workspace"], run["reason"], run["tokens"]) == (str(workspace), "answered", 1500)
    assert run["cost"] == pytest.approx(0.2)
    table = command("runs").out
    assert f" {workspace.name} " in table
    assert " $0.20 " in table
    monkeypatch.setattr("agent.cli.screen.UNKNOWN", 44)
    assert max(map(len, command("runs").out.splitlines())) <= 44
    folder = tmp_path / "elsewhere" / "runs"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(log.stat().st_mode) for log in folder.iterdir()] == [0o600]


def test_the_id_that_a_model_gave_its_call_is_quoted_in_the_command_to_copy(command: Command, run_of: RunOf) -> None:
    step = {"call": {"id": "a; ls", "tool": "bash", "arguments": {"command": RISKY}}}
    command(*run_of(step), "--approvals", "later")

    assert " --approve 'a; ls'" in command("runs").out


@pytest.mark.slow
def test_runs_are_named_by_an_id_prefix_and_invalid_logs_are_reported(
    command: Command, cut: Callable[[str], Path]
) -> None:
    log = cut("tool_started")
    runs_folder().mkdir(parents=True)
    for name in ("21", "22"):
        (runs_folder() / f"{name}.jsonl").write_bytes(log.read_bytes())
    (runs_folder() / "broken.jsonl").write_text("nonsense\n")
    (runs_folder() / "old.jsonl").write_text('{"format": 1}\n')

    listed = command("runs", "--json", "--limit", "3")
    several = command("resume", "2")

    assert [json.loads(line)["status"] for line in listed.out.splitlines()] == ["interrupted"]
    assert (listed.code, "broken.jsonl is no log of a run" in listed.err) == (0, True)
    assert "1 log of an earlier format left out; `bpagent convert" in listed.err
    assert (several.code, "2 runs begin with '2': 21, 22" in several.err) == (2, True)
    assert "no run whose id begins so" in command("resume", "nosuch").err
    (runs_folder() / "21-fork.jsonl").write_bytes(log.read_bytes())
    assert command("why", "21").code == 0


@rows("name", ["why", "view", "replay", "resume", "what-if --without x"])
def test_without_a_run_there_is_no_latest(name: str, command: Command) -> None:
    said = command(*name.split())

    assert said.code == 2
    assert "there is no run yet" in said.err
    assert command("runs").out.startswith("no runs in ")


OWN_RULES = """
from agent.vocabulary.events import RunEnded
from bp import BThreadBody, bthread, sync


@bthread
def waits(word: str) -> BThreadBody:
    yield sync(wait_for=RunEnded)


mine = waits("never")


class _Calm:
    def score(self, evidence):
        from agent.protocols.monitors import Score

        return Score(0.0, "calm")


Calm = _Calm()
"""


def test_the_command_printed_by_a_resting_run_resumes_it(
    command: Command, run_of: RunOf, tmp_path: Path, log: Path
) -> None:
    """Its own b-threads, monitors and models of other roles are part of it."""
    (tmp_path / "own rules.py").write_text(OWN_RULES)
    rules = f"{tmp_path}/own rules.py"
    trusted = "http://127.0.0.1:9/v1#never-asked"
    beside = ("--protocol", f"{rules}:mine", "--monitor", f"monitor={rules}:Calm", "--role", f"trusted={trusted}")
    rests = command(*run_of(bash(RISKY), "Done."), "--approvals", "later", "--log", log, *beside)

    assert rests.code == 5, rests.err
    advice = next(line.strip() for line in rests.err.splitlines() if "--reject" in line)
    said = command(*shlex.split(advice.removeprefix("bpagent "))[:-2])

    assert (said.code, said.out) == (0, "Done.\n"), said.err


@pytest.mark.slow
def test_people_see_what_runs_in_the_background_and_that_it_is_gone(command: Command, run_of: RunOf, log: Path) -> None:
    serve = {"call": {"tool": "bash", "arguments": {"command": "sleep 300", "background": True}}}
    risky = {"call": {"tool": "bash", "arguments": {"command": RISKY, "background": True}}}

    rests = command(*run_of(serve, risky, "Done."), "--approvals", "later", "--log", log)
    goes_on = command("resume", log, "--reject", "call_2")

    assert "action   sleep 300 (in the background)" in rests.err
    assert "it would stay in the background" in rests.err
    assert "bg_1 ended with the program that had started it: sleep 300" in goes_on.err
    assert (rests.code, goes_on.code) == (5, 0)
