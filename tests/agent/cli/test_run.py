"""`bpagent run`: what goes where, how it ends, and what the log holds; what others rely on is in tests/outside."""

import json
import os
import resource
from pathlib import Path

import pytest

from agent.log.reading import read_log
from tests.agent.cli.sessions import PATIENCE, Command, RunOf, Start, bash, records
from tests.tables import rows


def test_progress_distinguishes_turn_action_output_and_refusal_and_cannot_be_faked(
    run_of: RunOf, command: Command, home: Path
) -> None:
    """S1 8.2 and 8.4."""
    evil = bash("printf '\\033[2Jgone'", say="\x1b[2J\u202eevil")

    said = command(*run_of(evil, bash("rm -rf /no/such/folder"), "All is well.\nReally."))

    lines = [line for line in said.err.splitlines() if "done in" not in line]
    turn_1, turn_2 = (next(n for n, line in enumerate(lines) if line.startswith(f"── turn {turn} ─")) for turn in "12")
    assert lines[turn_1 + 1 : turn_2] == [
        "agent    \\x1b[2J\\u202eevil",
        "action   printf '\\033[2Jgone'",
        "         │ gone",
    ]
    assert lines[turn_2 + 1] == "action   rm -rf /no/such/folder"
    assert lines[turn_2 + 2].startswith("refused  b-thread by_constitution: rm would delete /no/such/folder")
    assert lines[-1] == "system   completed (answered) after 3 turns, 1 call"
    assert (said.code, said.out) == (0, "All is well.\nReally.\n")
    (log,) = (home / ".bpagent" / "runs").iterdir()
    assert str(log) in "".join(line.strip() for line in lines)
    assert read_log(log).records[-1]["name"] == "run_ended"


def test_autonomous_work_shows_iterations_reasoning_and_why_it_continues(run_of: RunOf, command: Command) -> None:
    """S1 8.2, 8.4."""
    pursue = {"tool": "pursue_objective", "arguments": {"user_prompt": "Tidy up", "objective": "No loose ends"}}
    look = {"say": "I look around.", "call": {"tool": "terminal", "arguments": {"command": "echo one"}}}
    complete = {"call": {"tool": "complete", "arguments": {"result": "It is what it is.", "status": "success"}}}

    said = command(*run_of({"call": pursue}, look, "I think about it.", complete), "--preset", "autonomous")

    lines = [line.rstrip() for line in said.err.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("── iteration 1 of 25 "))
    assert lines[begin + 1 : begin + 4] == ["agent    I look around.", "action   echo one", "         │ one"]
    assert any(line.startswith("── iteration 2 of 25 ") for line in lines)
    assert "agent    I think about it." in lines
    assert "goes on  b-thread complete_to_finish: You have not called complete" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["on", "off"])
def test_what_a_command_leaves_running_is_counted_and_how_it_may_stay_is_said(
    run_of: RunOf, process: Command, sandbox: str
) -> None:
    said = process(*run_of(bash("sleep 300 &"), "Done."), "--sandbox", sandbox)

    assert "│ [1 process still running after the command had ended; killed]" in said.err
    assert "│ [give background=true for a process that is to stay]" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(), (0,), (2,), (0, 1, 2)])
def test_streams_may_be_closed_and_a_file_as_standard_input_is_left_alone(
    closed: tuple[int, ...], run_of: RunOf, process: Command, tmp_path: Path, log: Path
) -> None:
    """As with `bpagent run ... 2>&-`, or `< FILE`."""
    (tmp_path / "stdin.txt").write_text("stop\n")

    def close() -> None:
        for stream in closed:
            os.close(stream)

    with (tmp_path / "stdin.txt").open() as file:
        said = process(*run_of(bash("ls"), "Done."), "--log", log, stdin=file, preexec_fn=close)

    assert (said.code, said.out) == (0, "" if 1 in closed else "Done.\n")
    assert records(log)[-1]["data"]["status"] == "completed"


FRAGILE = """\
from agent.events import ToolFinished
from bp import bthread, sync


@bthread
def fragile():
    yield sync(wait_for=ToolFinished)
    raise RuntimeError('it broke')
"""


