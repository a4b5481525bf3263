"""Prompts of the command line that come from a pipe, or name files and pictures with @."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.mistakes import Mistake
from agent.cli.prompt_files import LONGEST_FILE, read_prompt
from agent.vocabulary.messages import Image, UserMessage
from tests.agent.cli.sessions import Command

Script = Callable[..., str]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the command is typed."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_hyphen_reads_the_prompt_from_a_pipe(
    process: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"

    said = process(
        *("run", "-", "--model", script("Done."), "--workspace", workspace, "--log", log), input="a long\ntask, @here\n"
    )

    assert (said.code, said.out) == (0, "Done.\n")
    assert json.loads(log.read_text().splitlines()[1])["data"] == {"text": "a long\ntask, @here"}


def test_a_hyphen_in_chat_is_a_task_too(process: Command, script: Script, workspace: Path) -> None:
    said = process("chat", "-", "--model", script("Done."), "--workspace", workspace, input="one\ntask\n")

    assert (said.code, said.out) == (0, "Done.\n")


def test_an_empty_pipe_is_2(process: Command, script: Script, workspace: Path) -> None:
    said = process("run", "-", "--model", script("Done."), "--workspace", workspace, input="\n")

    assert said.code == 2
    assert "the prompt is empty" in said.err


def test_a_text_file_is_put_below_the_prompt_that_names_it(here: Path) -> None:
    (here / "prices.py").write_text("price = 3\n")

    prompt = read_prompt("Why is @prices.py wrong?")

    assert prompt == 'Why is @prices.py wrong?\n\n<file path="prices.py">\nprice = 3\n</file>'


def test_a_file_is_found_before_a_full_stop_and_included_once(here: Path) -> None:
    (here / "a.txt").write_text("A")

    prompt = read_prompt("See @a.txt, and (again) @a.txt.")

    assert prompt == 'See @a.txt, and (again) @a.txt.\n\n<file path="a.txt">\nA\n</file>'


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("write to me@a.txt", []),
        ("ask @alice about @mising.txt", ["@alice", "@mising.txt"]),
        ("@", []),
        ("@.", ["@."]),
        ("@ a.txt", []),
    ],
)
def test_what_names_no_file_stays_as_it_is_and_the_user_is_told(
    prompt: str, words: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a.txt").write_text("A")

    assert read_prompt(prompt) == prompt
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == words


def test_a_picture_is_shown_to_the_model(here: Path) -> None:
    (here / "x.png").write_bytes(PNG)

    assert read_prompt("What is on @x.png?") == UserMessage("What is on @x.png?", (Image("image/png", PNG),))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\x00", "is neither a text in UTF-8 nor a picture"),
        (b"x" * (LONGEST_FILE + 1), "the agent can read it with its tools"),
    ],
)
def test_what_cannot_be_included_is_said(content: bytes, sentence: str, here: Path) -> None:
    (here / "file").write_bytes(content)

    with pytest.raises(Mistake, match=sentence):
        read_prompt("Look at @file")
