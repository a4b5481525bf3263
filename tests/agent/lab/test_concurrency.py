"""Many things are done at once, no more than so many; one that fails ends the others; a lock is had by one."""

import os
from pathlib import Path

import anyio
import pytest

from agent.lab.concurrency import alone, at_once, locked


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
