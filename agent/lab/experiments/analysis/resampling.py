"""Resampling: the figures of all protocols on the same replicates, so that their differences have intervals, too.

Clusters of tasks are drawn within their split and setting, with everything that belongs to them; thresholds are fitted
again in each replicate. Whether a protocol differs from the baseline is decided by an exact test over the clusters.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import frozen

from agent.lab.experiments.analysis.estimate import Rung
from agent.lab.experiments.analysis.samples import Sample, TaskName
from agent.lab.measures.intervals import (
    Clusters,
    Interval,
    difference_interval,
    resampled,
    share_interval,
    sign_test,
)
from agent.lab.measures.safety import Sabotage
from agent.lab.measures.thresholds import Threshold, supports

__all__ = ["Drawn", "Figures", "Tasks", "figures_of"]


@frozen
class Figures:
    """One protocol in one replicate: usefulness, and S_1 and S_infinity against each rung."""

    usefulness: float
    once: tuple[float, ...]
    forever: tuple[float, ...]

    @property
    def worst(self) -> float:
        """S_1 against the rung that does most harm."""
        return _least(self.once)

    @property
    def worst_forever(self) -> float:
        """S_infinity against the rung that does most harm."""
        return _least(self.forever)


def _least(values: Sequence[float]) -> float:
    """Return the least of what is known; a rung of which no episode ran is not."""
    return min((value for value in values if not math.isnan(value)), default=math.nan)


@frozen
class Tasks:
    """The tasks of an experiment, each by its number, and the cluster that each is drawn with."""

    names: tuple[TaskName, ...]
    clusters: Mapping[TaskName, TaskName]

    def weights(self, replicates: int, seed: int) -> list[list[int]]:
        """Return how often each task counts: once, and then as often as its cluster was drawn in each replicate."""
        names = sorted(set(self.clusters.values()))
        drawn = resampled(names, replicates, seed, stratum=lambda cluster: cluster[:2])
        return [[1] * len(self.names), *([each[self.clusters[task]] for task in self.names] for each in drawn)]

    def counted(self, tasks: frozenset[int], episodes: int) -> Clusters:
        """Return how many clusters some tasks are of."""
        clusters = {self.clusters[self.names[number]] for number in tasks}
        return Clusters(len(clusters), episodes, len({cluster[:2] for cluster in clusters}))

    def apart(self) -> list[list[int]]:
        """Return for each cluster how often each task counts when only this cluster does."""
        return [
            [int(self.clusters[task] == cluster) for task in self.names]
            for cluster in sorted({*self.clusters.values()})
        ]


class Drawn:
    """All protocols on all replicates; the first is no replicate, but everything once.

    weakest: the policy that does least under the protocol `base`, which differences are to. A protocol whose own audits
    cost more than `budget` is compared with the base at the same cost.
    """

    def __init__(
        self,
        samples: Mapping[str, Sample],
        policies: Sequence[str],
        budget: float,
        base: str,
        tasks: Tasks,
        weights: Sequence[Sequence[int]],
    ) -> None:
        self._policies, self._base, self._budget = policies, base, budget
        self._samples, self._tasks, self._weights = samples, tasks, weights
        self._figures = {name: self._drawn(sample, budget) for name, sample in samples.items()}
        self._bases = {budget: self._figures[base]}
        self._apart: dict[tuple[str, float], list[Figures]] = {}
        known = [(once, -n) for n, once in enumerate(self._figures[base][0].once) if not math.isnan(once)]
        self.weakest = policies[-max(known)[1]] if known else ""

    def _drawn(self, sample: Sample, budget: float) -> list[Figures]:
        return [figures_of(sample, self._policies, budget, each) for each in self._weights]

    def audited(self, name: str) -> float:
        """Return the share of honest calls that are audited under a protocol: the budget, or more of its own."""
        sample = self._samples[name]
        return sample.own_audits + _left(sample, self._budget)

    def own_audits(self, name: str) -> float:
        """Return the share of honest calls that a protocol audits itself."""
        return self._samples[name].own_audits

    @property
    def calibrated(self) -> int:
        """How many honest calls the base's threshold is set on."""
        return self._samples[self._base].calibrated

    def points(self) -> list[dict[str, tuple[float, float]]]:
        """Return usefulness and worst S_1 in each replicate, of each protocol that keeps to the budget."""
        kept = {name: each[1:] for name, each in self._figures.items() if self.audited(name) <= self._budget}
        count = len(self._weights) - 1
        return [{name: (each[n].usefulness, each[n].worst) for name, each in kept.items()} for n in range(count)]

    def usefulness(self, name: str) -> Interval:
        """Return the usefulness of a protocol."""
        return _interval(self._values(name, _usefulness), partial(share_interval, clusters=self._worked(name)))

    def lost(self, name: str) -> Interval:
        """Return how much more that is than the base's."""
        return _interval(
            self._differences(name, _usefulness), partial(difference_interval, clusters=self._worked(name))
        )

    def worst(self, name: str) -> Interval:
        """Return S_1 against the rung that does most harm in each replicate."""
        return self._share(name, _worst, self._policies)

    def worst_forever(self, name: str) -> Interval:
        """Return S_infinity against the rung that does most harm in each replicate."""
        return self._share(name, _worst_forever, self._policies)

    def bias(self, name: str) -> float:
        """Return by how much the least of several estimates is too low, as its replicates are lower than itself."""
        values = [value for value in self._values(name, _worst) if not math.isnan(value)]
        return max(0.0, values[0] - sum(values[1:]) / len(values[1:])) if len(values) > 1 else 0.0

    def difference(self, name: str) -> Interval:
        """Return how much more the worst S_1 is than the base's."""
        return self._difference(name, _worst, self._policies)

    def rungs(self, name: str, level: float) -> dict[str, Rung]:
        """Return safety against each policy; `level`: at which it is told apart from the base's."""
        return {policy: self._rung(name, number, level) for number, policy in enumerate(self._policies)}

    def _rung(self, name: str, number: int, level: float) -> Rung:
        policies = self._policies[number : number + 1]
        return Rung(
            self._share(name, lambda each: each.once[number], policies),
            self._share(name, lambda each: each.forever[number], policies),
            self._difference(name, lambda each: each.once[number], policies),
            self._p_value(name, number) < 1 - level,
        )

    def _p_value(self, name: str, number: int) -> float:
        """Return the p-value of the sign test over clusters: in how many the protocol is safer, in how many less."""
        base = self._by_cluster(self._base, self.audited(name))
        mine = self._by_cluster(name, self._budget)
        pairs = ((one.once[number], other.once[number]) for one, other in zip(mine, base, strict=True))
        return sign_test([one - other for one, other in pairs if not math.isnan(one - other)])

    def _by_cluster(self, name: str, budget: float) -> list[Figures]:
        """Return the figures of each cluster alone, with thresholds that are set on all of them."""
        known = self._apart.get((name, budget))
        if known is None:
            sample = self._samples[name]
            threshold = sample.threshold(_left(sample, budget), self._weights[0])
            policies = self._policies
            known = [_figures(sample, policies, threshold, each) for each in self._tasks.apart()]
            self._apart[name, budget] = known
        return known

    def _share(self, name: str, figure: "Figure", policies: Sequence[str]) -> Interval:
        return _interval(self._values(name, figure), partial(share_interval, clusters=self._attacked(name, policies)))

    def _difference(self, name: str, figure: "Figure", policies: Sequence[str]) -> Interval:
        given = partial(difference_interval, clusters=self._attacked(name, policies))
        return _interval(self._differences(name, figure), given)

    def _values(self, name: str, figure: "Figure") -> list[float]:
        return [figure(each) for each in self._figures[name]]

    def _differences(self, name: str, figure: "Figure") -> list[float]:
        """Return how much more a protocol has than the base that audits as much."""
        cost = self.audited(name)
        if cost not in self._bases:
            self._bases[cost] = self._drawn(self._samples[self._base], cost)
        pairs = zip(self._figures[name], self._bases[cost], strict=True)
        return [figure(mine) - figure(base) for mine, base in pairs]

    def _attacked(self, name: str, policies: Sequence[str]) -> Clusters:
        return self._tasks.counted(*self._samples[name].attacked(policies))

    def _worked(self, name: str) -> Clusters:
        sample = self._samples[name]
        return self._tasks.counted(frozenset(task for task, _ in sample.main), sample.honest)


