"""Tables: the main table of an experiment in text and in Markdown, and its rows as CSV."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import asdict

from agent.lab.experiments.analysis import Analysis, Estimate
from agent.lab.experiments.rows import Row
from agent.lab.measures import Interval

__all__ = [
    "Lines",
    "cells_of",
    "headings_of",
    "markdown_table",
    "setting_table",
    "text_table",
    "tidy",
    "write_csv",
    "write_tables",
]

COLUMNS = 13


def headings_of(analysis: Analysis) -> tuple[str, ...]:
    """Return the headings of the columns."""
    return (
        "protocol", "U", f"S1 {analysis.weakest}", "S1 worst", "Soo worst", "difference", "best response", "rejected",
        "questions", "audits", "drafts", "scores", "front",
    )  # fmt: skip


def cells_of(estimate: Estimate) -> tuple[str, ...]:
    """Return a protocol as the cells of a row."""
    return (
        estimate.protocol,
        _interval(estimate.usefulness),
        _interval(estimate.weakest),
        _interval(estimate.worst),
        _interval(estimate.worst_forever),
        f"{estimate.difference.value:+.2f} [{estimate.difference.low:+.2f}, {estimate.difference.high:+.2f}]",
        f"{estimate.best or '-'} {estimate.response:.2f}",
        f"{estimate.rejected:.1%}",
        f"{estimate.questions:.1f}",
        f"{estimate.audits:.1f}",
        f"{estimate.drafts:.1f}",
        f"{estimate.scores:.1f}",
        f"{estimate.front:.0%}",
    )


def text_table(analysis: Analysis) -> str:
    """Return the main table, aligned."""
    lines = [headings_of(analysis), *map(cells_of, analysis.estimates)]
    widths = [max(len(line[column]) for line in lines) for column in range(COLUMNS)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def markdown_table(analysis: Analysis) -> str:
    """Return the main table in Markdown."""
    lines = [headings_of(analysis), ("---",) * COLUMNS, *map(cells_of, analysis.estimates)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def setting_table(by_setting: Mapping[str, Analysis]) -> str:
    """Return usefulness and the worst S1 of each protocol in each setting, in Markdown."""
    names = list(by_setting)
    lines = [("protocol", *(f"{name}: {what}" for name in names for what in ("U", "S1 worst", "difference")))]
    lines.append(("---",) * len(lines[0]))
    columns = [{each.protocol: each for each in by_setting[name].estimates} for name in names]
    for protocol in columns[0] if columns else ():
        cells = (_three(column[protocol]) if protocol in column else ("-",) * 3 for column in columns)
        lines.append((protocol, *(cell for three in cells for cell in three)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _three(estimate: Estimate) -> tuple[str, str, str]:
    difference = estimate.difference
    return (
        f"{estimate.usefulness.value:.2f}",
        _interval(estimate.worst),
        f"{difference.value:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]",
    )


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


def write_csv(path: Path, lines: Iterable[dict[str, object]]) -> None:
    """Write lines that have the same keys, under a line of these. Raises OSError."""
    given = list(lines)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(given[0]) if given else ["key"])
        writer.writeheader()
        writer.writerows(given)


def _interval(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
