"""`bpagent chat`: prompts, answers, steering and stopping in one conversation, on a terminal and on a pipe."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, SlowTool, Terminal, bash, records

OnTerminal = Callable[..., Terminal]
Script = Callable[..., str]
PROMPT = "you >"


def said(log: Path, name: str) -> list[str]:
    return [record["data"].get("text", "") for record in records(log) if record["name"] == name]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def chat(on_terminal: OnTerminal, script: Script, workspace: Path, log: Path) -> Callable[..., Terminal]:
    """`chat(step, ...)`: a conversation on a terminal without colors."""

    def begin(*steps: object, **variables: str) -> Terminal:
        where = ("--workspace", workspace, "--log", log)
        return on_terminal("chat", "--model", script(*steps), *where, **(variables or {"NO_COLOR": "1"}))

    return begin


def test_one_task_after_the_other_in_one_conversation(chat: Callable[..., Terminal], log: Path) -> None:
    terminal = chat("First.", "Second.")
    terminal.wait_for(PROMPT)
    terminal.type("do the first\n")
    terminal.wait_for(PROMPT, times=2)
    terminal.type("\nHow do I stop it?\n")  # an empty line asks for nothing; between runs, stop is a word
    terminal.wait_for("agent    Second.")
    terminal.wait_for(PROMPT, times=3)
    terminal.type("/quit\n")

    assert terminal.end() == 0
    assert "agent    First." in terminal.screen
    assert said(log, "prompt_given") == ["do the first", "How do I stop it?"]


def test_words_that_look_like_commands_are_told_what_there_is(
    chat: Callable[..., Terminal], log: Path, slow_tool: SlowTool
) -> None:
    terminal = chat(bash(slow_tool.command), "Done.")
    terminal.wait_for(PROMPT)
    terminal.type("/hlep\n")
    terminal.wait_for("there is no /hlep; did you mean '/help'?")
    terminal.wait_for(PROMPT, times=2)
    terminal.type("/etc/hosts is what?\n")
    slow_tool.wait_for_start()
    terminal.type("/undo\n")
    terminal.wait_for("there is no /undo; ")
    slow_tool.let_finish()
    terminal.wait_for(PROMPT, times=3)
    terminal.type("\x04")

    assert terminal.end() == 0
    assert said(log, "prompt_given") == ["/etc/hosts is what?"]
    assert said(log, "steering_given") == []


def test_commands_tell_about_the_conversation_and_are_no_prompts(
    chat: Callable[..., Terminal], log: Path, workspace: Path
) -> None:
    terminal = chat(bash("rm -rf /"), "Done.")
    terminal.wait_for(PROMPT)
    for number, (typed, told) in enumerate(
        {
            "/help": "/cost      turns, calls, tokens and cost so far",
            "/model": "model script",
            "/tools": "bash, read_file",
            "/why": "nothing was refused yet",
            "/stop": "nothing is under way",
        }.items(),
        start=2,
    ):
        terminal.type(f"{typed}\n")
        terminal.wait_for(told)
        terminal.wait_for(PROMPT, times=number)
    terminal.type("go\n")
    terminal.wait_for(PROMPT, times=7)
    terminal.type("/why\n")
    terminal.wait_for("more: bpagent why")
    terminal.wait_for(PROMPT, times=8)
    terminal.type("/cost\n")
    terminal.wait_for("2 turns, 0 calls")
    terminal.wait_for(PROMPT, times=9)
    terminal.type("/quit\n")

    assert terminal.end() == 0
    assert said(log, "prompt_given") == ["go"]


def test_commands_are_heard_while_the_agent_works(
    chat: Callable[..., Terminal], log: Path, slow_tool: SlowTool
) -> None:
    terminal = chat(bash(slow_tool.command), "Never said.")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.type("/cost\n")
    terminal.wait_for("1 turn, 1 call")
    terminal.type("/quit\n")
    terminal.wait_for("the conversation ends with this run")
    terminal.type("/abort\n")

    assert terminal.end() == 0
    assert "abort: everything ends now" in terminal.screen
    assert said(log, "steering_given") == []


def test_a_line_typed_too_early_is_shown_where_it_belongs_and_the_end_says_how_to_go_on(
    chat: Callable[..., Terminal], log: Path
) -> None:
    terminal = chat("First.")
    terminal.type("one\n")
    terminal.wait_for(PROMPT)
    terminal.type("\x04")

    assert terminal.end() == 0
    assert "you      one\n── turn 1 ─" in terminal.screen.replace("\r", "")
    assert f"bpagent chat --continue {log} goes" in " ".join(terminal.screen.split())
    assert said(log, "prompt_given") == ["one"]


def test_a_question_is_answered_in_between(chat: Callable[..., Terminal], workspace: Path) -> None:
    terminal = chat(bash("git reset --hard; touch ran.txt"), "Done.")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    terminal.wait_for("? (yes/no) ")
    terminal.type("yes\n")
    terminal.wait_for(PROMPT, times=2)
    terminal.type("\x04")

    assert terminal.end() == 0
    assert (workspace / "ran.txt").exists()


def test_a_line_while_it_works_steers_it(chat: Callable[..., Terminal], log: Path, slow_tool: SlowTool) -> None:
    terminal = chat(bash(slow_tool.command), "As you wish.", "Done.")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.type("rather that\n")
    terminal.wait_for("heard: the model reads it before it goes on")
    slow_tool.let_finish()
    terminal.wait_for(PROMPT, times=2)
    terminal.type("/quit\n")

    assert terminal.end() == 0
    assert said(log, "steering_given") == ["rather that"]


def test_stop_and_ctrl_c_end_the_run_and_not_the_conversation(
    chat: Callable[..., Terminal], log: Path, slow_tool: SlowTool
) -> None:
    terminal = chat(bash(slow_tool.command), bash(slow_tool.command), "Here I am.")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.type("stop\n")
    terminal.wait_for("stop: what runs finishes")
    slow_tool.let_finish()
    terminal.wait_for(PROMPT, times=2)
    terminal.type("again\n")
    slow_tool.wait_for_start()
    terminal.type("\x03")
    terminal.wait_for(PROMPT, times=3)
    terminal.type("still there?\n")
    terminal.wait_for("agent    Here I am.")
    terminal.wait_for(PROMPT, times=4)
    terminal.type("\x03")

    assert terminal.end() == 130
    ended = [record["data"]["status"] for record in records(log) if record["name"] == "run_ended"]
    assert ended == ["stopped", "aborted", "completed"]


def test_a_signal_that_ends_processes_ends_it_in_order(
    chat: Callable[..., Terminal], log: Path, slow_tool: SlowTool
) -> None:
    terminal = chat(bash(slow_tool.command), "Never said.")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.process.send_signal(signal.SIGTERM)

    assert terminal.end() == 143
    assert records(log)[-1]["data"]["status"] == "aborted"


def test_a_conversation_is_continued_with_what_was_said(
    chat: Callable[..., Terminal], on_terminal: OnTerminal, script: Script, log: Path
) -> None:
    terminal = chat("First.")
    terminal.wait_for(PROMPT)
    terminal.type("do the first\n")
    terminal.wait_for(PROMPT, times=2)
    terminal.type("/quit\n")
    assert terminal.end() == 0

    again = on_terminal("chat", "--continue", log, "--model", script("Second."), NO_COLOR="1")
    again.wait_for("agent    First.")
    again.wait_for(PROMPT)
    again.type("and then\n")
    again.wait_for("agent    Second.")
    again.type("/quit\n")

    assert again.end() == 0
    assert said(log, "prompt_given") == ["do the first", "and then"]


def test_an_interrupted_run_goes_on_when_its_conversation_is_continued(
    command: Command, process: Command, script: Script, workspace: Path, log: Path
) -> None:
    model = script(bash("echo hi"), "Done.", "And more.")
    command("run", "go", "--model", model, "--workspace", workspace, "--log", log)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[: next(n for n, line in enumerate(lines) if "tool_finished" in line) + 1]))

    answered = process("chat", "--continue", log, input="more\n")

    assert (answered.code, answered.out) == (0, "Done.\nAnd more.\n")
    assert command("replay", log).code == 0


def test_a_question_that_waits_is_not_answered_by_a_pipe(
    command: Command, process: Command, script: Script, workspace: Path, log: Path
) -> None:
    model = script(bash("git reset --hard"), "Done.")
    where = ("--workspace", workspace, "--log", log)
    assert command("run", "go", "--model", model, "--approvals", "later", *where).code == 5
    before = log.read_bytes()

    answered = process("chat", "--continue", log, input="more\n")

    assert (answered.code, answered.out) == (2, "")
    assert "waits for a decision; bpagent resume" in answered.err
    assert log.read_bytes() == before


def test_on_a_pipe_every_line_is_a_prompt_and_output_is_plain(
    process: Command, script: Script, workspace: Path, log: Path
) -> None:
    model = script("One.", "Two.", "Three.")

    answered = process(
        *("chat", "first", "--model", model, "--workspace", workspace, "--log", log), input="please stop\n\nthird"
    )

    assert (answered.code, answered.out) == (0, "One.\nTwo.\nThree.\n")
    assert "\x1b" not in answered.err
    assert said(log, "prompt_given") == ["first", "please stop", "third"]


def test_a_status_line_says_what_goes_on_and_text_comes_as_it_is_written(
    chat: Callable[..., Terminal], slow_tool: SlowTool
) -> None:
    terminal = chat(bash(slow_tool.command, say="I look."), "All of it is done.", TERM="xterm-256color")
    terminal.wait_for(PROMPT)
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.wait_for("turn 1 · bash (")
    slow_tool.let_finish()
    terminal.wait_for(PROMPT, times=2)
    terminal.type("/quit\n")

    assert terminal.end() == 0
    plain = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]|\x1b[78]", "", terminal.screen)
    assert plain.count("All of it is done.") == 1
    assert plain.count("I look.") == 1
