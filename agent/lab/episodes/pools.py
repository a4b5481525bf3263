"""Runs many episodes: in one process, in batches on worker processes, or on Ray; each process writes its own rows.

The pool is any `concurrent.futures.Executor`. A worker that dies breaks its pool. Episodes that had not begun continue
on a new pool; those under way (with a log but no row) run once more at the end, each alone, so that the one that kills
workers is found and gets a failed row. A worker process ends with its parent, also when that is killed.

On Ray, without an address, a cluster is started here; with RAY_ADDRESS that cluster is joined. The folder of the
experiment has to be the same on every machine.
"""

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from itertools import islice
from multiprocessing import parent_process
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import anyio
from attrs import frozen

from agent.lab.concurrency import at_once
from agent.lab.episodes.episode import EpisodeContext, failed_row, run_episode
from agent.lab.episodes.real_models import SharedModels
from agent.lab.episodes.results import Results, Row
from agent.lab.experiments.plan import Episode
from agent.lab.isolation.levels import Wanted, achieve
from agent.lab.settings.post_office import PostOffice
from agent.tools.blocking import run_in_background
from agent.vocabulary.errors import AgentError

BATCH = 16  # episodes that a worker takes at once
UNCOLLECTED = 5_000  # new objects before a garbage collection; with the default of 700 it takes 5 % of the time
OnRow = Callable[[Row], None]
Pool = Callable[[], Executor]


class WorkersDie(AgentError):
    """Worker processes died before they began an episode."""


@frozen
class Conditions:
    """The configuration of batches: folder of rows, parallel episodes, pace of roles.

    isolation: the requested level; each process probes what it achieves. money: the limit of all costs in US dollars;
    when it is reached no further episode begins.
    """

    folder: Path
    concurrency: int = 8
    per_minute: tuple[tuple[str, float], ...] = ()
    isolation: Wanted = "best"
    money: float | None = None


def run_batch(conditions: Conditions, episodes: Sequence[Episode]) -> list[Row]:
    """Run episodes in this process, some in parallel, and return their rows, which are then in the results.

    Raises ResultsError, and IsolationError if the requested level is not achieved.
    """
    rows: list[Row] = []
    with interrupts_cancel():
        anyio.run(run_at_once, conditions, episodes, rows.append)
    return rows


async def run_at_once(conditions: Conditions, episodes: Sequence[Episode], on_row: OnRow) -> None:
    """Run episodes on this event loop without keeping their rows in memory. Raises ResultsError and IsolationError."""
    results = Results(conditions.folder)
    with PostOffice() as office, rare_collections(), second_interrupt_ends():
        context = await make_context(conditions, results, office)

        async def run(episode: Episode) -> None:
            if context.shared_models.ledger.is_used_up:
                return
            row = await run_episode(episode, context)
            results.add(row)
            on_row(row)

        await at_once(episodes, run, most=conditions.concurrency)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Make the cyclic garbage collector run less often during the block."""
    usual = gc.get_threshold()
    gc.set_threshold(UNCOLLECTED, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def interrupts_cancel() -> AbstractContextManager[None]:
    """Let Ctrl-C cancel the event loop that runs in the block, where it would end the process otherwise."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_DFL or not _is_main_thread():
        return nullcontext()
    return _interrupts_handled_by(signal.default_int_handler)  # the one that event loops replace


def second_interrupt_ends() -> AbstractContextManager[None]:
    """Let a Ctrl-C that cancels the event loop of this thread be the only one: another one ends the process at once."""
    cancel = signal.getsignal(signal.SIGINT)
    if not callable(cancel) or not _is_main_thread():
        return nullcontext()

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        cancel(number, frame)

    return _interrupts_handled_by(interrupt)


@contextmanager
def _interrupts_handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle Ctrl-C by a function during the block, unless another one replaces it there."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler:
            signal.signal(signal.SIGINT, before)


def _is_main_thread() -> bool:
    """Return whether this is the thread that handles signals."""
    return threading.current_thread() is threading.main_thread()


async def make_context(conditions: Conditions, results: Results, office: PostOffice) -> EpisodeContext:
    """Return the shared state of this process's episodes, with the achieved isolation. Raises IsolationError."""
    with anyio.CancelScope(shield=True):  # it starts processes and ends them
        level = await run_in_background(lambda: achieve(conditions.isolation))
    models = SharedModels(conditions.folder, dict(conditions.per_minute), conditions.money)
    return EpisodeContext(results, office, models, level)


