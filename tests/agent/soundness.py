"""What holds of every run, whatever happens in it: checked from its log and its conversation."""

import json
import threading
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


def assert_valid_chat(messages: list[dict[str, Any]]) -> None:
    """Fail unless a chat-completions server could take these messages."""
    parts: list[tuple[str, ...]] = []
    for position, message in enumerate(messages):
        if message["role"] == "tool":
            assert isinstance(message["content"], str)
            parts.append(("answer", message["tool_call_id"]))
            continue
        assert message["role"] in ("user", "assistant") or (message["role"] == "system" and position == 0)
        assert message.get("tool_calls", True), f"message {position} has an empty list of calls"
        calls = message.get("tool_calls", ())
        assert all(call["type"] == "function" for call in calls)
        if message["content"] or not calls:
            parts.append(("said", "".join(str(part) for part in message["content"] or ()).strip()))
        parts += (("call", call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls)
    assert_valid_parts(parts)


def assert_valid_items(items: list[dict[str, Any]]) -> None:
    """Fail unless a responses server could take these items."""
    parts: list[tuple[str, ...]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            parts.append(("call", item["call_id"], item["name"], item["arguments"]))
        elif kind == "function_call_output":
            parts.append(("answer", item["call_id"]))
        else:
            parts.append(("said", "".join(str(part) for part in item.get("content") or ())))
    assert_valid_parts(parts)


def assert_valid_parts(parts: list[tuple[str, ...]]) -> None:
    owed: list[str] = []
    answering = False  # whether an answer came since the last call
    for position, (kind, *facts) in enumerate(parts):
        if kind == "call":
            id, name, arguments = facts
            assert not answering or not owed, f"part {position} is a call between answers"
            assert id not in owed, f"part {position} has the id of another open call"
            assert id.strip(), "a call without an id"
            assert name.strip(), "a call without a name"
            assert max(len(id), len(name)) <= 64, f"part {position} has a long id or name"
            assert isinstance(json.loads(arguments), dict), f"arguments are {arguments!r}"
            owed, answering = [*owed, id], False
        elif kind == "answer":
            assert owed, f"part {position} answers {facts[0]!r}, which nobody asked for"
            assert facts[0] == owed.pop(0), f"part {position} answers out of order"
            answering = True
        else:
            assert not owed, f"part {position} comes before the answers to {owed}"
            assert facts[0], f"part {position} says nothing"
    assert not owed, f"nothing answers {owed}"


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
