"""The benchmarks run and give rows; what they find is never judged here."""

import gc
import json
from pathlib import Path

import pytest

from tests.bench.measuring import Aim, Row, table
from tests.bench.run import QUESTIONS, main


@pytest.fixture(autouse=True)
def light_collections() -> None:
    """Timing collects garbage before each round; what thousands of other tests left is left alone."""
    gc.collect()
    gc.freeze()


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_gives_rows_with_figures(question: str) -> None:
    rows = list(QUESTIONS[question](0.001))

    assert rows
    assert all(row.figure is not None or row.note.startswith("skipped: ") for row in rows)


def test_the_command_prints_the_rows_and_writes_them_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"

    assert main(["hot_cold", "--size", "0.001", "--json", str(figures)]) == 0

    written = json.loads(figures.read_text())["hot_cold"]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1 + len(written)
    assert all(line.startswith(row["what"]) for line, row in zip(printed[1:], written, strict=True))


def test_an_unknown_question_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])

    assert "there is no question 'speed'" in capsys.readouterr().err


def test_an_aim_is_about_the_figure_or_about_the_ratio() -> None:
    slow = Row("a", 6.0, "s", peer=2.0, against="b", aim=Aim(at_most=5))
    near = Row("a", 6.0, "s", peer=2.0, against="b", aim=Aim(at_most=5, of="ratio"))

    assert slow.is_met is False
    assert near.is_met is True
    assert "3.00  ratio <= 5  met" in table([near])
