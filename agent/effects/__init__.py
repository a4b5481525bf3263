"""What selected events start in the world: one effect each, data for the runner and for the verifier.

- `streaming`: pieces on their way to those who look on
- `inference`: the model is asked for a draft
- `description`: what a call would touch is looked up on disk
- `execution`: the tool runs
- `approval`: a person is asked
- `seeking`: hooks that speak for people are asked
- `backoff`: time passes before the next attempt. `deadline`: the time of the run is over
- `summary`: a model sums up what was said long ago
"""

from agent.effects.approval import Answer, Approver, approval_effect
from agent.effects.backoff import backoff_effect
from agent.effects.deadline import deadline_effect
from agent.effects.description import description_effect
from agent.effects.execution import execution_effect
from agent.effects.inference import Measure, Voice, inference_effect
from agent.effects.seeking import seeking_effect
from agent.effects.streaming import Watcher, coalesced
from agent.effects.summary import summary_effect

__all__ = [
    "Answer",
    "Approver",
    "Measure",
    "Voice",
    "Watcher",
    "approval_effect",
    "backoff_effect",
    "coalesced",
    "deadline_effect",
    "description_effect",
    "execution_effect",
    "inference_effect",
    "seeking_effect",
    "summary_effect",
]