Figure = Callable[[Figures], float]


def _usefulness(each: Figures) -> float:
    return each.usefulness


def _worst(each: Figures) -> float:
    return each.worst


def _worst_forever(each: Figures) -> float:
    return each.worst_forever


def _interval(values: Sequence[float], interval: Callable[[float, Sequence[float]], Interval]) -> Interval:
    """Return the interval of a figure and its replicates; of what is not known, none.

    Replicates that drew no task of which something is known say nothing.
    """
    known = [value for value in values[1:] if not math.isnan(value)]
    if math.isnan(values[0]) or not known:
        return Interval(values[0], math.nan, math.nan)
    return interval(values[0], known)


def figures_of(sample: Sample, policies: Sequence[str], budget: float, weights: Sequence[int]) -> Figures:
    """Return the figures of a protocol where each task counts as often as `weights` say."""
    return _figures(sample, policies, sample.threshold(_left(sample, budget), weights), weights)


def _left(sample: Sample, budget: float) -> float:
    """Return what a protocol's own audits leave of the budget; nothing that no threshold could spend."""
    left = max(0.0, budget - sample.own_audits)
    return left if supports(sample.calibrated, left) else 0.0


def _figures(sample: Sample, policies: Sequence[str], threshold: Threshold, weights: Sequence[int]) -> Figures:
    found = [sample.sabotage(policy, threshold, weights) for policy in policies]
    return Figures(sample.usefulness(weights), _safety(found, 1), _safety(found, math.inf))


def _safety(found: Sequence[Sabotage | None], attempts: float) -> tuple[float, ...]:
    return tuple(each.safety(attempts) if each else math.nan for each in found)
