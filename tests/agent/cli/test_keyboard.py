"""Lines as they come: from a pipe, in pieces, without an end, and from what cannot be waited for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cli.prompt import LONGEST_LINE, can_be_heard, hear_lines, is_terminal

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)


async def heard(pipe: tuple[int, int], *pieces: bytes) -> list[str]:
    """What is heard of these pieces; "(end)" stands for the end."""
    lines: list[str] = []
    for piece in pieces:
        os.write(pipe[1], piece)
    os.close(pipe[1])
    await hear_lines(lines.append, lambda: lines.append("(end)"), pipe[0])
    return lines


async def test_lines_come_without_their_ends(pipe: tuple[int, int]) -> None:
    assert await heard(pipe, b"one\ntw", b"o\r\n\n") == ["one", "two", "", "(end)"]


async def test_a_last_line_needs_no_end(pipe: tuple[int, int]) -> None:
    assert await heard(pipe, b"stop") == ["stop", "(end)"]


async def test_bytes_that_are_no_text_are_replaced(pipe: tuple[int, int]) -> None:
    assert await heard(pipe, b"\xffstop\n") == ["\ufffdstop", "(end)"]


async def test_of_an_endless_line_only_the_end_is_kept(pipe: tuple[int, int]) -> None:
    lines: list[str] = []
    for _ in range(2 * LONGEST_LINE // 65536 - 1):
        os.write(pipe[1], b"x" * 60000)
    os.close(pipe[1])

    await hear_lines(lines.append, lambda: None, pipe[0])

    assert len(lines[0]) <= LONGEST_LINE + 4096


def test_only_terminals_and_pipes_can_be_heard(pipe: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("stop\n")
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)

    assert can_be_heard(pipe[0])
    assert not is_terminal(pipe[0])
    assert not can_be_heard(descriptor)

    for each in (descriptor, pipe[1]):
        os.close(each)
    assert not can_be_heard(descriptor)
