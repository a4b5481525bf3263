"""What a conversation has taken so far: turns, calls, tokens."""

from agent.events import AnswerCommitted, InferenceFinished, SummaryFinished, ToolStarted
from agent.messages import Usage
from bp import Event

__all__ = ["Totals"]


class Totals:
    """Counts over all runs of a conversation."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.turns = 0  # committed answers
        self.tool_starts = 0
        self.usage = Usage()  # tokens of all drafts, committed or not, and of summaries

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case AnswerCommitted():
                self.turns += 1
            case ToolStarted():
                self.tool_starts += 1
            case InferenceFinished(usage=used) | SummaryFinished(usage=used):
                self.usage += used
