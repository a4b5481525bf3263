"""The command on a terminal: questions, `stop`, colors, Ctrl-C (S1 6.3, 8.1, 8.3, 8.4).

Most of it is tried where nothing moves (TERM=dumb), and the line editor where it does.
"""

import re
from pathlib import Path

import pytest

from tests.agent.cli.sessions import OnTerminal, RunOf, SlowTool, Terminal, answers_in, bash, records

pytestmark = pytest.mark.slow
RISKY = "touch .git/config; echo ran > ran.txt"
QUESTION = f"Approve command: {RISKY}? (yes/no)"


@pytest.fixture
def asked(run_of: RunOf, on_terminal: OnTerminal) -> Terminal:
    """A run that asks whether a command may run."""
    terminal = on_terminal(*run_of(bash(RISKY), "Done."), TERM="dumb")
    terminal.wait_for(QUESTION)
    return terminal


def test_no_with_a_reason_tells_the_model_the_reason(
    run_of: RunOf, on_terminal: OnTerminal, workspace: Path, log: Path
) -> None:
    terminal = on_terminal(*run_of(bash(RISKY), "Done."), "--log", log, TERM="dumb")
    terminal.wait_for(QUESTION)

    assert terminal.end("no, use git stash instead\n") == 0
    assert "not approved: use git stash instead" in terminal.screen
    (told,) = answers_in(log)
    assert told.startswith("rejected: ")
    assert "use git stash instead" in told
    assert not (workspace / "ran.txt").exists()


def test_ctrl_c_at_a_question_aborts_the_run(asked: Terminal, workspace: Path) -> None:
    asked.type("perhaps\n")
    asked.wait_for(QUESTION, times=2)
    assert asked.screen.count("also: always; no, REASON for the model") == 2  # with the question, and with the help

    assert asked.end("\x03") == 130
    assert not (workspace / "ran.txt").exists()


def test_a_line_from_before_the_question_does_not_answer_it(
    run_of: RunOf, on_terminal: OnTerminal, workspace: Path, slow_tool: SlowTool
) -> None:
    terminal = on_terminal(*run_of(bash(slow_tool.command), bash(RISKY), "Done."), TERM="dumb")
    slow_tool.wait_for_start()
    terminal.talk("yes\nplease go on\n", "please go on")

    slow_tool.let_finish()
    terminal.wait_for(QUESTION)

    assert terminal.end("no\n") == 0
    assert not (workspace / "ran.txt").exists()


def test_a_command_cannot_hide_a_part_of_itself(run_of: RunOf, on_terminal: OnTerminal) -> None:
    hidden = "touch .git/config\x1b[2K\r\nls \u202e"
    terminal = on_terminal(*run_of(bash(hidden)), TERM="dumb")

    terminal.wait_for("Approve command: touch .git/config\\x1b[2K\\r\\nls \\u202e? (yes/no)")
    terminal.type("no\n")
    terminal.end()

    assert "\x1b" not in terminal.raw


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_has_colors_which_can_be_left_out(
    run_of: RunOf, variables: dict[str, str], on_terminal: OnTerminal
) -> None:
    terminal = on_terminal(*run_of(bash("rm -rf /no/such/folder"), "Done."), **variables)

    assert terminal.end() == 0
    assert ("\x1b[1;31mrefused" in terminal.raw) == (variables == {})
    assert "agent    Done." in terminal.screen  # it streams all the same
    if variables:
        assert set(re.findall(r"\x1b\[([0-9;]*)m", terminal.raw)) <= {"0", "0;1", "0;7"}


def test_questions_stay_out_of_standard_output(run_of: RunOf, on_terminal: OnTerminal) -> None:
    terminal = on_terminal(*run_of(bash(RISKY), "Done."), out="pipe")
    terminal.wait_for("(yes/no)")

    assert terminal.end("no\n") == 0
    assert terminal.out() == "Done.\n"


# The line editor.


MINE = "touch .git/config; echo mine > mine.txt"
KEYS = "[y/n] [a]lways [e]dit [w]hy >"
BEGUN = "(Enter sends, Esc goes back) >"


@pytest.fixture
def edited(run_of: RunOf, on_terminal: OnTerminal, tmp_path: Path) -> Terminal:
    """A run with a question, where a key is an answer."""
    terminal = on_terminal(*run_of(bash(RISKY), bash(MINE), "Done."), "--log", tmp_path / "log.jsonl")
    terminal.wait_for(KEYS)
    return terminal


def test_a_key_answers_a_question_and_the_rest_of_the_word_is_not_typed(edited: Terminal, workspace: Path) -> None:
    edited.talk("w", "rule write (destruction): ")
    edited.talk("yes\r", f"Approve command: {MINE}? (yes/no)", KEYS)
    edited.talk("n", f"{BEGUN} no,")

    assert edited.end("only in src\r") == 0
    assert (workspace / "ran.txt").exists()
    assert "not approved: only in src" in edited.screen


