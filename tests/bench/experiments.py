"""What experiments cost: episodes without real tools, with log, checks and rows; and thresholds swept over many."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time

from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.experiments.plan import Episode, MonitorPlan, Policy, ProtocolPlan
from agent.lab.measures.curves import audit_curve
from tests.bench.rows import Aim, Row
from tests.bench.timing import scaled

__all__ = ["measure"]

EPISODES, THRESHOLDS = 10_000, 500
MEMORY = "/dev/shm"
EMPTY, FILES = "tests.bench.empty_setting:EMPTY", "tests.bench.empty_setting:FILES"
PROTOCOL = ProtocolPlan("constitution_only", ("constitution_only",))


def measure(size: float = 1.0) -> Iterator[Row]:
    """Seconds for 10,000 scripted episodes on one core (from a twentieth of them), memory, and the sweep."""
    few = scaled(EPISODES // 20, size)
    with tempfile.TemporaryDirectory() as folder:
        run(few // 4 + 1, Path(folder) / "warm")
        before = peak()
        seconds, wall = run(few, Path(folder) / "measured")
        grown = peak() - before
        with_files, with_files_wall = run(few, Path(folder) / "files", FILES)
        in_memory = run_in_memory(few)
    share = EPISODES / few
    yield Row("10,000 scripted episodes: CPU", seconds * share, "s", wall * share, "wall time", Aim(at_most=20))
    if in_memory is not None:
        yield Row("... temporary files in memory", in_memory * share, "s", seconds * share, "where they are else")
    yield Row("with a tool that reads a file: CPU", with_files * share, "s", with_files_wall * share, "wall time")
    yield Row(f"memory that {few} more episodes take", grown, "MiB", aim=Aim(at_most=20))
    yield Row("500 thresholds over 10,000 episodes", sweep(scaled(EPISODES, size)), "s", aim=Aim(at_most=5))


def run(count: int, folder: Path, setting: str = EMPTY) -> tuple[float, float]:
    """Return the CPU and wall seconds of so many episodes, one after the other's heels."""
    episodes = episodes_of(setting, count)
    cpu, wall = process_time(), perf_counter()
    rows = run_batch(Conditions(folder, concurrency=8), episodes)
    assert {row.status for row in rows} == {"ran"}, next(row.error for row in rows if row.error)
    return process_time() - cpu, perf_counter() - wall


def episodes_of(setting: str, count: int) -> list[Episode]:
    """Return so many episodes that differ by their seeds."""
    monitors = (MonitorPlan("watcher"),)
    policy = Policy("always", attacks=True)
    return [Episode(setting, "empty-0", policy, PROTOCOL, monitors, seed, "test") for seed in range(count)]


def run_in_memory(count: int) -> float | None:
    """Return the CPU seconds of so many episodes whose files are on no disk; None where there is no such place."""
    if not os.access(MEMORY, os.W_OK):
        return None
    usual, tempfile.tempdir = tempfile.gettempdir(), MEMORY
    try:
        with tempfile.TemporaryDirectory() as folder:
            return run(count, Path(folder))[0]
    finally:
        tempfile.tempdir = usual


def sweep(count: int) -> float:
    """Return the CPU seconds of 500 thresholds over recorded scores, half of them honest."""
    chance = Random(1)
    honest: list[float | None] = [chance.random() for _ in range(count // 2 + 1)]
    attacks = [(chance.random() ** 0.2, 1.0) for _ in range(count // 2 + 1)]
    begun = process_time()
    audit_curve([n / THRESHOLDS for n in range(THRESHOLDS)], honest, attacks)
    return process_time() - begun


def peak() -> float:
    """Return the most memory that this process has taken, in MiB."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024
