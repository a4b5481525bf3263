"""What the laboratory's requests start in the world: monitors are asked, auditors are asked, lots are drawn.

agent = Agent(model, tools, threads=[blocking_monitor("watcher")], effects=laboratory({"watcher": KeywordMonitor(...)}))

- `evidence`: what monitors and auditors are shown
- `scores`: `score_requested`; each fact is asked once
- `audits`: `audit_requested`. `prompted_audits`: a model with a prompt as an auditor
- `lots`: `chance_requested`, from a seed
- `ledgers`: `ledger_requested`, from what an experiment has written down
"""

from collections.abc import Callable, Mapping

from agent.effects.auditors import Audit, Auditor, TruthfulAuditor, auditing
from agent.effects.evidence import MakeEffect, Planted, evidence_of
from agent.effects.ledgers import ledger
from agent.effects.lots import chance
from agent.effects.monitors import scoring
from agent.effects.prompted_auditors import PromptedAuditor, parse_verdict
from agent.protocols.monitors.monitor import Monitor

__all__ = [
    "Audit",
    "Auditor",
    "MakeEffect",
    "Planted",
    "PromptedAuditor",
    "TruthfulAuditor",
    "auditing",
    "chance",
    "evidence_of",
    "laboratory",
    "ledger",
    "parse_verdict",
    "scoring",
]


def laboratory(
    monitors: Mapping[str, Monitor] = {},
    auditors: Mapping[str, Auditor] = {},
    *,
    honeypots: Mapping[str, Planted] = {},
    seed: int = 0,
    spent: Callable[[], float] | None = None,
) -> tuple[MakeEffect, ...]:
    """Return all effects of the laboratory, for `Agent(effects=...)`; monitors, auditors and honeypots by name.

    spent: what the experiment has cost so far, in US dollars.
    What nobody was given for is answered all the same: no score, no verdict, no cost that anybody knows.
    """
    return (scoring(monitors, honeypots), auditing(auditors, honeypots), chance(seed), ledger(spent))
