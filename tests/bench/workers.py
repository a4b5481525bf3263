"""What a second worker gains: the same episodes on one worker process and on two. Only an idle machine can tell."""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

from agent.lab.episodes.pools import Conditions, run_all, run_batch
from agent.lab.experiments.plan import Episode
from tests.bench.experiments import EMPTY, episodes_of
from tests.bench.rows import Aim, Row
from tests.bench.timing import scaled

__all__ = ["measure"]

EPISODES, WARM = 4_000, 16


def measure(size: float = 1.0) -> Iterator[Row]:
    """How many times as fast two workers are, and the part of all CPU time that the process above them takes."""
    episodes = episodes_of(EMPTY, scaled(EPISODES, size))
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
