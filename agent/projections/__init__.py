"""What is remembered: folds over the events of a run, which b-threads never read.

- `unheard`: what people said and the model has not been shown
- `conversation`: what the model is shown
- `totals`: what was spent
- `open_calls`: what is not answered yet
"""

from agent.projections.conversation import Conversation
from agent.projections.open_calls import OpenCalls
from agent.projections.totals import Totals

__all__ = ["Conversation", "OpenCalls", "Totals"]
