"""Deployments: which episodes each has, and how they run.

- `draws`: tasks and attackers, drawn from the seed
- `running`: in order or post hoc, over the same shelf
"""

from agent.lab.experiments.deployments.draws import Deployment, deployments_of
from agent.lab.experiments.deployments.running import EpisodeFailed, beforehand, deploy_all

__all__ = ["Deployment", "EpisodeFailed", "beforehand", "deploy_all", "deployments_of"]
