"""What holds of every run, whatever happens in it: checked from its log and its conversation."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from agent.history.playback import ReplayResult, replay
from agent.log.reading import RecordedRun, read_log
from agent.models.chat import render_messages
from agent.models.model import ModelRequest
from agent.models.responses import render_input
from agent.session.agent import Agent
from agent.testing import assert_calls_answered
from bp import BProgram

TERMINAL = "run_ended"


def replayed(agent: Agent) -> ReplayResult:
    """Replay the log of `agent` on the same b-threads."""
    assert agent.log_path is not None
    return replay(read_log(agent.log_path), BProgram(*agent.bthreads))


def recorded(agent: Agent) -> RecordedRun:
    assert agent.log_path is not None
    return read_log(agent.log_path)


def assert_sound(agent: Agent) -> None:
    """Each call has one answer, in order; each run ends once, and nothing comes after; the log replays equal."""
    assert_calls_answered(agent.messages)
    assert_valid_on_both_wires(agent)
    log = recorded(agent)
    assert not log.torn
    assert_runs_end_once([str(record["name"]) for record in log.records])
    assert_calls_are_carried_out_once(log)
    assert replayed(agent).difference is None


def assert_valid_on_both_wires(agent: Agent) -> None:
    """A server of either kind could take the whole conversation."""
    request = ModelRequest(agent.system_prompt, agent.messages, agent.toolbox.schemas)
    assert_valid_chat(render_messages(request))
    assert_valid_items(render_input("any", request))


def assert_runs_end_once(names: list[str]) -> None:
    """`run_ended` comes once for each prompt, and last."""
    running = False
    for name in names:
        if name == "prompt_given":
            assert not running
            running = True
        elif name != "history_given":
            assert running, f"{name} happened when no run was under way"
            running = name != TERMINAL
    assert not running, "the last run never ended"


def assert_calls_are_carried_out_once(log: RecordedRun) -> None:
    """Proposed and judged at most once, started only if approved, finished once if started, and answered once."""
    if log.records and log.records[-1]["origin"] == "engine":
        return  # the engine failed: open calls stay open in the log
    turns: list[dict[str, list[str]]] = []
    for record in log.records:
        if record["name"] == "answer_committed":
            turns.append({call["id"]: [] for call in record["data"]["calls"]})
        elif isinstance(record["data"], dict) and "call" in record["data"]:
            call = record["data"]["call"]
            turns[-1][call["id"] if isinstance(call, dict) else call].append(record["name"])
    for turn in turns:
        for call, story in turn.items():
            assert told(story) in STORIES, f"call {call}: {story}"


STORIES = {
    ("call_answered",),
    ("proposed_action", "action_described", "gate_rejected", "call_answered"),
    ("proposed_action", "action_described", "gate_approved", "call_answered"),
    ("proposed_action", "action_described", "gate_approved", "tool_started", "tool_finished", "call_answered"),
}


def told(story: list[str]) -> tuple[str, ...]:
    """The story of one call without what users were asked on the way, what was looked up again, and what was lifted."""
    on_the_way = ("approval_", "facts_", "action_changed", "sandbox_")
    return tuple(name for name in story if not name.startswith(on_the_way))


# Both wire formats, read strictly: each call has one result, at once, in order, and nothing is in between


__all__ = ["assert_valid_chat", "assert_valid_items"]


def assert_valid_chat(messages: list[dict[str, Any]]) -> None:
    """Fail unless a chat-completions server could take these messages."""
    owed: list[str] = []
    for position, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            assert owed, f"message {position} answers {message['tool_call_id']!r}, which nobody asked for"
            assert message["tool_call_id"] == owed.pop(0), f"message {position} answers out of order"
            assert isinstance(message["content"], str)
            continue
        assert not owed, f"message {position} ({role}) comes before the answers to {owed}"
        assert role == "user" or role == "assistant" or (role == "system" and position == 0)
        if role == "assistant":
            owed = [_checked_call(call) for call in message.get("tool_calls", ())]
            assert len(set(owed)) == len(owed), f"message {position} has two calls with one id"
            assert owed or message["content"].strip(), f"message {position} says nothing"
            assert "tool_calls" not in message or owed, f"message {position} has an empty list of calls"
    assert not owed, f"nothing answers {owed}"


def _checked_call(call: dict[str, Any]) -> str:
    assert call["type"] == "function"
    _check(call["id"], call["function"]["name"], call["function"]["arguments"])
    return str(call["id"])


def _check(id: str, name: str, arguments: str) -> None:
    assert id.strip(), "a call without an id"
    assert len(id) <= 64, f"an id of {len(id)} characters"
    assert name.strip(), "a call without a name"
    assert len(name) <= 64, f"a name of {len(name)} characters"
    assert isinstance(json.loads(arguments), dict), f"arguments are {arguments!r}"


def assert_valid_items(items: list[dict[str, Any]]) -> None:
    """Fail unless a responses server could take these items."""
    owed: list[str] = []
    answering = False  # whether an output came since the last call
    for position, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            assert not answering or not owed, f"item {position} is a call between answers"
            _check(item["call_id"], item["name"], item["arguments"])
            assert item["call_id"] not in owed, f"item {position} has the id of another open call"
            owed, answering = [*owed, item["call_id"]], False
        elif kind == "function_call_output":
            assert owed, f"item {position} answers {item['call_id']!r}, which nobody asked for"
            assert item["call_id"] == owed.pop(0), f"item {position} answers out of order"
            answering = True
        else:
            assert not owed, f"item {position} ({kind}) comes before the answers to {owed}"
            assert list(_texts(item)), f"item {position} says nothing"
    assert not owed, f"nothing answers {owed}"


def _texts(item: dict[str, Any]) -> Iterator[str]:
    content = item.get("content")
    if isinstance(content, str):
        yield content
    else:
        yield from (str(part) for part in content or ())


# What holds when a run breaks off, whatever broke it


async def broken_off(agent: Agent, expected: type[Exception]) -> Exception:
    """Run `agent` until it breaks off, and check what is left of it."""
    with anyio.fail_after(100), pytest.raises(expected) as raised:
        await agent.run("Go")
    await anyio.wait_all_tasks_blocked()
    with anyio.move_on_after(10):  # a thread that has told its result waits a moment for more work
        while ours_alive():
            await anyio.sleep(0.01)
    assert not ours_alive()
    assert agent.program.status in ("failed", "closed")
    last = recorded(agent).records[-1]
    assert (last["name"], last["origin"]) == ("run_ended", "engine")
    assert (last["data"]["status"], last["data"]["reason"]) == ("failed", "engine_error")
    assert last["data"]["text"] == str(raised.value)
    assert [record["name"] for record in recorded(agent).records].count("run_ended") == 1
    assert replayed(agent).difference is None
    return raised.value


def ours_alive() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("bpagent")]
