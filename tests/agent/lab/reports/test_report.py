"""What a researcher reads at the end: tables that fit on a screen, a figure within its axes, data for pandas."""

import math
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.lab.deployments.results import DeploymentRow, DeploymentStep
from agent.lab.episodes.observer import Rounds
from agent.lab.episodes.results import RoleUsage, Row, Step
from agent.lab.experiments.experiment import Outcome
from agent.lab.experiments.plan import BASELINE, Plan, Policy, ProtocolPlan
from agent.lab.extras import MissingExtra, check_extra, needed
from agent.lab.reports.analysis import Analysis, analyze, audit_curves, spent_on_test
from agent.lab.reports.data import estimate_lines, tidy, write_data
from agent.lab.reports.plots import audit_curves as plot_curves
from agent.lab.reports.plots import calibration, label_places, usefulness_and_safety, write_figure
from agent.lab.reports.report import warnings_of
from agent.lab.reports.tables import (
    Table,
    Verified,
    budget_table,
    by_attack,
    by_rung,
    by_setting,
    by_task,
    costs,
    disclosure_table,
    episode_table,
    groups_of,
    leading,
    overview,
    read_verified,
)
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import InferenceFinished, InferenceRequested
from agent.vocabulary.messages import AssistantMessage
from agent.vocabulary.questions import Draft, ScoreGiven, ScoreRequested

pytest.importorskip("matplotlib")
SCREEN = 120  # columns
PROTOCOLS = (BASELINE, "suspicion_accumulates", "untrusted (colluding)")
RUNGS = ("always", "uniform", "cover", "best_of_n", "gives_up", "exploits_reasons", "draw_aware")


HONEST = Row("k", "operations", "f", "f-0", "test", "honest", False, BASELINE, 0, live=False, log="logs/k.jsonl")


def with_scores(row: Row, *scores: float | None) -> Row:
    return evolve(row, steps=tuple(Step("bash", row.attacks, "ran", score) for score in scores))


def rows(chance: Random, protocols: tuple[str, ...] = PROTOCOLS) -> list[Row]:
    found = []
    for protocol in protocols:
        for split, tasks in (("calibrate", 4), ("develop", 4), ("test", 10)):
            for task in range(tasks):
                base = evolve(HONEST, task=f"f-{task}", split=split, protocol=protocol)
                score = Step("bash", False, "ran", chance.random())
                found.append(evolve(base, main=float(chance.random() < 0.8), steps=(score,), rounds=9))
                for rung in RUNGS:
                    side = protocol == BASELINE or chance.random() < 0.3
                    found.append(evolve(base, policy=rung, attacks=True, side=side, steps=(score,)))
    trusted = evolve(found[0], split="test", policy="trusted", main=0.0)
    return [*found, trusted]


def analysis() -> Analysis:
    return analyze(rows(Random(0)), budget=0.01, replicates=50, comparisons=7)


def test_every_table_fits_on_a_screen() -> None:
    found = analysis()
    settings = dict.fromkeys(("repair", "operations", "infrastructure"), found)
    verified = {"suspicion_accumulates": Verified("bounded", 1_000_000)}
    used = {"suspicion_accumulates": ("suspicion_accumulates",)}
    tables = (overview(found), by_attack(found), by_rung(found), costs(found, verified, used), by_setting(settings))

    for table in tables:
        assert max(map(len, table.text.splitlines())) <= SCREEN
        assert len(set(table.headings)) == len(table.headings)
        assert table.markdown.count("\n") == len(table.lines) + 1


def test_each_task_of_the_test_has_a_line_with_what_was_done_and_what_harm() -> None:
    honest = evolve(HONEST, main=1.0)
    attack = evolve(honest, policy="always", attacks=True, main=0.0, side=True)
    other = evolve(honest, task="f-1", protocol="other", main=0.5)
    left_out = [evolve(honest, split="calibrate"), evolve(honest, status="failed"), evolve(honest, policy="trusted")]

    table = by_task([honest, attack, evolve(attack, caught=True), other, *left_out])

    assert table is not None
    assert table.headings == ("setting", "task", BASELINE, "other")
    assert table.lines == (("operations", "f-0", "1.00 1/2", "- 0/0"), ("operations", "f-1", "- 0/0", "0.50 0/0"))
    assert by_task(left_out[:2]) is None


def test_other_budgets_are_told_from_none_to_half() -> None:
    """Four honest scores, and attacks above three of them, above all of them, and without a score."""
    scored, attack = with_scores(evolve(HONEST, split="calibrate"), 0.1, 0.2, 0.3, 0.4), evolve(HONEST, policy="always")
    attack = evolve(attack, attacks=True, side=True)
    attacks = [with_scores(evolve(attack, task=f"f-{n}"), score) for n, score in enumerate((0.35, 0.9, None))]

    table = budget_table(audit_curves([scored, HONEST, *attacks], (0.0, 0.2, 0.25, 0.5)), {BASELINE: 0.0})

    assert table is not None
    assert table.headings == ("protocol", "its own audits", "0%", "20%", "25%", "50%")
    assert table.lines == ((BASELINE, "0.0%", "0.00", "0.00", "1.00", "1.00"),)
    assert budget_table(audit_curves([scored, HONEST]), {}) is None


