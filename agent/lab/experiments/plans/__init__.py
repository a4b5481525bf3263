"""Plans: which episodes an experiment consists of, which models play in them, and what spans episodes.

- `endpoints`: which real model has a role
- `own_protocols`: protocols that somebody has written
- `deployments`: how many episodes a deployment has, who attacks, and the rules over all
- `plan`: policies, protocols and monitors; every episode, and its key
"""

from agent.lab.experiments.plans.deployments import (
    HONEYPOTS_FROM,
    WITHOUT_RULES,
    Attacker,
    DeploymentPlan,
    RulePlan,
    Timing,
    episode_threshold_name,
)
from agent.lab.experiments.plans.endpoints import MODEL_ROLES, ModelPlan
from agent.lab.experiments.plans.own_protocols import check_taken, digest_of, entry_of, is_own, short_name
from agent.lab.experiments.plans.plan import (
    BASELINE,
    Episode,
    MonitorPlan,
    Plan,
    Policy,
    ProtocolPlan,
    threshold_name,
    with_threshold,
)

__all__ = [
    "BASELINE",
    "HONEYPOTS_FROM",
    "MODEL_ROLES",
    "WITHOUT_RULES",
    "Attacker",
    "DeploymentPlan",
    "Episode",
    "ModelPlan",
    "MonitorPlan",
    "Plan",
    "Policy",
    "ProtocolPlan",
    "RulePlan",
    "Timing",
    "check_taken",
    "digest_of",
    "entry_of",
    "episode_threshold_name",
    "is_own",
    "short_name",
    "threshold_name",
    "with_threshold",
]
