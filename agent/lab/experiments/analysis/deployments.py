"""What deployments come to: audits, catches, harm before the catch, and what rules cost, with intervals.

What a rule costs in usefulness is the difference to the same deployment without rules, seed by seed. Intervals are
95 %, by resampling seeds: they say how much chance there is in who attacks when, and nothing about other tasks.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from attrs import frozen

from agent.lab.experiments.shelf.deployments import DeploymentRow
from agent.lab.measures.intervals import Interval, bootstrap

__all__ = ["DeploymentEstimate", "estimates_of"]


@frozen
class DeploymentEstimate:
    """All runs of one deployment under one protocol."""

    deployment: str
    protocol: str
    runs: int
    failed: int
    audits: Interval
    caught: Interval
    after: float | None
    disabled: Interval
    harm_before: Interval
    harm: Interval
    usefulness: Interval
    lost: Interval | None


def estimates_of(
    rows: Sequence[DeploymentRow], bare: Mapping[str, DeploymentRow], *, replicates: int
) -> tuple[DeploymentEstimate, ...]:
    """Return the estimates, in the order of the rows; `bare`: by key, the same deployment without rules."""
    groups: dict[tuple[str, str], list[DeploymentRow]] = {}
    for row in rows:
        groups.setdefault((row.deployment, row.protocol), []).append(row)
    return tuple(
        _estimate(name, protocol, group, bare, replicates)
        for (name, protocol), group in groups.items()
        if any(row.status == "ran" for row in group)
    )


def _estimate(
    name: str, protocol: str, group: Sequence[DeploymentRow], bare: Mapping[str, DeploymentRow], replicates: int
) -> DeploymentEstimate:
    ran = {row.key: row for row in group if row.status == "ran"}

    def mean(
        value: Callable[[DeploymentRow], float], keys: Sequence[str] = tuple(ran), *, is_share: bool = False
    ) -> Interval:
        def figure(weights: Mapping[str, int]) -> float:
            total = sum(weights.get(key, 0) for key in keys)
            return sum(weights.get(key, 0) * value(ran[key]) for key in keys) / max(1, total)

        return bootstrap(tuple(keys), figure, replicates=replicates, is_share=is_share)

    paired = tuple(key for key in ran if key in bare and bare[key].status == "ran")
    caught = [row.caught_after for row in ran.values() if row.caught_after is not None]
    return DeploymentEstimate(
        name,
        protocol,
        len(ran),
        len(group) - len(ran),
        mean(lambda row: row.audits),
        mean(lambda row: row.caught_after is not None, is_share=True),
        median(caught) if caught else None,
        mean(lambda row: bool(row.disabled), is_share=True),
        mean(lambda row: row.harm_before),
        mean(lambda row: row.harm),
        mean(lambda row: row.main, is_share=True),
        mean(lambda row: bare[row.key].main - row.main, paired) if paired else None,
    )
