"""The tools that read, write, edit and list files (S0, S2)."""

import io
import os
import resource
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.tools.collections import workspace_tools
from agent.tools.files import compare, make_read, read_page
from agent.tools.workspace import Workspace
from tests.agent.tools.conftest import Call
from tests.tables import rows

from .conftest import Use

pytestmark = pytest.mark.anyio


async def edited(use: Use, root: Path, content: bytes, old: str, new: str) -> bytes:
    (root / "f").write_bytes(content)
    result = await use("edit", path="f", oldText=old, newText=new)
    assert not result.is_error, result.text
    return (root / "f").read_bytes()


async def test_one_text_becomes_another_and_the_diff_is_given(use: Use, root: Path) -> None:
    (root / "f").write_text("one\ntwo\nthree\nfour\nfive\nsix\n")

    result = await use("edit", path="f", oldText="four\n", newText="4\nfour and a half\n")

    diff = "--- a/f\n+++ b/f\n@@ -1,6 +1,7 @@\n one\n two\n three\n-four\n+4\n+four and a half\n five\n six\n"
    assert result.text == f"replaced text in f, from line 4\n{diff}"
    assert dict(result.details) == {"diff": diff, "firstChangedLine": 4}


@rows(
    ("content", "old", "new", "wanted"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\nc", "b", "B", b"\xef\xbb\xbfa\r\nB\r\nc"),
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nnew", b"a\r\nb\r\nnew\r\n"),
        (b"a\nb\r\nc\n", "a\nb", "1\n2", b"1\n2\r\nc\n"),
        (b"\xff\xfe keep \x00 me", "keep", "kept", b"\xff\xfe kept \x00 me"),
        (b"no end", "end", "END", b"no END"),
        (b"a\r\nb\n", "b", "explicit\r\n", b"a\r\nexplicit\r\n\n"),
        ("x = “quoted” – it’s\u00a0so\n".encode(), 'x = "quoted" - it\'s so', "y", b"y\n"),
        ("‘a’ and “b”".encode(), '"b"', "c", "‘a’ and c".encode()),
        ("it’s it's".encode(), "it's", "is", "it’s is".encode()),
    ],
)
async def test_edits_keep_other_bytes(use: Use, root: Path, content: bytes, old: str, new: str, wanted: bytes) -> None:
    assert await edited(use, root, content, old, new) == wanted


@rows(
    ("old", "new", "problem"),
    [
        ("none", "x", "oldText was not found in f"),
        (" b", "x", "oldText was not found in f"),
        ("a", "x", "oldText stands 3 times in f (at lines 1, 2, 2); give more"),
        ("aa", "x", None),
        ("", "x", "oldText is empty"),
        ("b", "b", "oldText and newText are the same"),
        ("b\ud800", "x", "oldText: a lone surrogate at position 1"),
        ("b", "\ud800", "newText: a lone surrogate at position 0"),
        ("b", "b\0", None),
    ],
)
async def test_an_impossible_edit_is_an_error_and_changes_nothing(
    use: Use, root: Path, old: str, new: str, problem: str | None
) -> None:
    (root / "f").write_text("a\naa\nb\n")

    result = await use("edit", path="f", oldText=old, newText=new)

    assert result.is_error == (problem is not None)
    if problem:
        assert problem in result.text
        assert (root / "f").read_text() == "a\naa\nb\n"


texts = st.text("ab\n", max_size=40)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(before=texts, old=texts.filter(bool), new=texts, after=texts)
def test_the_diff_is_one_that_git_applies(
    tmp_path_factory: pytest.TempPathFactory, before: str, old: str, new: str, after: str
) -> None:
    needed = f"{before}{old}{after}"
    if old == new:
        return
    folder = tmp_path_factory.mktemp("diff")
    (folder / "f").write_text(needed)

    diff, line = compare(needed, f"{before}{new}{after}", "f")
    (folder / "patch").write_text(diff)
    applied = subprocess.run(["git", "apply", "patch"], cwd=folder, capture_output=True, text=True)

    assert applied.returncode == 0, applied.stderr + diff
    assert (folder / "f").read_text() == f"{before}{new}{after}"
    was, becomes = needed.split("\n"), f"{before}{new}{after}".split("\n")
    assert was[: line - 1] == becomes[: line - 1]


async def test_a_very_large_change_is_shown_as_one(use: Use, root: Path, needs: Callable[[str], Path]) -> None:
    old = "".join(f"{number}\n" for number in range(3000))
    (root / "f").write_text(f"top\n{old}end")

    result = await use("edit", path="f", oldText=old, newText=old.replace("1\n", "x\n"))

    assert result.details["firstChangedLine"] == 3
    assert result.details["diff"].startswith("--- a/f\n+++ b/f\n@@ -1,2996 +1,2996 @@\n top\n 0\n-1\n-2\n")
    assert result.details["diff"].endswith("\n+299x\n 2992\n 2993\n 2994\n")


pytestmark = pytest.mark.anyio


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


async def test_a_short_file_is_given_as_it_is(use: Use, root: Path) -> None:
    (root / "a").write_bytes("\ufeffone\r\ntwo, no end".encode())

    result = await use("read", path="a")

    assert result.text == "\ufeffone\r\ntwo, no end"
    assert dict(result.details) == {}


async def test_2000_lines_are_shown_and_where_to_go_on(use: Use, root: Path) -> None:
    (root / "long").write_text(numbered(2001))

    result = await use("read", path="long")

    assert result.text.endswith("line 2000\n\n[lines 1 to 2000 of 2001; use offset=2001 to go on]")
    assert result.details["truncation"] == {
        "cut_by": "lines", "total_lines": 2001, "total_bytes": len(numbered(2001)), "kept_lines": 2000,
        "kept_bytes": len(numbered(2000)), "partial_line": False,
    }  # fmt: skip
    assert (await use("read", path="long", offset=2001)).text == "line 2001\n"