def run_all(
    conditions: Conditions, episodes: Iterable[Episode], pool: Pool | None = None, on_row: OnRow = lambda _: None
) -> None:
    """Run episodes here, or on the executor that `pool` returns. Raises ResultsError, WorkersDie."""
    left = list(episodes)
    if pool is None:
        anyio.run(run_at_once, conditions, left, on_row)
        return
    results, suspects = Results(conditions.folder), list[Episode]()
    while left:
        lost = _run_on(pool, conditions, list(_batches(left, BATCH)), on_row)
        begun = [episode for episode in lost if results.has_log(episode.key)]
        if not begun and len(lost) == len(left):
            raise WorkersDie("the worker processes die before they begin; finished episodes are kept. Try --workers 0")
        suspects += begun
        left = [episode for episode in lost if not results.has_log(episode.key)]
    _run_each_alone(pool, conditions, suspects, on_row)


def _run_each_alone(pool: Pool, conditions: Conditions, episodes: Sequence[Episode], on_row: OnRow) -> None:
    for episode in episodes:
        begun = perf_counter()
        if _run_on(pool, conditions, [(episode,)], on_row):
            row = failed_row(episode, "the worker process died over this episode, twice", begun)
            Results(conditions.folder).add(row)
            on_row(row)


def _run_on(pool: Pool, conditions: Conditions, batches: Sequence[Sequence[Episode]], on_row: OnRow) -> list[Episode]:
    """Run batches on a pool; return the episodes without a row, when a worker died."""
    executor = pool()
    try:
        lost = _gather(executor, conditions, batches, on_row)
    except BaseException:
        executor.shutdown(wait=False)
        raise
    executor.shutdown()
    return lost


def _gather(
    executor: Executor, conditions: Conditions, batches: Sequence[Sequence[Episode]], on_row: OnRow
) -> list[Episode]:
    lost: list[Episode] = []
    futures: dict[Future[list[Row]], Sequence[Episode]] = {}
    try:
        with interrupts_held():
            for batch in batches:
                try:
                    futures[executor.submit(run_batch, conditions, batch)] = batch
                except BrokenProcessPool:
                    lost += batch
        for future in as_completed(futures):
            try:
                for row in future.result():
                    on_row(row)
            except BrokenProcessPool:
                lost += futures[future]
    except BaseException:
        for future in futures:  # an executor that is garbage-collected forgets `cancel_futures`
            future.cancel()
        raise
    return _without_row(conditions, lost, on_row)


def _without_row(conditions: Conditions, lost: Sequence[Episode], on_row: OnRow) -> list[Episode]:
    """Return the lost episodes that have no row; report the others now."""
    rows: Mapping[str, Row] = Results(conditions.folder).rows() if lost else {}
    there = {key: row for key, row in rows.items() if row.status == "ran"}  # a failed row may be of an earlier run
    for episode in lost:
        if episode.key in there:
            on_row(there[episode.key])
    return [episode for episode in lost if episode.key not in there]


def _batches(episodes: Iterable[Episode], size: int) -> Iterator[tuple[Episode, ...]]:
    given = iter(episodes)
    while batch := tuple(islice(given, size)):
        yield batch


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C during the block, also in processes that start in it, where it would print a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_worker() -> None:
    """Let Ctrl-C end this process between its batches; end it also when its parent dies, as a thread watches it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_leave_when_it_ends, name="leave with the parent", daemon=True).start()


def _leave_when_it_ends() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the parent, which waited for the result, is dead


class RayError(AgentError):
    """Ray is not installed, or no cluster can be started or reached."""


def check_ray() -> Any:
    """Return the module `ray`. Raises RayError, which names the cure, if it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics for Ray's makers
    try:
        return import_module("ray")
    except ImportError as error:
        raise RayError("a pool on Ray needs ray: pip install 'bpagent[ray]'") from error


class RayPool(Executor):
    """Runs functions as tasks of Ray, `workers` at once where Ray is started here."""

    def __init__(self, workers: int) -> None:
        """Start Ray, or join the cluster of RAY_ADDRESS. Raises RayError."""
        self._ray = check_ray()
        here: dict[str, Any] = (
            {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers, "include_dashboard": False}
        )
        try:
            self._ray.init(ignore_reinit_error=True, log_to_driver=False, logging_level="error", **here)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise RayError(f"Ray cannot be started, or reached: {error}") from error
        self._call = self._ray.remote(max_retries=0)(_call)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Submit a call of a function with these arguments."""
        given: Future[Any] = Future()
        asked = self._call.remote(function, args, kwargs).future()
        asked.add_done_callback(lambda answered: self._pass_on(answered, given))
        return given

    def _pass_on(self, answered: "Future[Any]", given: "Future[Any]") -> None:
        error = answered.exception()
        if not given.set_running_or_notify_cancel():
            return
        if error is None:
            given.set_result(answered.result())
        elif isinstance(error, self._ray.exceptions.RaySystemError | self._ray.exceptions.WorkerCrashedError):
            given.set_exception(BrokenProcessPool(str(error)))
        else:
            given.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from Ray and cancel running tasks."""
        self._ray.shutdown()


def _call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
