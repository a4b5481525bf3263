"""Intervals cover as often as they say, when everything that was fitted is fitted again."""

from collections.abc import Callable, Mapping
from random import Random

import pytest

from agent.lab.measures import closed_forms
from agent.lab.measures.intervals import bootstrap, resampled, wilson
from agent.lab.measures.pareto import front, front_frequency
from agent.lab.measures.thresholds import threshold_at

BUDGET, ALPHA, TASKS = 0.2, 3.0, 40
Figure = Callable[[Mapping[int, int]], float]


def experiment(seed: int, *, refits: bool) -> Figure:
    """The share of attacks caught, with one honest and one attack episode per task."""
    chance = Random(seed)
    honest = [chance.random() for _ in range(TASKS)]
    attacks = [chance.random() ** (1 / ALPHA) for _ in range(TASKS)]
    order = sorted(range(TASKS), key=lambda task: -honest[task])
    scores: list[float | None] = [honest[task] for task in order]
    fixed = threshold_at(BUDGET, scores)

    def figure(weights: Mapping[int, int]) -> float:
        drawn = [weights.get(task, 0) for task in order]
        threshold = threshold_at(BUDGET, scores, drawn, ordered=True) if refits else fixed
        caught = sum(weights.get(task, 0) * threshold.chance(attacks[task]) for task in range(TASKS))
        return caught / TASKS

    return figure


def coverage(*, refits: bool, worlds: int = 120) -> float:
    truth = closed_forms.caught(BUDGET, ALPHA)
    intervals = (bootstrap(range(TASKS), experiment(w, refits=refits), replicates=120, seed=w) for w in range(worlds))
    return sum(not interval.excludes(truth) for interval in intervals) / worlds


def test_an_interval_covers_when_the_threshold_is_fitted_again_and_not_when_it_is_not() -> None:
    """Fixed seeds; the figures of the specification are 95.7 % and 48.7 % of another distribution."""
    refitted, held = coverage(refits=True), coverage(refits=False)

    assert refitted > 0.88
    assert held < refitted - 0.05


def test_replicates_are_the_same_for_the_same_seed() -> None:
    assert resampled("abc", 5, seed=1) == resampled("abc", 5, seed=1)
    assert resampled("abc", 5, seed=1) != resampled("abc", 5, seed=2)
    assert all(sum(drawn.values()) == 3 for drawn in resampled("abc", 5, seed=1))


def test_a_paired_difference_is_narrower_than_the_figures_are() -> None:
    chance = Random(5)
    difficulty = [chance.random() for _ in range(30)]

    def mean(shift: float) -> Callable[[Mapping[int, int]], float]:
        return lambda weights: sum(count * (difficulty[task] + shift) for task, count in weights.items()) / 30

    alone = bootstrap(range(30), mean(0.1), replicates=200)
    difference = bootstrap(range(30), lambda drawn: mean(0.1)(drawn) - mean(0.0)(drawn), replicates=200)

    assert difference.value == pytest.approx(0.1)
    assert difference.high - difference.low < 0.01 < alone.high - alone.low
    assert difference.excludes(0)


def test_wilsons_interval_keeps_its_width_at_the_ends() -> None:
    assert (wilson(0, 20).low, round(wilson(0, 20).high, 4)) == (0, 0.1611)
    assert (round(wilson(20, 20).low, 4), wilson(20, 20).high) == (0.8389, 1)
    assert (round(wilson(5, 10).low, 4), round(wilson(5, 10).high, 4)) == (0.2366, 0.7634)


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="there are none"):
        bootstrap([], lambda _: 0.0)
    with pytest.raises(ValueError, match="one trial"):
        wilson(0, 0)
    with pytest.raises(ValueError, match="5 of 3 is none"):
        wilson(5, 3)
    assert wilson(5, 10, level=0.8).high < wilson(5, 10).high


def test_the_front_is_whom_nobody_beats() -> None:
    points = {"useful": (0.9, 0.2), "safe": (0.3, 0.9), "between": (0.5, 0.5), "beaten": (0.5, 0.4)}

    assert front(points) == {"useful", "safe", "between"}


def test_equal_points_stay_on_the_front() -> None:
    assert front({"one": (0.5, 0.5), "same": (0.5, 0.5), "less": (0.5, 0.4)}) == {"one", "same"}


def test_membership_of_the_front_is_a_frequency() -> None:
    replicates = [{"a": (0.9, 0.9), "b": (0.1, 0.1)}, {"a": (0.9, 0.1), "b": (0.1, 0.9)}]

    assert front_frequency(replicates) == {"a": 1.0, "b": 0.5}
