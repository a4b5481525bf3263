"""Sweeping: all episodes of an experiment at all thresholds, on all processors, with a few logs in memory at a time."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from attrs import frozen

from agent.lab.experiments.hindsight.foreseeing import Found, Tally, foresee
from agent.lab.experiments.hindsight.rerunning import read_episode
from agent.lab.experiments.leaving import leave_with_the_parent
from agent.lab.experiments.shelf.rows import Row
from agent.presets.preset import Preset
from agent.vocabulary.errors import AgentError
from bp import BThread

__all__ = ["Asked", "Sweep", "sweep"]

CHUNK = 25  # episodes that a process takes at once
WORTH = 100  # with fewer episodes other processes take longer to start than they save


class Asked(Protocol):
    """What is asked of every episode. It goes to other processes, so it has to be what `pickle` knows."""

    def protocols(self, threshold: float | None) -> Sequence[BThread]:
        """Return the b-threads of the protocols at a threshold; None: at their own."""

    def loop(self, preset: Preset) -> Sequence[BThread] | None:
        """Return the b-threads of the loop; None: those that were recorded."""


@frozen
class Sweep:
    """What is asked of which episodes, the logs of which lie in `folder`."""

    folder: Path
    asked: Asked
    thresholds: tuple[float | None, ...]

    def of(self, rows: Sequence[Row]) -> Found:
        """Return what comes of these episodes, here. Raises LogError."""
        readings = (read_episode(self.folder, row) for row in rows)
        return foresee(readings, self.asked.protocols, self.thresholds, self.asked.loop)


def sweep(
    what: Sweep, rows: Sequence[Row], *, workers: int | None = None, tell: Callable[[int], None] = lambda _: None
) -> Tally:
    """Return what comes of every episode at every threshold.

    workers: processes (0: this one alone; None: as many as there are processors, where that is worth it). tell: how
    many episodes are done. Raises LogError, AgentError when a process was killed.
    """
    tally, done = Tally(), 0
    for part in _parts(what, rows, _workers(workers, len(rows))):
        tally.add(part)
        done += len(next(iter(part.values())))
        tell(done)
    return tally


def _workers(wanted: int | None, episodes: int) -> int:
    """Return how many processes there are to be: 0 for this one."""
    if wanted is not None:
        return wanted
    return 0 if episodes < WORTH else (os.cpu_count() or 1)


def _parts(what: Sweep, rows: Sequence[Row], workers: int) -> Iterator[Found]:
    chunks = [rows[begin : begin + CHUNK] for begin in range(0, len(rows), CHUNK)]
    if not workers:
        yield from map(what.of, chunks)
        return
    context = get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(chunks)), mp_context=context, initializer=leave_with_the_parent)
    try:
        yield from pool.map(what.of, chunks)
    except BrokenProcessPool as error:
        raise AgentError("a worker process was killed; try --workers 0") from error
    finally:
        pool.shutdown(cancel_futures=True)
