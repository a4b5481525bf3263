"""`read`: pages of text in bounded memory, and pictures as attachments (S2)."""

import io
import os
import resource
import zlib
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.tools.files.reading import make_read, read_page
from agent.tools.workspace import Workspace
from tests.tables import rows

from .conftest import Use

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
