"""The money of an experiment: when it is used up no process asks a model any more, and nothing is lost."""

from pathlib import Path

import pytest
from attrs import evolve

from agent.cli import main
from agent.lab.deployments.plan import DeploymentPlan, RulePlan
from agent.lab.deployments.runner import deploy_all, deployments_of
from agent.lab.episodes.results import Results
from agent.lab.experiments.experiment import conditions_of, conduct
from agent.lab.experiments.model_plans import ModelPlan
from agent.lab.experiments.plan import Plan, Policy, ProtocolPlan
from agent.lab.experiments.plan_file import PlanError
from agent.lab.spending import Ledger, MoneyUsedUp, Spent, note_spent
from tests.agent.lab.experiments.minds import role_of
from tests.agent.lab.experiments.settings import plan_of
from tests.outside.model_server import ModelServer

TEXT = """\
settings: ['tests.agent.lab.experiments.settings:SMALL']
policies: [{name: honest, models: {agent: {model: big, price: '1000/1000'}}}]
protocols: [constitution_only]
splits: [test]
instances: 1
seeds: 4
replicates: 20
concurrency: 1
limits: {money: 10}
"""


def cost_of_one(folder: Path) -> float:
    """What one episode of the plan costs."""
    outcome = conduct(evolve(plan_of(folder, TEXT), money=1e6, seeds=1), folder / "one")
    assert outcome.asked.cost is not None
    return outcome.asked.cost


@pytest.mark.slow
def test_an_experiment_stops_at_its_money_limit_and_goes_on_with_a_higher_one(
    server: ModelServer, tmp_path: Path
) -> None:
    one, folder = cost_of_one(tmp_path), tmp_path / "kept"
    plan = evolve(plan_of(tmp_path, TEXT), money=2.3 * one)
    server.requests.clear()

    with pytest.raises(MoneyUsedUp, match=r"are spent; \d+ episodes are left; what is finished is kept"):
        conduct(plan, folder)
    rows, asked = Results(folder).rows().values(), len(server.requests)
    with pytest.raises(MoneyUsedUp):
        conduct(plan, folder)
    again = len(server.requests)
    outcome = conduct(evolve(plan, money=1e6), folder)

    ran = [row for row in rows if row.status == "ran"]
    [stopped] = [row for row in rows if row.status == "failed"]
    assert len(ran) == 2
    assert all(row.main == 1 for row in ran)
    assert "MoneyUsedUp: $" in stopped.error
    assert again == asked  # with nothing left no further one is asked, and no episode begins
    assert outcome.analysis.failed == 0
    assert outcome.ran == len(outcome.rows) - 2
    assert {row.status for row in outcome.rows} == {"ran"}


def test_the_command_ends_as_at_any_limit_and_says_how_to_go_on(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan_of(tmp_path, TEXT.replace("money: 10", "money: 0.1"))
    monkeypatch.chdir(tmp_path)

    code = main(["experiment", "plan.yaml"])

    told = capsys.readouterr().err
    assert code == 3
    assert "of the $0.1 that it may cost are spent; 4 episodes are left; what is finished is kept" in told
    assert "goes on with a higher limit" in told


@pytest.mark.slow
def test_the_money_limit_holds_over_all_worker_processes(server: ModelServer, tmp_path: Path) -> None:
    """Four episodes at once in two processes: each may ask once more while another one crosses the limit."""
    one, folder = cost_of_one(tmp_path), tmp_path / "kept"
    plan = evolve(plan_of(tmp_path, TEXT), money=2.5 * one, workers=2, concurrency=2, seeds=8)

    with pytest.raises(MoneyUsedUp):
        conduct(plan, folder)

    spent = Ledger(folder).spent().cost
    rows = Results(folder).rows().values()
    assert spent is not None
    assert plan.money is not None
    assert plan.money <= spent < plan.money + 4 * one
    assert len(rows) < len(list(plan.episodes()))
    assert {row.error.partition(":")[0] for row in rows if row.status == "failed"} <= {"MoneyUsedUp"}


@pytest.mark.slow
def test_monitors_auditors_and_measures_are_stopped_too(server: ModelServer, tmp_path: Path) -> None:
    text = TEXT.replace(
        "protocols: [constitution_only]",
        "protocols: [{use: blocking_monitor, threshold: 0.99}]\n"
        "monitors: {watcher: {kind: model, model: {model: judge, price: '1000/1000'}}}",
    )
    folder = tmp_path / "kept"

    with pytest.raises(MoneyUsedUp):
        conduct(evolve(plan_of(tmp_path, text), money=1e-6), folder)

    assert [role_of(request) for request in server.requests] == ["agent"]  # the call that crosses the limit
    assert Ledger(folder).spent().requests == 1
    assert [row.status for row in Results(folder).rows().values()] == ["failed"]


def test_no_episode_of_a_deployment_begins_without_money(server: ModelServer, tmp_path: Path) -> None:
    deployment = DeploymentPlan("long", (RulePlan("audit_first", (("episodes", 1),)),), episodes=2, seeds=1)
    plan = evolve(plan_of(tmp_path, TEXT), deployments=(deployment,))
    jobs = [job for job, _ in deployments_of(plan, {})]
    Results(tmp_path / "kept")
    note_spent(tmp_path / "kept", "before", Spent(1, 10, 10.0))

    rows, ran = deploy_all(conditions_of(plan, tmp_path / "kept"), jobs, lambda _: None)

    assert (ran, server.requests) == (0, [])
    assert {row.status for row in rows} == {"failed"}
    assert "of the $10 that it may cost are spent" in rows[0].error
    with pytest.raises(MoneyUsedUp, match="episodes are left"):
        conduct(plan, tmp_path / "kept")


def test_a_model_without_a_price_cannot_be_limited(tmp_path: Path) -> None:
    text = TEXT.replace(", price: '1000/1000'", "")
    with pytest.raises(PlanError, match=r"plan\.yaml:9:17: money is limited.*price of the model 'big'.*role 'agent'"):
        plan_of(tmp_path, text)
    judged = TEXT + "monitors: {watcher: {kind: model, model: judge}}\n"
    with pytest.raises(PlanError, match=r"price of the model 'judge' \(monitor 'watcher'\); give it one"):
        plan_of(tmp_path, judged)

    own = Plan(
        "p",
        ("tests.agent.lab.experiments.settings:SMALL",),
        (Policy("honest", models=(("agent", ModelPlan("big")),)),),
        (ProtocolPlan("none", judged=False),),
        money=5.0,
    )
    with pytest.raises(ValueError, match="the plan lacks the price of the model 'big'"):
        conduct(own, tmp_path / "kept")


def test_a_ledger_reads_what_others_write_once_and_whole_lines_only(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, 1.0)
    assert (ledger.spent(), ledger.is_used_up) == (Spent(), False)

    note_spent(tmp_path, "one", Spent(1, 10, 0.6))
    first = ledger.spent()
    with (tmp_path / "asked.jsonl").open("a") as torn:
        torn.write('{"episode": "two", "requests": 1, "tok')
    second = ledger.spent()
    note_spent(tmp_path, "two", Spent(1, 10, 0.5))

    assert first == second == Spent(1, 10, 0.6)
    assert ledger.spent() == Ledger(tmp_path).spent() == Spent(2, 20, 1.1)
    with pytest.raises(MoneyUsedUp, match=r"\$1\.1000 of the \$1 that it may cost are spent"):
        ledger.check()
    Ledger(tmp_path).check()
