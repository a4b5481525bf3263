"""Intervals: how sure a figure is, from resampling tasks.

Episodes of one task are alike, so tasks are drawn, with everything that belongs to them. What was fitted on the sample
is fitted again in each replicate: with the threshold held fixed, a nominal 95 % interval covered 48.7 %.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import TypeVar

from attrs import frozen

__all__ = ["REPLICATES", "Interval", "bootstrap", "interval_of", "resampled", "wilson"]

REPLICATES = 2000

Task = TypeVar("Task", bound=Hashable)


@frozen
class Interval:
    """A figure, and from where to where it may lie."""

    value: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside."""
        return not self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def resampled(
    tasks: Sequence[Task], replicates: int, seed: int, stratum: Callable[[Task], Hashable] = lambda _: None
) -> list[Counter[Task]]:
    """Return for each replicate how often each task was drawn; the same for the same seed.

    As many are drawn of each stratum as it has tasks: of the split for calibration, say, and of that for the test.
    """
    chance, strata = Random(seed), dict[Hashable, list[Task]]()
    for task in tasks:
        strata.setdefault(stratum(task), []).append(task)
    return [
        Counter(drawn for members in strata.values() for drawn in chance.choices(members, k=len(members)))
        for _ in range(replicates)
    ]


def bootstrap(
    tasks: Sequence[Task],
    figure: Callable[[Mapping[Task, int]], float],
    *,
    replicates: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return `figure` with its percentile interval.

    `figure` computes it from how often each task counts, everything that is fitted included; it is asked once with
    each task once, and then for each replicate. Raises ValueError without tasks.
    """
    if not tasks:
        raise ValueError("an interval comes from resampling tasks, and there are none")
    drawn = [figure(weights) for weights in resampled(tasks, replicates, seed)]
    return interval_of(figure(dict.fromkeys(tasks, 1)), drawn, level)


def wilson(successes: float, trials: float, *, level: float = 0.95) -> Interval:
    """Return a share with Wilson's interval, which keeps its width at 0 and 1, where resampling has none."""
    if trials <= 0 or not 0 <= successes <= trials:
        raise ValueError(f"a share is of one trial or more, {successes!r} of {trials!r} is none")
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / trials
    shrink = 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / shrink
    half = z / shrink * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low = 0.0 if successes <= 0 else middle - half
    return Interval(share, low, 1.0 if successes >= trials else middle + half)


def interval_of(value: float, replicates: Sequence[float], level: float = 0.95) -> Interval:
    """Return a figure with the percentile interval of its replicates."""
    drawn = sorted(replicates)
    return Interval(value, _quantile(drawn, (1 - level) / 2), _quantile(drawn, (1 + level) / 2))


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, max(0, round(share * (len(ordered) - 1))))]
