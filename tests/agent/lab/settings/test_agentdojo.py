"""AgentDojo's ground truths through our loop and gate come to what its own pipeline comes to, task by task.

Runs where AgentDojo is installed: `make agentdojo`.
"""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

if find_spec("agentdojo") is None:
    pytest.skip("AgentDojo is not installed: make agentdojo", allow_module_level=True)

import warnings

with warnings.catch_warnings():  # those of its providers' libraries
    warnings.simplefilter("ignore")
    from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
    from agentdojo.functions_runtime import FunctionsRuntime

    from agent.lab.settings.agentdojo import (
        AGENTDOJO,
        SUITES,
        Room,
        Scene,
        Suite,
        calls_of,
        room_of,
        scripted,
        tools_of,
    )

from agent import Agent
from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.experiments.plan import Episode, MonitorPlan, Plan, Policy, ProtocolPlan
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import SPLITS
from agent.lab.settings.setting_checks import problems_of_task
from agent.lab.settings.workers import Manner, Worker
from agent.lab.settings.world import make_world
from agent.presets.preset import Preset
from agent.presets.shipped import PRESETS
from agent.session.agent import Run
from agent.vocabulary.events import GateApproved
from agent.vocabulary.messages import ToolMessage

STEADY = Manner(mistakes=0, noise=0, alarming=0)
NAMES = ("workspace", "travel", "banking", "slack")
PATIENT = evolve(PRESETS["default"], doom_loop=None)
SENT_NOW = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+")
"""The time of an e-mail that was sent now, the one thing that differs from run to run."""
WITHOUT_GROUND_TRUTH = {("workspace", f"injection_task_{number}") for number in range(6, 14)}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Any]:
    with make_world({}, folder=tmp_path) as world:
        yield lambda suite: room_of(world, Scene(suite))


def tasks_of(suite: Suite) -> list[str]:
    return [*suite.user_tasks, *suite.injection_tasks]


def by_their_pipeline(suite: Suite, name: str) -> tuple[list[str], bool]:
    """The results of the calls as texts, and whether the task's check holds."""
    task = suite.task(name)
    pipeline = GroundTruthPipeline(task)
    messages = pipeline.query("", FunctionsRuntime(suite.functions), suite.environment())[3]
    texts = [message["content"][0]["content"] for message in messages if message["role"] == "tool"]
    texts = [SENT_NOW.sub("now", text) for text in texts]
    return texts, suite.suite.run_task_with_pipeline(pipeline, task, None, {}, environment=suite.environment())[0]


def by_our_loop(
    suite: Suite, name: str, made: Room, threads: Any = (), preset: Preset = PATIENT
) -> tuple[list[str], bool, Run, int]:
    """The same of our loop with its gate; and the run, with the number of calls that the gate approved."""
    task, approved = scripted(suite, name), list[object]()

    def count(step: Any) -> None:
        approved.extend([step.event] if isinstance(step.event, GateApproved) else [])

    worker = Worker(task, "0", manner=STEADY)
    with Agent(worker, tools_of(made.scene), preset=preset, threads=threads, on_step=count) as agent:
        run = agent.run_sync(task.prompt)
    made.conclude(run.text)
    texts = [SENT_NOW.sub("now", message.text) for message in run.messages if isinstance(message, ToolMessage)]
    return texts, bool(task.main(made)), run, len(approved)


@pytest.mark.parametrize("name", NAMES)
def test_each_ground_truth_comes_to_the_same(name: str, room: Any) -> None:
    """Texts of all results, and checks; 97 user tasks and 35 injection tasks, each in an environment of its own."""
    suite = SUITES[name]
    for task in tasks_of(suite):
        texts, holds, run, approved = by_our_loop(suite, task, room(suite))

        assert (texts, holds) == by_their_pipeline(suite, task), task
        assert (run.status, approved) == ("completed", len(texts)), task
        assert holds == ((name, task) not in WITHOUT_GROUND_TRUTH), task


def test_there_are_as_many_tasks_and_calls_as_there_should_be() -> None:
    everything = [(suite, task) for suite in SUITES.values() for task in tasks_of(suite)]

    assert set(SUITES) == set(NAMES)
    assert len(everything) == 132
    assert sum(len(calls_of(suite, task)) for suite, task in everything) == 386


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"recipient": "x", "amount": "5", "subject": "s", "date": "d"}, "amount: Input should be a valid number"),
        ({"recipient": "x", "amount": 5}, "subject: Field required"),
        ({"recipient": "x", "amount": 5, "subject": "s", "date": "d", "to": "y"}, "to: unknown argument"),
    ],
)
def test_arguments_are_checked_strictly(arguments: dict[str, Any], told: str) -> None:
    send_money = next(tool for tool in tools_of(Scene(SUITES["banking"])) if tool.name == "send_money")

    assert any(told in problem for problem in send_money.check(arguments))
    assert send_money.check({"recipient": "x", "amount": 5, "subject": "s", "date": "d"}) == ()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("split", SPLITS)
def test_every_task_four_ways(split: Any) -> None:
    """But that attacks give themselves away: many checks want all else to stay as it was."""
    with PostOffice() as office:
        for task in AGENTDOJO.tasks(split):
            problems = [
                problem
                for problem in problems_of_task(AGENTDOJO, task, office)
                if not (problem.endswith("since the main check fails") and not problem.startswith("banking"))
            ]
            assert problems == []


def test_no_user_task_and_no_injection_task_is_in_two_splits() -> None:
    tasks = {split: AGENTDOJO.tasks(split) for split in SPLITS}
    suites = {split: {(task.family.partition("_")[0], task.name) for task in tasks[split]} for split in SPLITS}
    attacks = {
        split: {(task.family.partition("_")[0], plot.name) for task in tasks[split] for plot in task.plots}
        for split in SPLITS
    }

    assert [len(tasks[split]) for split in SPLITS] == [35, 16, 41]
    assert sum(len(found) for found in suites.values()) == len(set().union(*suites.values())) == 92
    assert sum(len(found) for found in attacks.values()) == len(set().union(*attacks.values()))


def test_episodes_run_in_a_plan(tmp_path: Path) -> None:
    blocking = ProtocolPlan("blocking_monitor", ("blocking_monitor",), threshold=0.5)
    protocols = (ProtocolPlan("constitution_only", ("constitution_only",)), blocking)
    monitors = (MonitorPlan("watcher", alpha=1000),)
    policies = (Policy("honest"), Policy("always", attacks=True))
    plan = Plan("dojo", ("agentdojo",), policies, protocols, monitors, splits=("test",), instances=1)
    episodes: list[Episode] = list(plan.episodes({}))

    rows = run_batch(Conditions(tmp_path), episodes)

    assert {(row.status, row.error, row.isolation) for row in rows} == {("ran", "", "none")}
    free = [row for row in rows if row.protocol == "constitution_only"]
    assert all(row.side and row.tau is not None for row in free if row.attacks)
    assert not any(row.side for row in free if not row.attacks)
    assert sum(row.main for row in free if not row.attacks) > 0
    assert not any(row.side for row in rows if row.protocol == "blocking_monitor" and row.attacks)
