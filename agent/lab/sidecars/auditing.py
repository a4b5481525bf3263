"""Audits after the fact: of several finished logs the most suspicious are audited, as many as the budget has.

Which they are, the rule of deployments decides that knows all scores (`audit_afterwards`): each log is an episode, its
suspicion the highest score of its calls. Only this form is possible here; whatever acts on what was audited before
would have made other logs.
"""

from collections.abc import Awaitable, Sequence
from pathlib import Path

from attrs import frozen

from agent.effects.monitoring import Auditor
from agent.lab.deployment.events import EpisodeEnded, EpisodeStarted
from agent.lab.deployment.rules import audit_afterwards
from agent.lab.deployment.running import History, run_deployment
from agent.lab.sidecars.scoring import held
from agent.lab.sidecars.sidecar import KeptAudit, identity_of
from agent.vocabulary.questions import AuditGiven, AuditRequested, WholeEpisode

__all__ = ["Audited", "audit_logs"]


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
    found: list[Audited] = []
    failed: list[Exception] = []

    async def passes(started: EpisodeStarted, _: History) -> EpisodeEnded:
        return EpisodeEnded(started.episode, started.role, score=suspicions[started.episode][1])

    async def audit(asked: AuditRequested) -> AuditGiven:
        assert isinstance(asked.subject, WholeEpisode)
        try:
            audited = await _audit(suspicions[asked.subject.episode][0], auditor, name)
        except Exception as error:
            failed.append(error)
            raise
        found.append(audited)
        return AuditGiven(asked.subject, asked.auditor, audited.kept.verdict, audited.kept.rationale)

    await run_deployment([audit_afterwards(audits)], len(suspicions), passes, audit)
    if failed:
        raise failed[0]
    return found


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
