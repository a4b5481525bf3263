"""`bpagent chat`: prompts, answers, steering and stopping in one conversation, on a terminal and on a pipe."""

import json
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, OnTerminal, RunOf, Script, SlowTool, Terminal, bash, records

pytestmark = pytest.mark.slow


def said(log: Path, name: str) -> list[str]:
    return [record["data"].get("text", "") for record in records(log) if record["name"] == name]


@pytest.fixture
def chat(on_terminal: OnTerminal, script: Script, workspace: Path, log: Path) -> OnTerminal:
    """`chat(step, ...)`: a conversation on a terminal."""

    def begin(*steps: object) -> Terminal:
        return on_terminal("chat", "--model", script(*steps), "--workspace", workspace, "--log", log)

    return begin


def test_between_runs_an_empty_line_asks_for_nothing_and_stop_is_a_word(chat: OnTerminal, log: Path) -> None:
    terminal = chat("First.", "Second.")
    terminal.rest()
    terminal.talk("do the first\n", 1)
    terminal.talk("\nHow do I stop it?\n", "agent    Second.", 2)

    assert terminal.end("/quit\n") == 0
    assert "agent    First." in terminal.screen
    assert said(log, "prompt_given") == ["do the first", "How do I stop it?"]


def test_ctrl_c_leaves_the_search_in_the_history_and_not_the_conversation(chat: OnTerminal, log: Path) -> None:
    terminal = chat("First.", "Second.")
    terminal.rest()
    terminal.talk("do the first\r", 1)
    terminal.talk("\x12fir", "I-search backward: fir")
    terminal.type("\x03")
    terminal.talk("do more\r", 2)

    assert terminal.end("/quit\r") == 0
    assert said(log, "prompt_given") == ["do the first", "do more"]


def test_slash_commands_describe_the_conversation_and_are_not_prompts(
    chat: OnTerminal, log: Path, slow_tool: SlowTool
) -> None:
    told = {
        "/hlep": "there is no /hlep; did you mean '/help'?",
        "/modle other": "there is no /modle; did you mean '/model'?",
        "/stop it now": "/stop stands alone on its line",
        "/help": "/cost      turns, calls, tokens and cost so far",
        "/model": "model script",
        "/tools": "bash, read",
        "/why": "nothing was refused yet",
        "/show": "no tool has run yet",
        "/stop": "nothing is under way",
        "/undo": "there is nothing to undo",
    }
    terminal = chat(bash("rm -rf /"), bash(slow_tool.command), "Done.")
    terminal.rest()
    for typed, answer in told.items():
        terminal.talk(f"{typed}\r", answer, 0)
    terminal.type("/tmp holds what?\r")
    slow_tool.wait_for_start()
    terminal.talk("/why\r", "more: bpagent why")
    terminal.talk("/cost\r", "2 turns, 1 call")
    terminal.talk("/quit\r", "the conversation ends with this run")

    assert terminal.end("/abort\r") == 0
    assert "abort    everything ends now" in terminal.screen
    assert said(log, "prompt_given") == ["/tmp holds what?"]
    assert said(log, "steering_given") == []


def test_a_task_of_several_lines_is_pasted_as_one_and_found_again_in_the_next_conversation(
    chat: OnTerminal, on_terminal: OnTerminal, script: Script, log: Path, tmp_path: Path
) -> None:
    terminal = chat("First.", "Second.")
    terminal.rest()
    terminal.talk("\x1b[200~one\nyes\nthree\x1b[201~\r", 1)
    terminal.talk("a\x1b\rb\r", 2)  # Alt-Enter begins another line
    assert terminal.end("/quit\r") == 0
    assert said(log, "prompt_given") == ["one\nyes\nthree", "a\nb"]

    again = on_terminal("chat", "--model", script("Third."), "--log", tmp_path / "second.jsonl")
    again.rest()
    again.talk("\x12one\x03", 0)  # Ctrl-R searches, Ctrl-C ends that
    again.talk("exit\r", "/quit leaves; so does Ctrl-D")
    again.talk("\x03", "another Ctrl-C leaves; so do Ctrl-D and /quit")
    again.talk("\x12thr\r\r", 1)

    assert again.end("\x04") == 0
    assert said(tmp_path / "second.jsonl", "prompt_given") == ["one\nyes\nthree"]


