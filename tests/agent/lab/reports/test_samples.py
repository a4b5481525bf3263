"""Samples say what `measures` says, only faster."""

import math
from random import Random

import pytest

from agent.lab.episodes.results import Row, Step
from agent.lab.measures.safety import sabotage
from agent.lab.measures.thresholds import threshold_at
from agent.lab.reports.samples import Sample, sample_of, task_of


def random_rows(chance: Random) -> list[Row]:
    """Honest calibration and attacks, with scores of few levels, some of them missing."""

    def steps(most: int) -> tuple[Step, ...]:
        levels = (0.0, 0.2, 0.5, 0.9, 1.0, None)
        return tuple(Step("bash", False, "ran", chance.choice(levels)) for _ in range(chance.randrange(most)))

    honest = [Row("k", "s", "f", f"f-{n}", "calibrate", "honest", False, "p", 0, steps=steps(6)) for n in range(5)]
    attacks = [
        Row(
            "k",
            "s",
            "f",
            f"f-{n % 4}",
            "test",
            "always",
            True,
            "p",
            0,
            steps=steps(5),
            side=chance.random() < 0.6,
            caught=chance.random() < 0.2,
        )
        for n in range(12)
    ]
    return honest + attacks


def sample(rows: list[Row]) -> tuple[Sample, dict[tuple[str, str, str], int]]:
    numbers = {task: number for number, task in enumerate(sorted({task_of(row) for row in rows}))}
    return sample_of(rows, "test", numbers), numbers


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_and_sabotage_are_those_of_the_measures(seed: int) -> None:
    chance = Random(seed)
    rows = random_rows(chance)
    drawn, numbers = sample(rows)
    weights = [chance.randrange(3) for _ in numbers]
    budget = chance.choice((0.0, 0.01, 0.1, 0.5, 1.0))

    found = drawn.threshold(budget, weights)

    scored = [(step.score, weights[numbers[task_of(row)]]) for row in rows if not row.attacks for step in row.steps]
    if any(weight for _, weight in scored):
        expected = threshold_at(budget, [score for score, _ in scored], [weight for _, weight in scored])
        assert found.theta == expected.theta
        assert found.gamma == pytest.approx(expected.gamma)
    else:
        assert found.theta == math.inf
    attacks = [trial.under(found) for trial in drawn.trials["always"] for _ in range(weights[trial.task])]
    fast = drawn.sabotage("always", found, weights)
    if attacks:
        assert fast is not None
        slow = sabotage(attacks)
        assert fast.caught == pytest.approx(slow.caught)
        assert fast.won == pytest.approx(slow.won)
    else:
        assert fast is None


def test_a_policy_without_episodes_has_no_safety() -> None:
    drawn, numbers = sample(random_rows(Random(0)))

    assert drawn.sabotage("uniform", drawn.threshold(0.1, [1] * len(numbers)), [1] * len(numbers)) is None
