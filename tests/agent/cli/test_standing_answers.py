"""The answer `always`: a rule for the runs to come, and the same answer for the rest of this one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.prompt import StandingAnswers, says_always
from agent.presets.policy_files import read_user_rules
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed
from constitution import DEFAULT, Action, CommandRule, Level
from tests.agent.cli.sessions import Terminal, bash

OnTerminal = Callable[..., Terminal]
Script = Callable[..., str]
RESET = "git reset --hard"
QUESTION = f"Approve command: {RESET}? (yes/no)"


def proposed(standing: StandingAnswers, command: str, identifier: str = "1") -> ToolCall:
    """A call that was proposed and described."""
    made = ToolCall(identifier, "bash", {"command": command})
    executables = {"git": "/usr/bin/git", "npm": "/usr/bin/npm"}
    facts = Action("bash", "write", "/ws", home="/home/me", command=command, executables=executables)
    standing.see(ActionDescribed(made, facts))
    return made


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    return tmp_path / "rules.yaml"


@pytest.mark.parametrize("line", ["always", "ALWAYS", " always\r"])
def test_always_is_an_answer(line: str) -> None:
    assert says_always(line)
    assert not says_always("always yes")


def test_always_adds_the_narrowest_rule_and_keeps_what_is_there(rules_file: Path) -> None:
    rules_file.write_text("# mine\ncommands:\n  - deny: make deploy  # never\n", encoding="utf-8")
    standing = StandingAnswers(DEFAULT, rules_file)

    said = standing.add(proposed(standing, RESET))

    assert said.startswith("always allowed from now on: git reset --hard (lose_work, /usr/bin/git)")
    assert "# mine" in rules_file.read_text(encoding="utf-8")
    assert "# never" in rules_file.read_text(encoding="utf-8")
    assert read_user_rules(rules_file)[1] == CommandRule(
        Level.allow, ("git", "reset", "--hard"), "/usr/bin/git", rule="lose_work", exact=True
    )


def test_it_holds_for_the_rest_of_the_run_and_for_nothing_else(rules_file: Path) -> None:
    standing = StandingAnswers(DEFAULT, rules_file)
    assert not standing.cover(proposed(standing, RESET))

    standing.add(proposed(standing, RESET))

    assert standing.cover(proposed(standing, f"ls; {RESET}", "2"))
    assert not standing.cover(proposed(standing, f"{RESET} HEAD~1", "3"))
    assert not standing.cover(proposed(standing, "npm publish", "4"))
    assert not standing.cover(ToolCall("5", "bash", {"command": RESET}))  # nobody described it


@pytest.mark.parametrize("command", ["sh -c 'git reset --hard'", "rm -rf $X", "git reset --hard > ~/x"])
def test_where_no_rule_can_help_it_says_so_and_writes_nothing(command: str, rules_file: Path) -> None:
    standing = StandingAnswers(DEFAULT, rules_file)

    said = standing.add(proposed(standing, command))

    assert said.startswith("taken as yes for once")
    assert not rules_file.exists()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    rules_file = tmp_path / "rules.yaml"
    rules_file.write_text("commands: 3\n", encoding="utf-8")
    standing = StandingAnswers(DEFAULT, rules_file)

    assert "cannot be written" in standing.add(proposed(standing, RESET))
    assert not standing.cover(proposed(standing, RESET, "2"))


def test_always_in_the_terminal_asks_once_and_never_in_the_next_run(
    on_terminal: OnTerminal, script: Script, workspace: Path
) -> None:
    model = script(bash(RESET), bash(RESET), "Done.")
    terminal = on_terminal("run", "go", "--model", model, "--workspace", workspace, NO_COLOR="1")
    terminal.wait_for(QUESTION)
    terminal.type("always\n")

    assert terminal.end() == 0
    assert "always allowed from now on: git reset --hard (lose_work, " in terminal.screen
    assert f"{QUESTION} yes, as you said always" in terminal.screen

    again = on_terminal("run", "go", "--model", model, "--workspace", workspace, NO_COLOR="1")

    assert again.end() == 0
    assert QUESTION not in again.screen
