"""The log: written before its effects, strict when read, equal when replayed, and never trusted."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from agent import Agent, ScriptedModel, answer, call, tool
from agent.history.playback import ReplayResult, replay
from agent.log.reading import LogError, read_log
from agent.models.scripted import fail
from agent.presets import PRESETS
from agent.vocabulary.encoding import dump, plain, to_record
from agent.vocabulary.events import CallAnswered, HistoryGiven, InferenceFinished
from agent.vocabulary.messages import AssistantMessage, Image, RequestedCall, ToolMessage, ToolResult, UserMessage
from bp import BProgram, BThread, BThreadBody, FrozenMapping, Step, bthread, sync
from tests.agent.conftest import MakeAgent, grumble, note
from tests.agent.soundness import recorded
from tests.tables import rows

DEFAULT = PRESETS["default"]

SCRIPT = (
    answer(
        "Look.", call("note", text="a"), call("bash", command="rm -rf /"), call("bash", command="touch .git/config")
    ),
    fail("busy", retryable=True),
    answer("Cut.", call("note", '{"text": "b'), stop_reason="length"),
    [call("grumble"), call("unheard_of")],
    "Done.",
)


@tool
async def bash(command: str) -> ToolResult:
    """Say what was asked."""
    return ToolResult(command, details={"exit_code": 0})


@pytest.fixture
def agent(make_agent: MakeAgent) -> Agent:
    """An agent that has been through something, its log closed."""
    agent = make_agent(*SCRIPT, tools=[note, grumble, evolve(bash, marks=())])
    agent.run_sync("Go")
    agent.close()
    return agent


def path_of(agent: Agent) -> Path:
    assert agent.log_path is not None
    return agent.log_path


def replay_of(path: Path, *threads: BThread) -> ReplayResult:
    return replay(read_log(path), BProgram(*DEFAULT.bthreads(), *threads))


# Writing: what stands in a log is in `tests/outside/test_log.py`


def test_a_late_log_is_written_when_the_agent_is_closed_and_is_the_same(tmp_path: Path) -> None:
    def closed(name: str, *, late: bool) -> tuple[int, list[Any]]:
        with Agent(ScriptedModel(["Done."]), log=tmp_path / name, log_late=late) as agent:
            agent.run_sync("Go")
            before = (tmp_path / name).stat().st_size
        records = read_log(tmp_path / name).records
        return before, [(record["name"], record["data"] | {"duration": 0}) for record in records]

    late, told_late = closed("late.jsonl", late=True)
    flushed, told = closed("flushed.jsonl", late=False)

    assert (late, told_late) == (0, told)
    assert flushed == (tmp_path / "flushed.jsonl").stat().st_size


def test_a_late_log_that_cannot_be_written_is_told_when_the_agent_is_closed(tmp_path: Path) -> None:
    agent = Agent(ScriptedModel(["Done."]), log=tmp_path / "full.jsonl", log_late=True)
    agent.run_sync("Go")
    assert agent.journal._log is not None
    os.dup2(os.open("/dev/full", os.O_WRONLY), agent.journal._log._descriptor)

    with pytest.raises(LogError, match=r"cannot write the log .*No space left"):
        agent.close()
    agent.close()  # nothing is left to tell


def test_a_log_is_made_with_its_folder_for_its_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "run.jsonl"
    Agent(ScriptedModel([]), log=path).close()
    before = path.read_bytes()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(LogError, match="exists already"):
        Agent(ScriptedModel([]), log=path)
    assert path.read_bytes() == before


# Reading: strict, except for a torn last line


def damaged(agent: Agent, change: Callable[[list[bytes]], None]) -> Path:
    lines = path_of(agent).read_bytes().splitlines(keepends=True)
    change(lines)
    copy = path_of(agent).with_name("damaged.jsonl")
    copy.write_bytes(b"".join(lines))
    return copy


def test_a_torn_last_line_is_reported_and_left_out(agent: Agent) -> None:
    whole = path_of(agent).read_bytes()
    last_line = whole.rindex(b"\n", 0, -1) + 1
    copy = path_of(agent).with_name("torn.jsonl")
    for cut in range(last_line + 1, len(whole) - 1, 7):
        copy.write_bytes(whole[:cut])
        log = read_log(copy)

        assert log.torn
        assert len(log.records) == len(recorded(agent).records) - 1
    assert replay_of(copy).difference is None


def test_a_last_line_without_its_end_is_whole(agent: Agent) -> None:
    copy = damaged(agent, lambda lines: lines.append(lines.pop().rstrip()))

    assert not read_log(copy).torn


@rows("line", [b"\n", b"{\n", b"5\n", b"[]\n", b'{"step": 3}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
@rows("where", [2, -1])
def test_a_broken_line_is_an_error_that_names_it(agent: Agent, line: bytes, where: int) -> None:
    """Found: a broken last line counted as torn although it was whole."""

    def change(lines: list[bytes]) -> None:
        lines[where] = line

    number = where + 1 if where > 0 else len(recorded(agent).records) + 1
    with pytest.raises(LogError, match=f"line {number}: "):
        read_log(damaged(agent, change))


@rows("header", [b"{}\n", b'{"format": "1"}\n', b'{"format": 1, "name": "prompt_given"}\n', b"x\n"])
def test_a_file_without_a_header_is_no_log(agent: Agent, header: bytes) -> None:
    def change(lines: list[bytes]) -> None:
        lines[0] = header

    with pytest.raises(LogError, match="line 1"):
        read_log(damaged(agent, change))


def test_a_newer_format_is_refused(agent: Agent) -> None:
    def change(lines: list[bytes]) -> None:
        lines[0] = lines[0].replace(b'"format":2', b'"format":3')

    with pytest.raises(LogError, match="format 3, this program reads 2; use a newer bpagent"):
        read_log(damaged(agent, change))


@rows("content", [None, b""])
def test_a_missing_or_empty_file_is_no_log(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(LogError, match=str(path)):
        read_log(path)


# Replay


@pytest.mark.slow
def test_each_edited_record_is_found_or_refused(agent: Agent) -> None:
    """What came from outside may be edited so that the rest still follows; then that is another run."""
    numbers = {record["name"]: number for number, record in enumerate(recorded(agent).records, start=1)}
    for number in numbers.values():  # one record of each kind
        record = recorded(agent).records[number - 1]
        for change in EDITS:
            edited = change(json.loads(json.dumps(record)))
            if edited == record:
                continue

            def write(lines: list[bytes], number: int = number, edited: Any = edited) -> None:
                lines[number] = json.dumps(edited).encode() + b"\n"

            assert found(damaged(agent, write)) or (edited["data"] != record["data"] and record["origin"] == "outside")


@pytest.mark.slow
def test_each_missing_record_is_found(agent: Agent) -> None:
    for missing in range(1, len(recorded(agent).records)):  # the last one may be missing: then the run was cut off
        result = replay_of(damaged(agent, lambda lines, missing=missing: lines.pop(missing)))  # type: ignore[misc]

        assert result.difference is not None, f"line {missing + 1}"


def found(path: Path) -> bool:
    try:
        return replay_of(path).difference is not None
    except LogError:
        return True


EDITS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    lambda record: {**record, "step": record["step"] + 1},
    lambda record: {**record, "super_step": record["super_step"] + 1},
    lambda record: {**record, "name": "tool_started"},
    lambda record: {**record, "name": "no_such_kind"},
    lambda record: {**record, "origin": "gate"},
    lambda record: {**record, "origin": "outside"},
    lambda record: {**record, "data": []},
    lambda record: {**record, "data": None},
    lambda record: {**record, "data": {}},
    lambda record: {**record, "data": {**record["data"], "call": "call_99"}},
    lambda record: {**record, "data": {**record["data"], "call": 5}},
    lambda record: {**record, "data": {**record["data"], "text": "changed"}},
    lambda record: {**record, "data": {**record["data"], "extra": 1}},
    lambda record: {**record, "refusals": []},
)


def test_another_b_thread_makes_a_difference(agent: Agent) -> None:
    @bthread
    def no_notes() -> BThreadBody:
        yield sync(refuse=CallAnswered, because="silence")

    difference = replay_of(path_of(agent), no_notes()).difference

    assert difference is not None
    assert difference.recorded is not None
    assert difference.recorded["name"] == "call_answered"
    assert str(difference).startswith(f"record {difference.number} differs\n  recorded: step ")


def test_a_b_thread_that_fails_in_the_replay_makes_a_difference(agent: Agent) -> None:
    """Found: the replay raised instead."""

    @bthread
    def stumble() -> BThreadBody:
        yield sync(wait_for=InferenceFinished)
        raise ValueError("stumbled")

    difference = replay_of(path_of(agent), stumble()).difference

    assert difference is not None
    assert (difference.number, difference.replayed) == (3, None)


# Values


@frozen
class Inner:
    number: int


@rows(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (b"\x00\xff", "AP8="),
        ((1, "a"), [1, "a"]),
        (frozenset({2, 1}), [1, 2]),
        (FrozenMapping({"a": (1,)}), {"a": [1]}),
        (Inner(1), {"number": 1}),
        (UserMessage("a"), {"role": "user", "text": "a"}),
        (
            UserMessage("a", (Image("image/png", b"\x89P"),)),
            {"role": "user", "text": "a", "images": [{"media_type": "image/png", "content": "iVA="}]},
        ),
    ],
)
def test_a_value_has_a_form_in_the_log(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_a_value_without_a_form_in_the_log_is_refused() -> None:
    with pytest.raises(TypeError, match="no form in the log"):
        plain(object())


def test_an_earlier_conversation_comes_back_from_a_log() -> None:
    from agent.log.reading import Decoder

    said = AssistantMessage("Let me see.", (RequestedCall("a", "note", "{}"),), "hm")
    given = HistoryGiven((UserMessage("Go"), said, ToolMessage("a", ToolResult("noted", is_error=True))))
    record = json.loads(dump(to_record(Step(1, given, 1, None))))

    assert Decoder().event(record) == given
