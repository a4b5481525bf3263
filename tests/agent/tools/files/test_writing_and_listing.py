"""`write` and `ls` (S2)."""

import os
from pathlib import Path

import pytest

from agent.tools.collections import workspace_tools
from tests.agent.tools.conftest import Call

from .conftest import Use

pytestmark = pytest.mark.anyio


async def test_a_file_is_written_with_its_directories_and_its_bytes_are_counted(use: Use, root: Path) -> None:
    result = await use("write", path="a/b/c.txt", content="é\r\n")

    assert result.text == "wrote 4 bytes to a/b/c.txt"
    assert (root / "a/b/c.txt").read_bytes() == "é\r\n".encode()


@pytest.mark.parametrize("path", ["new/", "a/.", "a/..", "./"])
async def test_a_path_that_names_a_directory_is_no_file_to_write(use: Use, root: Path, path: str) -> None:
    (root / "a").mkdir()

    result = await use("write", path=path, content="x")

    assert result.is_error
    assert result.text == f"{path} names a directory, not a file; leave its end out"
    assert [entry.name for entry in root.iterdir()] == ["a"]


async def test_names_are_sorted_with_hidden_ones_and_a_slash_after_directories(use: Use, root: Path) -> None:
    for name in ("b", "A", ".hidden", "C"):
        (root / name).touch()
    (root / "dir").mkdir()
    (root / "link").symlink_to("dir")

    result = await use("ls")

    assert result.text == ".hidden\nA\nb\nC\ndir/\nlink"
    assert (await use("ls", path="dir")).text == "(empty directory)"


async def test_500_entries_are_shown_and_how_to_see_more(use: Use, root: Path) -> None:
    for number in range(501):
        (root / f"{number:03}").touch()

    result = await use("ls")

    assert result.text.endswith("\n499\n\n[500 of 501 entries; use limit=1000 for more]")
    assert dict(result.details) == {"entryLimitReached": 500}
    assert (await use("ls", limit=501)).text.count("\n") == 500


async def test_s6_1_files_are_written_read_and_listed(call: Call, root: Path) -> None:
    written = await call("write_file", path="notes/a.txt", content="héllo\n")
    read = await call("read_file", path="notes/a.txt")
    listed = await call("list_directory")

    assert written.text == "wrote 7 bytes to notes/a.txt"
    assert (read.text, read.is_error) == ("héllo\n", False)
    assert listed.text == "notes/"
    assert (root / "notes/a.txt").read_bytes() == "héllo\n".encode()


async def test_s6_3_a_long_file_is_cut_with_a_notice(root: Path) -> None:
    read_file = workspace_tools(root, output_limit=10)[1]
    (root / "long").write_text("é" * 8)
    (root / "exact").write_text("x" * 10)

    result = await read_file.run({"path": "long"})

    assert result.text == "ééééé\n[output truncated: the first 10 of 16 bytes]"
    assert result.details["truncated"]
    assert (await read_file.run({"path": "exact"})).text == "x" * 10


async def test_a_file_of_any_size_is_read_in_bounded_memory(call: Call, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(1 << 40)

    result = await call("read_file", path="huge")

    assert len(result.text) < 201 * 1024
    assert result.text.endswith("the first 204800 of 1099511627776 bytes]")


async def test_errors_are_content_and_name_the_path(call: Call, root: Path) -> None:
    for name, arguments, text in (
        ("read_file", {"path": "none"}, f"no such file: {root}/none"),
        ("read_file", {"path": "."}, f"{root} is a directory, not a file"),
        ("read_file", {"path": "a\0"}, "'a\\x00': a NUL character at byte 1; leave it out"),
        ("write_file", {"path": "x", "content": "a\ud800"}, "content: a lone surrogate at position 1"),
        ("write_file", {"path": "x" * 300, "content": ""}, "File name too long"),
        ("read_file", {"path": "x/" * 3000 + "x"}, "File name too long"),
    ):
        result = await call(name, **arguments)
        assert result.is_error
        assert text in result.text
    assert os.listdir(root) == []
