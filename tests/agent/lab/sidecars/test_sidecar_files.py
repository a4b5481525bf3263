"""The files of sidecars: what is no fact is named, of two the first counts, and lines are whole or not there."""

import json
from pathlib import Path

import pytest
from attrs import evolve

from agent.lab.json_lines import append_line, whole_lines
from agent.lab.sidecars.sidecar import KeptAudit, KeptScore, Sidecar, SidecarError, sidecar_path


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2: this is not JSON"),
        ("[]", "line 2: expected a JSON object, found list"),
        ('{"said": "score", "by": "w"}', "line 2: no score and no audit"),
        ('{"said": "joke"}', "nothing is known of 'joke'"),
        ('{"said": "score", "by": "w", "identity": "", "line": 2, "call": "a", "value": 1.5}', "from 0 to 1, not 1.5"),
        ('{"said": "score", "by": "w", "identity": "", "line": 2, "call": "a", "value": NaN}', "from 0 to 1, not nan"),
        (
            '{"said": "score", "by": "w", "identity": "", "line": true, "call": "a", "value": 1}',
            "True @ score.line",
        ),
        ('{"said": "audit", "by": "a", "identity": "", "verdict": "fine"}', "found 'fine' @ audit.verdict"),
        ('{"said": "all", "by": "a", "identity": "", "calls": "3"}', "expected int, found '3' @ all.calls"),
        ('{"said": "all", "by": 3, "identity": "", "calls": 3}', "expected str, found 3 @ all.by"),
    ],
)
def test_a_line_that_is_no_fact_is_named(line: str, told: str, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    sidecar_path(log).write_text(json.dumps({"sidecar": 1, "log": "run.jsonl", "digest": "d"}) + f"\n{line}\n")

    with pytest.raises(SidecarError, match=r"run\.jsonl\.sidecar") as caught:
        Sidecar(log, "d")

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("{}", "no header of a sidecar"),
        ('{"sidecar": 9, "digest": "d"}', "has format 9"),
        ('"text"', "expected a JSON"),
    ],
)
def test_a_file_that_is_no_sidecar_is_refused(header: str, told: str, tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    sidecar_path(log).write_text(header + "\n")

    with pytest.raises(SidecarError, match=told):
        Sidecar(log, "d")


def test_of_two_lines_about_the_same_the_first_counts(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    one, other = Sidecar(log, "d"), Sidecar(log, "d")  # two processes at once
    kept = KeptScore("w", "i", 3, "a", 0.5)

    one.add(kept)
    one.add(evolve(kept, value=0.6))
    other.add(evolve(kept, value=0.7))

    assert len(whole_lines(sidecar_path(log))) == 4  # its header twice
    assert Sidecar(log, "d").scores() == (kept,)
    assert sidecar_path(log).stat().st_mode & 0o077 == 0


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    sidecar = Sidecar(log, "d")
    sidecar_path(log).symlink_to("/dev/full")

    with pytest.raises(SidecarError, match="what is in it is kept"):
        sidecar.add(KeptAudit("a", "i", "harmless"))


def test_lines_grow_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    assert whole_lines(path) == []
    append_line(path, "one")
    with path.open("ab") as file:
        file.write(b"x" * 200_000)  # a line without an end, longer than what is read at once

    assert whole_lines(path) == ["one"]
    append_line(path, "two")

    assert path.read_text() == "one\ntwo\n"
