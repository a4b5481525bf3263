"""What isolation costs: a cell from its making to its end, and a command in one beside the same command outside."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

from agent.lab.isolation.cell import Cell
from agent.lab.isolation.levels import probe
from tests.bench.rows import Row
from tests.bench.timing import fastest_command, scaled

__all__ = ["measure"]

MILLI = 1e3
COMMAND = ["bash", "-c", "true"]


def measure(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds of CPU, ours and that of processes; each is the least of many."""
    found = probe()
    if found.level == "none":
        yield Row("a cell, made and ended", None, "ms", note=f"skipped: {found.why}")
        return
    rounds = scaled(30, size)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "workspace").mkdir()
        taken = [make_and_end(place) for _ in range(rounds)]
        cell = Cell(place, place / "workspace")
        try:
            inside, outside = fastest_command(cell.joined(COMMAND, folder), COMMAND, rounds=rounds)
        finally:
            cell.close()
    cpu, wall = (min(figures) * MILLI for figures in zip(*taken, strict=True))
    yield Row("a cell, made and ended", cpu, "ms", wall, "wall time")
    yield Row("bash -c true in a cell", inside * MILLI, "ms", outside * MILLI, "outside")


def make_and_end(place: Path) -> tuple[float, float]:
    """Return the seconds of CPU and of wall time that a cell takes."""
    cpu, wall = cpu_seconds(), perf_counter()
    cell = Cell(place, place / "workspace")
    cell.open()
    cell.close()
    return cpu_seconds() - cpu, perf_counter() - wall


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))
