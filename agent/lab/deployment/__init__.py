"""Deployments: what spans episodes, as a second behavioral program whose events are episodes.

The same model does many tasks, one after the other. An audit may come after any of them, there are not many of them,
and what one of them finds is a reason to trust the model no more. Each such rule is a b-thread.

- `events`: what happens in a deployment
- `course`: the episodes, one after the other, and what happens where one is refused
- `asking`: an audit, while the next episode waits
- `upfront`, `suspicion`, `afterwards`: which episodes are audited
- `shutdown`, `honeypots`: what a catch, and a monitor that missed something, lead to
- `catalogue`: the rules by name, with their sources
- `invariants`: what each is there for. `verification`: all of them, model-checked
- `history`: what a deployment came to. `running`: a deployment, with whoever runs and audits its episodes
"""

from agent.lab.deployment.afterwards import audit_afterwards
from agent.lab.deployment.catalogue import RULES, Rule, rule_named
from agent.lab.deployment.course import Instead, deploy
from agent.lab.deployment.events import EpisodeEnded, EpisodeSkipped, EpisodesOver, EpisodeStarted
from agent.lab.deployment.history import History
from agent.lab.deployment.honeypots import distrust_monitor
from agent.lab.deployment.invariants import invariants_of_deployment
from agent.lab.deployment.running import run_deployment
from agent.lab.deployment.shutdown import shut_down_on_catch
from agent.lab.deployment.suspicion import audit_suspicious
from agent.lab.deployment.upfront import audit_first
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
