"""What the user says: prompts with files in them, lines as they come, answers to questions, and what stops a run."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.errors import Mistake
from agent.cli.prompt import (
    LONGEST_FILE,
    LONGEST_LINE,
    StandingAnswers,
    can_be_heard,
    hear_lines,
    is_terminal,
    read_answer,
    read_prompt,
    says_stop,
)
from agent.presets.configuration import read_user_rules
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed
from agent.vocabulary.messages import Image, UserMessage
from constitution import DEFAULT, Action, CommandRule, Level
from tests.agent.cli.sessions import Command, OnTerminal, RunOf, Script, bash
from tests.tables import rows

ASKED = "touch .git/config"
QUESTION = f"Approve command: {ASKED}? (yes/no)"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


ANSWERS: dict[str, bool | str | None] = {
    **dict.fromkeys(("yes", "y", "YES", "Y", " Yes \r"), True),
    **dict.fromkeys(("no", "n", "NO", "N", " No ", "no,", "n, ", "No: "), False),
    **dict.fromkeys(("no, use wget", "NO,use wget", "n, use wget", "no: use wget \r"), "use wget"),
    **dict.fromkeys(("", " ", "ye", "yes please", "not", "1", "ok"), None),
}


def test_yes_and_no_in_any_case_are_answers_and_a_no_may_have_a_reason() -> None:
    assert {line: read_answer(line) for line in ANSWERS} == ANSWERS


def test_a_line_that_is_stop_stops_and_one_that_only_contains_it_does_not() -> None:
    stop = ("stop", "STOP", " Stop\r", "/stop", "/STOP ")
    others = ("", "unstoppable", "go on", "please do not stop at the first error", "stop!", "no, stop", "//stop")

    assert [line for line in (*stop, *others) if says_stop(line)] == list(stop)


# Lines as they come.


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)


async def heard(pipe: tuple[int, int], *pieces: bytes) -> list[str]:
    """What is heard of these pieces; "(end)" stands for the end."""
    lines: list[str] = []
    for piece in pieces:
        os.write(pipe[1], piece)
    os.close(pipe[1])
    await hear_lines(lines.append, lambda: lines.append("(end)"), pipe[0])
    return lines


@pytest.mark.anyio
async def test_lines_are_read_without_line_ends_and_the_last_needs_none(pipe: tuple[int, int]) -> None:
    assert await heard(pipe, b"one\ntw", b"o\r\n\n", b"\xffstop") == ["one", "two", "", "\ufffdstop", "(end)"]


@pytest.mark.anyio
async def test_only_the_end_of_an_endless_line_is_kept(pipe: tuple[int, int]) -> None:
    lines: list[str] = []
    for _ in range(2 * LONGEST_LINE // 65536 - 1):
        os.write(pipe[1], b"x" * 60000)
    os.close(pipe[1])

    await hear_lines(lines.append, lambda: None, pipe[0])

    assert len(lines[0]) <= LONGEST_LINE + 4096


def test_only_terminals_and_pipes_are_read_during_a_run(pipe: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("stop\n")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)

    assert can_be_heard(pipe[0])
    assert not is_terminal(pipe[0])
    assert not can_be_heard(descriptor)

    for each in (descriptor, pipe[1]):
        os.close(each)
    assert not can_be_heard(descriptor)


# Answers beyond one call.


def proposed(standing: StandingAnswers, command: str, identifier: str = "1") -> ToolCall:
    """A call that was proposed and described."""
    made = ToolCall(identifier, "bash", {"command": command})
    executables = {"git": "/usr/bin/git", "touch": "/usr/bin/touch", "npm": "/usr/bin/npm"}
    facts = Action("bash", "write", "/ws", home="/home/me", command=command, executables=executables)
    standing.see(ActionDescribed(made, facts))
    return made


@pytest.fixture
def standing(tmp_path: Path) -> StandingAnswers:
    """The answers of a user who has no rules yet."""
    return StandingAnswers(DEFAULT, tmp_path / "rules.yaml")


def test_always_adds_the_narrowest_rule_and_keeps_what_is_there(standing: StandingAnswers) -> None:
    standing.file.write_text("# mine\ncommands:\n  - deny: make deploy  # never\n", encoding="utf-8")
    assert standing.offer(proposed(standing, ASKED)).startswith("always would allow: touch .git/config (write, ")
    said = standing.add(proposed(standing, ASKED))

    assert said.startswith("always allowed from now on: touch .git/config (write, /usr/bin/touch)")
    assert "# mine" in standing.file.read_text(encoding="utf-8")
    assert "# never" in standing.file.read_text(encoding="utf-8")
    assert read_user_rules(standing.file)[1] == CommandRule(
        Level.allow, ("touch", ".git/config"), "/usr/bin/touch", rule="write", exact=True
    )


def test_always_covers_the_command_for_the_rest_of_the_run_and_nothing_else(standing: StandingAnswers) -> None:
    assert not standing.cover(proposed(standing, ASKED))

    standing.add(proposed(standing, ASKED))

    assert standing.cover(proposed(standing, f"ls; {ASKED}", "2"))
    assert not standing.cover(proposed(standing, f"{ASKED} HEAD~1", "3"))
    assert not standing.cover(proposed(standing, "npm publish", "4"))
    assert not standing.cover(ToolCall("5", "bash", {"command": ASKED}))  # it was not described


@rows("command", ["sh -c 'touch .git/config'", "rm -rf $X", "touch .git/config > ~/x"])
def test_always_without_a_possible_rule_says_so_and_writes_nothing(command: str, standing: StandingAnswers) -> None:
    said = standing.add(proposed(standing, command))

    assert said.startswith("taken as yes for once")
    assert standing.offer(proposed(standing, command)) == ""
    assert not standing.file.exists()


def test_a_file_that_cannot_be_written_is_reported(standing: StandingAnswers) -> None:
    standing.file.write_text("commands: 3\n", encoding="utf-8")
    assert "cannot be written" in standing.add(proposed(standing, ASKED))
    assert not standing.cover(proposed(standing, ASKED, "2"))


@pytest.mark.slow
def test_always_in_the_terminal_asks_once_and_never_in_the_next_run(on_terminal: OnTerminal, run_of: RunOf) -> None:
    words = run_of(bash(ASKED), bash(ASKED), "Done.")
    terminal = on_terminal(*words, TERM="dumb")
    terminal.wait_for(QUESTION)

    assert terminal.end("always\n") == 0
    assert "always allowed from now on: touch .git/config (write, " in terminal.screen
    assert f"{QUESTION} yes, as you said always" in terminal.screen

    again = on_terminal(*words, TERM="dumb")

    assert again.end() == 0
    assert QUESTION not in again.screen


def test_a_command_that_the_user_wrote_needs_no_answer_once_and_as_it_was_written(
    standing: StandingAnswers,
) -> None:
    assert standing.edit("git reset --soft") == "run exactly this instead: git reset --soft"

    assert not standing.cover(proposed(standing, "git reset --soft; ls"))
    assert not standing.cover(ToolCall("2", "bash", {"command": "git reset --soft", "background": True}))
    assert standing.cover(proposed(standing, "git reset --soft")) == "as you wrote it"
    assert not standing.cover(proposed(standing, "git reset --soft"))


def test_the_evidence_names_the_rule_and_the_words_that_it_rests_on(standing: StandingAnswers) -> None:
    told = standing.evidence(proposed(standing, f"ls; {ASKED}"))

    assert told.splitlines()[0].startswith("rule write (destruction): ")
    assert told.splitlines()[1] == "evidence: characters 4 to 21: touch .git/config"


# Prompts.


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the command is typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@rows(
    ("command", "input", "code", "prompt"),
    [
        ("run", "a long\ntask, @here\n", 0, "a long\ntask, @here"),
        ("chat", "one\ntask\n", 0, "one\ntask"),
        ("run", "\n", 2, ""),
    ],
)
def test_a_hyphen_reads_the_prompt_from_a_pipe(
    command: str, input: str, code: int, prompt: str, process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / f"{len(list(tmp_path.glob('*.jsonl')))}.jsonl"

    said = process(command, "-", "--model", script("Done."), "--workspace", workspace, "--log", log, input=input)

    assert (said.code, said.out) == (code, "" if code else "Done.\n")
    if code:
        assert "the prompt is empty" in said.err
    else:
        assert json.loads(log.read_text().splitlines()[1])["data"] == {"text": prompt}


def test_a_text_file_is_put_below_the_prompt_that_names_it_once(here: Path) -> None:
    (here / "a.txt").write_text("\ufeffA\n")

    prompt = read_prompt("See @a.txt, and (again) @a.txt.")

    assert prompt == 'See @a.txt, and (again) @a.txt.\n\n<file path="a.txt">\nA\n</file>'


@rows(
    ("prompt", "words"),
    [
        ("write to me@a.txt", []),
        ("ask @alice about @mising.txt", ["@alice", "@mising.txt"]),
        ("@", []),
        ("@.", ["@."]),
        ("@ a.txt", []),
    ],
)
def test_a_word_with_at_that_names_no_file_stays_as_it_is_and_the_user_is_told(
    prompt: str, words: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.txt").write_text("A")

    assert read_prompt(prompt) == prompt
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == words


def test_a_picture_is_shown_to_the_model(here: Path) -> None:
    (here / "x.png").write_bytes(PNG)

    assert read_prompt("What is on @x.png?") == UserMessage("What is on @x.png?", (Image("image/png", PNG),))


@rows(
    ("content", "sentence"),
    [
        (b"\xff\xfe\x00", "is neither a text in UTF-8 nor a picture"),
        (b"x" * (LONGEST_FILE + 1), "the agent can read it with its tools"),
    ],
)
def test_a_file_that_cannot_be_included_is_an_error(content: bytes, sentence: str, here: Path) -> None:
    (here / "file").write_bytes(content)

    with pytest.raises(Mistake, match=sentence):
        read_prompt("Look at @file")
