"""What `/undo` brings back: files as they were before file tools wrote them, unless others changed them, too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.runs import Changes, Undone, before_last_prompt, restore
from agent.models.scripted import ScriptedModel, Step, call
from agent.session.agent import Agent
from agent.tools.collections import create_all_tools
from tests.agent.cli.sessions import Terminal

TASK: tuple[Step, ...] = (
    call("edit", path="edited.txt", oldText="one", newText="two"),
    call("write", path="edited.txt", content="three\n"),
    call("write", path="new.txt", content="new\n"),
    call("write", path="same.txt", content="same\n"),
    call("write", path="edited.txt/none.txt", content="impossible\n"),
    call("bash", command="echo more > made.txt"),
    call("read", path="edited.txt"),
    "Done.",
)


@pytest.fixture
def folder(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with two files."""
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "own"))
    (workspace / "edited.txt").write_text("one\n")
    (workspace / "same.txt").write_text("same\n")
    return workspace


def work(folder: Path, log: Path, *tasks: tuple[Step, ...]) -> Path:
    """Have an agent carry out these tasks; return its log."""
    changes = Changes(log)
    script = [step for task in tasks for step in task]
    tools = list(create_all_tools(folder).values())
    with Agent(ScriptedModel(script), tools, preset="coding", log=log, on_step=changes.see) as agent:
        for number in range(len(tasks)):
            agent.run_sync(f"task {number}")
    return log


def told(undone: Undone, folder: Path) -> tuple[list[str], list[str], list[str]]:
    names = [Path(path).relative_to(folder).as_posix() for path in undone.changed]
    return [Path(change.path).relative_to(folder).as_posix() for change in undone.restorable], names, list(undone.calls)


def test_undo_restores_files_of_tools_and_leaves_effects_of_commands(folder: Path, tmp_path: Path) -> None:
    log = work(folder, tmp_path / "log.jsonl", (call("write", path="first.txt", content="1\n"), "Done."), TASK)

    fork, prompt, undone = before_last_prompt(log)
    for change in undone.restorable:
        restore(change)

    assert prompt == "task 1"
    assert told(undone, folder) == (["edited.txt", "new.txt"], [], ["echo more > made.txt"])
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "edited.txt": "one\n",
        "same.txt": "same\n",
        "first.txt": "1\n",
        "made.txt": "more\n",
    }
    _, prompt, undone = before_last_prompt(fork)
    assert (prompt, told(undone, folder)) == ("task 0", (["first.txt"], [], []))


def linked(folder: Path, tmp_path: Path) -> None:
    """Put a link to a file of the same content in the place of one that was written."""
    (tmp_path / "outside.txt").write_text("three\n")
    (folder / "edited.txt").unlink()
    (folder / "edited.txt").symlink_to(tmp_path / "outside.txt")


INTERFERING: dict[str, Callable[[Path, Path], object]] = {
    "written": lambda folder, _: (folder / "edited.txt").write_text("mine\n"),
    "removed": lambda folder, _: (folder / "edited.txt").unlink(),
    "a link to a file like it": linked,
}


@pytest.mark.parametrize("interfere", INTERFERING.values(), ids=INTERFERING)
def test_a_file_that_was_changed_since_is_left_as_it_is(
    interfere: Callable[[Path, Path], object], folder: Path, tmp_path: Path
) -> None:
    log = work(folder, tmp_path / "log.jsonl", TASK)
    offered = before_last_prompt(log)[2].restorable[0]
    interfere(folder, tmp_path)

    undone = before_last_prompt(log)[2]

    assert told(undone, folder)[:2] == (["new.txt"], ["edited.txt"])
    with pytest.raises(OSError):
        restore(offered)
    assert not (tmp_path / "outside.txt").exists() or (tmp_path / "outside.txt").read_text() == "three\n"


def test_a_file_that_others_changed_between_two_writes_is_left_as_it_is(folder: Path, tmp_path: Path) -> None:
    between = call("bash", command="echo two, by a command > edited.txt")

    log = work(folder, tmp_path / "log.jsonl", (TASK[0], between, TASK[1], "Done."))

    assert told(before_last_prompt(log)[2], folder)[:2] == ([], ["edited.txt"])


def test_kept_contents_are_private_and_not_used_when_they_were_changed(folder: Path, tmp_path: Path) -> None:
    log = work(folder, tmp_path / "log.jsonl", TASK)
    kept = tmp_path / "own" / "undo"
    change = before_last_prompt(log)[2].restorable[0]

    assert kept.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in kept.iterdir()} == {0o600}
    (kept / change.before).write_text("forged\n")
    with pytest.raises(OSError, match="damaged"):
        restore(change)
    assert (folder / "edited.txt").read_text() == "three\n"


@pytest.mark.slow
def test_in_a_conversation_files_are_restored_on_a_yes(
    on_terminal: Callable[..., Terminal], script: Callable[..., str], workspace: Path, tmp_path: Path
) -> None:
    write = {"call": {"tool": "write_file", "arguments": {"path": "a.txt", "content": "hers\n"}}}
    (workspace / "a.txt").write_text("mine\n")
    model = script(write, "First.", write, "Second.")
    terminal = on_terminal("chat", "--model", model, "--workspace", workspace, "--log", tmp_path / "log.jsonl")
    for number, answer in enumerate(("rather go on\ryes\r", "n\r")):
        terminal.rest(number)
        terminal.type("go\r")
        terminal.rest(number + 1)
        assert (workspace / "a.txt").read_text() == "hers\n"
        terminal.type("/undo\r")
        terminal.wait_for("can be as before: a.txt", times=number + 1)
        terminal.wait_for("Restore these files? (yes/no)", times=number + 1)
        terminal.type(answer)
        terminal.wait_for(("   as before: ", "files stay as they are")[number])
        assert (workspace / "a.txt").read_text() == ("mine\n", "hers\n")[number]
    terminal.rest(2)
    terminal.type("/quit\r")

    assert terminal.end() == 0
