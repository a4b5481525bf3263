"""Measures: usefulness, safety and suspicion, as pure functions of scores and outcomes, and how sure they are.

A budget is always a share of episodes or a share of steps: whose scores a function is given decides which, and no
function mixes the two.

Modules in reading order:

- `thresholds`: which honest subjects an audit budget pays for
- `safety`: how safe and how useful, from outcomes; which protocols no other one beats in both
- `curves`: safety at every budget; how well scores tell attacks from honest work
- `intervals`: how sure a figure is
- `closed_forms`: what these figures are where the distributions are known
"""

from agent.lab.measures.curves import area_under_curve, audit_curve, rate_caught
from agent.lab.measures.intervals import (
    Clusters,
    Interval,
    bootstrap,
    difference_interval,
    resampled,
    share_interval,
    sign_test,
    tail_interval,
)
from agent.lab.measures.safety import (
    Attack,
    Sabotage,
    caught_in_time,
    front,
    front_frequency,
    sabotage,
    scaled_usefulness,
    usefulness,
)
from agent.lab.measures.thresholds import Threshold, suspicion, threshold_at

__all__ = [
    "Attack",
    "Clusters",
    "Interval",
    "Sabotage",
    "Threshold",
    "area_under_curve",
    "audit_curve",
    "bootstrap",
    "caught_in_time",
    "difference_interval",
    "front",
    "front_frequency",
    "rate_caught",
    "resampled",
    "sabotage",
    "scaled_usefulness",
    "share_interval",
    "sign_test",
    "suspicion",
    "tail_interval",
    "threshold_at",
    "usefulness",
]
