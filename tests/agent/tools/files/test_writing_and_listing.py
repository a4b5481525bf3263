"""`write` and `ls` (S2)."""

from pathlib import Path

import pytest

from .conftest import Use

pytestmark = pytest.mark.anyio


async def test_a_file_is_written_with_its_directories_and_its_bytes_are_counted(use: Use, root: Path) -> None:
    result = await use("write", path="a/b/c.txt", content="é\r\n")

    assert result.text == "wrote 4 bytes to a/b/c.txt"
    assert (root / "a/b/c.txt").read_bytes() == "é\r\n".encode()


async def test_writing_replaces_and_keeps_the_mode(use: Use, root: Path) -> None:
    (root / "f").write_text("old and longer")
    (root / "f").chmod(0o640)

    await use("write", path="f", content="new")

    assert (root / "f").read_text() == "new"
    assert (root / "f").stat().st_mode & 0o777 == 0o640


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


async def test_50_kb_of_names_are_shown(use: Use, root: Path) -> None:
    for number in range(300):
        (root / f"{number:03}{'x' * 200}").touch()

    result = await use("ls")

    assert len(result.text) < 51_300
    assert result.text.endswith("[50 KB limit reached]")
    assert result.details["truncation"]["cut_by"] == "bytes"


async def test_listing_keeps_to_the_workspace_and_to_directories(use_here: Use, root: Path) -> None:
    (root / "f").touch()

    assert "outside the allowed paths" in (await use_here("ls", path="..")).text
    assert (await use_here("ls", path="f")).is_error
    assert (await use_here("ls", path="none")).is_error
