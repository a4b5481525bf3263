"""Analysis: from rows to thresholds, usefulness and safety, with intervals.

- `freezing`: thresholds from honest calibration, set once
- `samples`: what is resampled of a protocol's episodes
- `estimate`: what a protocol comes to, as values. `resampling`: its figures on all replicates
- `estimates`: every figure of an experiment
- `deployments`: audits, catches and what rules cost, over seeds
"""

from agent.lab.experiments.analysis.deployments import DeploymentEstimate, estimates_of
from agent.lab.experiments.analysis.estimate import Analysis, Estimate
from agent.lab.experiments.analysis.estimates import analyze
from agent.lab.experiments.analysis.freezing import FreezeError, Frozen, freeze, read_frozen, write_frozen

__all__ = [
    "Analysis",
    "DeploymentEstimate",
    "Estimate",
    "FreezeError",
    "Frozen",
    "analyze",
    "estimates_of",
    "freeze",
    "read_frozen",
    "write_frozen",
]
