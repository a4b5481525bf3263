"""What holds when a run breaks off, whatever broke it."""

import threading

import anyio
import pytest

from agent import Agent
from tests.agent.soundness import recorded, replayed


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
