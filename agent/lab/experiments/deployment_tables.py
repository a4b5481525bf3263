"""What deployments come to: audits, catches, harm before the catch, and what rules cost, in text, Markdown and CSV.

What a rule costs in usefulness is the difference to the same deployment without rules, seed by seed. Intervals are
95 %, by resampling seeds: they say how much chance there is in who attacks when, and nothing about other tasks.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from attrs import asdict, frozen

from agent.lab.experiments.deployment_rows import DeploymentRow
from agent.lab.experiments.tables import write_csv
from agent.lab.measures import Interval, bootstrap, wilson

__all__ = ["DeploymentEstimate", "estimates_of", "explained", "lines_of", "markdown_of", "text_of", "write_deployments"]

EXPLANATION = """\
A deployment is {episodes} episodes, one after the other. audits: how many were spent. caught: in which share of the
deployments something was. after: how many episodes had been run by then, in the median. disabled: in which share of
them a role or a monitor was. harm before: episodes that had done harm before a catch (all of them where there was
none); harm: in all. U: the share of all work that was done. lost: how much less that is than without rules, in the
same deployments. Intervals: 95 %, over seeds, not over tasks."""

HEADINGS = (
    "deployment",
    "protocol",
    "runs",
    "audits",
    "caught",
    "after",
    "disabled",
    "harm before",
    "harm",
    "U",
    "lost",
)


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

    def mean(value: Callable[[DeploymentRow], float], keys: Sequence[str] = tuple(ran)) -> Interval:
        def figure(weights: Mapping[str, int]) -> float:
            total = sum(weights.get(key, 0) for key in keys)
            return sum(weights.get(key, 0) * value(ran[key]) for key in keys) / max(1, total)

        return bootstrap(tuple(keys), figure, replicates=replicates)

    paired = tuple(key for key in ran if key in bare and bare[key].status == "ran")
    caught = [row.caught_after for row in ran.values() if row.caught_after is not None]
    return DeploymentEstimate(
        name,
        protocol,
        len(ran),
        len(group) - len(ran),
        mean(lambda row: row.audits),
        wilson(len(caught), len(ran)),
        median(caught) if caught else None,
        mean(lambda row: bool(row.disabled)),
        mean(lambda row: row.harm_before),
        mean(lambda row: row.harm),
        mean(lambda row: row.main),
        mean(lambda row: bare[row.key].main - row.main, paired) if paired else None,
    )


def _cells(estimate: DeploymentEstimate) -> tuple[str, ...]:
    failed = f" ({estimate.failed} failed)" if estimate.failed else ""
    return (
        estimate.deployment,
        estimate.protocol,
        f"{estimate.runs}{failed}",
        f"{estimate.audits.value:.1f}",
        f"{estimate.caught.value:.0%} [{estimate.caught.low:.0%}, {estimate.caught.high:.0%}]",
        "-" if estimate.after is None else f"{estimate.after:g}",
        f"{estimate.disabled.value:.0%}",
        _interval(estimate.harm_before),
        _interval(estimate.harm),
        _interval(estimate.usefulness),
        "-" if estimate.lost is None else _interval(estimate.lost),
    )


def lines_of(estimates: Sequence[DeploymentEstimate]) -> list[tuple[str, ...]]:
    """Return the table of deployments as cells, its headings first."""
    return [HEADINGS, *map(_cells, estimates)]


def text_of(estimates: Sequence[DeploymentEstimate]) -> str:
    """Return the table of deployments, aligned."""
    lines = lines_of(estimates)
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_of(estimates: Sequence[DeploymentEstimate]) -> str:
    """Return the table of deployments in Markdown."""
    headings, *rest = lines_of(estimates)
    lines = [headings, ("---",) * len(headings), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def explained(rows: Sequence[DeploymentRow]) -> str:
    """Return what the columns mean."""
    counts = sorted(Counter(row.episodes for row in rows))
    return EXPLANATION.format(episodes=" or ".join(map(str, counts)))


def write_deployments(folder: Path, rows: Sequence[DeploymentRow]) -> None:
    """Write `deployments.csv`, and `deployment_episodes.csv` with a line for each episode. Raises OSError."""
    plain = [asdict(row) for row in rows]
    steps = [{"deployment_key": row["key"], **step} for row in plain for step in row.pop("steps")]
    write_csv(folder / "deployments.csv", plain)
    write_csv(folder / "deployment_episodes.csv", steps)


def _interval(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
