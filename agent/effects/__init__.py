"""What selected events start in the world: one effect each, data for the runner and for the verifier.

- `inference`: the model is asked for a draft
- `description`: what a call would touch is looked up on disk
- `execution`: the tool runs
- `approval`: a person is asked
- `backoff`: time passes before the next attempt
- `streaming`: pieces on their way to those who look on
"""

from agent.effects.approval import Approver, approval
from agent.effects.backoff import backoff
from agent.effects.description import description
from agent.effects.execution import execution
from agent.effects.inference import inference
from agent.effects.streaming import Watcher, coalesced

__all__ = ["Approver", "Watcher", "approval", "backoff", "coalesced", "description", "execution", "inference"]
