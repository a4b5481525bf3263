"""Results on disk: rows and costs are read as strictly as they are written; a lock is had by one task at a time."""

import json
import math
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent.lab.concurrency import alone, at_once, locked
from agent.lab.episodes.results import Results, ResultsError, Row, Step
from agent.lab.spending import Ledger, Spent, note_spent

ROW = Row(
    "k", "s", "f", "f-0", "test", "honest", False, "none", 0,
    error='"quoted"\nline\u2028of \x85 its own', main=1, tau=2, steps=(Step("bash", None, "completed", 0.5),),
)  # fmt: skip


def test_rows_are_equal_after_writing_and_reading(tmp_path: Path) -> None:
    """A row whose error holds a line separator of Unicode used to be taken for torn, and ran again for ever."""
    Results(tmp_path).add(ROW)

    assert Results(tmp_path).rows() == {"k": ROW}


def test_a_failure_hides_no_row_that_is_finished_and_a_later_success_a_failure(tmp_path: Path) -> None:
    results, failed = Results(tmp_path), evolve(ROW, status="failed")
    results.add(failed)
    results.add(ROW)
    assert results.rows() == {"k": ROW}

    results.add(failed)
    assert results.rows() == Results(tmp_path).rows() == {"k": ROW}
    assert results.finished() == {"k"}


def test_two_experiments_in_one_folder_are_refused(tmp_path: Path) -> None:
    first, second = Results(tmp_path).held(), Results(tmp_path).held()

    with first, pytest.raises(ResultsError, match="another experiment runs there now; wait for its end"):
        second.__enter__()
    with Results(tmp_path).held():
        pass


NO_ROWS: list[tuple[dict[str, object], str]] = [
    ({"turns": "x"}, "not a row: expected int, found 'x' @ row.turns; remove the line, and run it again"),
    ({"seed": True}, "expected int, found True @ row.seed"),
    ({"live": 1}, "expected bool, found 1 @ row.live"),
    ({"status": "went"}, "expected one of 'ran', 'failed', found 'went' @ row.status"),
    ({"mian": 1}, "'mian' is not known here @ row"),
    ({"steps": {}}, "expected a list, found {} @ row.steps"),
    ({"steps": "s"}, "expected a list, found 's' @ row.steps"),
    ({"steps": [3]}, "expected an object, found 3 @ row.steps[0]"),
    ({"steps": [{"tool": "bash", "attack": 0, "outcome": "", "score": None}]}, "found 0 @ row.steps[0].attack"),
    ({"main": "x", "seed": "y", "turns": 1.5}, "expected int, found 'y' @ row.seed, and 1 more"),
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


def test_a_row_with_an_unchecked_value_of_a_check_is_that_of_a_failed_episode(tmp_path: Path) -> None:
    """Older versions wrote whatever a check gave, and every later run then ended at the line."""
    results = Results(tmp_path)
    results.add(ROW)
    row = json.loads(results.path.read_text())
    wrong: Any = [*(("main", main) for main in (None, "x", 7, -1, math.nan)), ("side", None), ("side", 0.5)]
    changes = [*wrong, ("main", True), ("side", 1)]
    lines = [{**row, "key": str(number), check: value} for number, (check, value) in enumerate(changes)]
    results.path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    found = list(results.rows().values())

    assert {each.status for each in found[: len(wrong)]} == {"failed"}
    assert found[0].error == "the checks gave main None and side False, which is no result"
    assert results.finished() == {each.key for each in found[len(wrong) :]}
    assert [(each.main, each.side) for each in found[len(wrong) :]] == [(1.0, False), (1.0, True)]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    Results(tmp_path).path.mkdir()

    with pytest.raises(ResultsError, match=r"episodes\.jsonl: cannot be read: Is a directory"):
        Results(tmp_path).rows()


def test_spending_adds_up_over_episodes_and_an_invalid_line_is_reported(tmp_path: Path) -> None:
    """What was spent stands there; to count it as nothing would be to spend it again."""
    assert Ledger(tmp_path).spent() == Spent()
    note_spent(tmp_path, "one", Spent(2, 100, 0.5))
    note_spent(tmp_path, "two", Spent(1, 50))
    assert Ledger(tmp_path).spent() == Spent(3, 150, 0.5)

    good = (tmp_path / "asked.jsonl").read_text()
    for line in ('{"episode": "one", "requests": "2", "tokens": 3, "cost": null}', "{}", "nothing"):
        (tmp_path / "asked.jsonl").write_text(f"{good}{line}\n")
        with pytest.raises(ResultsError, match=r"asked\.jsonl:3: not a note of .*; correct the line"):
            Ledger(tmp_path).spent()


@pytest.mark.anyio
async def test_at_most_the_given_number_of_tasks_run_in_parallel() -> None:
    for most, together in ((3, 3), (1, 1), (0, 1), (100, 7)):
        await check_at_once(most, together)


async def check_at_once(most: int, together: int) -> None:
    under_way, seen, done = 0, 0, []

    async def work(item: int) -> None:
        nonlocal under_way, seen
        under_way += 1
        seen = max(seen, under_way)
        await anyio.lowlevel.checkpoint()
        under_way -= 1
        done.append(item)

    await at_once(range(7), work, most=most)

    assert (seen, sorted(done)) == (together, list(range(7)))


@pytest.mark.anyio
async def test_an_error_of_one_task_ends_the_others_and_is_raised_by_itself() -> None:
    ended = []

    async def work(item: int) -> None:
        if item == 1:
            raise ValueError("one")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="one"):
        await at_once([0, 1, 2], work, most=2)

    assert ended == [0]


@pytest.mark.anyio
async def test_a_task_that_waits_for_a_lock_gets_it_when_the_other_is_done(tmp_path: Path) -> None:
    told = []

    async def work(item: int) -> None:
        async with alone(tmp_path / "lock"):
            told.append(item)
            await anyio.sleep(0)
            told.append(item)

    await at_once(range(5), work, most=5)

    assert told == [item for item in dict.fromkeys(told) for _ in range(2)]
    assert sorted(told) == sorted([*range(5)] * 2)


def test_a_locked_file_is_made_for_its_owner_alone_and_is_free_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "file"

    with locked(path) as descriptor:
        os.write(descriptor, b"kept")
    with locked(path, flags=os.O_APPEND) as descriptor:
        os.write(descriptor, b" and more")

    assert path.read_bytes() == b"kept and more"
    assert path.stat().st_mode & 0o077 == 0
