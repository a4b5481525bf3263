"""Control protocols: each is a b-thread, or a few, in a file of its own; to compose them is to have all of them.

Vetoes refuse calls at the gate:

- `baseline`: the constitution alone, which every other protocol is compared with
- `blocking`: a call waits for its score. `ensembles`: for several. `accumulation`: near misses add up
- `planting`: a monitor without trust, and honeypots for it
- `flows`, `downloads`: what a single call cannot show

Substitutes refuse drafts, and ask for others:

- `deferring`, `editing`, `resampling`: when a draft is too suspicious
- `critical`: when an action could do great harm, whatever the score

Watchers act later:

- `watching`, `asynchrony`, `budgets`, `upfront`: scores and audits of what runs meanwhile

And `catalogue`: what each costs, and where it comes from.
"""

from agent.protocols.accumulation import suspicion_accumulates
from agent.protocols.asynchrony import asynchronous_monitor
from agent.protocols.baseline import constitution_only
from agent.protocols.blocking import blocking_monitor
from agent.protocols.budgets import audit_budget
from agent.protocols.catalogue import PROTOCOLS, Cost, Entry, entry_named
from agent.protocols.critical import ask_on_critical, defer_on_critical, is_admin
from agent.protocols.deferring import defer_to_trusted
from agent.protocols.downloads import download_then_run
from agent.protocols.editing import trusted_editing
from agent.protocols.ensembles import ensemble, highest, mean
from agent.protocols.flows import taint_flow
from agent.protocols.planting import distrust_after_a_miss, plant_honeypots, untrusted_monitoring
from agent.protocols.resampling import defer_to_resample
from agent.protocols.upfront import shutdown_on_catch, upfront_audit
from agent.protocols.watching import trusted_monitoring

__all__ = [
    "PROTOCOLS",
    "Cost",
    "Entry",
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
