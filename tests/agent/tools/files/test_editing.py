"""`edit`: only the matched span changes, and the diff says exactly what (S2)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.files.editing import compare
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
