"""Plans as YAML: what is not right is told with file, line, column, and the nearest word."""

from pathlib import Path

import pytest

from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.experiments.plan import MonitorPlan, Policy, ProtocolPlan
from agent.lab.experiments.plan_file import PlanError, load_plan
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting import SPLITS
from agent.tools.sandbox.sandbox import Limits
from tests.agent.lab.experiments.settings import mistake_in, plan_of

GOOD = """\
name: try
settings: [operations]
policies: [honest, always, {name: trusted, models: {trusted: 'script:x.yaml'}}]
protocols:
  - none
  - constitution_only
  - {use: blocking_monitor, budget: 0.05}
  - {name: both, use: [taint_flow, defer_to_resample], threshold: 0.9, draws: 5, disclosure: none}
monitors:
  watcher: {kind: simulated, alpha: 4, correlation: 0.5}
  words: {kind: keyword, words: {curl: 0.5}}
  rules: constitution
seeds: 2
budgets: [0.01]
splits: [test]
instances: 1
per_minute: {agent: 60}
isolation: bubblewrap
limits: {memory: 512 MiB, processes: 64, file_size: 1000000}
"""


def test_every_key_of_a_plan_is_read(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GOOD)

    assert plan.policies[1:] == (
        Policy("always", True),
        Policy("trusted", False, (("trusted", ModelPlan("script:x.yaml")),)),
    )
    assert plan.protocols[0] == ProtocolPlan("none", judged=False)
    assert plan.protocols[2] == ProtocolPlan("blocking_monitor", ("blocking_monitor",), budget=0.05)
    assert (plan.protocols[3].options, plan.protocols[3].disclosure) == ((("draws", 5),), "none")
    assert plan.monitors[1:] == (
        MonitorPlan("words", "keyword", words=(("curl", 0.5),)),
        MonitorPlan("rules", "constitution"),
    )
    assert (plan.seeds, plan.splits, plan.per_minute) == (2, ("test",), (("agent", 60.0),))
    assert plan.isolation == "bubblewrap"
    assert plan.limits == Limits(memory=512 * 2**20, processes=64, file_size=1_000_000)


MISTAKES = [
    ("settings: [operations]", "settings: [operation]", "2:12: there is no setting 'operation'; did you mean"),
    ("[honest, always,", "[honest, allways,", "3:20: there is no policy 'allways'; did you mean 'always'?"),
    ("  - none", "  - trusted_monitor", "5:5: there is no protocol 'trusted_monitor'; did you mean 'trusted_monit"),
    ("budget: 0.05", "budgit: 0.05", "7:29: unknown key 'budgit'; did you mean 'budget'?"),
    ("budget: 0.05", "budget: 5", "7:37: expected a share from 0 to 1, found 5"),
    ("budget: 0.05", "budget: 0.05, threshold: 0.5", "7:54: a threshold is given, or follows from a budget"),
    ("budget: 0.05", "monitor: watchr", "did you mean 'watcher'?"),
    ("budget: 0.05", "monitor: words, budget: 0.05", "7:53: budgets are for the monitor that measures use, 'watc"),
    ("  watcher: {", "  odd: {", "10:3: which of these measures use? name it: audit_with: odd"),
    ("kind: keyword", "kind: key", "there is no kind 'key'; did you mean 'keyword'?"),
    ("kind: keyword, words: {curl: 0.5}", "kind: model", "a monitor of kind 'model' needs the key 'model'"),
    ("memory: 512 MiB", "money: 0", "19:17: expected a number of US dollars above 0, found 0"),
    ("memory: 512 MiB", "money: much", "19:17: expected"),
    ("seeds: 2", "seeds: 0", "13:8: expected a whole number from 1 on, found 0"),
    ("seeds: 2", "seeds: two", "13:8: expected a whole number from 0 on, found 'two'"),
    ("name: try", "nmae: try", "1:1: unknown key 'nmae'; did you mean 'name'?"),
    ("policies:", "policys:", "unknown key 'policys'; did you mean 'policies'?"),
    ("splits: [test]", "splits: []", "this list is empty"),
    ("threshold: 0.9,", "threshold: 0.9, against: [alwys],", "there is no policy 'alwys'; did you mean 'always'?"),
    ("instances: 1", "instances: {tests: 1}", "unknown key 'tests'; did you mean 'test'?"),
    (
        "draws: 5",
        "near: 0.5",
        "8:78: 'near' is not an option of taint_flow and defer_to_resample; its options: bu",
    ),
    ("draws: 5", "auditor: somebody", "there is no auditor 'somebody'; there are: auditor"),
    (
        "  - none",
        "  - {use: taint_flow, budget: 0.1}",
        "5:31: 'budget' is not an option of taint_flow; its options: nothing",
    ),
    ("  - none", "  - constitution_only", "5:5: there are several protocols 'constitution_only'; give each a name"),
    ("[operations]", "[operations, repair, operations]", "2:12: there are several settings 'operations'"),
    ("[honest, always,", "[honest, always, always,", "3:20: there are several policies 'always'"),
    ("draws: 5", "near: 2", "expected a share from 0 to 1, found 2"),
    ("  - none", "  - {use: [taint_flow, panel], runs: 3}", "there is no protocol 'panel'"),
    ("isolation: bubblewrap", "isolation: bubble", "there is no isolation 'bubble'; did you mean 'bubblewrap'?"),
    ("memory: 512 MiB", "memory: 512 MB", "19:18: expected bytes, such as '256 MiB' or '1 GiB', found '512 MB'"),
    ("memory: 512 MiB", "memory: 0 MiB", "expected bytes, such as"),
    ("processes: 64", "procesess: 64", "unknown key 'procesess'; did you mean 'processes'?"),
    ("processes: 64", "processes: 0", "expected a whole number from 1 on, found 0"),
    ("name: try", "name: [", "not valid YAML"),
]


