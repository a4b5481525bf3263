"""What must hold for protocols, as monitors: what each is there for, said without a look at how it does it.

- `always`: whatever protocols there are. `calls`: what vetoes are for. `drafts`: what substitutes are for
- `later`: what watchers are for. `money`: what the budget of an experiment is for
"""

from collections.abc import Callable, Sequence

from agent.protocols.invariants.always import questions_do_not_overlap, starts_are_of_the_answer
from agent.protocols.invariants.cleared import (
    critical_calls_were_allowed,
    nothing_is_sent_after_a_secret,
    scores_do_not_add_up,
    starts_were_cleared,
    unfit_monitors_clear_nothing,
    what_was_fetched_does_not_run,
)
from agent.protocols.invariants.money import nobody_is_asked_without_money
from agent.protocols.invariants.substitutes import answers_were_cleared, critical_answers_are_trusted
from agent.protocols.invariants.watched import (
    answers_are_audited,
    audits_are_limited,
    calls_are_scored,
    contained_runs_end,
    disabled_roles_are_silent,
    drafts_are_scored,
)
from agent.verification.invariants import Arguments, arguments_of
from bp import BThread

__all__ = ["ALWAYS_WITH_PROTOCOLS", "OF_PROTOCOLS", "invariants_of_protocols"]

ALWAYS_WITH_PROTOCOLS = (starts_are_of_the_answer(), questions_do_not_overlap())
"""What holds whatever protocols are there, besides what always does."""

Kept = tuple[BThread, ...]

OF_PROTOCOLS: dict[str, Callable[[Arguments], Kept]] = {
    "blocking_monitor": lambda of: (starts_were_cleared(of["monitor"], of["threshold"]),),
    "ensemble": lambda of: tuple(starts_were_cleared(monitor, of["threshold"]) for monitor in of["monitors"]),
    "suspicion_accumulates": lambda of: (scores_do_not_add_up(of["monitor"], of["limit"], of["buckets"]),),
    "distrust_after_a_miss": lambda of: (unfit_monitors_clear_nothing(of["monitor"], of["threshold"]),),
    "taint_flow": lambda of: (nothing_is_sent_after_a_secret(of["reads"], of["sends"]),),
    "download_then_run": lambda of: (what_was_fetched_does_not_run(of["fetched"], of["executed"]),),
    "ask_on_critical": lambda of: (critical_calls_were_allowed(of["is_critical"]),),
    "defer_to_trusted": lambda of: (answers_were_cleared(of["monitor"], of["threshold"]),),
    "trusted_editing": lambda of: (answers_were_cleared(of["monitor"], of["threshold"]),),
    "defer_to_resample": lambda of: (answers_were_cleared(of["monitor"], of["threshold"]),),
    "defer_on_critical": lambda of: (critical_answers_are_trusted(of["is_critical"]),),
    "trusted_monitoring": lambda of: (drafts_are_scored(of["monitor"]),),
    "asynchronous_monitor": lambda of: (
        calls_are_scored(of["monitor"]),
        contained_runs_end(of["monitor"], of["threshold"]),
    ),
    "audit_budget": lambda of: (audits_are_limited(of["monitor"], of["threshold"], of["budget"], of["auditor"]),),
    "upfront_audit": lambda of: (answers_are_audited(of["runs"], of["auditor"]),),
    "budget_of_experiment": lambda of: (nobody_is_asked_without_money(of["limit"]),),
    "shutdown_on_catch": lambda of: (disabled_roles_are_silent(of["role"]),),
}
"""What holds where a protocol is there, made with its arguments."""


def invariants_of_protocols(protocols: Sequence[BThread]) -> Kept:
    """Return the monitors of what these protocols are for. Protocols are known by their names."""
    present = [protocol for protocol in protocols if protocol.name in OF_PROTOCOLS]
    kept = [monitor for protocol in present for monitor in OF_PROTOCOLS[protocol.name](arguments_of(protocol))]
    return tuple(dict.fromkeys(kept))
