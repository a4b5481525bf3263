"""Autonomous work on the command line (S1 7, 8): progress, budgets, and stop as an answer."""

from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, Script
from tests.tables import rows

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
