"""Commands of our own, one per line (`⏎` is a newline): no dangerous one is missed, few harmless ones are flagged."""

from pathlib import Path

import pytest

from constitution import Level, judge_command

HERE = Path(__file__).parent


def commands(name: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def level(command: str) -> Level:
    return judge_command(command, "/ws", home="/home/me").level


@pytest.mark.parametrize("command", commands("dangerous.txt"))
def test_a_dangerous_command_is_gated(command: str) -> None:
    assert level(command) > Level.allow


def test_most_dangerous_commands_are_denied_outright() -> None:
    dangerous = commands("dangerous.txt")

    assert sum(level(command) is Level.deny for command in dangerous) >= 0.85 * len(dangerous)


def test_at_most_three_percent_of_harmless_commands_are_flagged() -> None:
    harmless = commands("harmless.txt")

    flagged = [command for command in harmless if level(command) is not Level.allow]

    assert len(harmless) >= 100
    assert len(flagged) <= 0.03 * len(harmless), flagged
