"""Curves agree with thresholds set one by one, and with the closed forms where distributions are known."""

import time
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.lab.measures import closed_forms
from agent.lab.measures.curves import area_under_curve, audit_curve, rate_caught
from agent.lab.measures.safety import Attack, sabotage
from agent.lab.measures.thresholds import threshold_at

N = 20_000
NEAR = 0.02
LEVELS = st.lists(st.one_of(st.none(), st.integers(0, 10).map(lambda level: level / 10)), min_size=1)


def honest(seed: int) -> list[float | None]:
    chance = Random(seed)
    return [chance.random() for _ in range(N)]


def drawn(seed: int, score: Callable[[Random], float]) -> list[float | None]:
    chance = Random(seed)
    return [score(chance) for _ in range(N)]


def beta(chance: Random, alpha: float) -> float:
    return float(chance.random() ** (1 / alpha))


@given(LEVELS, LEVELS, st.lists(st.floats(0, 1), min_size=1))
def test_the_curve_is_what_thresholds_give_one_by_one(
    honest: list[float | None], scores: list[float | None], budgets: list[float]
) -> None:
    attacks = [(score, float(number % 2)) for number, score in enumerate(scores)]

    for budget, (threshold, found) in zip(budgets, audit_curve(budgets, honest, attacks), strict=True):
        one = threshold_at(budget, honest)
        by_hand = sabotage(Attack(one.chance(score), succeeded) for score, succeeded in attacks)
        assert (found.caught, found.won) == pytest.approx((by_hand.caught, by_hand.won), abs=1e-6)
        assert threshold.realized == pytest.approx(budget, abs=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
@pytest.mark.parametrize("budget", [0.01, 0.05, 0.3])
def test_the_rate_of_attacks_caught_is_that_of_the_closed_form(budget: float, alpha: float) -> None:
    found = rate_caught(budget, honest(1), drawn(2, lambda chance: beta(chance, alpha)))

    assert found == pytest.approx(closed_forms.caught(budget, alpha), abs=NEAR)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
def test_the_area_is_that_of_the_closed_form(alpha: float) -> None:
    attacks = drawn(2, lambda chance: beta(chance, alpha))

    assert area_under_curve(honest(1), attacks) == pytest.approx(closed_forms.area(alpha), abs=NEAR)


@pytest.mark.parametrize("steps", [1, 5])
def test_the_maximum_over_steps_is_that_of_the_closed_form(steps: int) -> None:
    usual = drawn(1, lambda chance: max(chance.random() for _ in range(steps)))
    attacks = drawn(2, lambda chance: max([beta(chance, 4), *(chance.random() for _ in range(steps - 1))]))

    assert rate_caught(0.05, usual, attacks) == pytest.approx(closed_forms.caught_by_maximum(0.05, 4, steps), abs=NEAR)


@pytest.mark.parametrize("draws", [1, 3])
def test_the_least_and_the_most_of_several_draws_are_those_of_the_closed_forms(draws: int) -> None:
    def of(pick: Callable[[list[float]], float], alpha: float) -> Callable[[Random], float]:
        return lambda chance: pick([beta(chance, alpha) for _ in range(draws)])

    least = rate_caught(0.1, drawn(1, of(min, 1)), drawn(2, of(min, 3)))
    assert least == pytest.approx(closed_forms.caught_by_least(0.1, 3, draws), abs=NEAR)
    most = rate_caught(0.1, drawn(1, of(max, 1)), drawn(2, of(max, 3)))
    assert most == pytest.approx(closed_forms.caught_by_most(0.1, 3, draws), abs=NEAR)


@pytest.mark.parametrize("draws", [1, 4])
def test_slips_are_those_of_the_closed_forms(draws: int) -> None:
    def of(pick: Callable[[list[float]], float], slip: float) -> Callable[[Random], float]:
        return lambda chance: pick([1.0 if chance.random() < slip else chance.random() for _ in range(draws)])

    least = rate_caught(0.1, drawn(1, of(min, 0)), drawn(2, of(min, 0.3)))
    assert least == pytest.approx(closed_forms.caught_by_least(0.1, 1, draws, 0.3), abs=NEAR)
    most = rate_caught(0.1, drawn(1, of(max, 0)), drawn(2, of(max, 0.3)))
    assert most == pytest.approx(closed_forms.caught_by_most(0.1, 1, draws, 0.3), abs=NEAR)


def test_equal_scores_count_half() -> None:
    assert area_under_curve([0.2, 0.5], [0.5, 0.1]) == pytest.approx((1 + 0.5 + 0 + 0) / 4)


def test_a_missing_score_wins_against_all_others_and_ties_with_its_like() -> None:
    assert area_under_curve([1.0], [None]) == 1
    assert area_under_curve([None], [None]) == 0.5


def test_five_hundred_thresholds_over_ten_thousand_episodes_take_at_most_five_seconds() -> None:
    chance = Random(3)
    usual = [round(chance.random(), 2) for _ in range(5_000)]
    attacks = [(round(beta(chance, 3), 2), 1.0) for _ in range(5_000)]
    begun = time.process_time()

    curve = audit_curve([n / 500 for n in range(500)], usual, attacks)

    assert len({found.safety() for _, found in curve}) > 400
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("measure", [area_under_curve, lambda honest, attacks: rate_caught(0.1, honest, attacks)])
def test_nothing_to_compare_is_refused(measure: Callable[[list[float | None], list[float | None]], float]) -> None:
    with pytest.raises(ValueError, match=r"there are none|is missing"):
        measure([0.5], [])
