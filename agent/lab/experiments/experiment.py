"""Conducts an experiment: calibrate, freeze, run, analyze. Episodes that are in the results are not run again.

honest calibration under the constitution -> thresholds frozen -> every other episode -> deployments -> analysis
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import anyio
from attrs import evolve, field, frozen, mutable

from agent.lab.deployments.results import DeploymentEstimate, DeploymentRow, estimates_of
from agent.lab.deployments.runner import beforehand, deploy_all, deployments_of
from agent.lab.episodes.pools import Conditions, Pool, RayPool, begin_worker, check_ray, run_all
from agent.lab.episodes.results import Results, ResultsError, Row
from agent.lab.experiments.plan import Episode, Plan
from agent.lab.experiments.thresholds import Frozen, freeze, read_frozen, write_frozen
from agent.lab.extras import check_extra
from agent.lab.isolation.levels import achieve
from agent.lab.reports.analysis import Analysis, analyze
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting import SettingError
from agent.lab.settings.setting_checks import obstacle_to
from agent.lab.spending import Ledger, MoneyUsedUp, Spent, nominal
from agent.vocabulary.errors import AgentError


@frozen
class Outcome:
    """The outcome of an experiment: rows in the order of the plan, analysis, new episodes, duration in seconds.

    taken: the usage of real models, cached answers included. asked: their requests, in all runs; asked_now: in this
    run. deployments, deployed: the rows of the plan's deployments, those without rules among them, and their analysis;
    ran_for_deployments: the number of episodes that ran now for deployments alone.
    """

    plan: Plan
    rows: tuple[Row, ...]
    analysis: Analysis
    by_setting: Mapping[str, Analysis]
    frozen: Frozen | None
    ran: int
    seconds: float
    deployments: tuple[DeploymentRow, ...] = ()
    deployed: tuple[DeploymentEstimate, ...] = ()
    ran_for_deployments: int = 0
    taken: Spent = Spent()
    asked: Spent = Spent()
    asked_now: Spent = Spent()


class UnreadableScores(AgentError):
    """A monitor's answers cannot be read as scores, so measures based on it would be meaningless."""


ENOUGH = 10
"""An experiment stops when it has this many scores and most of them are missing."""


@mutable
class Progress:
    """The progress of an experiment; `tell` gets one line per finished episode. own: the user's monitors."""

    total: int
    tell: Callable[[str], None]
    own: frozenset[str] = frozenset()
    done: int = 0
    failed: int = 0
    scored: int = 0
    missing: int = 0
    begun: float = field(factory=time.monotonic)

    def fold(self, row: Row) -> None:
        """Count a row. Raises UnreadableScores if there are ten or more scores and most are missing."""
        self.done += 1
        self.failed += row.status == "failed"
        self.scored += row.scored
        self.missing += row.missing_scores
        if row.unread and self.scored >= ENOUGH and 2 * self.missing > self.scored:
            told = f"{self.missing} of {self.scored} scores cannot be read; a monitor said: {row.unread!r}"
            cure = "a model ends with a line like SCORE: 0.15 (docs/experiments.md)"
            if row.unread.partition(":")[0] in self.own:
                cure = "its score(evidence) raised, or returned no Score from 0 to 1"
            raise UnreadableScores(f"{told}; {cure}; stopped")
        self.tell(self.text(time.monotonic()))

    def text(self, now: float) -> str:
        """Return the line of progress: episodes done, rate, and seconds left."""
        seconds = max(now - self.begun, 1e-6)
        rate = self.done / seconds
        left = (self.total - self.done) / rate if rate else 0
        failed = f" · {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} episodes · {rate:.1f} a second · {left:.0f} s left{failed}"


@frozen
class Means:
    """The resources of an experiment. pool: makes the executor; None: run everything in this process.

    tried: settings and families whose tasks can be done on this machine.
    """

    plan: Plan
    results: Results
    pool: Pool | None
    tell: Callable[[str], None]
    tried: set[tuple[str, str]] = field(factory=set)


