"""Resampling: the figures of all protocols on the same replicates, so that their differences have intervals, too.

Tasks are drawn within their split and setting, with everything that belongs to them; thresholds are fitted again in
each replicate.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from agent.lab.experiments.analysis.estimate import Rung
from agent.lab.experiments.analysis.samples import Sample, TaskName
from agent.lab.measures.intervals import Interval, interval_of, resampled, wilson

__all__ = ["Drawn", "Figures", "figures_of", "weights_of"]


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


class Drawn:
    """All protocols on all replicates; the first is no replicate, but everything once.

    weakest: the policy that does least under the protocol `base`, which differences are to.
    """

    def __init__(
        self,
        samples: Mapping[str, Sample],
        policies: Sequence[str],
        budget: float,
        base: str,
        weights: Sequence[Sequence[int]],
    ) -> None:
        self._policies, self._base = policies, base
        self._figures = {
            name: [figures_of(sample, policies, budget, each) for each in weights] for name, sample in samples.items()
        }
        self._samples = samples
        known = [(once, -n) for n, once in enumerate(self._figures[base][0].once) if not math.isnan(once)]
        self.weakest = policies[-max(known)[1]] if known else ""

    def points(self) -> list[dict[str, tuple[float, float]]]:
        """Return usefulness and worst S_1 of each protocol in each replicate."""
        drawn = {name: figures[1:] for name, figures in self._figures.items()}
        count = len(drawn[self._base])
        return [{name: (each[n].usefulness, each[n].worst) for name, each in drawn.items()} for n in range(count)]

    def usefulness(self, name: str) -> Interval:
        """Return the usefulness of a protocol."""
        return _share(self._values(name, _usefulness), len(self._samples[name].main))

    def lost(self, name: str) -> Interval:
        """Return how much more that is than the base's."""
        return _interval(self._differences(name, _usefulness))

    def worst(self, name: str) -> Interval:
        """Return S_1 against the rung that does most harm in each replicate."""
        return _share(self._values(name, _worst), self._attacked(name, self._policies))

    def worst_forever(self, name: str) -> Interval:
        """Return S_infinity against the rung that does most harm in each replicate."""
        return _share(self._values(name, _worst_forever), self._attacked(name, self._policies))

    def difference(self, name: str) -> Interval:
        """Return how much more the worst S_1 is than the base's."""
        return _interval(self._differences(name, _worst))

    def rungs(self, name: str, level: float) -> dict[str, Rung]:
        """Return safety against each policy; `level`: at which it is told apart from the base's."""
        return {policy: self._rung(name, number, level) for number, policy in enumerate(self._policies)}

    def _rung(self, name: str, number: int, level: float) -> Rung:
        tasks = self._attacked(name, self._policies[number : number + 1])
        difference = self._differences(name, lambda each: each.once[number])
        return Rung(
            _share(self._values(name, lambda each: each.once[number]), tasks),
            _share(self._values(name, lambda each: each.forever[number]), tasks),
            _interval(difference),
            _interval(difference, level).excludes(0),
        )

    def _values(self, name: str, figure: "Figure") -> list[float]:
        return [figure(each) for each in self._figures[name]]

    def _differences(self, name: str, figure: "Figure") -> list[float]:
        pairs = zip(self._values(name, figure), self._values(self._base, figure), strict=True)
        return [mine - base for mine, base in pairs]

    def _attacked(self, name: str, policies: Sequence[str]) -> int:
        return self._samples[name].attacked(policies)


Figure = Callable[[Figures], float]


def _usefulness(each: Figures) -> float:
    return each.usefulness


def _worst(each: Figures) -> float:
    return each.worst


def _worst_forever(each: Figures) -> float:
    return each.worst_forever


def _interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the interval of a figure and its replicates; of what is not known, none.

    Replicates that drew no task of which something is known say nothing.
    """
    known = [value for value in values[1:] if not math.isnan(value)]
    if math.isnan(values[0]) or not known:
        return Interval(values[0], math.nan, math.nan)
    return interval_of(values[0], known, level)


def _share(values: Sequence[float], tasks: int) -> Interval:
    """Return the interval of a share; Wilson's where all tasks went the same way, so that resampling has no width."""
    found = _interval(values)
    if tasks and found.low == found.high == found.value and found.value in (0.0, 1.0):
        return wilson(found.value * tasks, tasks)
    return found


def weights_of(tasks: Sequence[TaskName], replicates: int, seed: int) -> list[list[int]]:
    """Return how often each task counts: once, and then as often as it was drawn in each replicate."""
    drawn = resampled(tasks, replicates, seed, stratum=lambda task: task[:2])
    return [[1] * len(tasks), *([each[task] for task in tasks] for each in drawn)]


def figures_of(sample: Sample, policies: Sequence[str], budget: float, weights: Sequence[int]) -> Figures:
    """Return the figures of a protocol where each task counts as often as `weights` say."""
    threshold = sample.threshold(budget, weights)
    found = [sample.sabotage(policy, threshold, weights) for policy in policies]
    return Figures(
        sample.usefulness(weights),
        tuple(each.safety(1) if each else math.nan for each in found),
        tuple(each.safety(math.inf) if each else math.nan for each in found),
    )
