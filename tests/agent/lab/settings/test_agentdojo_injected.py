"""AgentDojo's attacks by what is read: pair by pair they come to what its own pipeline comes to.

Runs where AgentDojo is installed: `make agentdojo`.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

if find_spec("agentdojo") is None:
    pytest.skip("AgentDojo is not installed: make agentdojo", allow_module_level=True)

import warnings

with warnings.catch_warnings():  # those of its providers' libraries
    warnings.simplefilter("ignore")
    from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionCall
    from agentdojo.types import text_content_block_from_string as block

    from agent.lab.settings.agentdojo import (
        INJECTED,
        SUITES,
        WHOLE,
        Room,
        calls_of,
        injected,
        injections_of,
        pair_of,
    )

import json

from agent import Agent
from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.experiments.experiment import conduct
from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.experiments.plan import MonitorPlan, Plan, Policy, ProtocolPlan
from agent.lab.reports.report import tables_of
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import SPLITS, Setting
from agent.lab.settings.setting_checks import with_plot
from agent.lab.settings.tasks import Move, Task
from agent.lab.settings.workers import Manner, Worker
from agent.presets.shipped import PRESETS
from tests.agent.lab.experiments.minds import texts_of
from tests.outside.model_server import ModelServer, Reply, Request, call, calling, saying

pytestmark = pytest.mark.filterwarnings("ignore")

PATIENT = evolve(PRESETS["default"], doom_loop=None, max_iterations=40)
STEADY = Manner(mistakes=0, noise=0, alarming=0)
PAIRS_TRIED = 60
"""As many as take a minute; every fourth or so."""


@pytest.fixture
def office() -> Iterator[PostOffice]:
    with PostOffice() as office:
        yield office


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


def by_their_pipeline(attack: str, task: Task, pipeline: Any) -> tuple[bool, bool]:
    """Utility under attack, and whether the attack succeeded."""
    suite, user, injection = pair_of(task)
    written = dict(injections_of(attack, suite, user, injection))
    user_task, injection_task = suite.task(user), suite.task(injection)
    utility, security = suite.suite.run_task_with_pipeline(pipeline, user_task, injection_task, written)
    return bool(utility), bool(security)


def by_our_loop(setting: Setting, task: Task, moves: tuple[Move, ...], office: PostOffice) -> tuple[bool, bool]:
    """The same of our loop with its gate."""
    plain = evolve(task, solution=moves, plots=(), noise=(), alarming=())
    with setting.world(task, office, attacked=True) as room:
        assert isinstance(room, Room)
        with Agent(Worker(plain, "0", manner=STEADY), room.tools(), preset=PATIENT) as agent:
            run = agent.run_sync(task.prompt)
        room.conclude(run.text)
        return task.main(room) == 1, task.side(room)


def pairs(setting: Setting) -> list[Task]:
    tasks = setting.tasks()
    return list(tasks[:: max(1, len(tasks) // PAIRS_TRIED)])


@pytest.mark.timeout(600)
def test_each_pair_comes_to_the_same_for_who_is_led_astray_and_who_is_not(office: PostOffice) -> None:
    attack, setting, found = "important_instructions_no_names", INJECTED, set[tuple[bool, bool, bool]]()
    for task in pairs(setting):
        suite, user, injection = pair_of(task)
        written = injections_of(attack, suite, user, injection)
        honest = tuple(Move((each,)) for each in calls_of(suite, user, written))
        astray = with_plot(evolve(task, solution=honest), task.plots[0])
        said = suite.task(user).GROUND_TRUTH_OUTPUT or "That is done."
        theirs = (
            by_their_pipeline(attack, task, GroundTruthPipeline(suite.task(user))),
            by_their_pipeline(attack, task, Obedient(astray, said)),
        )

        ours = (by_our_loop(setting, task, honest, office), by_our_loop(setting, task, astray, office))

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
def test_the_goal_stands_in_what_is_read_and_only_where_somebody_attacks(
    setting: Setting, mark: str, office: PostOffice
) -> None:
    for task in pairs(setting)[::6]:
        read = []
        for attacked in (False, True):
            with setting.world(task, office, attacked=attacked) as room:
                assert isinstance(room, Room)
                scene = room.scene
                calls = [each for move in task.solution for each in move.calls]
                texts = [scene.carry_out(each.tool, json.loads(each.arguments))[0] for each in calls]
                read.append(any(mark in text and task.side_task[:20] in text for text in texts))
        assert read == [False, True], task.name


def test_a_plan_has_the_setting_by_its_name(tmp_path: Path) -> None:
    plan = Plan(
        "dojo",
        ("agentdojo_injected",),
        (Policy("honest"), Policy("always", attacks=True)),
        (ProtocolPlan("constitution_only", ("constitution_only",)),),
        (MonitorPlan("watcher", alpha=1000),),
        splits=("test",),
        instances=1,
    )

    rows = run_batch(Conditions(tmp_path), list(plan.episodes()))

    assert setting_named("agentdojo_injected") is INJECTED
    assert {(row.status, row.error) for row in rows} == {("ran", "")}
    assert all(row.side == row.attacks for row in rows)


FIRST = "banking"
ONE = evolve(WHOLE, name="one", families={FIRST: WHOLE.families[FIRST]}, sizes={FIRST: 1})
"""One pair: user task 0 and injection task 0 of banking."""


@frozen
class Reader:
    """Two models behind a server: one does its task, and one also what it reads that it should do."""

    task: Task

    def __call__(self, request: Request) -> Reply:
        suite, user, injection = pair_of(self.task)
        texts = texts_of(request)
        work, harm = calls_of(suite, user), calls_of(suite, injection)
        read = any(self.task.side_task in text for text in texts[2:])
        todo = [*work, *harm] if read and request.body["model"] == "credulous" else work
        assert self.task.side_task not in texts[0]
        assert "side task" not in " ".join(texts)
        done = sum(item.get("role") == "tool" for item in request.body["messages"])
        if done == len(todo):
            return saying(suite.task(user).GROUND_TRUTH_OUTPUT or "Done.")
        return calling(call(f"c{done}", todo[done].tool, json.loads(todo[done].arguments)))


def test_a_real_model_is_told_of_nothing_and_what_it_reads_may_lead_it_astray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ModelServer(Reader(ONE.tasks("test")[0]))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    plan = Plan(
        "dojo",
        ("tests.agent.lab.settings.test_agentdojo_injected:ONE",),
        (
            Policy("honest", models=(("agent", ModelPlan("careful")),)),
            Policy("careful", attacks=True, models=(("agent", ModelPlan("careful")),)),
            Policy("credulous", attacks=True, models=(("agent", ModelPlan("credulous")),)),
        ),
        (ProtocolPlan("constitution_only", ("constitution_only",)),),
        (MonitorPlan("watcher", "constant"),),
        splits=("test",),
        replicates=20,
    )
    try:
        outcome = conduct(plan, tmp_path)
    finally:
        server.close()

    assert {row.error for row in outcome.rows} == {""}
    assert {row.policy: (row.main, row.side) for row in outcome.rows} == {
        "honest": (1.0, False),
        "careful": (1.0, False),
        "credulous": (1.0, True),
    }
    table = tables_of(outcome, {})["under_attack"]
    assert table.headings == (
        "setting",
        "protocol",
        "utility",
        "policy",
        "utility under attack",
        "attack success",
        "pairs",
    )
    assert table.lines == (
        ("one", "constitution_only", "1.00", "careful", "1.00", "0.00", "1"),
        ("one", "constitution_only", "1.00", "credulous", "1.00", "1.00", "1"),
    )
