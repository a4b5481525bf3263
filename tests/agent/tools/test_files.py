"""The tools that read, write, edit and list files (S0, S2)."""

import codecs
import io
import os
import resource
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.tools.collections import create_coding_tools, workspace_tools
from agent.tools.files import compare, edited, make_read, read_page
from agent.tools.workspace import Workspace
from agent.vocabulary.errors import ToolError
from tests.tables import rows

from .conftest import Call, plant

pytestmark = pytest.mark.anyio


MARKS = [
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
]  # fmt: skip


@rows(
    ("content", "old", "new", "wanted"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\nc", "b", "B", b"\xef\xbb\xbfa\r\nB\r\nc"),
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "b\nnew", b"a\r\nb\r\nnew\r\n"),
        (b"a\nb\r\nc\n", "a\nb", "1\n2", b"1\n2\r\nc\n"),
        (b"\xfe\xfe keep \x00 me", "keep", "kept", b"\xfe\xfe kept \x00 me"),
        (b"\xff\xfe odd!", "odd", "even", b"\xff\xfe even!"),
        *(
            (mark + "é 1\r\nb\r\n".encode(name), "é 1\nb", "é 2 ☃\nc", mark + "é 2 ☃\r\nc\r\n".encode(name))
            for mark, name in MARKS
        ),
        (b"caf\xe9: 1\n", ": 1", ": 2", b"caf\xe9: 2\n"),
        (b"a\r\nb\r\nc\r\nd\ne\r\n", "a\nb\nc", "a\nB\nc", b"a\r\nB\r\nc\r\nd\ne\r\n"),
        (b"a\r\nb\nc\r\nd\n", "b\nc", "b\nnew\nc", b"a\r\nb\nnew\nc\r\nd\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc\n", "c\n", b"c\r\n"),
        (b"a\nb\r\nc", "c", "c\nd\n", b"a\nb\r\nc\r\nd\r\n"),
        (b"no end", "end", "END", b"no END"),
        (b"a\r\nb\n", "b", "explicit\r\n", b"a\r\nexplicit\r\n\n"),
        ("x = “quoted” – it’s\u00a0so\n".encode(), 'x = "quoted" - it\'s so', "y", b"y\n"),
        ("‘a’ and “b”".encode(), '"b"', "c", "‘a’ and c".encode()),
        ("it’s it's".encode(), "it's", "is", "it’s is".encode()),
    ],
)
async def test_edits_keep_other_bytes(
    call: Call, root: Path, content: bytes, old: str, new: str, wanted: bytes
) -> None:
    (root / "f").write_bytes(content)

    result = await call("edit", path="f", oldText=old, newText=new)

    assert not result.is_error, result.text
    assert (root / "f").read_bytes() == wanted


async def test_one_text_becomes_another_and_the_diff_is_given(call: Call, root: Path) -> None:
    numbers = "".join(f"{number}\n" for number in range(3000))
    plant(root, {"f": "one\ntwo\nthree\nfour\nfive\nsix\n", "large": f"top\n{numbers}end"})

    result = await call("edit", path="f", oldText="four\n", newText="4\nfour and a half\n")
    large = await call("edit", path="large", oldText=numbers, newText=numbers.replace("1\n", "x\n"))

    diff = "--- a/f\n+++ b/f\n@@ -1,6 +1,7 @@\n one\n two\n three\n-four\n+4\n+four and a half\n five\n six\n"
    assert result.text == f"replaced text in f, from line 4\n{diff}"
    assert dict(result.details) == {"diff": diff, "firstChangedLine": 4}
    assert large.details["diff"].startswith("--- a/large\n+++ b/large\n@@ -1,2996 +1,2996 @@\n top\n 0\n-1\n-2\n")
    assert large.details["diff"].endswith("\n+299x\n 2992\n 2993\n 2994\n")


