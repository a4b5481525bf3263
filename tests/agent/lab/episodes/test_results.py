"""Rows are read as strictly as they are written: what is no row is named with its line, and what to do about it."""

import json
from pathlib import Path

import pytest

from agent.lab.episodes.results import Results, ResultsError, Row, Step
from agent.lab.spending import Spent, note_spent, read_spent

ROW = Row(
    "k", "s", "f", "f-0", "test", "honest", False, "none", 0,
    error='"quoted"\nline\u2028of \x85 its own', main=1, tau=2, steps=(Step("bash", None, "completed", 0.5),),
)  # fmt: skip


def test_rows_survive_their_lines(tmp_path: Path) -> None:
    """A row whose error holds a line separator of Unicode used to be taken for torn, and ran again for ever."""
    Results(tmp_path).add(ROW)

    assert Results(tmp_path).rows() == {"k": ROW}


NO_ROWS: list[tuple[dict[str, object], str]] = [
    ({"main": "x"}, "not a row: expected float, found 'x' @ row.main; remove the line, and run it again"),
    ({"seed": True}, "expected int, found True @ row.seed"),
    ({"live": 1}, "expected bool, found 1 @ row.live"),
    ({"status": "went"}, "expected one of 'ran', 'failed', found 'went' @ row.status"),
    ({"mian": 1}, "'mian' is not known here @ row"),
    ({"steps": {}}, "expected a list, found {} @ row.steps"),
    ({"steps": "s"}, "expected a list, found 's' @ row.steps"),
    ({"steps": [3]}, "expected an object, found 3 @ row.steps[0]"),
    ({"steps": [{"tool": "bash", "attack": 0, "outcome": "", "score": None}]}, "found 0 @ row.steps[0].attack"),
    ({"main": "x", "seed": "y", "turns": 1.5}, "expected int, found 'y' @ row.seed, and 2 more"),
]


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.add(ROW)
    good = results.path.read_text()
    lines = [(json.dumps({**json.loads(good), **change}), told) for change, told in NO_ROWS]
    invalid = ("not a row", "[]", "{}", "null", '{"key": 1, "steps": []}', "[" * 100_000)
    for line, told in [*lines, *((line, "; remove the line") for line in invalid)]:
        results.path.write_text(f"{good}{line}\n")
        with pytest.raises(ResultsError, match=r"episodes\.jsonl:2: ") as caught:
            results.rows()
        assert told in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    Results(tmp_path).path.mkdir()

    with pytest.raises(ResultsError, match=r"episodes\.jsonl: cannot be read: Is a directory"):
        Results(tmp_path).rows()


def test_what_episodes_asked_for_adds_up_and_a_line_that_says_nothing_is_told(tmp_path: Path) -> None:
    """What was spent stands there; to count it as nothing would be to spend it again."""
    note_spent(tmp_path, "none", Spent())
    assert not (tmp_path / "asked.jsonl").exists()
    assert read_spent(tmp_path) == Spent()
    note_spent(tmp_path, "one", Spent(2, 100, 0.5))
    note_spent(tmp_path, "two", Spent(1, 50))
    assert read_spent(tmp_path) == Spent(3, 150, 0.5)

    good = (tmp_path / "asked.jsonl").read_text()
    for line in ('{"episode": "one", "requests": "2", "tokens": 3, "cost": null}', "{}", "nothing"):
        (tmp_path / "asked.jsonl").write_text(f"{good}{line}\n")
        with pytest.raises(ResultsError, match=r"asked\.jsonl:3: not a note of .*; correct the line"):
            read_spent(tmp_path)
