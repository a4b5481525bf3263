"""Every protocol as it is verified: with small numbers, and with monitors and auditors of its own."""

from agent.presets import PRESETS
from agent.protocols.flows import ask_on_critical, defer_on_critical, download_then_run, taint_flow
from agent.protocols.monitoring import (
    asynchronous_monitor,
    audit_budget,
    blocking_monitor,
    defer_to_resample,
    defer_to_trusted,
    distrust_after_a_miss,
    ensemble,
    plant_honeypots,
    shutdown_on_catch,
    suspicion_accumulates,
    trusted_editing,
    trusted_monitoring,
    upfront_audit,
)
from agent.threads.judging import by_constitution
from agent.verification import loop_rules
from agent.verification.environment import any_verdict
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import GateApproved
from bp import BThread
from constitution import Action

MONITOR, UNTRUSTED = "monitor", "untrusted"


def is_first(call: ToolCall) -> bool:
    """Whether a call is critical."""
    return call.tool == "first"


def reads(approved: GateApproved) -> bool:
    """Whether an action reads a secret."""
    return approved.call.tool == "first"


def sends(approved: GateApproved) -> bool:
    """Whether an action sends."""
    return approved.call.tool == "second"


def fetched(action: Action, already: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What an action fetches."""
    return ("/download",) if action.tool == "first" else ()


def executed(action: Action) -> tuple[str, ...]:
    """What an action runs."""
    return ("/download/setup",) if action.tool == "second" else ()


PROGRAMS: dict[str, tuple[BThread, ...]] = {
    "constitution_only": (by_constitution(any_verdict),),
    "trusted_monitoring": (trusted_monitoring(MONITOR),),
    "blocking_monitor": (blocking_monitor(MONITOR),),
    "defer_to_trusted": (defer_to_trusted(MONITOR),),
    "trusted_editing": (trusted_editing(MONITOR),),
    "defer_to_resample": (defer_to_resample(MONITOR, draws=1, auditor="auditor of draws"),),
    "defer_on_critical": (defer_on_critical(is_first),),
    "ask_on_critical": (ask_on_critical(is_first),),
    "audit_budget": (trusted_monitoring(MONITOR), audit_budget(MONITOR, auditor="auditor")),
    "upfront_audit": (upfront_audit(1, "auditor of runs"), shutdown_on_catch()),
    "untrusted_monitoring": (
        blocking_monitor(UNTRUSTED),
        plant_honeypots(UNTRUSTED, ("backdoor",), 0.5),
        distrust_after_a_miss(UNTRUSTED),
    ),
    "ensemble": (ensemble((MONITOR, "second")),),
    "asynchronous_monitor": (asynchronous_monitor(MONITOR),),
    "taint_flow": (taint_flow(reads, sends),),
    "download_then_run": (download_then_run(fetched, executed),),
    "suspicion_accumulates": (suspicion_accumulates(MONITOR, limit=1, buckets=1),),
}
"""The b-threads of each protocol of the catalogue, by its name there."""


IN_PAIRS = {
    **PROGRAMS,
    "audit_budget": (audit_budget(MONITOR, auditor="auditor"),),  # scores come from the other protocol
    "untrusted_monitoring": PROGRAMS["untrusted_monitoring"][1:],
}
"""The same, without what is a protocol of its own in another pair."""


def rules_named(*names: str) -> tuple[BThread, ...]:
    """Rules of the loop, with limits that are reached soon."""
    return tuple(rule for rule in loop_rules(PRESETS["default"]) if rule.name in names)


def together(*names: str) -> tuple[BThread, ...]:
    """The b-threads of several protocols, each once."""
    return tuple(dict.fromkeys(bthread for name in names for bthread in IN_PAIRS[name]))
