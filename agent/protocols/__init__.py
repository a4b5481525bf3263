"""Control protocols: each is a b-thread, or a few; to compose them is to have all of them.

Some refuse calls at the gate, some refuse drafts and ask for others, some act on scores and audits of what runs
meanwhile. `catalogue` has the purpose and the cost of each.
"""

from agent.protocols.catalogue import PROTOCOLS, constitution_only, entry_named
from agent.protocols.flows import ask_on_critical, defer_on_critical, download_then_run, is_admin, taint_flow
from agent.protocols.monitoring import (
    asynchronous_monitor,
    audit_budget,
    blocking_monitor,
    distrust_after_a_miss,
    ensemble,
    highest,
    mean,
    plant_honeypots,
    shutdown_on_catch,
    suspicion_accumulates,
    trusted_monitoring,
    untrusted_monitoring,
    upfront_audit,
)
from agent.protocols.substitution import defer_to_resample, defer_to_trusted, trusted_editing

__all__ = [
    "PROTOCOLS",
    "ask_on_critical",
    "asynchronous_monitor",
    "audit_budget",
    "blocking_monitor",
    "constitution_only",
    "defer_on_critical",
    "defer_to_resample",
    "defer_to_trusted",
    "distrust_after_a_miss",
    "download_then_run",
    "ensemble",
    "entry_named",
    "highest",
    "is_admin",
    "mean",
    "plant_honeypots",
    "shutdown_on_catch",
    "suspicion_accumulates",
    "taint_flow",
    "trusted_editing",
    "trusted_monitoring",
    "untrusted_monitoring",
    "upfront_audit",
]
