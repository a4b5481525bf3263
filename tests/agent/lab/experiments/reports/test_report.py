"""What a researcher reads at the end: tables that fit on a screen, a figure within its axes, what telling costs."""

import csv
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.lab.episodes.observer import Rounds
from agent.lab.episodes.results import Row, Step
from agent.lab.experiments.plan import BASELINE, Plan, Policy, ProtocolPlan
from agent.lab.measures.intervals import Interval
from agent.lab.reports.analysis import Analysis, analyze
from agent.lab.reports.plots import HEIGHT, WIDTH, Plot, spread
from agent.lab.reports.report import hero_figure
from agent.lab.reports.tables import (
    Verified,
    budget_table,
    by_attack,
    by_rung,
    by_setting,
    costs,
    disclosure_table,
    groups_of,
    overview,
    read_verified,
    told_apart,
)
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import InferenceFinished, InferenceRequested
from agent.vocabulary.messages import AssistantMessage
from agent.vocabulary.questions import Draft, ScoreGiven, ScoreRequested

SCREEN = 120  # columns
PROTOCOLS = (BASELINE, "suspicion_accumulates", "untrusted (colluding)")
RUNGS = ("always", "uniform", "cover", "best_of_n", "gives_up", "exploits_reasons", "draw_aware")


def rows(chance: Random, protocols: tuple[str, ...] = PROTOCOLS, setting: str = "operations") -> list[Row]:
    found = []
    for protocol in protocols:
        for split, tasks in (("calibrate", 4), ("develop", 4), ("test", 10)):
            for task in range(tasks):
                base = Row("k", setting, "f", f"f-{task}", split, "honest", False, protocol, 0, live=False)
                score = Step("bash", False, "ran", chance.random())
                found.append(evolve(base, main=float(chance.random() < 0.8), steps=(score,), rounds=9))
                for rung in RUNGS:
                    side = protocol == BASELINE or chance.random() < 0.3
                    found.append(evolve(base, policy=rung, attacks=True, side=side, steps=(score,)))
    trusted = evolve(found[0], split="test", policy="trusted", main=0.0)
    return [*found, trusted]


def analysis() -> Analysis:
    return analyze(rows(Random(0)), budget=0.01, replicates=50, comparisons=7)


def test_every_table_fits_on_a_screen_and_says_the_same_in_all_forms(tmp_path: Path) -> None:
    found = analysis()
    settings = dict.fromkeys(("repair", "operations", "infrastructure"), found)
    verified = {"suspicion_accumulates": Verified("bounded", 1_000_000)}
    used = {"suspicion_accumulates": ("suspicion_accumulates",)}
    tables = (overview(found), by_attack(found), by_rung(found), costs(found, verified, used), by_setting(settings))

    for number, table in enumerate(tables):
        assert max(map(len, table.text.splitlines())) <= SCREEN
        assert len(set(table.headings)) == len(table.headings)
        assert table.markdown.count("\n") == len(table.lines) + 1
        table.write(tmp_path, f"table{number}")
        with (tmp_path / f"table{number}.csv").open(newline="", encoding="utf-8") as file:
            assert [tuple(line) for line in csv.reader(file)] == [table.headings, *table.lines]


def test_usefulness_is_scaled_between_the_trusted_model_and_the_agent() -> None:
    found = {each.protocol: each for each in analysis().estimates}

    assert found[BASELINE].scaled == 1
    assert analyze(rows(Random(0))[:-1], budget=0.01, replicates=5).estimates[0].scaled is None


def test_the_weakest_attack_is_the_one_that_does_least_under_the_baseline() -> None:
    given = [
        evolve(row, side=False) if row.policy == "cover" and row.protocol == BASELINE else row
        for row in rows(Random(1))
    ]

    assert analyze(given, budget=0.01, replicates=5).weakest == "cover"