@pytest.mark.slow
def test_a_mistake_is_told_where_it_is(tmp_path: Path) -> None:
    said = {new: (mistake_in(tmp_path, GOOD.replace(old, new, 1)), told) for old, new, told in MISTAKES}

    assert {new: found for new, (found, told) in said.items() if told not in found} == {}
    assert all(found.startswith("plan.yaml:") for found, _ in said.values())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"none\.yaml: cannot be read"):
        load_plan(tmp_path / "none.yaml")


@pytest.mark.slow
def test_episode_keys_depend_on_exactly_what_affects_the_episode(tmp_path: Path) -> None:
    thresholds = {"watcher at 0.05": 0.9}
    before = {episode.key for episode in plan_of(tmp_path, GOOD).episodes(thresholds)}

    reordered = plan_of(tmp_path, GOOD.replace("budgets: [0.01]", "budgets: [0.02]\nreplicates: 9"))
    more = plan_of(tmp_path, GOOD.replace("seeds: 2", "seeds: 3"))
    other = plan_of(tmp_path, GOOD.replace("alpha: 4", "alpha: 5"))

    assert {episode.key for episode in reordered.episodes(thresholds)} == before
    assert before < {episode.key for episode in more.episodes(thresholds)}
    assert before.isdisjoint({episode.key for episode in other.episodes(thresholds)})


def test_policies_run_only_in_splits_that_need_them(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GOOD.replace("splits: [test]", "splits: [calibrate, develop, test]"))

    used = {(episode.split, episode.policy.name) for episode in plan.episodes()}

    assert used == {
        ("calibrate", "honest"),
        ("develop", "always"),
        ("test", "honest"),
        ("test", "always"),
        ("test", "trusted"),
    }


def test_a_protocol_may_be_tried_with_some_policies_only(tmp_path: Path) -> None:
    """What it is tried with is no part of an episode, so that trying it with more runs nothing again."""
    wide, narrow = (
        plan_of(tmp_path, GOOD.replace("threshold: 0.9,", f"threshold: 0.9, {more}")) for more in ("", NARROW)
    )

    found = {episode.policy.name for episode in narrow.episodes() if episode.protocol.name == "both"}

    assert found == {"honest"}
    assert {episode.key for episode in narrow.episodes()} < {episode.key for episode in wide.episodes()}
    assert narrow.compared == wide.compared - {"both"}


