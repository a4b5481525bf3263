"""The table of deployments, and their rows as CSV."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attrs import asdict

from agent.lab.experiments.analysis.deployments import DeploymentEstimate
from agent.lab.experiments.reports.table import Table, interval_text, write_csv
from agent.lab.experiments.shelf.deployments import DeploymentRow

__all__ = ["deployment_table", "explained", "write_deployments"]

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
        interval_text(estimate.harm_before),
        interval_text(estimate.harm),
        interval_text(estimate.usefulness),
        "-" if estimate.lost is None else interval_text(estimate.lost),
    )


def deployment_table(estimates: Sequence[DeploymentEstimate]) -> Table:
    """Return what came of each deployment under each protocol."""
    return Table(HEADINGS, tuple(map(_cells, estimates)))


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
