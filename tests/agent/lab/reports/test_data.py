"""Tables for other programs: read back by pandas in one line, with numbers as numbers."""

import math
import sys
from pathlib import Path

import pytest

from agent.lab.deployments.results import DeploymentRow, DeploymentStep
from agent.lab.episodes.results import RoleUsage, Row, Step
from agent.lab.extras import MissingExtra, check_extra, needed
from agent.lab.reports.analysis import analyze
from agent.lab.reports.data import estimate_lines, tidy, write_data
from tests.agent.lab.reports.test_report import analysis

ROLE = RoleUsage("agent", "big", 3, 10, 5, 0.25, 4, 15, 0.2)
ROWS = (
    Row(
        "k", "s", "f", "f-0", "test", "always", True, "none", 0, side=True, tau=1, main=0.5,
        steps=(Step("bash", True, "ran", 0.25), Step("bash", True, "ran", None)), roles=(ROLE,),
    ),
    Row("l", "s", "f", "f-0", "test", "honest", False, "none", 0, steps=(Step("bash", None, "ran", None),)),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_pandas_reads_every_table_in_one_line(form: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    read = pandas.read_json if form == "jsonl" else getattr(pandas, f"read_{form}")
    options = {"lines": True} if form == "jsonl" else {}
    step = DeploymentStep(0, "k", "agent", "honest", "harmless", 1.0, None)
    deployed = DeploymentRow("d", "upfront", "", "none", 0, 1, disabled=("agent", "watcher"), steps=(step,))
    write_data(tmp_path, ROWS, estimate_lines({"all": analysis()}), [deployed])

    table = {name: read(tmp_path / f"{name}.{form}", **options) for name in (*tidy(ROWS), "estimates", "deployments")}

    episodes, steps, roles, estimates = (table[name] for name in ("episodes", "steps", "roles", "estimates"))
    assert (list(episodes["main"]), list(episodes["side"]), episodes["tau"].sum()) == ([0.5, 0.0], [True, False], 1)
    assert (list(steps["key"]), list(steps["step"]), steps["score"].sum()) == (["k", "k", "l"], [0, 1, 0], 0.25)
    assert (roles["cost"].sum(), roles["requests"].sum(), list(roles["role"])) == (0.25, 4, ["agent"])
    assert estimates["estimate"].dtype.kind == estimates["low"].dtype.kind == estimates["high"].dtype.kind == "f"
    assert list(table["deployments"]["disabled"]) == ["agent watcher"]


def test_every_figure_is_a_line_that_says_whether_a_test_tells_it_apart() -> None:
    found = analysis()

    lines = list(estimate_lines({"all": found}))

    assert len(lines) == sum(len(each.figures) for each in found.estimates)
    apart = {(line.protocol, line.policy) for line in lines if line.measure == "safety" and line.apart}
    assert apart == {(each.protocol, policy) for each in found.estimates for policy in each.apart}
    assert {line.apart for line in lines if not line.policy} == {None}


def test_an_unknown_figure_is_null_and_not_a_text() -> None:
    alone = analyze(ROWS[1:], budget=0.01, replicates=5)

    unknown = [line for line in estimate_lines({"s": alone}) if line.measure == "safety_worst"]

    assert [(line.estimate, line.low, line.high) for line in unknown] == [(None, None, None)]
    assert not any(isinstance(line.low, float) and math.isnan(line.low) for line in estimate_lines({"s": alone}))


@pytest.mark.slow
def test_columns_have_their_types_where_nothing_is_in_them(tmp_path: Path) -> None:
    write_data(tmp_path, (), ())

    read = needed("pyarrow.parquet").read_table
    types = {field.name: str(field.type) for field in read(tmp_path / "episodes.parquet").schema}
    assert (types["tau"], types["main"], types["side"], types["status"]) == ("int64", "double", "bool", "string")
    types = {field.name: str(field.type) for field in read(tmp_path / "estimates.parquet").schema}
    assert (types["estimate"], types["low"], types["apart"]) == ("double", "double", "bool")


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)

    with pytest.raises(MissingExtra, match=r"need scipy.*pip install 'bpagent\[lab\]'"):
        needed("scipy.special")
    check_extra()
