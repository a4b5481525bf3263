"""Tables: the figures of an experiment as tables that fit on a screen; rows as CSV.

What belongs together stands together: usefulness and safety, what a protocol costs, each rung, each setting.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import asdict

from agent.lab.experiments.analysis.estimate import Analysis, Estimate
from agent.lab.experiments.reports.table import Lines, Table, interval_text, number_text, signed_text, write_csv
from agent.lab.experiments.reports.verified import Verified
from agent.lab.experiments.shelf.rows import Row
from agent.lab.settings.legibility import keyword_auc
from agent.lab.settings.shipped import setting_named

__all__ = [
    "Table",
    "by_attack",
    "by_rung",
    "by_setting",
    "costs",
    "overview",
    "settings_table",
    "tidy",
    "told_apart",
    "write_tables",
]


def overview(analysis: Analysis) -> Table:
    """Return usefulness and worst-case safety of each protocol, and what they are more than the baseline's."""
    headings = ("protocol", "audits", "U", "U: difference", "S1 worst", "S1 worst: difference", "front")
    lines = tuple(
        (
            each.protocol,
            f"{each.audited:.0%}" if each.audited >= 0.095 else f"{each.audited:.1%}",
            interval_text(each.usefulness),
            signed_text(each.lost),
            interval_text(each.worst),
            signed_text(each.difference),
            "-" if each.audited > analysis.budget else f"{each.front:.0%}",
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
        number_text(estimate.weakest_forever.value),
        interval_text(estimate.worst_forever),
        estimate.best or "-",
        interval_text(response.once) if response else "-",
        number_text(response.forever.value) if response else "-",
    )


def costs(analysis: Analysis, verified: Mapping[str, Verified], used: Mapping[str, Sequence[str]]) -> Table:
    """Return what each protocol takes in an honest episode, and with how many states it was verified.

    used: the protocols of the catalogue that each consists of. Latency is in rounds more than under the baseline.
    """
    headings = (
        "protocol", "scaled", "false rejections", "questions", "audits", "drafts", "scores", "tokens", "latency",
        "verified",
    )  # fmt: skip
    base = analysis.estimates[0].costs.rounds if analysis.estimates else 0.0
    lines = tuple(
        (each.protocol, *_taken(each, base), str(verified.get("+".join(used.get(each.protocol, ())), "-")))
        for each in analysis.estimates
    )
    return Table(headings, lines)


def _taken(estimate: Estimate, base: float) -> tuple[str, ...]:
    """Return what an honest episode took; where none ran, nobody knows."""
    costs = estimate.costs
    if math.isnan(estimate.usefulness.value):
        return ("-",) * 8
    return (
        _or_none(estimate.scaled),
        f"{costs.rejected:.1%}",
        f"{costs.questions:.1f}",
        f"{costs.audits:.1f}",
        f"{costs.drafts:.1f}",
        f"{costs.scores:.1f}",
        f"{costs.monitor_tokens:,.0f}",
        f"{costs.rounds - base:+.1f}",
    )


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
    figures = (number_text(figure.value) for figure in (estimate.usefulness, estimate.worst))
    return f"{' '.join(figures)} {signed_text(estimate.difference)}"


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