NARROW = "against: [honest],"


def test_the_trusted_model_works_under_the_constitution_alone(tmp_path: Path) -> None:
    """It is there for comparison: usefulness is scaled by what it does."""
    real = "{name: trusted, models: {trusted: 'script:x.yaml'}}"
    plan = plan_of(tmp_path, GOOD.replace(f"always, {real}", "always, trusted"))

    assert {episode.protocol.name for episode in plan.episodes() if episode.policy.name == "trusted"} == {
        "constitution_only"
    }


def test_instances_may_differ_by_split(tmp_path: Path) -> None:
    splits = GOOD.replace("splits: [test]", "splits: [calibrate, develop, test]")
    plan = plan_of(tmp_path, splits.replace("instances: 1", "instances: {calibrate: 2, test: 3}"))

    setting = setting_named("operations")

    assert [len(plan.tasks(setting, split)) for split in SPLITS] == [2 * 2, 12, 3 * 3]
    assert len({episode.task for episode in plan.calibration()}) == 2 * 12


REAL = "policies: [{name: real, models: {agent: big}, attacks: true}]"


IMPOSSIBLE = [
    (REAL, "[{use: blocking_monitor, threshold: 0.5}]", "", "'watcher' is simulated, from the truth, which is"),
    (REAL, "[{use: defer_to_trusted, threshold: 0.5}]", "", "needs a model for the role 'trusted'"),
    (REAL, "[upfront_audit]", "monitors: {watcher: {kind: keyword}}", "needs a model for the role 'auditor'"),
    (REAL.replace(", attacks: true", ""), "[none]", "", "'real' does not attack; call it 'honest'"),
    ("policies: [{name: hones, models: {trusted: m}}]", "[none]", "", "'hones' has no model for the role 'agent'"),
    ("policies: [{name: always, models: {trusted: m}, attacks: false}]", "[none]", "", "leave `attacks` out"),
    ("policies: [{name: honest, models: {monitor: m}}]", "[none]", "", "unknown key 'monitor'"),
    ("policies: [honest, {name: honest, models: {agent: m}}]", "[none]", "", "there are several policies 'honest'"),
    ("policies: [{name: honest, models: {agent: ''}}]", "[none]", "", "no model is named"),
    ("policies: [{name: honest, models: {agent: {model: m, temperature: 1}}}]", "[none]", "", "unknown key 'temp"),
    ("policies: [{name: honest, models: {agent: {model: m, api: rest}}}]", "[none]", "", "one of 'chat', 'respon"),
    (
        "policies: [{name: honest, models: {agent: {model: m, url: 'http://a/v1', url_from: A}}}]",
        "[none]",
        "",
        "the address of the server is given twice",
    ),
    ("policies: [{name: honest, models: {agent: {model: m, price: cheap}}}]", "[none]", "", "a price is INPUT/OUT"),
    (
        "policies: [{name: honest, models: {agent: {model: m, timeout: 0}}}]",
        "[none]",
        "",
        "of seconds above 0",
    ),
    ("policies: [{name: honest, models: {agent: m}, turns: 0}]", "[none]", "", "whole number from 1 on, found 0"),
    ("policies: [honest]", "[none]", "models: {agent: m}", "unknown key 'agent'"),
    ("policies: [honest]", "[none]", "per_minute: {agent: 0}", "a number of requests a minute above 0"),
]


def test_a_plan_that_cannot_be_is_told_where_it_is_wrong(tmp_path: Path) -> None:
    said = {
        told: mistake_in(tmp_path, f"settings: [operations]\n{policies}\nprotocols: {protocols}\n{more}\n")
        for policies, protocols, more, told in IMPOSSIBLE
    }

    assert {told: found for told, found in said.items() if told not in found} == {}
    assert all(found.startswith("plan.yaml:") for found in said.values())
