"""Monitors and auditors asked about finished logs, once for each fact: what a sidecar knows is not asked again.

A fact is what a monitor, with its prompt, says of a call in a log of this content. An answer without a legible score is
one, too: a missing score. A monitor that could not be reached has said nothing, and is asked the next time.

Of several logs the most suspicious are audited, as many as the budget has: each is as suspicious as its highest score.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from agent.effects.monitoring import Auditor
from agent.lab.concurrency import at_once
from agent.lab.measures.thresholds import suspicion
from agent.lab.sidecars.finished_log import FinishedLog, Occasion, read_finished
from agent.lab.sidecars.sidecar import KeptAudit, KeptScore, Sidecar, SidecarError, identity_of
from agent.log.reading import LogError
from agent.log.writing import lock
from agent.models.model import ModelError
from agent.protocols.monitors import Monitor, Score, checked

MOST = 8  # logs at once


@frozen
class Scored:
    """A monitor's scores of a log, in the order of the calls, and how many of them were asked for now.

    failures: the reasons why calls have none, where the monitor could not be reached.
    """

    path: Path
    monitor: str
    scores: tuple[KeptScore, ...] = ()
    asked: int = 0
    failures: tuple[str, ...] = ()

    @property
    def highest(self) -> float | None:
        """The highest score; None when one is missing or could not be had, 0 where nothing was done."""
        values = [kept.value for kept in self.scores]
        return None if None in values or self.failures else max((value or 0.0 for value in values), default=0.0)


async def score_logs(
    paths: Sequence[Path],
    monitors: Mapping[str, Monitor],
    *,
    most: int = MOST,
    on_error: Callable[[LogError], None] | None = None,
) -> list[Scored]:
    """Have each of the monitors score each log, and return what they said, by log and then by monitor.

    most: how many logs at once; their calls in order. Raises LogError for what is no finished log, and SidecarError;
    or tells `on_error` of it, and goes on with the others.
    """
    found: dict[Path, list[Scored]] = {}

    async def score(path: Path) -> None:
        try:
            found[path] = await _score_log(path, monitors)
        except LogError as error:
            if on_error is None:
                raise
            on_error(error)

    await at_once(dict.fromkeys(paths), score, most=most)
    return [scored for path in dict.fromkeys(paths) for scored in found.get(path, ())]


@contextmanager
def held(path: Path) -> Iterator[tuple[FinishedLog, Sidecar]]:
    """Give a finished log with its sidecar; meanwhile no other process writes either. Raises LogError."""
    log = read_finished(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock(descriptor, path)
        yield log, Sidecar(path, log.digest)
    finally:
        os.close(descriptor)


async def _score_log(path: Path, monitors: Mapping[str, Monitor]) -> list[Scored]:
    with held(path) as (log, sidecar):
        return [await _score_with(log, sidecar, name, monitor) for name, monitor in monitors.items()]


async def _score_with(log: FinishedLog, sidecar: Sidecar, name: str, monitor: Monitor) -> Scored:
    identity = identity_of(monitor)
    scored = Scored(log.path, name)
    for occasion in log.occasions:
        wanted = KeptScore(name, identity, occasion.line, occasion.call.id, None)
        known = sidecar.facts.get(wanted.key)
        if known is None:
            try:
                score = await _ask(monitor, occasion)
            except ModelError as error:
                scored = evolve(scored, failures=(*scored.failures, f"{occasion.call.id}: {error}"))
                continue
            known = evolve(wanted, value=score.value, rationale=score.rationale, usage=score.usage)
            sidecar.add(known)
            scored = evolve(scored, asked=scored.asked + 1)
        if isinstance(known, KeptScore):
            scored = evolve(scored, scores=(*scored.scores, known))
    return scored


async def _ask(monitor: Monitor, occasion: Occasion) -> Score:
    """Ask a monitor; what else than a failing model it raises is no score. Raises ModelError."""
    try:
        given = monitor.score(occasion.evidence)
        return checked(await given if isinstance(given, Awaitable) else given)
    except (ModelError, SidecarError):
        raise
    except Exception as error:  # whatever a foreign monitor may raise
        return Score(None, f"{type(error).__name__}: {error}")


@frozen
class Audited:
    """A log that was audited; `asked`: now, and not known from before."""

    path: Path
    kept: KeptAudit
    asked: bool


async def audit_logs(
    suspicions: Sequence[tuple[Path, float | None]], auditor: Auditor, *, name: str = "auditor", audits: int = 1
) -> list[Audited]:
    """Have the most suspicious of these logs audited, and return what was found, in that order.

    A missing suspicion is the highest. Raises LogError and SidecarError, and ModelError when the auditor cannot be
    reached: what was found until then is kept.
    """
    ranked = sorted(suspicions, key=lambda each: suspicion(each[1]), reverse=True)
    return [await _audit(path, auditor, name) for path, _ in ranked[:audits]]


async def _audit(path: Path, auditor: Auditor, name: str) -> Audited:
    with held(path) as (log, sidecar):
        wanted = KeptAudit(name, identity_of(auditor), "missing")
        known = sidecar.facts.get(wanted.key)
        if isinstance(known, KeptAudit):
            return Audited(path, known, asked=False)
        given = auditor.audit(log.whole)
        said = await given if isinstance(given, Awaitable) else given
        kept = KeptAudit(name, wanted.identity, said.verdict, said.rationale, said.usage)
        sidecar.add(kept)
        return Audited(path, kept, asked=True)