@rows(
    ("old", "new", "problem"),
    [
        ("none", "x", "oldText was not found in f"),
        (" b", "x", "oldText was not found in f"),
        ("a", "x", "oldText stands 3 times in f (at lines 1, 2, 2); give more"),
        ("", "x", "oldText is empty"),
        ("b", "b", "oldText and newText are the same"),
        ("b\ud800", "x", "oldText: a lone surrogate at position 1"),
        ("b", "\ud800", "newText: a lone surrogate at position 0"),
    ],
)
async def test_an_impossible_edit_is_an_error_and_changes_nothing(
    call: Call, root: Path, old: str, new: str, problem: str
) -> None:
    (root / "f").write_text("a\naa\nb\n")

    result = await call("edit", path="f", oldText=old, newText=new)

    assert result.is_error
    assert problem in result.text
    assert (root / "f").read_text() == "a\naa\nb\n"


MANY = 200_000


@rows(
    ("text", "wanted", "problem"),
    [("a" * 2 * MANY, "a" * MANY, "stands 100 times or more"), ("\n" * 2 * MANY + "x", "\n" * MANY + "y", "not found"),
     ("a" * 2 * MANY + "x", "a" * MANY + "y", "not found"), ("\r\n" * MANY, "\n" * (MANY // 2), "100 times or more")],
)  # fmt: skip
def test_a_text_that_nearly_stands_everywhere_is_looked_for_once(text: str, wanted: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        edited(text, wanted, "", "file")


texts = st.text("ab\n", max_size=40)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(before=texts, old=texts.filter(bool), new=texts, after=texts)
def test_the_diff_is_one_that_git_applies(
    tmp_path_factory: pytest.TempPathFactory, before: str, old: str, new: str, after: str
) -> None:
    was, becomes = f"{before}{old}{after}", f"{before}{new}{after}"
    if old == new:
        return
    folder = tmp_path_factory.mktemp("diff")
    (folder / "f").write_text(was)

    diff, line = compare(was, becomes, "f")
    (folder / "patch").write_text(diff)
    applied = subprocess.run(["git", "apply", "patch"], cwd=folder, capture_output=True, text=True)

    assert applied.returncode == 0, applied.stderr + diff
    assert (folder / "f").read_text() == becomes
    assert was.split("\n")[: line - 1] == becomes.split("\n")[: line - 1]


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


PARTLY = "only its beginning is shown"
PAGES: list[tuple[str | bytes, dict[str, int], str, dict[str, Any]]] = [
    ("\ufeffone\r\ntwo, no end", {}, "one\r\ntwo, no end", {}),
    ("", {}, "(empty file)", {}),
    (numbered(2001), {}, f"{numbered(2000)}\n[lines 1 to 2000 of 2001; use offset=2001 to go on]", {
        "cut_by": "lines", "total_lines": 2001, "total_bytes": len(numbered(2001)), "kept_lines": 2000,
        "kept_bytes": len(numbered(2000)), "partial_line": False,
    }),
    (numbered(2001), {"offset": 2001}, "line 2001\n", {}),
    (("x" * 1023 + "\n") * 60, {},
     ("x" * 1023 + "\n") * 50 + "\n[lines 1 to 50 of 60 (50 KB limit); use offset=51 to go on]", {"cut_by": "bytes"}),
    ("é" * 40_000, {}, f"{'é' * 25_600}\n\n[line 1 is longer than 50 KB, {PARTLY}]", {"partial_line": True}),
    ("é" * 40_000 + "\nnext\n", {}, f"{'é' * 25_600}\n\n[line 1 is longer than 50 KB, {PARTLY}; use offset=2 to go on]",
     {"partial_line": True}),
    (numbered(3), {"offset": 4}, "offset 4 is beyond the end of a, which has 3 lines; begin earlier", {}),
    (numbered(3), {"offset": 0}, "invalid arguments: offset: expected at least 1, found 0", {}),
    (numbered(3), {"limit": 0}, "invalid arguments: limit: expected at least 1, found 0", {}),
]  # fmt: skip


@rows(("content", "asked", "text", "truncation"), PAGES)
async def test_2000_lines_and_50_kb_are_shown_and_where_to_go_on(
    call: Call, root: Path, content: str, asked: dict[str, int], text: str, truncation: dict[str, Any]
) -> None:
    plant(root, {"a": content})

    result = await call("read", path="a", **asked)

    assert result.text == text
    assert truncation.items() <= dict(result.details.get("truncation", {})).items()


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
    whole = text.encode().splitlines(keepends=True)

    page = read_page(io.BytesIO(text.encode()), first=first, limit=limit, most_lines=100, most_bytes=10_000)

    assert page.total == len(whole)
    assert page.cut.text.encode() == b"".join(whole[first - 1 :][: len(whole) if limit is None else limit])


def test_reading_stops_soon_after_the_page_of_a_huge_file(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("w+b") as file:
        file.write(b"one\ntwo\nthree\n")
        file.truncate(4 << 30)  # sparse: nothing of it is stored, and to read it all takes seconds
        file.seek(0)

        page = read_page(file, first=1, limit=2, most_lines=2000, most_bytes=50_000)

        assert file.tell() < 1 << 26
    assert (page.cut.text, page.last, page.total, page.exact) == ("one\ntwo\n", 2, 4, False)


@pytest.mark.slow
async def test_the_last_page_of_a_long_file_takes_bounded_memory(call: Call, root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(100 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert (await call("read", path="huge", offset=2)).text == "last\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 * 1024  # KB


def picture(size: tuple[int, int], kind: str) -> bytes:
    written = io.BytesIO()
    PIL.Image.new("P", size, 3).convert("RGB").save(written, kind)
    return written.getvalue()


@pytest.mark.slow
@rows("kind", ["JPEG", "PNG", "GIF", "WEBP"])
async def test_a_picture_is_attached_and_made_to_fit_2000_by_2000(call: Call, root: Path, kind: str) -> None:
    plant(root, {"p.txt": picture((30, 20), kind), "large": picture((2500, 500), kind)})

    small, large = await call("read", path="p.txt"), await call("read", path="large")
    whole = await make_read(Workspace(root), resize_pictures=False).run({"path": "large"})

    name = f"image/{kind.lower()}"
    assert small.text == f"[picture p.txt: {name}, 30x20 pixels]"
    assert [(image.media_type, image.content) for image in small.images] == [(name, picture((30, 20), kind))]
    assert large.text == f"[picture large: {name}, 2000x400 pixels (made smaller, from 2500x500)]"
    with PIL.Image.open(io.BytesIO(large.images[0].content)) as opened:
        assert opened.size == (2000, 400)
    assert whole.images[0].content == picture((2500, 500), kind)


async def test_what_is_no_picture_is_an_error_and_so_is_a_missing_extra(
    call: Call, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = picture((100, 100), "PNG")
    plant(root, {"half": whole[:60]})
    for size in (8_000, 20_000, 60_000):  # pixels that it claims to have
        head = whole[12:16] + size.to_bytes(4) * 2 + whole[24:29]
        plant(root, {str(size): whole[:12] + head + zlib.crc32(head).to_bytes(4) + whole[33:]})

    half, *answers = [await call("read", path=name) for name in ("half", "8000", "20000", "60000")]
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.delitem(sys.modules, "PIL.Image")
    missing = await call("read", path="half")

    assert half.text.startswith("not a picture that can be read")
    assert all(answer.is_error and "pixels" in answer.text for answer in answers)
    assert missing.text == "cannot look at pictures: install the extra 'images' (pillow)"


@pytest.mark.parametrize("path", ["new/", "a/.", "a/..", "./"])
async def test_a_path_that_names_a_directory_is_no_file_to_write(call: Call, root: Path, path: str) -> None:
    (root / "a").mkdir()

    result = await call("write", path=path, content="x")

    assert (result.text, result.is_error) == (f"{path} names a directory, not a file; leave its end out", True)
    assert [entry.name for entry in root.iterdir()] == ["a"]


async def test_names_are_sorted_with_hidden_ones_and_500_are_shown(call: Call, root: Path) -> None:
    plant(root, dict.fromkeys(["b", "A", ".hidden", "C"], ""))
    (root / "dir").mkdir()
    (root / "link").symlink_to("dir")

    assert (await call("ls")).text == ".hidden\nA\nb\nC\ndir/\nlink"
    assert (await call("ls", path="dir")).text == "(empty directory)"
    plant(root, {f"dir/{number:03}": "" for number in range(501)})
    result = await call("ls", path="dir")
    assert result.text.endswith("\n499\n\n[500 of 501 entries; use limit=1000 for more]")
    assert dict(result.details) == {"entryLimitReached": 500}
    assert (await call("ls", path="dir", limit=501)).text.count("\n") == 500


async def test_a_file_with_a_byte_order_mark_is_read_without_it(call: Call, root: Path) -> None:
    for mark, name in MARKS:
        (root / "f").write_bytes(mark + "é\nb\n".encode(name))
        assert [(await call(tool, path="f")).text for tool in ("read", "read_file")] == ["é\nb\n"] * 2
    assert (await call("read", path="f", offset=2)).text == "b\n"


async def test_an_edit_does_not_mix_encodings(call: Call, root: Path) -> None:
    for content in ("café: 1\n".encode("latin-1"), "ﾃｽﾄ 1\n".encode("shift_jis")):
        (root / "f").write_bytes(content)
        refused = await call("edit", path="f", oldText=" 1", newText=" é")
        assert refused.is_error
        assert "f is not in UTF-8, and what else it is in is not known; give a newText in ASCII" in refused.text
        assert (root / "f").read_bytes() == content


async def test_s6_1_files_are_written_read_and_listed(call: Call, root: Path) -> None:
    written = await call("write_file", path="notes/a.txt", content="héllo\r\n")

    assert written.text == "wrote 8 bytes to notes/a.txt"
    assert (root / "notes/a.txt").read_bytes() == "héllo\r\n".encode()
    assert (await call("read_file", path="notes/a.txt")).text == "héllo\r\n"
    assert (await call("list_directory")).text == "notes/"


async def test_s6_3_a_long_file_is_cut_with_a_notice_in_bounded_memory(call: Call, root: Path) -> None:
    read_file = workspace_tools(root, output_limit=10)[1]
    plant(root, {"long": "é" * 8, "exact": "x" * 10, "huge": ""})
    os.truncate(root / "huge", 1 << 40)

    result, huge = await read_file.run({"path": "long"}), await call("read_file", path="huge")

    assert result.text == "ééééé\n[output truncated: the first 10 of 16 bytes]"
    assert result.details["truncated"]
    assert (await read_file.run({"path": "exact"})).text == "x" * 10
    assert len(huge.text) < 201 * 1024
    assert huge.text.endswith("the first 204800 of 1099511627776 bytes]")


@rows(
    ("name", "arguments", "text"),
    [
        ("read_file", {"path": "none"}, "no such file: {root}/none"),
        ("read_file", {"path": "."}, "{root} is a directory, not a file"),
        ("read_file", {"path": "a\0"}, "'a\\x00': a NUL character at byte 1; leave it out"),
        ("write_file", {"path": "x", "content": "a\ud800"}, "content: a lone surrogate at position 1"),
        ("write_file", {"path": "x" * 300, "content": ""}, "File name too long"),
        ("read_file", {"path": "x/" * 3000 + "x"}, "File name too long"),
    ],
)
async def test_errors_are_content_and_name_the_path(
    call: Call, root: Path, name: str, arguments: dict[str, str], text: str
) -> None:
    result = await call(name, **arguments)

    assert result.is_error
    assert text.format(root=root) in result.text
    assert os.listdir(root) == []


@rows("names", [("read_file", "write_file"), ("read", "write")])
async def test_a_file_that_another_program_changed_since_it_was_read_is_not_replaced_unseen(
    root: Path, names: tuple[str, str]
) -> None:
    tools = {tool.name: tool for tool in (*workspace_tools(root), *create_coding_tools(root))}
    read, write = (tools[name] for name in names)
    file = root / "a"
    file.write_text("one\ntwo\n")
    mine = {"path": str(file), "content": "mine\n"}

    await read.run({"path": "a"})
    os.utime(file)  # only its time is another one
    results = [await write.run(mine), await write.run(mine)]
    file.write_text("the user's\n")
    results += [await write.run(mine)]

    assert [result.is_error for result in results] == [False, False, True]
    assert results[-1].text == f"{file} has changed since you read it, and was not written; read it again first"
    assert file.read_text() == "the user's\n"
    await read.run({"path": "a"})
    assert not (await write.run(mine)).is_error
    file.unlink()
    assert not (await write.run(mine)).is_error
