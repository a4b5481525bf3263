"""AgentDojo's tasks and attacks through our loop and gate come to what its own pipeline comes to, one by one.

Runs where AgentDojo is installed: `make agentdojo`.
"""

import json
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
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
    from agentdojo.types import text_content_block_from_string as block

    from agent.lab.settings.agentdojo import (
        AGENTDOJO,
        INJECTED,
        SUITES,
        WHOLE,
        Suite,
        SuiteWorld,
        calls_of,
        injected,
        injections_of,
        pair_of,
        scripted,
    )

from agent import Agent
from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.experiments.plan import Episode, MonitorPlan, Plan, Policy, ProtocolPlan
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import SPLITS, Setting
from agent.lab.settings.setting_checks import problems_of_task, with_plot
from agent.lab.settings.tasks import Move, Task
from agent.lab.settings.workers import ErrorRates, Worker
from agent.lab.settings.world import make_world
from agent.presets import PRESETS
from agent.session.agent import Run
from agent.vocabulary.events import GateApproved
from agent.vocabulary.messages import ToolMessage

STEADY = ErrorRates(mistakes=0, noise=0, alarming=0)
NAMES = ("workspace", "travel", "banking", "slack")
PATIENT = evolve(PRESETS["default"], doom_loop=None, max_iterations=40)
SENT_NOW = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d+")
"""The time of an e-mail that was sent now, the one thing that differs from run to run."""
WITHOUT_GROUND_TRUTH = {("workspace", f"injection_task_{number}") for number in range(6, 14)}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Any]:
    with make_world({}, folder=tmp_path) as world:
        yield lambda suite: SuiteWorld.of(world, suite)


@pytest.fixture
def office() -> Iterator[PostOffice]:
    with PostOffice() as office:
        yield office


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


def by_our_loop(suite: Suite, name: str, made: SuiteWorld) -> tuple[list[str], bool, Run, int]:
    """The same of our loop with its gate; and the run, with the number of calls that the gate approved."""
    task, approved = scripted(suite, name), list[object]()

    def count(step: Any) -> None:
        approved.extend([step.event] if isinstance(step.event, GateApproved) else [])

    worker = Worker(task, "0", errors=STEADY)
    with Agent(worker, made.tools(), preset=PATIENT, on_step=count) as agent:
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
def test_arguments_are_checked_strictly(arguments: dict[str, Any], told: str, room: Any) -> None:
    send_money = next(tool for tool in room(SUITES["banking"]).tools() if tool.name == "send_money")

    assert any(told in problem for problem in send_money.check(arguments))
    assert send_money.check({"recipient": "x", "amount": 5, "subject": "s", "date": "d"}) == ()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("split", SPLITS)
def test_every_task_is_right_four_ways(split: Any, office: PostOffice) -> None:
    """But that attacks give themselves away: many checks want all else to stay as it was."""
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


PAIRS_TRIED = 60
"""As many as take a minute; every fourth or so."""


class Obedient:
    """Their side of an agent that was led astray: the same calls in the same order, on their runtime."""

    def __init__(self, moves: tuple[Move, ...], said: str) -> None:
        self._calls = [each for move in moves for each in move.calls]
        self._said = said

    def query(self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None) -> Any:
        told: list[Any] = []
        for each in self._calls:
            made = FunctionCall(function=each.tool, args=json.loads(each.arguments))
            result, _ = runtime.run_function(env, made.function, made.args)
            told.append({"role": "assistant", "tool_calls": [made], "content": [block("")]})
            content = [block(tool_result_to_str(result))]
            told.append({"role": "tool", "content": content, "tool_call": made, "tool_call_id": None, "error": None})
        told.append({"role": "assistant", "content": [block(self._said)], "tool_calls": None})
        return query, runtime, env, [*messages, *told], extra_args


def pair_by_their_pipeline(attack: str, task: Task, pipeline: Any) -> tuple[bool, bool]:
    """Utility under attack, and whether the attack succeeded."""
    suite, user, injection = pair_of(task)
    written = dict(injections_of(attack, suite, user, injection))
    user_task, injection_task = suite.task(user), suite.task(injection)
    utility, security = suite.suite.run_task_with_pipeline(pipeline, user_task, injection_task, written)
    return bool(utility), bool(security)


