"""Autonomous work on the command line (S1 7, 8): progress, budgets, and stop as an answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, Terminal
from tests.tables import rows

Script = Callable[..., str]
OnTerminal = Callable[..., Terminal]

PURSUE = {
    "say": "This takes several steps.",
    "call": {"tool": "pursue_objective", "arguments": {"user_prompt": "Tidy up", "objective": "No loose ends"}},
}


def run_in_terminal(command: str, say: str = "") -> dict[str, object]:
    return {"say": say, "call": {"tool": "terminal", "arguments": {"command": command}}}


def complete(status: str) -> dict[str, object]:
    return {"call": {"tool": "complete", "arguments": {"result": "It is what it is.", "status": status}}}


def write(path: str) -> dict[str, object]:
    return {"say": "I write it down.", "call": {"tool": "write_file", "arguments": {"path": path, "content": "x"}}}


@pytest.fixture
def autonomous(command: Command, script: Script, workspace: Path) -> Command:
    """`autonomous(step, ..., option=...)` runs a script with this preset."""

    def run(*steps: object, option: str = "max_failures=5") -> object:
        model = script(*steps)
        where = ("--model", model, "--workspace", workspace, "--option", option)
        return command("run", "Tidy up", "--preset", "autonomous", *where)

    return run  # type: ignore[return-value]


def test_progress_tells_iteration_action_result_and_reasoning(autonomous: Command) -> None:
    """S1 8.2, 8.4: each kind has its label."""
    said = autonomous(
        PURSUE, run_in_terminal("echo one", say="I look around."), "I think about it.", complete("success")
    )

    lines = said.err.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("── iteration 1 of 25 "))
    assert [line.rstrip() for line in lines[begin + 1 : begin + 4]] == [
        "agent    I look around.",
        "action   echo one",
        "         │ one",
    ]
    assert any(line.startswith("── iteration 2 of 25 ") for line in lines)
    assert "agent    I think about it." in lines
    assert "system   the run goes on; b-thread complete_to_finish: You have not called complete" in said.err


@pytest.mark.slow
@rows(
    ("option", "code", "text"),
    [
        ("max_cost=1", 2, "max_cost needs the price of 'script"),
        ("max_tokens=1", 3, "limit (max_tokens)"),
        ("max_tokens_per_iteration=1", 3, "limit (max_tokens_per_iteration)"),
    ],
)
def test_budgets_are_options(option: str, code: int, text: str, autonomous: Command) -> None:
    said = autonomous(PURSUE, write("a.txt"), complete("success"), option=option)

    assert said.code == code
    assert text in said.err


@pytest.mark.slow
def test_the_letters_stop_in_an_answer_stop_after_the_step(
    on_terminal: OnTerminal, script: Script, workspace: Path
) -> None:
    """S1 6.3, 8.1: what was asked about does not run, the rest of the step does, and the state is told."""
    both = {"calls": [run_in_terminal("rm -rf old")["call"], run_in_terminal("echo finished > done.txt")["call"]]}
    model = script(PURSUE, both, "Never said.")
    terminal = on_terminal(
        "run", "Tidy up", "--preset", "autonomous", "--model", model, "--workspace", workspace, NO_COLOR="1"
    )
    terminal.wait_for("Approve command: rm -rf old? (yes/no)")
    terminal.type("nonstop\n")

    assert terminal.end() == 4
    assert (workspace / "done.txt").read_text() == "finished\n"
    assert "Objective: No loose ends" in terminal.screen
