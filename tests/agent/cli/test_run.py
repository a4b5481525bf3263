"""`bpagent run`: what goes where, how it ends, and what the log holds."""

import json
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.log.reading import read_log
from tests.agent.cli.sessions import NOTHING_TODAY, PATIENCE, Command, SlowTool, bash, records

Start = Callable[..., "subprocess.Popen[str]"]
Script = Callable[..., str]


@pytest.mark.slow
def test_standard_output_is_the_final_text_and_nothing_else(
    process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    model = script(bash("echo from the tool", say="I look."), "All is well.\nReally.")

    said = process("run", "go", "--model", model, "--workspace", workspace, "--log", tmp_path / "log.jsonl")

    assert (said.code, said.out) == (0, "All is well.\nReally.\n")
    assert "from the tool" in said.err
    assert "All is well" not in said.err


@pytest.mark.slow
def test_progress_tells_turn_agent_action_output_and_refusal_apart(
    process: Command, script: Script, workspace: Path
) -> None:
    """S1 8.2 and 8.4."""
    model = script(bash("echo from the tool", say="I look."), bash("rm -rf /no/such/folder"), "Done.")

    said = process("run", "go", "--model", model, "--workspace", workspace)

    lines = [line for line in said.err.splitlines() if "done in" not in line]
    turn_1, turn_2 = (next(n for n, line in enumerate(lines) if line.startswith(f"── turn {turn} ─")) for turn in "12")
    assert lines[turn_1 + 1 : turn_2] == [
        "agent    I look.",
        "action   echo from the tool",
        "         │ from the tool",
    ]
    assert lines[turn_2 + 1] == "action   rm -rf /no/such/folder"
    assert lines[turn_2 + 2].startswith("refused  by b-thread by_constitution: rm would delete /no/such/folder")
    assert lines[-1] == "system   completed (answered) after 3 turns, 1 call"


def test_with_json_standard_output_is_the_records_of_the_log(
    process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    model = script(bash("echo hi"), "Done.")

    said = process("run", "go", "--json", "--model", model, "--workspace", workspace, "--log", log)

    assert said.code == 0
    assert [json.loads(line) for line in said.out.splitlines()] == records(log)


def test_the_log_has_the_fields_that_others_rely_on(
    process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    model = script({"calls": [{"tool": "bash", "id": "mine", "arguments": {"command": "ls"}}]}, "Done.")

    process("run", "go", "--model", model, "--workspace", workspace, "--log", log)

    header = json.loads(log.read_text().splitlines()[0])
    by_name = {record["name"]: record for record in records(log)}
    assert "name" not in header
    assert all({"step", "super_step", "name", "data", "origin"} <= set(record) for record in records(log))
    assert by_name["proposed_action"]["data"]["call"]["arguments"] == {"command": "ls"}
    assert {by_name[name]["data"]["call"] for name in ("gate_approved", "tool_started", "call_answered")} == {"mine"}
    assert by_name["tool_finished"]["data"]["is_error"] is False
    ended = by_name["run_ended"]["data"]
    assert (ended["status"], ended["reason"], ended["text"]) == ("completed", "answered", "Done.")
    assert records(log)[-1]["name"] == "run_ended"
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_without_a_log_file_the_log_goes_into_our_folder_and_the_screen_says_where(
    process: Command, script: Script, workspace: Path, home: Path
) -> None:
    said = process("run", "go", "--model", script("Done."), "--workspace", workspace)

    (log,) = (home / ".bpagent" / "runs").iterdir()
    assert str(log) in said.err
    assert read_log(log).records[-1]["name"] == "run_ended"


@pytest.mark.slow
def test_a_limit_is_3_and_its_text_the_final_text(process: Command, script: Script, workspace: Path) -> None:
    model = script(bash("echo hi"), "Never said.")

    said = process("run", "go", "--option", "max_iterations=1", "--model", model, "--workspace", workspace)

    assert (said.code, said.out) == (3, "Stopped: maximum iteration limit reached.\n")


def test_a_failed_run_is_1_and_says_why_on_standard_error_only(
    process: Command, script: Script, workspace: Path
) -> None:
    said = process("run", "go", "--model", script(bash("echo hi")), "--workspace", workspace)

    assert (said.code, said.out) == (1, "")
    assert "error    the script of 1 steps is used up" in said.err


def test_stop_on_a_pipe_stops_after_what_runs(
    start: Start, script: Script, workspace: Path, slow_tool: SlowTool
) -> None:
    """The word alone in its line, in any case; a sentence that contains it does not count."""
    model = script(bash(slow_tool.command), "Never said.")
    running = start("run", "go", "--model", model, "--workspace", workspace, stdin=subprocess.PIPE)
    assert running.stdin is not None
    assert running.stderr is not None
    slow_tool.wait_for_start()

    running.stdin.write("please do not stop at the first error\nSTOP\n")
    running.stdin.flush()
    while "stop: what runs finishes" not in running.stderr.readline():
        pass
    slow_tool.let_finish()
    out, rest = running.communicate(timeout=PATIENCE)

    assert "│ finished" in rest
    assert (running.returncode, out) == (4, "Stopped at the user's request.\n")


def test_a_word_that_only_contains_stop_stops_nothing(process: Command, script: Script, workspace: Path) -> None:
    said = process("run", "go", "--model", script("Done."), "--workspace", workspace, input="unstoppable\n")

    assert (said.code, said.out) == (0, "Done.\n")


def test_nobody_at_a_terminal_means_no(process: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    """A pipe is heard for "stop", but nobody answers questions there."""
    log = tmp_path / "log.jsonl"
    model = script(bash("git reset --hard"), "Done.")

    said = process("run", "go", "--model", model, "--workspace", workspace, "--log", log, input="yes\n")

    (answer,) = [record["data"] for record in records(log) if record["name"] == "call_answered"]
    assert said.code == 0
    assert answer["result"].startswith("denied: no person present")
    assert "not approved: no user is present to ask" in said.err
    assert "Approve command" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize("stdin", ["/dev/null", "a file"])
def test_standard_input_that_nobody_types_on_is_left_alone(
    stdin: str, process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "stdin.txt").write_text("stop\n")

    with (tmp_path / "stdin.txt" if stdin == "a file" else Path(stdin)).open() as file:
        said = process("run", "go", "--model", script("Done."), "--workspace", workspace, stdin=file)

    assert (said.code, said.out) == (0, "Done.\n")


@pytest.mark.slow
@pytest.mark.parametrize("streams", [(0,), (2,), (0, 1, 2)])
def test_streams_may_be_closed(
    streams: tuple[int, ...], process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    """As with `bpagent run ... 2>&-`."""
    log = tmp_path / "log.jsonl"

    def close() -> None:
        for stream in streams:
            os.close(stream)

    arguments = ("--model", script(bash("ls"), "Done."), "--workspace", workspace, "--log", log)
    said = process("run", "go", *arguments, preexec_fn=close)

    assert (said.code, said.out) == (0, "" if 1 in streams else "Done.\n")
    assert records(log)[-1]["data"]["status"] == "completed"


def test_a_protocol_from_a_file_takes_part(process: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)
    rule = f"{tmp_path / 'rules.py'}:nothing_today"

    said = process("run", "x", "--model", script(bash("ls"), "Done."), "--workspace", workspace, "--protocol", rule)

    assert said.code == 0
    assert "refused  by b-thread nothing_today: it is a holiday" in said.err


@pytest.mark.slow
def test_a_b_thread_that_raises_is_named_and_nothing_is_lost(
    process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log, rule = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rule.write_text(
        "from agent.events import ToolFinished\n"
        "from bp import bthread, sync\n\n\n"
        "@bthread\n"
        "def fragile():\n"
        "    yield sync(wait_for=ToolFinished)\n"
        "    raise RuntimeError('it broke')\n"
    )
    arguments = ("--model", script(bash("ls")), "--workspace", workspace, "--log", log, "--protocol", f"{rule}:fragile")

    said = process("run", "go", "--json", *arguments)

    assert said.code == 1
    assert "b-thread 'fragile' failed" in said.err
    assert "Traceback" not in said.err
    assert records(log)[-1]["data"]["reason"] == "engine_error"
    assert [json.loads(line) for line in said.out.splitlines()] == records(log)


@pytest.mark.slow
def test_the_workspace_preset_and_its_options_are_used(process: Command, script: Script, workspace: Path) -> None:
    model = script(bash("sleep 5"), "Done.")

    arguments = ("--preset", "workspace", "--option", "timeout=0.2")
    said = process("run", "go", "--model", model, "--workspace", workspace, *arguments)

    assert said.code == 0
    assert "timed out after 0.2 seconds" in said.err


def test_text_that_could_fake_the_screen_is_shown_escaped(process: Command, script: Script, workspace: Path) -> None:
    model = script(bash("printf '\\033[2Jgone'", say="\x1b[2J\u202eevil"), "Done.")

    said = process("run", "go", "--model", model, "--workspace", workspace)

    assert "agent    \\x1b[2J\\u202eevil" in said.err
    assert "│ \\x1b[2Jgone" in said.err


def test_a_reader_that_leaves_early_breaks_nothing(
    start: Start, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    model = script(bash("ls"), "Done.")
    started = start("run", "go", "--json", "--model", model, "--workspace", workspace, "--log", log)
    assert started.stdout is not None
    started.stdout.close()

    _, err = started.communicate(timeout=PATIENCE)

    assert "Traceback" not in err
    assert "Exception" not in err
    assert started.returncode == 1


def test_a_screen_that_is_gone_ends_no_run(start: Start, script: Script, workspace: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    started = start("run", "go", "--model", script(bash("ls"), "Done."), "--workspace", workspace, "--log", log)
    assert started.stderr is not None
    started.stderr.close()

    out, _ = started.communicate(timeout=PATIENCE)

    assert (started.returncode, out) == (0, "Done.\n")
    assert records(log)[-1]["data"]["status"] == "completed"


@pytest.mark.slow
def test_a_disk_that_gets_full_ends_the_run_in_one_sentence_and_keeps_what_was_written(
    process: Command, command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    model = script(bash("head -c 100000 /dev/zero | tr '\\0' x"), "Never said.")
    limit = (20 * 1024, 20 * 1024)

    said = process(
        *("run", "go", "--model", model, "--workspace", workspace, "--log", log),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )

    assert (said.code, said.out) == (1, "")
    assert [line for line in said.err.splitlines() if line.startswith("bpagent: ")] == [
        f"bpagent: the run broke off: cannot write the log {log}: File too large"
    ]
    assert command("replay", log).code == 0
    assert command("resume", log).out == "Never said.\n"  # when there is room again


def test_a_driving_program_sees_pieces_as_they_come(
    command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    model = script({"reasoning": "I could look.", **bash("echo seen")}, "Done.")

    said = command("run", "go", "--json", "--partials", "--model", model, "--workspace", workspace, "--log", log)

    told = [json.loads(line) for line in said.out.splitlines()]
    assert [each for each in told if "partial" not in each] == records(log)
    pieces = [each for each in told if "partial" in each]
    assert "".join(piece["text"] for piece in pieces if piece["partial"] == "text") == "Done."
    assert "".join(piece["text"] for piece in pieces if piece["partial"] == "output") == "seen\n"
    assert "".join(piece["text"] for piece in pieces if piece["partial"] == "reasoning") == "I could look."
    arguments = [piece for piece in pieces if piece["partial"] == "arguments"]
    assert json.loads("".join(piece["text"] for piece in arguments)) == {"command": "echo seen"}
    assert {(piece["number"], piece["tool"]) for piece in arguments} == {(1, "bash")}


def test_pieces_are_not_told_where_a_secret_has_to_be_masked(command: Command, script: Script) -> None:
    said = command("run", "go", "--json", "--partials", "--secret", "HOME", "--model", script("Done."))

    assert said.code == 2
    assert "a secret in two pieces could not be masked" in said.err


@pytest.mark.slow
def test_lanes_draw_what_each_b_thread_does(process: Command, script: Callable[..., str], workspace: Path) -> None:
    model = script(bash("echo hi"), bash("rm -rf /usr"), "Done.")

    said = process("run", "go", "--model", model, "--workspace", workspace, "--lanes")

    rows = said.err.splitlines()
    assert said.out == "Done.\n"
    lane = next(row.index("╷") for row in rows if row.endswith("╷ by_constitution"))
    refused = next(row for row in rows if "would delete /usr" in row)
    assert refused[lane] == "✕"
    assert [row.split()[-2:] for row in rows if "tool_started" in row] == [["tool_started", "call_1"]]
