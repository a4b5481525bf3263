"""`convert`: a recorded log of format 1 becomes one of format 2, which can be read, replayed and judged again."""

import json
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.history.playback import replay
from agent.history.rebuilding import changed_bthreads, rebuild
from agent.history.what_if import find_causes, what_if
from agent.log.convert import convert
from agent.log.reading import LogError, OldFormat, read_log, recorded_steps
from agent.vocabulary.events import CallAnswered, HistoryGiven, ToolFinished
from agent.vocabulary.messages import Image, ToolMessage, ToolResult
from constitution import POLICIES

RECORDED = Path(__file__).parent / "recorded" / "format-1.jsonl"
KEY = b"k" * 32
"""The key with which the yes in the recorded log is signed."""

PNG = Image("image/png", b"\x89PNG")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user who has the key."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "key").write_bytes(KEY)
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def old(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(RECORDED.read_bytes())
    return path


def converted(path: Path) -> Path:
    new = convert(path)
    assert new is not None
    return new


def test_a_log_of_format_1_is_refused_by_name_with_the_cure(old: Path) -> None:
    with pytest.raises(OldFormat) as error:
        read_log(old)

    cure = f"`bpagent convert {old}` writes one of that format beside it"
    assert str(error.value) == f"{old}: the log has format 1, this program reads 2; {cure}"


def test_the_new_log_stands_beside_the_old_one_and_names_its_content(old: Path) -> None:
    new = converted(old)

    run = read_log(new)
    assert (new.name, old.read_bytes(), new.stat().st_mode & 0o777) == ("run-2.jsonl", RECORDED.read_bytes(), 0o600)
    assert (run.header["format"], run.integrity, run.torn) == (2, "", False)
    assert run.header["converted"]["format"] == 1
    assert len(run.header["converted"]["sha256"]) == 64
    assert [convert(old), convert(new)] == [None, None]


def test_results_are_one_object_in_every_record_of_it(old: Path) -> None:
    events = [step.event for step in recorded_steps(read_log(converted(old)))]

    finished = {event.call.id: event.result for event in events if isinstance(event, ToolFinished)}
    answers = {event.call: event.result for event in events if isinstance(event, CallAnswered)}
    [history] = [event for event in events if isinstance(event, HistoryGiven)]
    [earlier] = [message for message in history.messages if isinstance(message, ToolMessage)]
    details = {"width": 1, "usage": {"input_tokens": 7, "output_tokens": 5}}
    assert finished["call_2"] == ToolResult("a picture", images=(PNG,), details=details)
    assert finished["call_2"].duration > 0
    assert finished["call_3"].is_error
    assert {call: answers[call] for call in finished} == finished
    assert answers["call_4"] == ToolResult("not executed: invalid arguments: at: missing", is_error=True)
    assert earlier.result == ToolResult("a face", images=(PNG,))


def test_it_is_replayed_explained_and_judged_again(old: Path) -> None:
    run = read_log(converted(old))

    assert replay(run, rebuild(run)).difference is None
    [cause] = find_causes(run, "call_2")
    finished = cause.event(ToolFinished)
    assert (finished is not None and finished.result.images) == (PNG,)
    judged = what_if(run, changed_bthreads(run, policy=POLICIES["strict"]))
    assert ([call.call.id for call in judged.changed], judged.judged) == (["call_2"], 3)


def test_a_new_log_that_cannot_be_written_whole_is_removed(old: Path) -> None:
    """A part of it would count as converted."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, limit[1]))
    try:
        with pytest.raises(LogError, match="cannot write the log"):
            convert(old)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)

    assert [path.name for path in old.parent.glob("*.jsonl")] == ["run.jsonl"]


def test_a_yes_is_signed_again_if_it_was_signed_with_the_key_of_this_user(old: Path, home: Path) -> None:
    assert read_log(converted(old)).unsigned == ()

    (old.parent / "run-2.jsonl").unlink()
    (home / "key").write_bytes(b"another" * 8)
    run = read_log(converted(old))

    assert [run.records[place]["name"] for place in run.unsigned] == ["approval_answered"]


def cut_off(lines: list[bytes]) -> None:
    lines[-1] = lines[-1][:30]


def tampered(lines: list[bytes]) -> None:
    lines[4] = lines[4].replace(b"call_1", b"call_9")


def without_text(lines: list[bytes]) -> None:
    """The log is not chained, and a result lacks its text."""
    header = json.loads(lines[0])
    del header["chain"]
    lines[0] = json.dumps(header).encode() + b"\n"
    lines[:] = [line.replace(b'"result":"a picture"', b'"output":"a picture"') for line in lines]


def without_configuration(lines: list[bytes]) -> None:
    without_text(lines)
    lines[0] = b'{"format": 1}\n'


def test_a_torn_end_is_left_out_and_a_changed_or_invalid_log_is_refused(old: Path) -> None:
    wrong: list[object] = []
    for change, why in (
        (tampered, "line 6 (step 5, drafts_settled) does not follow the line before it"),
        (without_text, "this is no log of format 1 (KeyError('result')); it was changed or damaged"),
        (without_configuration, "this is no log of format 1 (KeyError('configuration'))"),
    ):
        write(old, change)
        with pytest.raises(LogError) as error:
            convert(old)
        if why not in str(error.value) or os.path.exists(old.parent / "run-2.jsonl"):
            wrong.append((change, str(error.value)))
    assert not wrong

    write(old, cut_off)
    assert len(read_log(converted(old)).records) == len(RECORDED.read_bytes().splitlines()) - 2


def write(path: Path, change: Callable[[list[bytes]], None]) -> None:
    lines = RECORDED.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))