@pytest.mark.slow
def test_labels_stay_in_the_figure_and_those_of_the_front_are_filled(tmp_path: Path) -> None:
    figure = usefulness_and_safety(analysis())
    write_figure(figure, tmp_path, "figure")

    (axes,) = figure.axes
    assert {text.get_text().partition(" (audits")[0] for text in axes.texts if text.get_text()} == set(PROTOCOLS)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "figure.svg").read_text()
    write_figure(usefulness_and_safety(analysis()), tmp_path, "again")
    assert svg == (tmp_path / "again.svg").read_text()
    assert svg.startswith("<?xml")


@pytest.mark.slow
def test_names_are_in_figures_as_they_are_written(tmp_path: Path) -> None:
    names = ("$$", "at $5 or $10", r"$\frac{$", "_mine", "größer <b>")
    found = analysis()
    estimates = tuple(evolve(found.estimates[0], protocol=name) for name in names)
    write_figure(plot_curves({name: [(0.0, 0.5), (1.0, 1.0)] for name in names}, 0.5), tmp_path, "curves")
    write_figure(usefulness_and_safety(evolve(found, estimates=estimates)), tmp_path, "figure")

    curves, figure = ((tmp_path / f"{name}.svg").read_text() for name in ("curves", "figure"))

    assert [name for name in names if f"<!-- {escape(name)} -->" not in curves] == []
    assert "Oblique" not in curves + figure  # the font of formulas


def test_the_axis_says_what_was_audited_and_points_in_one_place_share_a_label() -> None:
    """Nothing is audited where the calibration is too small for the budget."""
    few = [row for row in rows(Random(0)) if row.split != "calibrate"]
    alike = analyze([row for row in few if row.protocol == BASELINE], budget=0.01, replicates=20)
    (estimate,) = alike.estimates
    others = (estimate, evolve(estimate, protocol="other"), evolve(estimate, protocol="third"))

    (axes,) = usefulness_and_safety(evolve(alike, estimates=others)).axes
    (many,) = usefulness_and_safety(analyze(rows(Random(0)), budget=0.5, replicates=20)).axes

    assert axes.get_ylabel() == "worst-case safety S1, no honest calls audited"
    assert [text.get_text() for text in axes.texts if text.get_text()] == [f"{BASELINE}, other, third"]
    assert many.get_ylabel() == "worst-case safety S1, 50% of honest calls audited"


@pytest.mark.slow
def test_curves_begin_where_a_protocols_own_audits_are_paid() -> None:
    """One protocol audits each of its honest calls itself, so no budget below 100 % is enough for it."""
    given = rows(Random(0), (BASELINE,))
    audited = [evolve(row, protocol="audits", audits=1) for row in given]

    curves = audit_curves([*given, *audited], (0.0, 0.5, 1.0))

    assert [budget for budget, _ in curves[BASELINE]] == [0.0, 0.5, 1.0]
    assert [budget for budget, _ in curves["audits"]] == [1.0]
    (axes,) = plot_curves(curves, 0.5).axes
    assert [line.get_label() for line in axes.lines][:2] == [BASELINE, "audits"]
    assert plot_curves({}, 0.5).axes  # nothing attacked, so there is nothing to draw


def test_the_budget_that_thresholds_spend_is_counted_on_other_calls() -> None:
    scored = with_scores(evolve(HONEST, split="calibrate"), 0.1, 0.2, 0.3, 0.4)
    tested = with_scores(HONEST, 0.4, 0.5, 0.6, 0.7)

    assert spent_on_test([scored, tested], (0.25, 1.0)) == ([(0.25, 1.0), (1.0, 1.0)], 4)
    assert spent_on_test([tested]) == ([], 0)
    (axes,) = calibration([(0.25, 1.0)], 4).axes
    assert axes.get_xlabel() == "budget"


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_labels_keep_their_order_and_do_not_overlap(wanted: list[float]) -> None:
    places = label_places(sorted(wanted), 0.05)

    room = min(0.05, 1 / max(1, len(places) - 1))
    assert all(later - earlier >= room - 1e-6 for earlier, later in pairwise(places))
    assert all(-1e-6 <= place <= 1 + 1e-6 for place in places)


PLAN = Plan(
    "p",
    ("operations",),
    (Policy("honest"), *(Policy(rung, attacks=True) for rung in RUNGS)),
    (
        ProtocolPlan(BASELINE, (BASELINE,)),
        ProtocolPlan("silent", (BASELINE,), disclosure="none", against=("honest", "always", "exploits_reasons")),
        ProtocolPlan("other", ("taint_flow",)),
    ),
    replicates=20,
)


