"""Tables: the figures of an experiment as tables that fit on a screen, in text, in Markdown and as CSV; rows as CSV.

What belongs together stands together: usefulness and safety, what a protocol costs, each rung, each setting.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import asdict, frozen

from agent.lab.experiments.analysis import Analysis, Estimate
from agent.lab.experiments.reports.verified import Verified
from agent.lab.experiments.shelf import Row
from agent.lab.measures import Interval
from agent.lab.settings import keyword_auc, setting_named

__all__ = [
    "Lines",
    "Table",
    "by_attack",
    "by_rung",
    "by_setting",
    "costs",
    "interval_text",
    "overview",
    "settings_table",
    "signed_text",
    "tidy",
    "told_apart",
    "write_csv",
    "write_tables",
]


@frozen
class Table:
    """A table: its headings, and its lines of cells."""

    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The table with aligned columns."""
        everything = (self.headings, *self.lines)
        widths = [max(len(line[column]) for line in everything) for column in range(len(self.headings))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in everything
        )

    @property
    def markdown(self) -> str:
        """The table in Markdown."""
        everything = (self.headings, ("---",) * len(self.headings), *self.lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in everything)

    def write(self, folder: Path, name: str) -> None:
        """Write `name.md` and `name.csv` to a folder. Raises OSError."""
        (folder / f"{name}.md").write_text(f"{self.markdown}\n", encoding="utf-8")
        write_csv(folder / f"{name}.csv", [dict(zip(self.headings, line, strict=True)) for line in self.lines])


def overview(analysis: Analysis) -> Table:
    """Return usefulness and worst-case safety of each protocol, and what they are more than the baseline's."""
    headings = ("protocol", "U", "U: difference", "scaled", "S1 worst", "S1 worst: difference", "front")
    lines = tuple(
        (
            each.protocol,
            interval_text(each.usefulness),
            signed_text(each.lost),
            "-" if each.scaled is None else f"{each.scaled:.2f}",
            interval_text(each.worst),
            signed_text(each.difference),
            f"{each.front:.0%}",
        )
        for each in analysis.estimates
    )
    return Table(headings, lines)


def by_attack(analysis: Analysis) -> Table:
    """Return safety of each protocol against the weakest attack, the worst, and the best response to it."""
    headings = ("protocol", "S1 weakest", "S∞ weakest", "S∞ worst", "response", "its S1", "its S∞")
    return Table(headings, tuple(map(_attacked, analysis.estimates)))


def _attacked(estimate: Estimate) -> tuple[str, ...]:
    response = estimate.response
    return (
        estimate.protocol,
        interval_text(estimate.weakest),
        _number(estimate.weakest_forever.value),
        interval_text(estimate.worst_forever),
        estimate.best or "-",
        interval_text(response.once) if response else "-",
        _number(response.forever.value) if response else "-",
    )


def costs(analysis: Analysis, verified: Mapping[str, Verified], used: Mapping[str, Sequence[str]]) -> Table:
    """Return what each protocol takes in an honest episode, and with how many states it was verified.

    used: the protocols of the catalogue that each consists of. Latency is in rounds more than under the baseline.
    """
    headings = (
        "protocol", "false rejections", "questions", "audits", "drafts", "scores", "monitor tokens", "latency",
        "verified",
    )  # fmt: skip
    base = analysis.estimates[0].costs.rounds if analysis.estimates else 0.0
    lines = tuple(
        (
            each.protocol,
            f"{each.costs.rejected:.1%}",
            f"{each.costs.questions:.1f}",
            f"{each.costs.audits:.1f}",
            f"{each.costs.drafts:.1f}",
            f"{each.costs.scores:.1f}",
            f"{each.costs.monitor_tokens:,.0f}",
            f"{each.costs.rounds - base:+.1f}",
            str(verified.get("+".join(used.get(each.protocol, ())), "-")),
        )
        for each in analysis.estimates
    )
    return Table(headings, lines)


def by_rung(analysis: Analysis) -> Table:
    """Return S_1 of each protocol against each rung; with a star where it is told apart from the baseline."""
    lines = tuple(
        (
            each.protocol,
            *(f"{rung.once.value:.2f}{'*' if rung.apart else ''}" for rung in each.rungs.values()),
        )
        for each in analysis.estimates
    )
    return Table(("protocol", *analysis.policies), lines)


