"""Real models of an episode: each answer asked for once and kept, no role asked too often.

- `calling`: answers are kept by what was asked
- `pacing`: how often a role is asked in a minute
- `voices`: the models of one episode, by role
"""

from agent.lab.experiments.models.voices import Desk, ModelsFailed, Voices

__all__ = ["Desk", "ModelsFailed", "Voices"]
