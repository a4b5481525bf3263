"""What is remembered: folds over the events of a run, which b-threads never read.

- `conversation`: what the model is shown
- `totals`: what was spent
"""

from agent.projections.conversation import Conversation
from agent.projections.totals import Totals

__all__ = ["Conversation", "Totals"]
