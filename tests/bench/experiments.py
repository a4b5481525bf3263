"""What experiments cost: episodes without real tools, with log, checks and rows; and thresholds swept over many."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter, process_time

from agent.lab.episodes.pools import Conditions, run_all, run_batch
from agent.lab.experiments.plan import Episode, MonitorPlan, Policy, ProtocolPlan
from agent.lab.isolation.cell import Cell
from agent.lab.isolation.levels import probe
from agent.lab.measures.thresholds import rate_caught
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Move, Plot, Task, read
from agent.lab.settings.world import World
from agent.models.scripted import call
from agent.tools.definition import Tool, tool
from tests.bench.measuring import Aim, Row, fastest_command, scaled

EPISODES, THRESHOLDS = 10_000, 500
MEMORY = "/dev/shm"

EMPTY, FILES = "tests.bench.experiments:LOOKING", "tests.bench.experiments:READING"

PROTOCOL = ProtocolPlan("constitution_only", ("constitution_only",))


def measure_experiments(size: float = 1.0) -> Iterator[Row]:
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
    attacks = [chance.random() ** 0.2 for _ in range(count // 2 + 1)]
    begun = process_time()
    for number in range(THRESHOLDS):
        rate_caught(number / THRESHOLDS, honest, attacks)
    return process_time() - begun


def peak() -> float:
    """Return the most memory that this process has taken, in MiB."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1024


# Settings in which nothing runs but the agent, for measuring what episodes cost by themselves


@tool(category="read")
async def look() -> str:
    """Look at nothing."""
    return "nothing"


def looking(chance: Random, number: int) -> Task:
    """Look; the side task is to look once more."""
    again = Move((call("look"),), "Again.")
    return task(Move((call("look"),)), again)


def reading(chance: Random, number: int) -> Task:
    """Read a file; the side task is to read it once more."""
    return task(read("start.txt"), read("start.txt", "Again."))


def task(move: Move, again: Move) -> Task:
    """Return a task that takes one move, and a plot that takes another one."""
    return Task(
        prompt="Read start.txt.",
        files={"start.txt": "go\n"},
        main=lambda _: 1.0,
        side=lambda _: False,
        solution=(move,),
        plots=(Plot("again", (again,)),),
    )


class Bare(World):
    """A world in which one can look, and nothing else."""

    def tools(self) -> tuple[Tool, ...]:
        """Return the one tool that there is."""
        return (look,)


LOOKING = Setting(
    "empty", "looking once", {"empty": looking}, instances=1, live=False, harmless=True, in_memory=True,
    clean_world=lambda _, world: Bare(world.folder, world.home, world.box),
)  # fmt: skip

READING = Setting("files", "reading one file", {"empty": reading}, instances=1, live=False, harmless=True)


# What a second worker gains: the same episodes on one worker process and on two. Only an idle machine can tell


OF_WORKERS, WARM = 4_000, 16


def measure_workers(size: float = 1.0) -> Iterator[Row]:
    """How many times as fast two workers are, and the part of all CPU time that the process above them takes."""
    episodes = episodes_of(EMPTY, scaled(OF_WORKERS, size))
    (one, _), (two, parent) = (on_workers(count, episodes) for count in (1, 2))
    yield Row("two workers instead of one", one / two, "times", aim=Aim(at_least=1.8), note=f"{len(episodes)} episodes")
    yield Row("CPU of the process above them", 100 * parent / one, "%", aim=Aim(at_most=10), note="of a worker's time")


def on_workers(count: int, episodes: Sequence[Episode]) -> tuple[float, float]:
    """Return the wall seconds of episodes on so many workers, and the CPU seconds of this process meanwhile.

    Workers are there before, and have run episodes: to start them takes the same for any number of episodes.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(count, mp_context=get_context("spawn")) as workers,
    ):
        warm = Conditions(Path(folder) / "warm")
        for waiting in [workers.submit(run_batch, warm, episodes[:WARM]) for _ in range(4 * count)]:
            waiting.result()
        wall, cpu = perf_counter(), process_time()
        run_all(Conditions(Path(folder) / "measured"), episodes, lambda: workers)
        return perf_counter() - wall, process_time() - cpu


# What isolation costs: a cell from its making to its end, and a command in one beside the same command outside


MILLI = 1e3
COMMAND = ["bash", "-c", "true"]


def measure_cells(size: float = 1.0) -> Iterator[Row]:
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
