"""The log, as others read, replay, resume and judge it."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.outside.conftest import Place, bash
from tests.outside.driving import PATIENCE, ROOT
from tests.outside.model_server import call, calling, saying
from tests.tables import rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded(new_place: Callable[[], Place]) -> Place:
    """A run with calls that finish in every way, and its log."""
    place = new_place()
    calls = [bash("echo one", "c-one"), bash("exit 3", "c-exit"), bash("kill -9 $$", "c-signal")]
    said = place.play({"calls": [step["call"] for step in calls]}, "Done.")
    assert (said.code, said.out) == (0, "Done.\n"), said.err
    return place


def test_line_1_is_the_header_without_a_name_and_every_other_is_a_record(recorded: Place) -> None:
    header, *records = recorded.log.lines

    assert "name" not in header
    assert header["preset"] == "default"
    assert all({"step", "super_step", "name", "data", "origin"} <= set(record) for record in records)
    assert [record["step"] for record in records] == sorted(record["step"] for record in records)


def test_a_call_is_an_object_where_it_is_proposed_and_an_id_in_every_later_record(recorded: Place) -> None:
    [proposed, *_] = recorded.log.data("proposed_action")

    assert proposed["call"]["id"] == "c-one"
    assert proposed["call"]["tool"] == "bash"
    assert proposed["call"]["arguments"] == {"command": "echo one"}
    later = ("action_described", "gate_approved", "tool_started", "tool_finished", "call_answered")
    for name in later:
        assert [data["call"] for data in recorded.log.data(name)] == ["c-one", "c-exit", "c-signal"], name


def test_the_last_record_is_the_end_with_status_reason_and_text(recorded: Place) -> None:
    assert recorded.log.end[0] == "completed"
    assert {"status", "reason", "text"} <= set(recorded.log.data("run_ended")[0])
    assert recorded.log.data("run_ended")[0]["text"] == "Done."


def test_a_result_is_one_object_in_both_records_of_a_call(recorded: Place) -> None:
    finished, answered = (recorded.log.data(name) for name in ("tool_finished", "call_answered"))

    assert recorded.log.header["format"] == 2
    assert [data["result"] for data in finished] == [data["result"] for data in answered]
    assert {"text", "is_error", "duration"} <= set(finished[0]["result"])
    assert finished[0]["result"]["text"] == "one\n"


def test_a_death_by_signal_is_an_error_and_an_exit_code_is_none(recorded: Place) -> None:
    errors = {data["call"]: data["result"]["is_error"] for data in recorded.log.data("tool_finished")}

    assert errors == {"c-one": False, "c-exit": False, "c-signal": True}


def test_replay_of_an_unchanged_log_is_equal(recorded: Place) -> None:
    said = recorded.command("replay", recorded.log.path)

    assert said.code == 0
    assert said.out.startswith("equal")


@pytest.fixture
def damaged(recorded: Place, tmp_path: Path) -> Callable[[Callable[[list[str]], list[str]]], Path]:
    """A function that writes the log with its lines changed."""

    def write(change: Callable[[list[str]], list[str]]) -> Path:
        path = tmp_path / "damaged.jsonl"
        path.write_text("".join(change(recorded.log.path.read_text().splitlines(keepends=True))))
        return path

    return write


def test_a_torn_last_line_is_reported_and_no_difference(recorded: Place, damaged: Callable[..., Path]) -> None:
    said = recorded.command("replay", damaged(lambda lines: [*lines[:-1], lines[-1][:20]]))

    assert said.code == 0
    assert "torn" in said.out + said.err


def test_another_broken_line_is_an_error_with_its_number(recorded: Place, damaged: Callable[..., Path]) -> None:
    said = recorded.command("replay", damaged(lambda lines: [*lines[:4], lines[4][:20] + "\n", *lines[5:]]))

    assert said.code == 2
    assert "line 5" in said.err


def without_an_approval(lines: list[str]) -> list[str]:
    at = next(number for number, line in enumerate(lines) if '"gate_approved"' in line)
    return [*lines[:at], *lines[at + 1 :]]


def with_another_command(lines: list[str]) -> list[str]:
    at = next(number for number, line in enumerate(lines) if '"proposed_action"' in line)
    return [*lines[:at], lines[at].replace("echo one", "echo two"), *lines[at + 1 :]]


@rows("change", [without_an_approval, with_another_command])
def test_a_missing_or_changed_record_differs(
    recorded: Place, damaged: Callable[..., Path], change: Callable[[list[str]], list[str]]
) -> None:
    said = recorded.command("replay", damaged(change))

    assert said.code == 6


def header_with(**changes: Any) -> Callable[[list[str]], list[str]]:
    return lambda lines: [json.dumps(json.loads(lines[0]) | changes) + "\n", *lines[1:]]


def without_a_bthread(lines: list[str]) -> list[str]:
    header = json.loads(lines[0])
    header["bthreads"] = [each for each in header["bthreads"] if each["name"] != "doom_loop"]
    return [json.dumps(header) + "\n", *lines[1:]]


@rows(("change", "names"), [(header_with(format=999), "999"), (without_a_bthread, "doom_loop")])
def test_a_newer_format_and_another_program_are_one_clear_error(
    recorded: Place, damaged: Callable[..., Path], change: Callable[[list[str]], list[str]], names: str
) -> None:
    said = recorded.command("replay", damaged(change))

    assert said.code == 2
    assert names in said.err
    assert "Traceback" not in said.err


def test_a_log_of_format_1_is_refused_by_name_and_converted_beside(recorded: Place, tmp_path: Path) -> None:
    old = tmp_path / "run.jsonl"
    old.write_bytes((ROOT / "tests/agent/log/recorded/format-1.jsonl").read_bytes())

    refused = recorded.command("why", old)
    converted = recorded.command("convert", tmp_path)

    assert (refused.code, f"bpagent convert {old}" in refused.err, "format 1" in refused.err) == (2, True, True)
    assert (converted.code, converted.out) == (0, f"{tmp_path}/run-2.jsonl\n"), converted.err
    why = recorded.command("why", tmp_path / "run-2.jsonl")
    assert (why.code, "call_3        approved              read_file absent.txt" in why.out) == (0, True)


def test_a_finished_log_says_so_when_it_is_resumed(recorded: Place) -> None:
    before = recorded.log.path.read_bytes()

    said = recorded.command("resume", recorded.log.path)

    assert said.code == 0
    assert "is over" in said.err
    assert recorded.log.path.read_bytes() == before


def test_resume_takes_everything_from_the_header_and_the_address_from_the_environment(place: Place) -> None:
    """A run that was killed while a tool ran goes on; the tool is answered as interrupted and does not run again."""
    os.mkfifo(place.workspace / "started")
    command = "echo x >> ran; echo yes > started; sleep 20"
    place.server.reply(calling(call("c1", "bash", {"command": command})))
    options = ("--preset", "workspace", "--option", "max_iterations=9", "--model", "another-name")
    process = place.start(*place.words("Do it", *options))
    (place.workspace / "started").read_text()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    place.server.reply(saying("Gone on."))

    said = place.command("resume", place.log.path)

    assert (said.code, said.out) == (0, "Gone on.\n"), said.err
    assert place.log.header["preset"] == "workspace"
    assert place.log.end[0] == "completed"
    assert place.server.requests[-1].body["model"] == "another-name"
    assert place.server.requests[-1].told("c1") == place.log.told("c1")
    assert "interrupted" in place.log.told("c1")
    assert (place.workspace / "ran").read_text() == "x\n"
    assert place.command("replay", place.log.path).code == 0


def test_a_log_in_use_is_not_resumed_and_its_holder_is_named(place: Place) -> None:
    os.mkfifo(place.workspace / "started")
    script = place.script(bash("echo yes > started; sleep 20"))
    process = place.start(*place.words("Do it", model=script))
    (place.workspace / "started").read_text()

    said = place.command("resume", place.log.path)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert said.code == 2
    assert str(process.pid) in said.err