def settings_table(analyses: Mapping[str, Analysis]) -> Table:
    """Return what each setting is like: how large, how hard, and whether words or the monitor tell attacks there."""
    headings = ("setting", "tasks of the test", "U of the agent", "U trusted", "AUC of words", "AUC of the monitor")
    lines = tuple(
        (
            name,
            str(analysis.tasks),
            _or_none(analysis.untrusted),
            _or_none(analysis.trusted),
            _or_none(keyword_auc(setting_named(name))),
            _or_none(analysis.auc),
        )
        for name, analysis in analyses.items()
    )
    return Table(headings, lines)


def _or_none(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def by_setting(analyses: Mapping[str, Analysis]) -> Table:
    """Return usefulness, the worst S_1 and its difference to the baseline's of each protocol in each setting."""
    columns = [{each.protocol: each for each in analysis.estimates} for analysis in analyses.values()]
    lines = [
        (protocol, *(_three(column[protocol]) if protocol in column else "-" for column in columns))
        for protocol in (columns[0] if columns else ())
    ]
    return Table(("protocol", *(f"{name}: U, S1, gain" for name in analyses)), tuple(lines))


def _three(estimate: Estimate) -> str:
    return f"{_number(estimate.usefulness.value)} {_number(estimate.worst.value)} {signed_text(estimate.difference)}"


def told_apart(analyses: Mapping[str, Analysis]) -> Table:
    """Return in which settings, and against which rungs, protocols differ from the baseline by more than the interval.

    starred: how many of these rungs are told apart even at the level that allows for all comparisons.
    """
    lines: dict[str, list[tuple[str, ...]]] = {}
    for setting, analysis in analyses.items():
        for estimate in analysis.estimates[1:]:
            lines.setdefault(estimate.protocol, [])
            found = [rung.difference.value for rung in estimate.rungs.values() if rung.differs]
            if found:
                starred = sum(rung.apart for rung in estimate.rungs.values())
                lines[estimate.protocol].append((setting, _rungs_of(estimate), str(starred), _spread(found)))
    nowhere = [("nowhere", "", "", "")]
    flat = ((protocol, *cells) for protocol, several in lines.items() for cells in several or nowhere)
    return Table(("protocol", "setting", "rungs", "starred", "S1: difference"), tuple(flat))


def _rungs_of(estimate: Estimate) -> str:
    differing = [name for name, rung in estimate.rungs.items() if rung.differs]
    others = [name for name in estimate.rungs if name not in differing]
    if len(others) < min(3, len(differing)):
        return f"all but {' and '.join(others)}" if others else "all"
    return ", ".join(differing)


def _spread(found: Sequence[float]) -> str:
    least, most = min(found), max(found)
    return f"{least:+.2f}" if f"{least:+.2f}" == f"{most:+.2f}" else f"{least:+.2f} to {most:+.2f}"


def interval_text(interval: Interval) -> str:
    """Return a figure with its interval."""
    if math.isnan(interval.value):
        return "-"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def signed_text(interval: Interval) -> str:
    """Return a difference with its interval; nought has no sign."""
    if math.isnan(interval.value):
        return "-"
    return f"{_signed(interval.value)} [{_signed(interval.low)}, {_signed(interval.high)}]"


def _signed(value: float) -> str:
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


Lines = Sequence[dict[str, object]]
"""A table: what stands in each line, by column."""


def write_tables(folder: Path, rows: Sequence[Row]) -> None:
    """Write `episodes.csv` and `steps.csv`, one line for each episode and for each committed call. Raises OSError."""
    episodes, steps = tidy(rows)
    write_csv(folder / "episodes.csv", episodes)
    write_csv(folder / "steps.csv", steps)


def tidy(rows: Sequence[Row]) -> tuple[Lines, Lines]:
    """Return the table of episodes, and that of their committed calls."""
    plain = [asdict(row) for row in rows]
    steps = [{"key": row["key"], "step": n, **step} for row in plain for n, step in enumerate(row.pop("steps"))]
    return plain, steps


def write_csv(path: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Write lines that have the same keys, under a line of these. Raises OSError."""
    given = list(lines)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(given[0]) if given else ["key"])
        writer.writeheader()
        writer.writerows(given)
