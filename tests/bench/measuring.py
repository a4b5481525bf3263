"""How long things take beside a floor or a peer of the same run, the aim, and the table of what was found."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time
from typing import Any

from attrs import asdict, frozen

ROOT = Path(__file__).parent.parent.parent
STATUS = Path("/proc/self/status")  # Linux

# An installed program finds its modules compiled; so do these, from the second start on.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

Prepare = Callable[[], Callable[[], object]]
"""Sets something up, untimed, and returns what is to be timed."""


def fastest(*preparations: Prepare, rounds: int = 5) -> list[float]:
    """Return the CPU seconds of the fastest run of each; they take turns, so that a noisy minute hits all alike."""
    best = [float("inf")] * len(preparations)
    for _ in range(rounds):
        for position, prepare in enumerate(preparations):
            best[position] = min(best[position], _cpu_seconds(prepare()))
    return best


def _cpu_seconds(timed: Callable[[], object]) -> float:
    gc.collect()
    begin = process_time()
    timed()
    return process_time() - begin


def cpu_of_processes(timed: Callable[[], object]) -> float:
    """Return the CPU seconds of one run, with the processes that it starts and waits for."""
    begin = process_time() + _childrens_cpu_seconds()
    timed()
    return process_time() + _childrens_cpu_seconds() - begin


def fastest_command(*commands: Sequence[str], rounds: int = 10) -> list[float]:
    """Return the CPU seconds of the fastest run of each command, in turns. Raises CalledProcessError."""
    best = [float("inf")] * len(commands)
    for _ in range(rounds):
        for position, command in enumerate(commands):
            begin = _childrens_cpu_seconds()
            subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
            best[position] = min(best[position], _childrens_cpu_seconds() - begin)
    return best


def _childrens_cpu_seconds() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output_of(code: str) -> str:
    """Return what `code` prints in a fresh interpreter that can import this project. Raises CalledProcessError."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True).stdout


def numbers(code: str) -> tuple[int, int]:
    """Return the two numbers that `code` prints in a fresh interpreter."""
    first, second = output_of(code).split()
    return int(first), int(second)


def scaled(count: int, size: float) -> int:
    """Return `count` for a run of `size` (1 is the whole benchmark), at least 2."""
    return max(2, round(count * size))


# What a benchmark finds: figures beside a floor or a peer of the same run, and the aim; and the table of them


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
