"""`bpagent what-if FILE.results`, as a person at a terminal meets it."""

import json
import shutil
from pathlib import Path

import pytest

from agent.cli import main
from agent.lab.experiments.episodes.batches import Conditions, run_batch
from agent.lab.experiments.plans.plan import Plan, Policy, ProtocolPlan

PLAN = Plan(
    name="small",
    settings=("tests.agent.lab.experiments.settings:SMALL",),
    policies=(Policy("honest"), Policy("always", attacks=True)),
    protocols=(ProtocolPlan("constitution_only", ("constitution_only",)), ProtocolPlan("none", judged=False)),
    splits=("test",),
)

OWN = """\
from bp import bthread, sync
from agent.events import ToolStarted


@bthread
def nothing_twice():
    yield sync(wait_for=ToolStarted)
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small.results")
    run_batch(Conditions(folder), list(PLAN.episodes({})))
    return folder


def test_a_table_says_what_is_evaluable_and_between_which_bounds_the_rest_is(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", str(results), "--protocol", "blocking_monitor", "--thresholds", "200"]) == 0

    printed = capsys.readouterr().out
    first, *_, last = [line for line in printed.splitlines() if "constitution_only  honest" in line]
    assert "0%" in first
    assert "U 0.00 to 1.00" in first
    assert "100%" in last
    assert "8 episodes at 200 thresholds" in printed
    assert len((results / "what_if.csv").read_text().splitlines()) == 1 + 200 * 4


def test_a_program_reads_each_group(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--protocol", "taint_flow", "--recorded", "none", "--json"]

    assert main(["what-if", str(results), *words]) == 0

    groups = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(group["recorded"], group["policy"], group["evaluable"]) for group in groups} == {
        ("none", "honest", 2),
        ("none", "always", 2),
    }


def test_another_policy_and_a_rule_left_out(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(results), "--without", "gate", "--json"]) == 0
    assert all(json.loads(line)["evaluable"] == 0 for line in capsys.readouterr().out.splitlines())

    assert main(["what-if", str(results), "--policy", "passthrough", "--json"]) == 0
    assert all(json.loads(line)["evaluable"] == 2 for line in capsys.readouterr().out.splitlines())


def test_other_processes_say_the_same(results: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    words = ["--protocol", f"{tmp_path}/own.py:nothing_twice", "--policy", "strict", "--json"]

    said = []
    for workers in ("0", "2"):
        assert main(["what-if", str(results), *words, "--workers", workers]) == 0
        said.append(capsys.readouterr().out)

    assert said[0] == said[1]
    assert said[0].count("\n") == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--protocol", "blockin_monitor"], "did you mean 'blocking_monitor'"),
        (["--protocol", "taint_flow", "--recorded", "x"], "no episode ran under 'x'; recorded protocols: constitution"),
        (["--protocol", "taint_flow", "--thresholds", "1"], "N is at least 2"),
        ([], "nothing would differ"),
        (["--protocol", "taint_flow", "--workers", "-1"], "expected how many processes, 0 for this one alone"),
        (["--thresholds", "5"], "thresholds are those of a --protocol"),
    ],
)
def test_what_cannot_be_asked_is_told(
    words: list[str], told: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["what-if", str(results), *words]) == 2
    assert told in capsys.readouterr().err


def test_a_log_that_is_gone_is_told(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(results, tmp_path / "copy"))
    gone = next((copy / "logs").iterdir())
    gone.unlink()

    assert main(["what-if", str(copy), "--protocol", "taint_flow"]) == 2
    assert gone.name in capsys.readouterr().err


def test_options_of_experiments_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", str(tmp_path), "--protocol", "taint_flow", "--thresholds", "9"]) == 2
    assert "are for the folder of an experiment" in capsys.readouterr().err