@pytest.mark.slow
def test_a_b_thread_that_raises_is_named_and_nothing_is_lost(
    run_of: RunOf, command: Command, tmp_path: Path, log: Path
) -> None:
    rule = tmp_path / "rules.py"
    rule.write_text(FRAGILE)

    said = command(*run_of(bash("ls")), "--json", "--log", log, "--protocol", f"{rule}:fragile")

    assert said.code == 1
    assert "b-thread 'fragile' failed" in said.err
    assert "Traceback" not in said.err
    assert records(log)[-1]["data"]["reason"] == "engine_error"
    assert [json.loads(line) for line in said.out.splitlines()] == records(log)


READERS_GONE = [
    ("stdout", 1, ["run", "--json"]),
    ("stderr", 0, ["run"]),
    ("stderr", 2, ["resume", "/no/such/log"]),
    ("stderr", 2, ["no-such-command"]),
    ("stdout", 1, ["check", "ls"]),
    ("stdout", 1, ["--help"]),
]


@pytest.mark.slow
@rows("gone, code, words", READERS_GONE)
def test_a_closed_reader_or_screen_breaks_nothing(
    gone: str, code: int, words: list[str], run_of: RunOf, start: Start, tmp_path: Path
) -> None:
    log = tmp_path / f"{gone}.jsonl"
    started = start(*([*run_of(bash("ls"), "Done."), *words[1:], "--log", log] if words[0] == "run" else words))
    getattr(started, gone).close()

    out, err = started.communicate(timeout=PATIENCE)

    assert started.returncode == code
    assert "Traceback" not in (err or "")
    assert "Exception" not in (err or "")
    if words == ["run"]:
        assert out == "Done.\n"
        assert records(log)[-1]["data"]["status"] == "completed"


@pytest.mark.slow
def test_a_disk_that_gets_full_ends_the_run_in_one_sentence_and_keeps_what_was_written(
    run_of: RunOf, process: Command, command: Command, log: Path
) -> None:
    limit = (20 * 1024, 20 * 1024)

    said = process(
        *(*run_of(bash("head -c 100000 /dev/zero | tr '\\0' x"), "Never said."), "--log", log),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )

    assert (said.code, said.out) == (1, "")
    assert [line for line in said.err.splitlines() if line.startswith("bpagent: ")] == [
        f"bpagent: the run broke off: cannot write the log {log}: File too large"
    ]
    assert command("replay", log).code == 0
    assert command("resume", log).out == "Never said.\n"  # when there is room again


@pytest.mark.slow
def test_a_driving_program_sees_pieces_as_they_come_but_for_secrets(run_of: RunOf, command: Command, log: Path) -> None:
    words = run_of({"reasoning": "I could look.", **bash("echo seen")}, "Done.")
    driven = (*words, "--json", "--partials", "--log", log)

    masked = command(*driven, "--secret", "HOME")
    said = command(*driven)

    assert (masked.code, "a secret in two pieces could not be masked" in masked.err) == (2, True)
    told = [json.loads(line) for line in said.out.splitlines()]
    assert [each for each in told if "partial" not in each] == records(log)
    texts = dict.fromkeys(("text", "output", "reasoning", "arguments"), "")
    for piece in (each for each in told if "partial" in each):
        texts[piece["partial"]] += piece["text"]
    assert json.loads(texts.pop("arguments")) == {"command": "echo seen"}
    assert texts == {"text": "Done.", "output": "seen\n", "reasoning": "I could look."}


def test_lanes_draw_what_each_b_thread_does(run_of: RunOf, command: Command) -> None:

    said = command(*run_of(bash("echo hi"), bash("rm -rf /usr"), "Done."), "--lanes")

    rows = said.err.splitlines()
    assert said.out == "Done.\n"
    lane = next(row.index("╷") for row in rows if row.endswith("╷ by_constitution"))
    refused = next(row for row in rows if "would delete /usr" in row)
    assert refused[lane] == "✕"
    assert [row.split()[-2:] for row in rows if "tool_started" in row] == [["tool_started", "call_1"]]
