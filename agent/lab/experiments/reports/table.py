"""A table: headings and cells, in text, in Markdown and as CSV; and how figures are written in cells."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from agent.lab.measures.intervals import Interval

__all__ = ["Lines", "Table", "interval_text", "number_text", "signed_text", "write_csv"]

Lines = Sequence[dict[str, object]]
"""A table: what stands in each line, by column."""


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


def number_text(value: float) -> str:
    """Return a figure; a dash where it is not known."""
    return "-" if math.isnan(value) else f"{value:.2f}"


def write_csv(path: Path, lines: Iterable[Mapping[str, object]]) -> None:
    """Write lines that have the same keys, under a line of these. Raises OSError."""
    given = list(lines)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(given[0]) if given else ["key"])
        writer.writeheader()
        writer.writerows(given)
