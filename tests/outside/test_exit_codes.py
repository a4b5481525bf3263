"""How a run ends, and how a user takes part, seen from outside: exit code, output, and the log."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from tests.outside.conftest import Place, bash
from tests.outside.driving import PATIENCE, Log, processes_in
from tests.outside.model_server import Pause, saying
from tests.tables import rows

pytestmark = pytest.mark.slow


def completing(status: str) -> dict[str, object]:
    return {"call": {"tool": "complete", "arguments": {"result": f"It is a {status}.", "status": status}}}


def pursuing() -> dict[str, object]:
    arguments = {"user_prompt": "Do it", "objective": "to have it done"}
    return {"call": {"tool": "pursue_objective", "arguments": arguments}}


def test_3_for_a_limit_with_its_text(place: Place) -> None:
    said = place.play(bash("echo 1"), bash("echo 2"), options=("--option", "max_iterations=1"))

    assert (said.code, said.out) == (3, "Stopped: maximum iteration limit reached.\n")
    assert place.log.end == ("limit", "max_iterations")


def test_1_for_a_doom_loop_and_the_third_proposal_ends_the_run_without_another_inference(place: Place) -> None:
    same = [bash("echo  again"), {"call": {"tool": "bash", "arguments": {"timeout": 9, "command": "echo a"}}}]
    swapped = bash("echo a", timeout=9)

    said = place.play(*same, swapped, swapped, "never asked")

    assert said.code == 1
    assert place.log.end[0] == "doom_loop"
    assert len(place.log.data("inference_finished")) == 4
    assert len(place.log.data("tool_started")) == 3
    assert len(place.log.data("call_answered")) == 4


def bashes(*commands: str) -> dict[str, object]:
    """A step that calls bash several times."""
    return {"calls": [bash(command, "")["call"] for command in commands]}


def reading(path: str) -> dict[str, object]:
    return {"call": {"tool": "read_file", "arguments": {"path": path}}}


UNKNOWN = {"call": {"tool": "no_such_tool", "arguments": {}}}
FAILING = (reading("1"), bash("exit 7"), reading("2"), reading("3"), UNKNOWN, reading("../x"), reading("4"), UNKNOWN)
AGAIN = (bashes("echo a", "echo a", "echo b"), bashes("echo a", "echo a"), bashes("echo a", "echo c"))
AUTONOMOUS, ONCE = ("--preset", "autonomous"), ("--option", "max_iterations=1")


@rows(
    ("script", "options", "code", "out", "end", "answers"),
    [
        (("Done.",), ONCE, 0, "Done.\n", "completed", 1),
        (({"say": ""}, {"say": " "}, {"say": ""}, "never"), (), 1, "", "failed, empty_answers", 3),
        ((*FAILING, "never"), (), 1, "", "failed", 8),  # neither an exit code nor a refusal counts
        ((*AGAIN, "never"), (), 1, "", "doom_loop", 3),  # within an answer, until there is another proposal
        ((bash("echo hi", tool="terminal"), "Done."), AUTONOMOUS, 0, "Done.\n", "completed", 2),
        ((pursuing(), "Half of it.", "never"), (*AUTONOMOUS, *ONCE), 3, "Half of it.", "limit, max_iterations", 2),
    ],
)
def test_limits_and_guards_have_their_exit_codes(
    new_place: Callable[[], Place], script: Any, options: Any, code: int, out: str, end: str, answers: int
) -> None:
    place = new_place()

    said = place.play(*script, options=options)

    assert (said.code, out in said.out) == (code, True), said
    assert ", ".join(place.log.end).startswith(end)
    assert len(place.log.data("inference_finished")) == answers
    assert len(place.log.data("tool_started")) == 5 or end != "doom_loop"


@pytest.mark.parametrize(("status", "code"), [("success", 0), ("partial", 1), ("failure", 1)])
def test_the_status_that_complete_declares_is_the_exit_code(place: Place, status: str, code: int) -> None:
    said = place.play(pursuing(), completing(status), "never", options=("--preset", "autonomous"))

    assert (said.code, said.out) == (code, f"It is a {status}.\n")
    assert place.log.end == ("completed", status)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_aborts_the_run_and_every_call_is_answered(place: Place, number: int, code: int) -> None:
    os.mkfifo(place.workspace / "started")
    calls = (bash("echo yes > started; sleep 30", "running"), bash("touch later", "later"))
    script = place.script({"calls": [step["call"] for step in calls]})
    process = place.start(*place.words("Do it", model=script))
    (place.workspace / "started").read_text()

    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)

    assert (process.returncode, out) == (code, ""), err
    assert place.log.end[0] == "aborted"
    assert [place.log.told(id)[:8] for id in ("running", "later")]
    assert not (place.workspace / "later").exists()
    assert not [line for line in processes_in(place.workspace) if "sleep 30" in line]


def test_a_signal_aborts_an_inference(place: Place) -> None:
    """The server never says the last word of its stream."""
    pause = Pause()
    place.server.reply(evolve(saying("Beginning", " and end."), pause=pause))
    process = place.start(*place.words("Do it"))
    assert pause.reached.wait(PATIENCE)

    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)

    pause.over.set()
    assert (process.returncode, out) == (143, "")
    assert place.log.end[0] == "aborted"
    assert place.log.data("answer_committed") == []


def type_to_stop(process: "subprocess.Popen[str]", text: str) -> None:
    """Type a text and wait until the command says that it stops."""
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(text)
    process.stdin.flush()
    while "stop" not in (line := process.stderr.readline()) and line:
        pass


def test_4_for_a_run_that_was_stopped_by_a_typed_line_and_the_running_tool_finishes(place: Place) -> None:
    os.mkfifo(place.workspace / "started")
    os.mkfifo(place.workspace / "go")
    script = place.script(bash("echo yes > started; read line < go; echo finished"), "never")
    process = place.start(*place.words("Do it", model=script), stdin=-1)
    (place.workspace / "started").read_text()

    type_to_stop(process, "please do not stop at the first error\nSTOP\n")
    (place.workspace / "go").write_text("now\n")
    process.communicate(timeout=PATIENCE)

    assert process.returncode == 4
    assert place.log.end[0] == "stopped"
    assert place.log.told("c1") == "finished\n"
    assert len(place.log.data("inference_finished")) == 1
    assert len(place.log.data("stop_asked")) == 1


def test_in_autonomous_the_letters_stop_anywhere_stop(place: Place) -> None:
    os.mkfifo(place.workspace / "started")
    os.mkfifo(place.workspace / "go")
    wait = bash("echo yes > started; read line < go; echo finished", tool="terminal")
    process = place.start(*place.words("Do it", *AUTONOMOUS, model=place.script(wait, wait)), stdin=-1)
    (place.workspace / "started").read_text()

    type_to_stop(process, "it was nonstop fun\n")
    (place.workspace / "go").write_text("now\n")
    process.communicate(timeout=PATIENCE)

    assert process.returncode == 4
    assert place.log.told("c1").startswith("finished")


# Questions, answers and steering on a terminal; and where there is none.


UNCONFINED = ("--sandbox", "off")
"""In a sandbox the text of a command raises no question about what the sandbox keeps in."""


def approving(*commands: str) -> list[dict[str, object]]:
    return [bash(command, f"c{number}") for number, command in enumerate(commands, 1)]


def test_an_approval_is_one_line_with_the_command_as_proposed_and_three_prompts_in_all(place: Place) -> None:
    for name in ("a", "b  b", "c"):
        (place.workspace / name).touch(mode=0o600)
    timed = {"call": {"tool": "bash", "id": "c2", "arguments": {"timeout": 9, "command": "chmod  777 'b  b'"}}}
    script = place.script(*approving("chmod 777 a"), timed, *approving("chmod 777 c"), "Done.")
    terminal = place.on_terminal(*place.words("Do it", *UNCONFINED, model=script))

    terminal.wait_for("Approve command: chmod 777 a? (yes/no)")
    terminal.type("maybe\n")
    terminal.wait_for("Approve command: chmod 777 a? (yes/no)", times=2)
    terminal.talk("YES\n", "Approve command: chmod  777 'b  b'? (yes/no)")
    terminal.type("N\n")
    for number in (1, 2, 3):
        terminal.wait_for("Approve command: chmod 777 c? (yes/no)", times=number)
        terminal.type("perhaps\n")

    assert terminal.end() == 0
    assert terminal.screen.count("chmod 777 c? (yes/no)") == 3
    assert [data["yes"] for data in place.log.data("approval_answered")] == [True, False, False]
    assert [(place.workspace / name).stat().st_mode & 0o777 for name in ("a", "b  b", "c")] == [0o777, 0o600, 0o600]


def test_a_line_that_is_stop_at_a_question_stops_the_run(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)
    script = place.script(*approving("chmod 777 a"), "never")
    terminal = place.on_terminal(*place.words("Do it", *UNCONFINED, model=script))

    terminal.wait_for("? (yes/no)")

    assert terminal.end("/stop\n") == 4
    assert place.log.end[0] == "stopped"
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o600


def test_a_pipe_cannot_approve_a_call(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)

    said = place.play(*approving("chmod 777 a"), "Done.", input="yes\n", options=UNCONFINED)

    assert (said.code, said.out) == (0, "Done.\n")
    assert place.log.told("c1").startswith("denied: no person present")
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o600


def test_a_deferred_approval_leaves_5_and_goes_on_with_the_answer(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)

    said = place.play(*approving("chmod 777 a"), "Done.", options=(*UNCONFINED, "--approvals", "later"))
    resting = shutil.copy(place.log.path, place.folder / "copy.jsonl")
    undecided = place.command("resume", place.log.path)
    rejected = place.command("resume", resting, "--reject", "c1", "--because", "too open")
    mode = (place.workspace / "a").stat().st_mode & 0o777
    approved = place.command("resume", place.log.path, "--approve", "c1")

    assert (said.code, said.out, undecided.code) == (5, "", 5)
    assert "--approve c1" in said.err
    assert (rejected.code, rejected.out, mode) == (0, "Done.\n", 0o600)
    assert "too open" in Log(Path(resting)).told("c1")
    assert (approved.code, approved.out) == (0, "Done.\n")
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o777


def test_end_of_input_is_no(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)
    script = place.script(*approving("chmod 777 a"), "Done.")
    terminal = place.on_terminal(*place.words("Do it", *UNCONFINED, model=script))

    terminal.wait_for("? (yes/no)")

    assert terminal.end("\x04") == 0
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o600


def test_a_line_that_is_typed_meanwhile_steers_and_what_has_not_begun_is_skipped(place: Place) -> None:
    os.mkfifo(place.workspace / "started")
    os.mkfifo(place.workspace / "go")
    calls = [step["call"] for step in approving("echo yes > started; read line < go; echo first", "touch second")]
    where = ("--workspace", place.workspace, "--log", place.log.path, "--model")
    terminal = place.on_terminal("chat", *where, place.script({"calls": calls}, "As you wish."), "Do it")

    (place.workspace / "started").read_text()
    terminal.talk("rather leave it\n", "heard")
    (place.workspace / "go").write_text("now\n")
    terminal.wait_for("As you wish.")
    terminal.wait_for("you >")

    assert terminal.end("/quit\n") == 0
    assert place.log.told("c1") == "first\n"
    assert place.log.told("c2").startswith("skipped: ")
    assert not (place.workspace / "second").exists()
    assert place.log.data("steering_given") == [{"text": "rather leave it"}]