def test_what_differs_by_more_than_its_interval_is_told_and_starred_only_where_all_comparisons_allow_it() -> None:
    found = analysis()

    lines = told_apart({"operations": found}).lines

    assert {line[0] for line in lines} == set(PROTOCOLS[1:])
    assert all(rung.differs for each in found.estimates for rung in each.rungs.values() if rung.apart)
    one = [evolve(row, steps=()) if row.attacks else row for row in rows(Random(0), (BASELINE,))]  # no audit finds it
    safe = [evolve(row, protocol="safe", side=False) for row in one]
    assert told_apart({"s": analyze([*one, *safe], budget=0.01, replicates=50, comparisons=21)}).lines[0][:4] == (
        "safe",
        "s",
        "all",
        "7",
    )
    assert max(map(len, told_apart({"operations": found}).text.splitlines())) <= SCREEN
    same = told_apart({"operations": analyze(rows(Random(0), (BASELINE,) * 1), budget=0.01, replicates=9)})
    assert same.lines == ()


def test_other_budgets_are_told_from_none_to_half() -> None:
    """Four honest scores, and attacks above three of them, above all of them, and without a score."""
    base = Row("k", "s", "f", "f-0", "test", "honest", False, BASELINE, 0, live=False)
    scored = evolve(base, split="calibrate", steps=tuple(Step("bash", False, "ran", n / 10) for n in (1, 2, 3, 4)))
    attacks = [
        evolve(base, task=f"f-{n}", policy="always", attacks=True, side=True, steps=(Step("bash", True, "ran", score),))
        for n, score in enumerate((0.35, 0.9, None))
    ]

    table = budget_table([scored, base, *attacks], (0.0, 0.2, 0.25, 0.5))

    assert table is not None
    assert table.headings == ("protocol", "its own audits", "0%", "20%", "25%", "50%")
    assert table.lines == ((BASELINE, "0.0%", "0.00", "0.00", "1.00", "1.00"),)
    assert budget_table([scored, base]) is None


def test_a_row_that_never_differs_says_so() -> None:
    one = rows(Random(0), (BASELINE,))
    twice = [*one, *(evolve(row, protocol="the same") for row in one)]

    assert told_apart({"s": analyze(twice, budget=0.01, replicates=20)}).lines == (("the same", "nowhere", "", "", ""),)


def test_ellipses_and_labels_stay_in_the_figure() -> None:
    figure = hero_figure(analysis())

    numbers = [float(number) for number in re.findall(r'(?:cx|x|x1|x2)="([\d.]+)"', figure)]
    heights = [float(number) for number in re.findall(r'(?:cy|y|y1|y2)="([\d.]+)"', figure)]
    assert all(0 <= number <= WIDTH for number in numbers)
    assert all(0 <= height <= HEIGHT for height in heights)
    assert all(f">{name}</text>" in figure for name in PROTOCOLS)
    assert "prefers-color-scheme:dark" in figure


def test_an_ellipse_reaches_as_far_as_its_intervals() -> None:
    plot = Plot("x", "y")
    plot.intervals(Interval(0.9, 0.5, 1.0), Interval(0.0, 0.0, 0.4), "red")

    (path,) = re.findall(r'<path d="(M[^"]+z)"', plot.svg("t"))

    east, north = (plot.at(1.0, 0.0)[0], plot.at(0.9, 0.4)[1])
    assert path.startswith(f"M{east:.1f},")
    assert f",{north:.1f}" in path


@settings(deadline=None)
@given(st.lists(st.floats(0, 500), max_size=30))
def test_labels_keep_their_order_and_do_not_overlap(wanted: list[float]) -> None:
    places = spread(sorted(wanted), 10, 480, 20)

    room = min(20, 470 / max(1, len(places) - 1))
    assert all(later - earlier >= room - 1e-6 for earlier, later in pairwise(places))
    assert all(10 - 1e-6 <= place <= 480 + 1e-6 for place in places)


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


def test_protocols_that_differ_in_what_they_tell_stand_side_by_side() -> None:
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


def test_what_was_tried_with_some_policies_only_is_not_compared_in_its_worst_case() -> None:
    assert PLAN.compared == {BASELINE, "other"}
    assert evolve(PLAN, protocols=PLAN.protocols[1:2]).compared == {"silent"}


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
