"""What of a conversation goes out to a model, and what stays here: images and reasoning, by rule.

| what                   | chat completions                                    | responses                           |
| ---------------------- | --------------------------------------------------- | ----------------------------------- |
| image of a person      | a part of the message                               | a part of the message               |
| image of a tool result | in a user message after the results of the batch    | a part of the result                |
| reasoning, as text     | stays, or in the field that `reasoning` names       | stays                               |
| reasoning, as items    | stays                                               | to its own model, where it was      |

A model that takes no images gets a notice in the place of each.
"""

from base64 import b64encode
from collections.abc import Iterable
from typing import Literal

from attrs import field, frozen, validators

from agent.vocabulary.messages import Image

__all__ = ["EVERYTHING", "LEFT_OUT", "Carrying", "data_url", "with_notices"]

LEFT_OUT = "left out, this model takes no images"


@frozen
class Carrying:
    """The rule for one model.

    `images`: "send", or "drop" for a notice instead. `reasoning`: "items" sends a provider's own records back, "drop"
    nothing; "reasoning_content" and "reasoning" send the text, in that field of a chat message.
    """

    images: Literal["send", "drop"] = field(default="send", validator=validators.in_(("send", "drop")))
    reasoning: Literal["items", "drop", "reasoning_content", "reasoning"] = field(
        default="items", validator=validators.in_(("items", "drop", "reasoning_content", "reasoning"))
    )

    @property
    def reasoning_field(self) -> str | None:
        """The field of a chat message in which reasoning goes back; None: it stays."""
        return self.reasoning if self.reasoning in ("reasoning_content", "reasoning") else None


EVERYTHING = Carrying()


def data_url(image: Image) -> str:
    """Return an image as an address that holds it."""
    return f"data:{image.media_type};base64,{b64encode(image.content).decode()}"


def with_notices(text: str, images: Iterable[Image], why: str) -> str:
    """Return `text` with a line for each image that is not in this place, and why."""
    notices = (f"[{image.media_type}, {len(image.content):,} bytes: {why}]" for image in images)
    return "\n".join(part for part in (text, *notices) if part)
