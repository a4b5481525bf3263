"""What a benchmark finds: figures beside a floor or a peer of the same run, and the aim; and the table of them."""

from collections.abc import Sequence
from typing import Any

from attrs import asdict, frozen

__all__ = ["Aim", "Row", "as_plain", "table"]

HEADINGS = ("what", "figure", "unit", "floor or peer", "", "ratio", "aim", "")


@frozen
class Aim:
    """What a row should reach: a bound on its figure or, with `of="ratio"`, on its ratio."""

    at_most: float | None = None
    at_least: float | None = None
    of: str = "figure"

    def is_met(self, value: float) -> bool:
        """Tell whether `value` keeps to the bounds."""
        above = self.at_least is None or value >= self.at_least
        return above and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bound = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
        return f"{self.of} {bound}"


@frozen
class Row:
    """One figure. `peer` is what `against` took in the same run, in the same unit; None as a figure: see `note`."""

    what: str
    figure: float | None
    unit: str
    peer: float | None = None
    against: str = ""
    aim: Aim | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the floor or peer."""
        return self.figure / self.peer if self.figure is not None and self.peer else None

    @property
    def is_met(self) -> bool | None:
        """Whether the aim is reached; None without an aim or a figure."""
        value = self.ratio if self.aim is not None and self.aim.of == "ratio" else self.figure
        return None if self.aim is None or value is None else self.aim.is_met(value)


def as_plain(row: Row) -> dict[str, Any]:
    """Return a row as plain data."""
    return {**asdict(row), "ratio": row.ratio, "is_met": row.is_met}


def table(rows: Sequence[Row]) -> str:
    """Return an aligned table; numbers stand at the right of their columns."""
    lines = [HEADINGS, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    to_the_right = {1, 3, 5}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in to_the_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "met", False: "MISSED", None: row.note}[row.is_met]
    aim = "" if row.aim is None else str(row.aim)
    return (
        row.what, _number(row.figure), row.unit, _number(row.peer), row.against, _number(row.ratio), aim, verdict,
    )  # fmt: skip


def _number(value: float | None) -> str:
    """Three digits that count: 0.123, 1.23, 12.3, 123, 1,234."""
    if value is None:
        return ""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{decimals}f}"