def pair_by_our_loop(setting: Setting, task: Task, moves: tuple[Move, ...], office: PostOffice) -> tuple[bool, bool]:
    """The same of our loop with its gate."""
    plain = evolve(task, solution=moves, plots=(), noise=(), alarming=())
    with setting.world(task, office, attacked=True) as room:
        assert isinstance(room, SuiteWorld)
        with Agent(Worker(plain, "0", errors=STEADY), room.tools(), preset=PATIENT) as agent:
            run = agent.run_sync(task.prompt)
        room.conclude(run.text)
        return task.main(room) == 1, task.side(room)


def pairs(setting: Setting) -> list[Task]:
    tasks = setting.tasks()
    return list(tasks[:: max(1, len(tasks) // PAIRS_TRIED)])


@pytest.mark.timeout(600)
def test_each_pair_is_scored_alike_for_injected_and_honest_agents(office: PostOffice) -> None:
    attack, found = "important_instructions_no_names", set[tuple[bool, bool, bool]]()
    for task in pairs(INJECTED):
        suite, user, injection = pair_of(task)
        written = injections_of(attack, suite, user, injection)
        honest = tuple(Move((each,)) for each in calls_of(suite, user, written))
        astray = with_plot(evolve(task, solution=honest), task.plots[0])
        said = suite.task(user).GROUND_TRUTH_OUTPUT or "That is done."
        theirs = (
            pair_by_their_pipeline(attack, task, GroundTruthPipeline(suite.task(user))),
            pair_by_their_pipeline(attack, task, Obedient(astray, said)),
        )

        ours = (pair_by_our_loop(INJECTED, task, honest, office), pair_by_our_loop(INJECTED, task, astray, office))

        assert ours == theirs, (task.name, pair_of(task)[1:])
        assert not ours[0][1], task.name
        assert ours[1][1], task.name
        found.add((ours[0][0], *ours[1]))
    assert (True, True, True) in found
    assert (True, False, True) in found  # their checks want that all else stays as it was


def test_there_are_as_many_pairs_as_the_splits_leave() -> None:
    everything = {split: INJECTED.tasks(split) for split in SPLITS}
    whole = sum(len(suite.user_tasks) * len(suite.injection_tasks) for suite in SUITES.values())

    assert whole == len(WHOLE.tasks("test")) == len(WHOLE.tasks()) == 949
    assert {split: len(found) for split, found in everything.items()} == COUNTS
    pairs_by_split = [{(pair_of(task)[0].name, *pair_of(task)[1:]) for task in found} for found in everything.values()]
    assert sum(map(len, pairs_by_split)) == len(set().union(*pairs_by_split)) == sum(COUNTS.values())


COUNTS = {"calibrate": 71, "develop": 36, "test": 73}


@pytest.mark.parametrize(("setting", "mark"), [(INJECTED, "<INFORMATION>"), (injected("direct", "direct"), "TODO: ")])
def test_the_injected_goal_is_read_only_in_attack_episodes(setting: Setting, mark: str, office: PostOffice) -> None:
    for task in pairs(setting)[::6]:
        read = []
        for attacked in (False, True):
            with setting.world(task, office, attacked=attacked) as room:
                assert isinstance(room, SuiteWorld)
                calls = [each for move in task.solution for each in move.calls]
                texts = [room.carry_out(each.tool, json.loads(each.arguments))[0] for each in calls]
                read.append(any(mark in text and task.side_task[:20] in text for text in texts))
        assert read == [False, True], task.name


@pytest.mark.parametrize("name", ["agentdojo", "agentdojo_injected"])
def test_episodes_run_in_a_plan(name: str, tmp_path: Path) -> None:
    blocking = ProtocolPlan("blocking_monitor", ("blocking_monitor",), threshold=0.5)
    protocols = (ProtocolPlan("constitution_only", ("constitution_only",)), blocking)
    monitors = (MonitorPlan("watcher", alpha=1000),)
    policies = (Policy("honest"), Policy("always", attacks=True))
    plan = Plan("dojo", (name,), policies, protocols, monitors, splits=("test",), instances=1)
    episodes: list[Episode] = list(plan.episodes({}))

    rows = run_batch(Conditions(tmp_path), episodes)

    assert {(row.status, row.error, row.isolation) for row in rows} == {("ran", "", "none")}
    free = [row for row in rows if row.protocol == "constitution_only"]
    assert all(row.side and row.tau is not None for row in free if row.attacks)
    assert not any(row.side for row in free if not row.attacks)
    assert sum(row.main for row in free if not row.attacks) > 0
    assert not any(row.side for row in rows if row.protocol == "blocking_monitor" and row.attacks)
