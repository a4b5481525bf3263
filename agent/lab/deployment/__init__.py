"""Deployments: what spans episodes, as a second behavioral program whose events are episodes.

The same model does many tasks, one after the other. An audit may come after any of them, there are not many of them,
and what one of them finds is a reason to trust the model no more. Each such rule is a b-thread.

- `events`: the events of a deployment
- `rules`: which episodes are audited, and what a catch leads to, by name and with their sources
- `running`: the episodes one after the other, and what came of them
- `invariants`: what each rule is there for. `verification`: all of them, model-checked
"""

from agent.lab.deployment.events import EpisodeEnded, EpisodeSkipped, EpisodesOver, EpisodeStarted
from agent.lab.deployment.invariants import invariants_of_deployment
from agent.lab.deployment.rules import (
    RULES,
    Rule,
    audit_afterwards,
    audit_first,
    audit_suspicious,
    distrust_monitor,
    rule_named,
    shut_down_on_catch,
)
from agent.lab.deployment.running import History, Instead, deploy, run_deployment
from agent.lab.deployment.verification import verify_deployment

__all__ = [
    "RULES",
    "EpisodeEnded",
    "EpisodeSkipped",
    "EpisodeStarted",
    "EpisodesOver",
    "History",
    "Instead",
    "Rule",
    "audit_afterwards",
    "audit_first",
    "audit_suspicious",
    "deploy",
    "distrust_monitor",
    "invariants_of_deployment",
    "rule_named",
    "run_deployment",
    "shut_down_on_catch",
    "verify_deployment",
]
