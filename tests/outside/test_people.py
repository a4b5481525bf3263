"""What people see and type: questions on a terminal, steering, and nobody there."""

import os

import pytest

from tests.outside.conftest import Place

pytestmark = pytest.mark.slow


def bash(command: str, id: str) -> dict[str, object]:
    return {"tool": "bash", "arguments": {"command": command}, "id": id}


def approving(*commands: str) -> list[dict[str, object]]:
    return [{"call": bash(command, f"c{number}")} for number, command in enumerate(commands, 1)]


def test_an_approval_is_one_line_with_the_command_as_proposed_and_three_prompts_in_all(place: Place) -> None:
    for name in ("a", "b  b", "c"):
        (place.workspace / name).touch(mode=0o600)
    timed = {"call": {"tool": "bash", "id": "c2", "arguments": {"timeout": 9, "command": "chmod  777 'b  b'"}}}
    script = place.script(*approving("chmod 777 a"), timed, *approving("chmod 777 c"), "Done.")
    terminal = place.on_terminal(*place.words("Do it", model=script))

    terminal.wait_for("Approve command: chmod 777 a? (yes/no)")
    terminal.type("maybe\n")
    terminal.wait_for("Approve command: chmod 777 a? (yes/no)", times=2)
    terminal.type("YES\n")
    terminal.wait_for("Approve command: chmod  777 'b  b'? (yes/no)")
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
    terminal = place.on_terminal(*place.words("Do it", model=place.script(*approving("chmod 777 a"), "never")))

    terminal.wait_for("? (yes/no)")
    terminal.type("/stop\n")

    assert terminal.end() == 4
    assert place.log.end[0] == "stopped"
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o600


def test_end_of_input_is_no(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)
    terminal = place.on_terminal(*place.words("Do it", model=place.script(*approving("chmod 777 a"), "Done.")))

    terminal.wait_for("? (yes/no)")
    terminal.type("\x04")

    assert terminal.end() == 0
    assert (place.workspace / "a").stat().st_mode & 0o777 == 0o600


def test_a_pipe_cannot_approve_a_call(place: Place) -> None:
    (place.workspace / "a").touch(mode=0o600)

    said = place.play(*approving("chmod 777 a"), "Done.", input="yes\n")

    assert (said.code, said.out) == (0, "Done.\n")
    assert place.log.told("c1").startswith("denied: no person present")


def test_a_line_that_is_typed_meanwhile_steers_and_what_has_not_begun_is_skipped(place: Place) -> None:
    os.mkfifo(place.workspace / "started")
    os.mkfifo(place.workspace / "go")
    calls = [bash("echo yes > started; read line < go; echo first", "c1"), bash("touch second", "c2")]
    where = ("--workspace", place.workspace, "--log", place.log.path, "--model")
    terminal = place.on_terminal("chat", *where, place.script({"calls": calls}, "As you wish."), "Do it")

    (place.workspace / "started").read_text()
    terminal.type("rather leave it\n")
    terminal.wait_for("heard")
    (place.workspace / "go").write_text("now\n")
    terminal.wait_for("As you wish.")
    terminal.wait_for("you >")
    terminal.type("/quit\n")

    assert terminal.end() == 0
    assert place.log.told("c1") == "first\n"
    assert place.log.told("c2").startswith("skipped: ")
    assert not (place.workspace / "second").exists()
    assert place.log.data("steering_given") == [{"text": "rather leave it"}]
