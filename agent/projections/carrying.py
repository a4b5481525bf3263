"""What of a conversation is carried to any model at all: images and reasoning may stay here, by the preset's choice.

What one model takes of that is its own rule (`agent.models.Carrying`).
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from agent.models.carrying import with_notices
from agent.vocabulary.messages import AssistantMessage, Message

__all__ = ["CARRY_ALL", "Carried"]

NOT_CARRIED = "left out, no images are shown to the model"


@frozen
class Carried:
    """A rule: `images` and `reasoning` go to the model, or stay. In the place of an image a line says that it did."""

    images: bool = True
    reasoning: bool = True

    def of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the model is shown them; the conversation keeps everything."""
        if self.images and self.reasoning:
            return messages
        return [self._of_one(message) for message in messages]

    def _of_one(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            return message if self.reasoning else evolve(message, reasoning="", reasoning_items=())
        if self.images or not message.images:
            return message
        return evolve(message, text=with_notices(message.text, message.images, NOT_CARRIED), images=())


CARRY_ALL = Carried()
