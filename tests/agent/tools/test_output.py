"""`agent.tools.output`: the beginning and the end of any output, within a limit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools import output as spilling
from agent.tools.output import Retained, Retention, keep_head

PIECES = st.lists(st.binary(max_size=12), max_size=12)
LIMITS = st.integers(1, 20)


def collected(pieces: list[bytes], limit: int) -> Retained:
    output = Retention(limit).collector()
    for piece in pieces:
        output.add(piece)
    return output


@pytest.mark.slow
@given(PIECES, LIMITS)
def test_an_output_is_whole_up_to_the_limit_and_cut_there(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)

    output = collected(pieces, limit)

    assert output.truncated == (len(whole) > limit)
    if not output.truncated:
        assert output.text() == whole.decode("utf-8", "replace")
    else:
        assert f"[output truncated: {len(whole) - limit} of {len(whole)} bytes left out here]" in output.text()


@pytest.mark.slow
@given(st.text(max_size=60), LIMITS)
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    assert "\ufffd" not in collected([text.replace("\ufffd", "").encode()], limit).text()
    assert "\ufffd" not in keep_head(text.replace("\ufffd", "").encode(), limit, len(text.encode()))


@pytest.mark.slow
@given(PIECES, LIMITS)
def test_the_division_into_pieces_does_not_matter(pieces: list[bytes], limit: int) -> None:
    assert collected(pieces, limit).text() == collected([b"".join(pieces)], limit).text()


# Files with whole outputs: they belong to the process, and go with it.


SPILLING = """
import os
from agent.tools.output import Retention
output = Retention(10, keep="tail", spill=True).collector()
output.add(b"x" * 100)
output.text()
if os.fork() == 0:
    raise SystemExit
os.wait()
print(output.path, os.path.getsize(output.path), oct(os.stat(os.path.dirname(output.path)).st_mode & 0o777))
"""


@pytest.mark.slow
def test_the_files_of_a_process_go_when_it_ends_and_not_with_one_that_it_forked(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}

    ended = subprocess.run([sys.executable, "-c", SPILLING], env=env, capture_output=True, text=True, check=True)

    path, size, mode = ended.stdout.split()
    assert path.startswith(f"{tmp_path}/bpagent-outputs-")
    assert (size, mode) == ("100", "0o700")
    assert os.listdir(tmp_path) == []


def spill(content: bytes) -> str:
    output = Retention(10, keep="tail", spill=True, quota=100).collector()
    output.add(content)
    output.text()
    assert output.path is not None
    return output.path


@pytest.mark.usefixtures("temporary")
def test_the_oldest_files_go_when_all_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "MOST_KEPT", 300)

    paths = [spill(b"%d" % number * 100) for number in range(1, 6)]

    assert [os.path.exists(path) for path in paths] == [False, False, True, True, True]


@pytest.mark.usefixtures("temporary")
def test_a_folder_that_was_taken_away_is_made_anew() -> None:
    first = spill(b"x" * 20)
    os.unlink(first)
    os.rmdir(os.path.dirname(first))

    assert os.path.exists(spill(b"y" * 20))


def test_where_there_is_no_place_the_answer_says_so(temporary: Path) -> None:
    temporary.rmdir()
    output = Retention(10, keep="tail", spill=True).collector()
    output.add(b"x" * 100)

    assert "all of it could not be kept: No such file or directory" in output.text()
