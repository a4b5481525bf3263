"""Laws of every run, over random scripts: each call has one answer, the log replays equal, nothing hangs.

What is checked of each run stands in `soundness.py`: the order of messages, one end and nothing after it, the story of
each call, and the replay of its log.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import Agent, ScriptedModel, answer, call, tool
from agent.models.scripted import ScriptedCall, fail
from agent.presets import PRESETS
from agent.presets.preset import Preset
from agent.vocabulary.messages import UserMessage
from bp import Step
from tests.agent.conftest import grumble, note
from tests.agent.soundness import assert_sound, recorded

DEFAULT = PRESETS["default"]
CASES = int(os.environ.get("CASES", "50"))  # on each event loop; `make laws` plays 5,000


@tool(category="write", parallel=True)
async def slow(turns: int = 3) -> str:
    """Take a few turns of the event loop."""
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()
    return "slow"


@tool(category="write")
async def shell(command: str) -> str:
    """Pretend to be a shell: rejected and questionable commands need not run."""
    return command


IDS = st.sampled_from([None, None, None, "same", "", " ", "x" * 70, "ok-1"])

CALLS = st.one_of(
    st.builds(call, st.sampled_from(["note", "slow", "grumble"]), id=IDS),
    st.builds(lambda id: call("note", text="n").with_id(id), IDS),
    st.builds(
        lambda arguments, id: ScriptedCall("note", arguments, id),
        st.sampled_from(['{"text": "cut', "[]", "null", "", '{"text": 1}', '{"text": "a", "text": "b"}', '{"x": NaN}']),
        IDS,
    ),
    st.builds(lambda tool, id: ScriptedCall(tool, "{}", id), st.sampled_from(["", "unheard_of", "not e"]), IDS),
    st.sampled_from(
        [call("bash", command="rm -rf /"), call("bash", command="touch .git/config"), call("read_file", path="../../x")]
    ),
)

TURNS = st.one_of(
    st.lists(CALLS, min_size=1, max_size=4),
    st.builds(lambda text, calls: answer(text, *calls), st.sampled_from(["", "So."]), st.lists(CALLS, max_size=3)),
    st.builds(
        lambda calls, reason: answer("Cut", *calls, stop_reason=reason),
        st.lists(CALLS, min_size=1, max_size=3),
        st.sampled_from(["length", "content_filter", "stop"]),
    ),
    st.sampled_from(["", "", fail("busy", retryable=True), fail("bad"), ValueError("broken")]),
)


@frozen
class Scene:
    """What a run is made of: the model's turns, the preset's choices, and who steps in, when."""

    turns: list[Any]
    sequential: bool
    together: str
    follow_ups: str
    max_iterations: int | None
    stop_after: str
    said: list[tuple[str, int]]  # what people do, after which step
    yes: bool


SCENES = st.builds(
    Scene,
    turns=st.lists(TURNS, max_size=5),
    sequential=st.sampled_from([True, True, False]),
    together=st.sampled_from(["none", "neighbours", "all"]),
    follow_ups=st.sampled_from(["none", "one", "all"]),
    max_iterations=st.sampled_from([None, 1, 2, 5]),
    stop_after=st.sampled_from(["call", "step"]),
    said=st.lists(
        st.tuples(st.sampled_from(["stop", "abort", "steer", "steer", "follow_up", "follow_up"]), st.integers(1, 40)),
        max_size=3,
    ),
    yes=st.booleans(),
)


def preset_of(scene: Scene) -> Preset:
    return evolve(
        DEFAULT,
        sequential=scene.sequential,
        together=scene.together,  # type: ignore[arg-type]
        follow_ups=scene.follow_ups,  # type: ignore[arg-type]
        max_iterations=scene.max_iterations,
        stop_after=scene.stop_after,  # type: ignore[arg-type]
    )


async def played(scene: Scene, log: Path) -> Agent:
    """Play a scene: people speak up at its steps, and nothing that they say may be lost."""
    heard: list[str] = []

    def step_in(step: Step) -> None:
        for verb, at in scene.said:
            if step.number == at:
                getattr(run, verb)(f"{verb} {at}")
                heard.extend([f"{verb} {at}"] * (verb in ("steer", "follow_up")))

    agent = Agent(
        ScriptedModel([*scene.turns, "Done."]),
        [note, slow, grumble, evolve(shell, name="bash")],
        workspace=log.parent,
        preset=preset_of(scene),
        approve=lambda _: scene.yes,
        log=log,
        on_step=step_in,
        wait=lambda _: 0.0,
    )
    with anyio.fail_after(100):  # on a machine with much else to do
        async with agent.start("Go") as run:
            pass
        said = (*(message.text for message in run.messages if isinstance(message, UserMessage)), *run.unheard)
        assert [words for words in heard if words not in said] == []
        if run.status in ("completed", "limit", "stopped", "aborted"):  # the conversation goes on
            await agent.run("Go on")
    return agent


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scene=SCENES)
def test_every_random_run_keeps_the_laws(backend: str, scene: Scene) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agent = anyio.run(played, scene, Path(folder) / "run.jsonl", backend=backend)
        agent.close()

        assert_sound(agent)
        assert_nothing_starts_after_it_was_asked_to_end(agent, scene)


def assert_nothing_starts_after_it_was_asked_to_end(agent: Agent, scene: Scene) -> None:
    """After an abort, or a stop after the call, no tool and no inference starts in that run."""
    deaf = {"abort_asked"} | ({"stop_asked"} if scene.stop_after == "call" else set())
    over = False
    for name in (record["name"] for record in recorded(agent).records):
        over = (over or name in deaf) and name != "run_ended"
        assert not (over and name in ("tool_started", "inference_requested", "proposed_action", "gate_approved"))
