"""Real models of an episode: `voices` has each answer asked for once and kept, and no role asked too often."""

from agent.lab.experiments.models.voices import Desk, ModelsFailed, Voices

__all__ = ["Desk", "ModelsFailed", "Voices"]
