"""Confidence intervals and tests, from resampling clusters of episodes.

Episodes of one task correlate, and so do tasks of one family, so whole clusters are drawn. A threshold that was fitted
on the sample is fitted again in each replicate: held fixed, a nominal 95 % interval covered 48.7 %.

With few clusters percentiles of replicates are too narrow (five tasks with twenty seeds each: 80 to 86 % covered), so
replicates give a standard error only. A share gets the interval of Korn and Graubard (1998): Clopper and Pearson's for
the number of independent episodes that would have this standard error, with Student's t for the clusters. Simulated
for 5 to 30 tasks of 20 seeds, 93 % or more are covered (tests/agent/lab/measures/test_intervals.py).
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from random import Random
from statistics import NormalDist, fmean
from typing import TypeVar

from attrs import frozen

from agent.lab.extras import needed

FLOOR = 0.03
"""Squared deviation added to that of the clusters, so that clusters that agree by chance leave an interval its width.

Chosen by simulation: without it 89 % were covered where most tasks always succeed.
"""

Task = TypeVar("Task", bound=Hashable)


@frozen
class Interval:
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float

    @property
    def percent(self) -> str:
        """The share and its interval as text."""
        return f"{self.value:.1%} [{self.low:.1%}, {self.high:.1%}]"


@frozen
class Clusters:
    """The numbers of clusters that a figure rests on, of strata that are resampled apart, and of episodes."""

    count: int
    episodes: int
    strata: int = 1

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the standard error."""
        return self.count - self.strata


def resampled(
    tasks: Sequence[Task], replicates: int, seed: int, stratum: Callable[[Task], Hashable] = lambda _: None
) -> list[Counter[Task]]:
    """Return for each replicate how often each task, or cluster, was drawn; the same for the same seed.

    As many are drawn of each stratum as it has: of the split for calibration, say, and of that for the test.
    """
    chance, strata = Random(seed), dict[Hashable, list[Task]]()
    for task in tasks:
        strata.setdefault(stratum(task), []).append(task)
    return [
        Counter(drawn for members in strata.values() for drawn in chance.choices(members, k=len(members)))
        for _ in range(replicates)
    ]


def of_means(values: Sequence[float], *, is_share: bool = False) -> Interval:
    """Return the mean of independent values with its interval, without resampling. Raises ValueError without values."""
    if not values:
        raise ValueError("an interval rests on values, and there are none")
    value = fmean(values)
    error = math.sqrt(fmean((each - value) ** 2 for each in values) / len(values))
    interval = share_interval if is_share else mean_interval
    return interval(value, [value - error, value + error], Clusters(len(values), len(values)))


def mean_interval(value: float, replicates: Sequence[float], clusters: Clusters, level: float = 0.95) -> Interval:
    """Return an unbounded figure with Student's interval, which is infinite with a single cluster."""
    if clusters.freedom < 1:
        return Interval(value, -math.inf, math.inf)
    half = _student(clusters.freedom, level) * math.sqrt(_variance(replicates, clusters))
    return Interval(value, value - half, value + half)


def share_interval(value: float, replicates: Sequence[float], clusters: Clusters, level: float = 0.95) -> Interval:
    """Return a share from 0 to 1 with Korn and Graubard's interval, which keeps its width at 0 and 1.

    With a single cluster the interval is from 0 to 1.
    """
    if clusters.freedom < 1:
        return Interval(value, 0.0, 1.0)
    trials = _effective_trials(value, replicates, clusters, level)
    return Interval(value, *_clopper_pearson(value * trials, trials, (1 - level) / 2))


def difference_interval(value: float, replicates: Sequence[float], clusters: Clusters, level: float = 0.95) -> Interval:
    """Return a paired difference of two shares with its interval, which is from -1 to 1 with a single cluster.

    It is Student's interval, extended to that of a share if the difference has one sign in all replicates: then most
    clusters agree, a few do not, and Student's interval is too short on the long side.
    """
    size = abs(value)
    if clusters.freedom < 1 or size >= 1:
        halved = share_interval((1 + value) / 2, replicates, clusters, level)
        return Interval(value, 2 * halved.low - 1, 2 * halved.high - 1)
    half = _student(clusters.freedom, level) * math.sqrt(_variance(replicates, clusters) + 4 * _floor(clusters))
    long = half
    if size > 0 and min(each * value for each in replicates) >= 0:
        long = max(half, share_interval(size, [abs(each) for each in replicates], clusters, level).high - size)
    below, above = (half, long) if value >= 0 else (long, half)
    return Interval(value, max(-1.0, value - below), min(1.0, value + above))


def sign_test(differences: Sequence[float]) -> float:
    """Return the exact two-sided p-value of the sign test; zero differences are left out."""
    signs = [difference > 0 for difference in differences if abs(difference) > 1e-9]
    fewer = min(sum(signs), len(signs) - sum(signs))
    tail = sum(math.comb(len(signs), k) for k in range(fewer + 1))
    return float(min(1.0, 2.0 * tail / 2 ** len(signs)))


def tail_interval(above: int, total: int, level: float = 0.95) -> Interval:
    """Return the share of new scores above a threshold that `above` of `total` scores exceed.

    The threshold is one of these scores, so without ties the share is distributed as Beta(above + 1, total - above),
    and with ties less is above. A budget of 1 % set on 4 scores spends 20 %.
    """
    inverse, left = needed("scipy.special").betaincinv, max(total - above, 1)
    low, high = (float(inverse(above + 1, left, tail)) for tail in ((1 - level) / 2, (1 + level) / 2))
    return Interval((above + 1) / (total + 1), low, high)


def _effective_trials(value: float, replicates: Sequence[float], clusters: Clusters, level: float) -> float:
    """Return the effective number of independent episodes: at most all; one per cluster if all agree."""
    if value <= 0 or value >= 1:
        return float(clusters.count)
    variance = _variance(replicates, clusters) + _floor(clusters)
    student = NormalDist().inv_cdf((1 + level) / 2) / _student(clusters.freedom, level)
    return min(value * (1 - value) / variance * student**2, float(max(clusters.episodes, clusters.count)))


def _variance(replicates: Sequence[float], clusters: Clusters) -> float:
    """Return the variance of a figure; resampling k clusters has (k - 1) / k of it."""
    mean = fmean(replicates)
    return fmean((each - mean) ** 2 for each in replicates) * clusters.count / clusters.freedom


def _floor(clusters: Clusters) -> float:
    return FLOOR / (clusters.count * clusters.freedom)


def _clopper_pearson(successes: float, trials: float, tail: float) -> tuple[float, float]:
    """Return the ends of the exact interval of a share; the numbers may be fractions."""
    inverse = needed("scipy.special").betaincinv
    failures = trials - successes
    low = 0.0 if successes <= 1e-9 else float(inverse(successes, failures + 1, tail))
    high = 1.0 if failures <= 1e-9 else float(inverse(successes + 1, failures, 1 - tail))
    return low, high


@cache
def _student(freedom: int, level: float) -> float:
    return float(needed("scipy.special").stdtrit(freedom, (1 + level) / 2))
