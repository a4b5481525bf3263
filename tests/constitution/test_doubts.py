"""What cannot be known, or can be read in two ways, is asked about: a table for each class of doubt.

Before a tab stands what a command has to be in every policy that asks: `gated` or `allowed`. `⏎` is a newline.
"""

from pathlib import Path

import pytest

from constitution import Level, judge_command

TABLES = (
    "hidden",
    "evaluated_later",
    "unknown_words",
    "carried_programs",
    "accidents",
    "addresses",
    "outputs",
    "inline_code",
)


def rows(table: str) -> list[tuple[str, str]]:
    """The labels and commands of a table."""
    text = (Path(__file__).parent / f"{table}.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(label, command.replace("⏎", "\n")) for label, command in lines]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_a_doubt_is_asked_about_and_what_resembles_it_is_not(table: str) -> None:
    wrong = []
    for label, command in rows(table):
        verdict = judge_command(command, "/ws", home="/home/me")
        if (verdict.level is Level.allow) is not (label == "allowed"):
            wrong.append(f"{label}: {command!r}: {verdict}")

    assert sum(label == "gated" for label, _ in rows(table)) >= 30
    assert wrong == []
