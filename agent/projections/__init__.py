"""What is remembered: folds over the events of a run, which b-threads never read.

- `unheard`: what people said and the model has not been shown
- `conversation`: what was said
- `narration`: a run as the events of S2
- `totals`: what was spent
- `open_calls`: what is not answered yet
- `state`: where autonomous work stands
- `carrying`: whether images and reasoning go to the model. `context`: what the model is shown
"""

from agent.projections.carrying import CARRY_ALL, Carried
from agent.projections.context import Context
from agent.projections.conversation import Conversation
from agent.projections.narration import Narration, StreamEvent
from agent.projections.open_calls import OpenCalls
from agent.projections.state import State, StateTracker, told_to_user
from agent.projections.totals import Totals

__all__ = [
    "CARRY_ALL",
    "Carried",
    "Context",
    "Conversation",
    "Narration",
    "OpenCalls",
    "State",
    "StateTracker",
    "StreamEvent",
    "Totals",
    "told_to_user",
]