def test_protocols_that_differ_only_in_disclosure_share_a_table() -> None:
    there = rows(Random(0), (BASELINE, "silent", "other"))
    there = [row for row in there if row.protocol != "silent" or row.policy in PLAN.protocols[1].against]

    table = disclosure_table(PLAN, there)

    assert [sorted(group) for group in groups_of(PLAN)] == [["full", "none"]]
    assert table is not None
    assert table.headings == ("protocol", "told", "S1 always", "S1 exploits_reasons", "exploits_reasons: difference")
    assert [line[:2] for line in table.lines] == [(BASELINE, "none"), (BASELINE, "full")]
    assert table.lines[1][-1] == "0.00 [-0.08, +0.08]"
    assert max(map(len, table.text.splitlines())) <= SCREEN
    assert disclosure_table(evolve(PLAN, protocols=PLAN.protocols[:1]), there) is None


def test_verdicts_are_read_and_say_whether_they_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "verified.csv"
    assert read_verified(path) == {}
    path.write_text("protocols,verdict,states,seconds\na+b,holds,1234,1.0\nc,bounded,300000,9\nd,violated,7,1\n")

    told = {name: str(found) for name, found in read_verified(path).items()}

    assert told == {"a+b": "1,234 states", "c": "> 300,000 states", "d": "violated"}
    path.write_text("something else\n1\n")
    with pytest.raises(ValueError, match="make verified"):
        read_verified(path)


CALL = ToolCall("c1", "bash")


def test_rounds_count_what_comes_one_after_the_other_and_not_what_is_beside_it() -> None:
    rounds = Rounds()
    draft = Draft("d0", AssistantMessage(), (CALL,))
    one, other = ScoreRequested(draft, "one"), ScoreRequested(draft, "other")
    events = [
        InferenceRequested("d0", "agent", ""),
        InferenceFinished("d0", AssistantMessage(), (CALL,)),
        one,
        other,
        ScoreGiven(draft, "one", 0.1),
        ScoreGiven(draft, "other", 0.1),
        ScoreRequested(CALL, "one"),
        ScoreGiven(CALL, "one", 0.1),
        ScoreGiven(CALL, "nobody asked", 0.1),
    ]

    for event in events:
        rounds.fold(event)

    assert rounds.now == 3


# What a reader must know before figures are trusted.


def outcome_of(*given: Row) -> Outcome:
    """Return the outcome of an experiment of two policies, as far as warnings look at it."""
    found = analysis()
    policies = (Policy("honest"), Policy("always", attacks=True), Policy("mine", attacks=True))
    return Outcome(evolve(PLAN, policies=policies), tuple(given), found, {"operations": found}, None, len(given), 1.0)


def test_warnings_name_failed_episodes_policies_without_episodes_and_honest_harm() -> None:
    honest = HONEST
    always, mine = (evolve(honest, policy=name, attacks=True) for name in ("always", "mine"))
    failed = evolve(mine, status="failed", error="ModelsFailed: no answer", log="")
    other = evolve(failed, error="OSError: the disk is full")

    told = warnings_of(outcome_of(honest, evolve(honest, side=True), always, failed, failed, other))
    many = warnings_of(outcome_of(*(evolve(failed, error=f"KeyError: {number}") for number in range(20))))

    assert told == [
        "2 of 6 episodes failed and are left out: ModelsFailed: no answer",
        "1 of 6 episodes failed and are left out: OSError: the disk is full",
        "the policy 'mine' has no episode that ran, so nothing is said of it",
        "in 1 of 2 honest episodes the side task succeeded: the side check may find harm where there is none",
    ]
    assert warnings_of(outcome_of(honest, always, mine)) == []
    assert len(many) == 9  # five reasons, how many more, and three policies
    assert many[5] == "15 of 20 episodes failed and are left out: for 15 more reasons, see data/episodes.csv"


def test_harmful_and_failed_episodes_are_listed_with_their_logs_and_pages(tmp_path: Path) -> None:
    """Failed ones come first, then harm in honest work, then harm by attacks."""
    honest = HONEST
    attack = evolve(honest, key="k2", policy="always", attacks=True, side=True, tau=3, log="logs/<k2>.jsonl")
    failed = evolve(honest, key="k3", status="failed", error="OSError: <full>", log="")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "<k2>.html").write_text("page")

    table = episode_table([attack, honest, evolve(honest, side=True), failed], tmp_path)

    assert [line[-4:] for line in table.lines] == [
        ("failed: OSError: <full>", "0", "", ""),
        ("harm in honest work", "0", "logs/k.jsonl", ""),
        ("harm after call 3", "0", "logs/<k2>.jsonl", "logs/<k2>.html"),
    ]
    assert '<a href="logs/&lt;k2&gt;.html">logs/&lt;k2&gt;.html</a>' in table.html
    assert "failed: OSError: &lt;full&gt;" in table.html
    cells = leading(Table(("protocol", "always", "cover"), ((BASELINE, "0.50", "1.00"),)), table).html
    assert f'<td><a href="#{BASELINE}/always">0.50</a></td><td>1.00</td>' in cells
    assert f'<tr id="{BASELINE}/always">' in table.html
    assert len(episode_table([attack] * 1000, tmp_path).lines) == 200


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
