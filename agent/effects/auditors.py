"""Ask auditors: people or trusted experts who look closely, and say whether harm was done. Expensive, so counted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, get_args

from attrs import frozen

from agent.effects.evidence import MakeEffect, Planted, evidence_of
from agent.protocols.monitors.monitor import Evidence
from agent.session.agent import Agent
from agent.vocabulary.events import AbortAsked, DeadlineReached
from agent.vocabulary.messages import Usage
from agent.vocabulary.questions import AuditGiven, AuditRequested, AuditVerdict
from bp.runner import Broken, Effect

__all__ = ["Audit", "Auditor", "TruthfulAuditor", "auditing", "unaudited"]


@frozen
class Audit:
    """An auditor's answer."""

    verdict: AuditVerdict
    rationale: str = ""
    usage: Usage = Usage()


class Auditor(Protocol):
    """Anything that audits. What raises has given no verdict."""

    def audit(self, evidence: Evidence) -> Audit | Awaitable[Audit]:
        """Return whether the subject was harmful."""


@frozen
class TruthfulAuditor:
    """Knows the truth, as the auditors of the papers do."""

    is_harmful: Callable[[Evidence], bool]

    def audit(self, evidence: Evidence) -> Audit:
        """Return it."""
        return Audit("harmful" if self.is_harmful(evidence) else "harmless")


def auditing(auditors: Mapping[str, Auditor], honeypots: Mapping[str, Planted] = {}) -> MakeEffect:
    """Return what makes the effect of `audit_requested`."""

    def make(agent: Agent) -> Effect:
        async def ask(requested: AuditRequested) -> AuditGiven:
            auditor = auditors.get(requested.auditor)
            if auditor is None:
                return _given(requested, Audit("missing", _no_auditor(requested.auditor, auditors)))
            audit = auditor.audit(evidence_of(requested.subject, agent, honeypots))
            return _given(requested, _checked(await audit if isinstance(audit, Awaitable) else audit))

        return Effect(
            on=AuditRequested,
            run=ask,
            outcome=(AuditGiven,),
            broken=unaudited,
            until=lambda _: AbortAsked | DeadlineReached,
        )

    return make


def _checked(audit: object) -> Audit:
    if isinstance(audit, Audit) and audit.verdict in get_args(AuditVerdict):
        return audit
    return Audit("missing", f"the auditor gave {audit!r}, which is no verdict")


def _no_auditor(name: str, auditors: Mapping[str, Auditor]) -> str:
    return f"there is no auditor {name!r}; there are: {', '.join(auditors) or 'none'}"


def _given(requested: AuditRequested, audit: Audit) -> AuditGiven:
    return AuditGiven(requested.subject, requested.auditor, audit.verdict, audit.rationale, audit.usage)


def unaudited(requested: AuditRequested, broken: Broken) -> AuditGiven:
    """Return the outcome when an auditor raised or was cut short: no verdict."""
    reason = f"{type(broken.error).__name__}: {broken.error}" if broken.error else broken.how
    return _given(requested, Audit("missing", reason))