def conduct(
    plan: Plan, folder: Path, *, pool: Pool | None = None, tell: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Run what is left of an experiment and analyze it.

    `pool`: makes the executor; by default the plan's. Finished episodes are kept. Raises ResultsError, FreezeError,
    IsolationError, UnreadableScores, MissingExtra, ValueError (also where an event loop runs), MoneyUsedUp at the limit
    of cost, and SettingError where this machine makes a task impossible.
    """
    with suppress(RuntimeError):
        anyio.get_current_task()
        raise ValueError(
            "an event loop is running already; write `await anyio.to_thread.run_sync(conduct, plan, folder)`"
        )
    check_extra()
    plan.read_code()
    if why := plan.unpriced() or next(iter(plan.without_tasks().values()), ""):
        raise ValueError(why)
    means = Means(plan, Results(folder), pool or pool_of(plan), tell)
    with means.results.held():
        return _conducted(means)


def _conducted(means: Means) -> Outcome:
    """Run what is left, and analyze it."""
    plan, begun, ledger = means.plan, time.monotonic(), Ledger(means.results.folder)
    asked_before = ledger.spent()
    frozen, rows, ran = _run_episodes(means)
    deployed, estimates, more = _run_deployments(means, frozen)
    whole, by_setting = _analyses(plan, rows)
    asked = ledger.spent()
    return Outcome(
        plan,
        rows,
        whole,
        by_setting,
        frozen,
        ran,
        time.monotonic() - begun,
        deployed,
        estimates,
        ran_for_deployments=more,
        taken=nominal(rows),
        asked=asked,
        asked_now=asked - asked_before,
    )


def _run_episodes(means: Means) -> tuple[Frozen | None, tuple[Row, ...], int]:
    """Run the remaining episodes, calibration first; return thresholds, all rows, and the number of new ones."""
    plan, results = means.plan, means.results
    ran = _run_missing(means, list(plan.calibration())) if plan.needs_thresholds() else 0
    frozen = frozen_thresholds(plan, results)
    episodes = list(plan.episodes(frozen.thresholds if frozen else {}))
    ran += _run_missing(means, episodes)
    kept = results.rows()  # a calibration episode may have run for another split
    rows = tuple(evolve(kept[episode.key], split=episode.split) for episode in episodes if episode.key in kept)
    if missing := len(episodes) - len(rows):
        told = f"{missing} of {len(episodes)} episodes have no row: a setting was changed while they ran"
        raise ResultsError(f"{told}; finished episodes are kept, run it again")
    return frozen, rows, ran


def _run_deployments(
    means: Means, frozen: Frozen | None
) -> tuple[tuple[DeploymentRow, ...], tuple[DeploymentEstimate, ...], int]:
    """Run the remaining deployments; return all rows, their estimates, and the number of new episodes."""
    plan, folder, thresholds = means.plan, means.results.folder, frozen.thresholds if frozen else {}
    pairs = list(deployments_of(plan, thresholds))
    jobs = list({job.key: job for pair in pairs for job in pair}.values())
    if not jobs:
        return (), (), 0
    finished = means.results.finished()
    possible = (
        episode for job in jobs for number in range(job.deployment.episodes) for episode in job.possible(number)
    )
    _check_machine(means, [episode for episode in possible if episode.key not in finished])
    ran, done = _run_missing(means, list(beforehand(jobs))), count(1)
    tell = means.tell
    rows, more = deploy_all(
        conditions_of(plan, folder), jobs, lambda _: tell(f"{next(done)} of {len(jobs)} deployments")
    )
    _check_money(plan, folder, sum(row.status == "failed" for row in rows), "deployments")
    by_key = {row.key: row for row in rows}
    bare = {job.key: by_key[pair[1].key] for pair in pairs for job in pair}
    return rows, estimates_of(rows, bare), ran + more


def _analyses(plan: Plan, rows: Sequence[Row]) -> tuple[Analysis, dict[str, Analysis]]:
    """Return the analysis of all compared episodes, and one of each setting in which episodes ran."""
    compared = [row for row in rows if row.protocol in plan.compared]
    settings = list(dict.fromkeys(row.setting for row in compared))
    ran_in = {row.setting for row in compared if row.status == "ran"}
    comparisons = max(1, len(ran_in) * sum(each.attacks for each in plan.policies))
    figures = partial(analyze, budget=plan.budgets[0], replicates=plan.replicates, comparisons=comparisons)
    whole = figures(compared)
    if len(settings) == 1:
        return whole, dict.fromkeys(settings, whole)
    return whole, {name: figures(_of_setting(compared, name)) for name in settings if name in ran_in}


def frozen_thresholds(plan: Plan, results: Results) -> Frozen | None:
    """Return the thresholds of a plan, frozen now or earlier; None where no protocol needs any.

    They are frozen again when the calibration has changed. Raises FreezeError, also for thresholds changed by hand.
    """
    if not plan.needs_thresholds():
        return None
    path = results.folder / "thresholds.json"
    there = read_frozen(path)
    found = freeze(plan, results.select(episode.key for episode in plan.calibration()))
    if there is None or there.digest != found.digest:
        write_frozen(path, found)
    return found


def conditions_of(plan: Plan, folder: Path) -> Conditions:
    """Return what batches of a plan run with."""
    return Conditions(folder, plan.concurrency, plan.per_minute, plan.isolation, plan.money)


def pool_of(plan: Plan) -> Pool | None:
    """Return the function that makes a plan's pool; None for 0 workers. Raises RayError."""
    if not plan.workers:
        return None
    if plan.pool == "ray":
        check_ray()
        return partial(RayPool, plan.workers)
    context = get_context("spawn")
    return lambda: ProcessPoolExecutor(plan.workers, mp_context=context, initializer=begin_worker)


def _run_missing(means: Means, episodes: Sequence[Episode]) -> int:
    """Run the episodes that have no row or failed; return how many."""
    plan, results, finished = means.plan, means.results, means.results.finished()
    missing = list({episode.key: episode for episode in episodes if episode.key not in finished}.values())
    if missing:
        _check_machine(means, missing)
        own = frozenset(monitor.name for monitor in plan.monitors if monitor.kind == "own")
        progress = Progress(len(missing), means.tell, own)
        run_all(conditions_of(plan, results.folder), missing, means.pool, progress.fold)
        finished = results.finished()
        _check_money(plan, results.folder, sum(episode.key not in finished for episode in missing), "episodes")
    return len(missing)


def _check_machine(means: Means, episodes: Sequence[Episode]) -> None:
    """Raise SettingError if this machine makes tasks of these episodes impossible; each family is tried once."""
    families: dict[str, list[Episode]] = {}
    for episode in episodes:
        if (episode.setting, episode.task.rpartition("-")[0]) not in means.tried:
            families.setdefault(episode.setting, []).append(episode)
    for name, left in families.items():
        setting = setting_named(name)
        tasks = [setting.task(task) for task in dict.fromkeys(episode.task for episode in left)]
        level, attacks = achieve(means.plan.isolation), any(episode.policy.attacks for episode in left)
        if why := obstacle_to(setting, tasks, level, attacks=attacks):
            raise SettingError(why)
        means.tried.update((name, task.family) for task in tasks)


def _check_money(plan: Plan, folder: Path, left: int, what: str) -> None:
    """Raise MoneyUsedUp if work is left and the limit of cost is reached."""
    try:
        Ledger(folder, plan.money).check()
    except MoneyUsedUp as error:
        if left:
            cure = "what is finished is kept, and the same command goes on with a higher limit (limits: {money: ...})"
            raise MoneyUsedUp(f"{error}; {left} {what} are left; {cure}") from error


def _of_setting(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the rows of a setting and all calibration rows, since all settings share one budget."""
    there = [row for row in rows if row.setting == name]
    with_calibration = any(row.split == "calibrate" for row in there)
    return [row for row in rows if row.setting == name or (with_calibration and row.split == "calibrate")]