async def test_whole_lines_up_to_50_kb_are_shown(use: Use, root: Path) -> None:
    (root / "wide").write_text(("x" * 1023 + "\n") * 60)

    result = await use("read", path="wide")

    assert result.text.count("\n") == 51  # 50 lines, then an empty one and the notice
    assert result.text.endswith("\n\n[lines 1 to 50 of 60 (50 KB limit); use offset=51 to go on]")
    assert result.details["truncation"]["cut_by"] == "bytes"


async def test_a_line_longer_than_50_kb_is_shown_in_part_and_said_so(use: Use, root: Path) -> None:
    (root / "one").write_text("é" * 40_000)
    (root / "two").write_text("é" * 40_000 + "\nnext\n")

    assert (await use("read", path="one")).text == (
        "é" * 25_600 + "\n\n[line 1 is longer than 50 KB, only its beginning is shown]"
    )
    assert (await use("read", path="two")).text.endswith("only its beginning is shown; use offset=2 to go on]")


async def test_an_offset_beyond_the_end_is_an_error_that_says_how_long_the_file_is(use: Use, root: Path) -> None:
    (root / "a").write_text(numbered(3))
    (root / "empty").touch()

    beyond = await use("read", path="a", offset=4)
    assert (beyond.text, beyond.is_error) == ("offset 4 is beyond the end of a, which has 3 lines; begin earlier", True)
    assert (await use("read", path="empty")).text == "(empty file)"
    assert (await use("read", path="a", offset=0)).is_error
    assert (await use("read", path="a", limit=0)).is_error


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    lines=st.lists(st.sampled_from(["", "a", "bb", "é" * 3]), max_size=12),
    end=st.booleans(),
    first=st.integers(1, 14),
    limit=st.none() | st.integers(1, 14),
)
def test_a_page_is_what_slicing_the_lines_gives(lines: list[str], end: bool, first: int, limit: int | None) -> None:
    text = "\n".join(lines) + ("\n" if end and lines else "")
    whole = text.encode().split(b"\n")
    whole = [line + b"\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])

    page = read_page(io.BytesIO(text.encode()), first=first, limit=limit, most_lines=100, most_bytes=10_000)

    assert page.total == len(whole)
    assert page.cut.text.encode() == b"".join(whole[first - 1 :][: len(whole) if limit is None else limit])


@pytest.mark.slow
async def test_the_last_page_of_a_long_file_takes_bounded_memory(use: Use, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(100 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    result = await use("read", path="huge", offset=2)

    assert result.text == "last\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KB


def picture(size: tuple[int, int], kind: str) -> bytes:
    written = io.BytesIO()
    PIL.Image.new("P", size, 3).convert("RGB").save(written, kind)
    return written.getvalue()


@pytest.mark.slow
@rows("kind", ["JPEG", "PNG", "GIF", "WEBP"])
async def test_a_picture_is_attached_and_made_to_fit_2000_by_2000(use: Use, root: Path, kind: str) -> None:
    (root / "p.txt").write_bytes(picture((30, 20), kind))
    (root / "large").write_bytes(picture((2500, 500), kind))

    small, large = await use("read", path="p.txt"), await use("read", path="large")

    name = f"image/{kind.lower()}"
    assert small.text == f"[picture p.txt: {name}, 30x20 pixels]"
    assert [(image.media_type, image.content) for image in small.images] == [(name, picture((30, 20), kind))]
    assert large.text == f"[picture large: {name}, 2000x400 pixels (made smaller, from 2500x500)]"
    with PIL.Image.open(io.BytesIO(large.images[0].content)) as opened:
        assert opened.size == (2000, 400)


async def test_pictures_are_left_as_they_are_when_resizing_is_off(root: Path) -> None:
    (root / "p").write_bytes(picture((2500, 10), "PNG"))

    result = await make_read(Workspace(root), resize_pictures=False).run({"path": "p"})

    assert result.images[0].content == picture((2500, 10), "PNG")


async def test_half_a_picture_and_one_that_claims_too_many_pixels_are_errors(use: Use, root: Path) -> None:
    whole = picture((100, 100), "PNG")
    (root / "half").write_bytes(whole[:60])
    for size in (8_000, 20_000, 60_000):
        head = whole[12:16] + size.to_bytes(4) * 2 + whole[24:29]
        (root / str(size)).write_bytes(whole[:12] + head + zlib.crc32(head).to_bytes(4) + whole[33:])

    answers = [await use("read", path=name) for name in ("half", "8000", "20000", "60000")]

    assert all(answer.is_error for answer in answers)
    assert answers[0].text.startswith("not a picture that can be read")
    assert all("pixels" in answer.text for answer in answers[1:])


async def test_a_picture_without_the_extra_is_an_error_that_names_it(
    use: Use, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    monkeypatch.delitem(__import__("sys").modules, "PIL.Image")
    (root / "p").write_bytes(b"\x89PNG\r\n\x1a\n")

    assert (await use("read", path="p")).text == "cannot look at pictures: install the extra 'images' (pillow)"


def test_reading_stops_soon_after_the_page_of_a_huge_file(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("w+b") as file:
        file.write(b"one\ntwo\nthree\n")
        file.truncate(4 << 30)  # sparse: nothing of it is stored, and to read it all takes seconds
        file.seek(0)

        page = read_page(file, first=1, limit=2, most_lines=2000, most_bytes=50_000)

        assert file.tell() < 1 << 26
    assert (page.cut.text, page.last, page.total, page.exact) == ("one\ntwo\n", 2, 4, False)


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