@pytest.mark.parametrize("typed", [("e", f"\x15{MINE}\r"), ("e", "dit ", f"{MINE}\r")], ids=["key", "word"])
def test_a_command_is_edited_and_runs_when_the_model_proposes_it(
    edited: Terminal, workspace: Path, typed: tuple[str, ...]
) -> None:
    first, *others = typed
    edited.type(first)
    if len(others) == 1:
        edited.wait_for(f"{BEGUN} edit {RISKY}")
    for more in others:
        edited.type(more)

    assert edited.end() == 0
    assert f"not approved: run exactly this instead: {MINE}" in edited.screen
    assert "yes, as you wrote it" in edited.screen
    assert not (workspace / "ran.txt").exists()
    assert (workspace / "mine.txt").exists()


def yes_runs_the_command(edited: Terminal, workspace: Path) -> None:
    edited.talk("y", f"Approve command: {MINE}? (yes/no)")

    assert edited.end("no\r") == 0
    assert (workspace / "ran.txt").exists()


@pytest.mark.parametrize("back", ["\x1b", "\x7f" * (len(RISKY) + 1)], ids=["escape", "backspace"])
def test_escape_takes_back_an_answer_begun_with_a_key(edited: Terminal, workspace: Path, back: str) -> None:
    edited.talk("e", f"{BEGUN} edit {RISKY}")
    edited.talk(back, KEYS)
    assert BEGUN not in edited.screen
    yes_runs_the_command(edited, workspace)


def test_keys_are_shown_only_while_they_work(edited: Terminal, workspace: Path) -> None:
    edited.talk("w", "rule write (destruction): ")
    shown = edited.raw.rindex("rule write")
    edited.talk("x", "> x")  # no key, so a text begins
    assert "[y/n]" not in edited.raw[shown:]
    edited.talk("\x7f", KEYS)
    yes_runs_the_command(edited, workspace)


def test_lanes_leave_no_output_of_a_call_that_has_ended(run_of: RunOf, on_terminal: OnTerminal) -> None:
    terminal = on_terminal(*run_of(bash("echo sesame"), bash(RISKY), "Done."), "--lanes")
    terminal.wait_for(KEYS)

    assert "│ sesame\n> " not in terminal.screen
    assert terminal.screen.count("sesame") == 2  # the command, and its result in the lanes
    assert terminal.end("y") == 0


def test_only_a_command_can_be_edited(run_of: RunOf, on_terminal: OnTerminal) -> None:
    write = {"call": {"tool": "write_file", "arguments": {"path": ".git/config", "content": "[core]"}}}
    terminal = on_terminal(*run_of(write, "Done."))
    terminal.wait_for(KEYS.replace("[e]dit ", ""))
    terminal.type("e")

    assert terminal.end("\x15no\r") == 0
    assert "you      no\n" in terminal.screen


def test_typed_words_answer_questions_and_are_not_saved(edited: Terminal, workspace: Path, home: Path) -> None:
    edited.talk("YES\r", "done in")
    edited.wait_for("(yes/no)", times=2)
    edited.wait_for(KEYS)

    assert edited.end("no, never\r") == 0
    assert "you      no, never\n" in edited.screen
    assert (workspace / "ran.txt").exists()
    assert (home / ".bpagent" / "history").read_text() == ""


def test_a_line_steers_a_run_as_it_does_a_conversation(
    run_of: RunOf, on_terminal: OnTerminal, log: Path, slow_tool: SlowTool
) -> None:
    terminal = on_terminal(*run_of(bash(slow_tool.command), "As you wish."), "--log", log)
    slow_tool.wait_for_start()
    terminal.talk("use port 8080 please\r", "heard: the model reads it before it goes on")
    terminal.talk("/undo\r", "/undo is for bpagent chat")
    slow_tool.let_finish()

    assert terminal.end() == 0
    steered = [record["data"]["text"] for record in records(log) if record["name"] == "steering_given"]
    assert steered == ["use port 8080 please"]


def test_a_terminal_that_is_made_narrow_has_narrow_lines(
    run_of: RunOf, on_terminal: OnTerminal, slow_tool: SlowTool
) -> None:
    terminal = on_terminal(*run_of(bash(slow_tool.command, say="Ein langer Satz, der umgebrochen wird. " * 3), "Done."))
    slow_tool.wait_for_start()
    terminal.wait_for("turn 1 · bash")
    terminal.resize(40)
    slow_tool.let_finish()

    assert terminal.end() == 0
    last = terminal.screen.split("finished")[1].splitlines()
    assert max(map(len, last)) == 40
    assert last[2] == f"── turn 2 {'─' * 30}"


def test_a_second_stop_ends_a_call_that_never_finishes(
    run_of: RunOf, on_terminal: OnTerminal, log: Path, slow_tool: SlowTool
) -> None:
    terminal = on_terminal(*run_of(bash(slow_tool.command), "Never said."), "--log", log)
    slow_tool.wait_for_start()
    terminal.talk("/stop\r", "another stop ends it now")

    assert terminal.end("stop\r") == 130
    assert records(log)[-1]["data"]["status"] == "aborted"
