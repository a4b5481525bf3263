"""What real models were asked for is counted over all runs, also when one of them was killed."""

from pathlib import Path

import pytest

from agent.lab.episodes.results import ResultsError
from agent.lab.spending import Spent, note_spent, read_spent


def test_what_episodes_asked_for_adds_up(tmp_path: Path) -> None:
    note_spent(tmp_path, "one", Spent(2, 100, 0.5))
    note_spent(tmp_path, "two", Spent(1, 50))

    assert read_spent(tmp_path) == Spent(3, 150, 0.5)


def test_an_episode_that_asked_nobody_leaves_no_line(tmp_path: Path) -> None:
    note_spent(tmp_path, "one", Spent())

    assert not (tmp_path / "asked.jsonl").exists()
    assert read_spent(tmp_path) == Spent()


def test_a_torn_line_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    """Whoever was killed while writing leaves a line without an end; it used to swallow what was written next."""
    (tmp_path / "asked.jsonl").write_text('{"episode": "one", "requ', encoding="utf-8")

    note_spent(tmp_path, "two", Spent(1, 50))

    assert read_spent(tmp_path) == Spent(1, 50)


@pytest.mark.parametrize("line", ['{"episode": "one", "requests": "2", "tokens": 3, "cost": null}', "{}", "nothing"])
def test_a_line_that_says_nothing_is_told_and_not_left_out(line: str, tmp_path: Path) -> None:
    """What was spent stands there; to count it as nothing would be to spend it again."""
    note_spent(tmp_path, "one", Spent(1, 50))
    with (tmp_path / "asked.jsonl").open("a") as file:
        file.write(f"{line}\n")

    with pytest.raises(ResultsError, match=r"asked\.jsonl:2: not a note of what was asked for: .*; correct the line"):
        read_spent(tmp_path)
