"""What holds of every run, whatever happens in it: checked from its log and its conversation."""

from agent.history.playback import ReplayResult, replay
from agent.log.reading import RecordedRun, read_log
from agent.models.chat import render_messages
from agent.models.model import ModelRequest
from agent.models.responses import render_input
from agent.session.agent import Agent
from agent.testing import assert_calls_answered
from bp import BProgram
from tests.agent.wires import assert_valid_chat, assert_valid_items

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