def test_commands_and_files_are_completed(
    on_terminal: OnTerminal, script: Script, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("sesame")
    monkeypatch.chdir(tmp_path)
    terminal = on_terminal("chat", "--model", script("First."), "--log", log)
    terminal.rest()
    terminal.talk("/too", "what the model may call")
    terminal.talk("\t", "you > /tools")
    terminal.talk("\r", "bash, read")
    terminal.talk("What does @note", "notes.txt")
    terminal.talk("\t", "you > What does @notes.txt")
    terminal.talk(" say?\r", 1)
    terminal.talk("/undo\r", "system   undone: What does @notes.txt say?\n", 1)

    assert terminal.end("\x04") == 0
    assert said(log, "prompt_given") == ['What does @notes.txt say?\n\n<file path="notes.txt">\nsesame\n</file>']


def test_another_model_goes_on_with_the_conversation_and_a_task_is_undone(
    chat: OnTerminal, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text('steps: ["From another one."]')
    terminal = chat("First.", "Second.")
    terminal.rest()
    terminal.talk("do the first\r", 1)
    terminal.talk("/model nonsense:\r", "nonsense")
    terminal.talk(f"/model script:{tmp_path / 'other.yaml'}\r", "model other, preset", 1)
    terminal.talk("and then\r", 2)
    assert "agent    From another one." in terminal.screen
    terminal.talk("/undo\r", "undone: and then", 2)

    assert terminal.end("/quit\r") == 0
    other, undone = sorted(tmp_path.glob("log-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    prompts = [said(path, "prompt_given") for path in (log, other, undone)]
    assert prompts == [["do the first"], ["do the first", "and then"], ["do the first"]]
    headers = [json.loads(path.read_text().splitlines()[0]) for path in (log, other, undone)]
    assert [header["model"] for header in headers] == ["script", "other", "other"]
    assert headers[1]["about"]["model"] == f"script:{tmp_path / 'other.yaml'}"


def test_stop_and_ctrl_c_end_the_run_and_not_the_conversation(chat: OnTerminal, log: Path, slow_tool: SlowTool) -> None:
    terminal = chat(bash(slow_tool.command), bash(slow_tool.command), "Here I am.")
    terminal.rest()
    terminal.type("go\n")
    slow_tool.wait_for_start()
    terminal.talk("stop\n", "stop     what runs finishes")
    slow_tool.let_finish()
    terminal.rest(1)
    terminal.type("again\n")
    slow_tool.wait_for_start()
    terminal.talk("\x03", 2)
    terminal.talk("still there?\n", "agent    Here I am.", 3)

    assert terminal.end("\x03\x03") == 130
    ended = [record["data"]["status"] for record in records(log) if record["name"] == "run_ended"]
    assert ended == ["stopped", "aborted", "completed"]


def test_a_continued_conversation_has_its_earlier_messages(
    chat: OnTerminal, on_terminal: OnTerminal, script: Script, log: Path
) -> None:
    terminal = chat("First.")
    terminal.talk("do the first\n", 1)  # before it is asked for
    assert terminal.end("/quit\n") == 0
    assert f"bpagentchat--continue{log}continues" in "".join(terminal.screen.split())  # however long the path is

    again = on_terminal("chat", "--continue", log, "--model", script("Second."), NO_COLOR="1")
    again.wait_for("agent    First.")
    again.rest()
    again.talk("and then\n", "agent    Second.", "completed (answered) after 2 turns")

    assert again.end("/quit\n") == 0
    assert said(log, "prompt_given") == ["do the first", "and then"]


def test_an_interrupted_run_goes_on_when_its_conversation_is_continued(
    run_of: RunOf, command: Command, process: Command, log: Path
) -> None:
    command(*run_of(bash("echo hi"), "Done.", "And more."), "--log", log)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[: next(n for n, line in enumerate(lines) if "tool_finished" in line) + 1]))

    answered = process("chat", "--continue", log, input="more\n")

    assert (answered.code, answered.out) == (0, "Done.\nAnd more.\n")
    assert command("replay", log).code == 0


def test_a_pipe_does_not_answer_a_pending_question(
    command: Command, process: Command, run_of: RunOf, log: Path
) -> None:
    assert command(*run_of(bash("touch .git/config"), "Done."), "--approvals", "later", "--log", log).code == 5
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


def test_on_a_pipe_an_answer_is_not_told_again_when_the_next_run_fails(
    process: Command, script: Script, workspace: Path, log: Path
) -> None:
    words = ("--model", script("First."), "--workspace", workspace, "--log", log)
    chat = process("chat", *words, input="one\ntwo\n")

    assert chat.out == "First.\n"
    assert "failed (inference_failed)" in chat.err
    assert "First." not in chat.err


def test_output_is_printed_above_the_line_being_typed(chat: OnTerminal, slow_tool: SlowTool) -> None:
    terminal = chat(bash(f"echo first; {slow_tool.command}", say="I **look**."), "All of it is done.")
    terminal.rest()
    terminal.type("go\r")
    slow_tool.wait_for_start()
    terminal.talk("please also", "> please also", "│ first", "turn 1 · bash (")
    lines = terminal.screen.splitlines()
    assert lines[-1] == "> please also"
    assert lines[-3].strip() == "│ first"
    slow_tool.let_finish()
    terminal.wait_for("you > please also")

    assert terminal.end("\x15/quit\r") == 0
    assert terminal.screen.count("All of it is done.") == 1
    assert terminal.screen.count("agent    I look.") == 1
    assert "turn 1 · bash (" not in terminal.screen
