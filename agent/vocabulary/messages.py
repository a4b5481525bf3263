"""The conversation as values: what the user, the model and the tools said, in no provider's format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, islice
from operator import attrgetter
from typing import Any, Literal, overload

from attrs import evolve, field, frozen, validators

from bp import FrozenMapping

IF_ANY = {"in the log": "if any"}
"""Metadata of a field that records leave out when it is empty: most messages show nothing."""


@frozen
class Usage:
    """Tokens that one inference took, as the provider counted them; 0 without a count.

    cost: in US dollars, None where no price is known. is_estimate: the provider gave no count, and the length of the
    texts was used instead.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    is_estimate: bool = False

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            cost,
            self.is_estimate or other.is_estimate,
        )


@frozen
class RequestedCall:
    """A call exactly as the model wrote it: its own id and name, and its arguments as text, whole or cut."""

    id: str
    name: str
    arguments: str = ""


@frozen
class Image:
    """A picture as bytes, in the format that `media_type` names, such as "image/png". Raises ValueError for none."""

    media_type: str = field(validator=validators.matches_re(r"image/[a-z0-9.+-]+"))
    content: bytes = field(validator=(validators.instance_of(bytes), validators.min_len(1)), repr=False)


@frozen
class ReasoningItem:
    """A part of an answer that its provider wants back as it came, as JSON: a record of reasoning, or other fields.

    `before_call` is the number of the call to which it belongs, counted from 0; None: it belongs to the text. `model`,
    with its server, wrote it; no other can read it.
    """

    content: str = field(validator=validators.instance_of(str))
    model: str = field(validator=validators.instance_of(str))
    before_call: int | None = None


@frozen
class UserMessage:
    """The text and the images of a user."""

    text: str
    images: tuple[Image, ...] = field(default=(), metadata=IF_ANY)


@frozen(cache_hash=True)  # in several events of a turn, and each is looked up more than once
class AssistantMessage:
    """The text of the model, and the calls that it asked for, in its order.

    `reasoning` is for users, `reasoning_items` are for the provider alone.
    """

    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    reasoning: str = ""
    reasoning_items: tuple[ReasoningItem, ...] = field(default=(), metadata=IF_ANY)


NOTHING: FrozenMapping[str, Any] = FrozenMapping()
_all_images = validators.deep_iterable(validators.instance_of(Image))


def _images(images: Iterable[Image]) -> tuple[Image, ...]:
    return tuple(images)


def frozen_mapping(items: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a mapping that is frozen, with all that it holds."""
    return items if isinstance(items, FrozenMapping) else FrozenMapping(items) if items else NOTHING


@frozen
class ToolResult:
    """The result of a call: text and images for the model, details for programs.

    Errors are content (S0 5.2): `is_error` tells the model and the loop that the call failed. `duration`: milliseconds
    that the call took (S3), 0 for one that never ran.
    """

    text: str
    is_error: bool = False
    images: tuple[Image, ...] = field(default=(), converter=_images, validator=_all_images, metadata=IF_ANY)
    details: Mapping[str, Any] = field(default=NOTHING, converter=frozen_mapping, metadata=IF_ANY)
    duration: float = field(default=0.0, eq=False, metadata=IF_ANY)


@frozen
class ToolMessage:
    """The answer to one call; it has a text and images, as messages of users do."""

    call_id: str
    result: ToolResult
    text = property(lambda self: self.result.text)
    images = property(lambda self: self.result.images)


def with_notices(text: str, images: Iterable[Image], why: str) -> str:
    """Return `text` with a line for each image that is not sent here, and why."""
    notices = (f"[{image.media_type}, {len(image.content):,} bytes: {why}]" for image in images)
    return "\n".join(part for part in (text, *notices) if part)


Message = UserMessage | AssistantMessage | ToolMessage

LONGEST_ID = 64
"""Characters of a call id that providers take."""


def unique_ids(requested: tuple[RequestedCall, ...], turn: int) -> Iterator[str]:
    """Return unique ids: the model's, unless missing, too long, or used before in this turn. Ours have nine letters
    and digits, the strictest form that a provider requires: `c0002p001`.
    """
    taken = set(map(attrgetter("id"), requested))
    seen: set[str] = set()
    for position, call in enumerate(requested):
        id = call.id
        if not id.strip() or len(id) > LONGEST_ID or id in seen:
            id = next(ours for number in count(position) if (ours := f"c{turn:04}p{number:03}") not in taken)
        taken.add(id)
        seen.add(id)
        yield id


NO_RESULT = "no result recorded: the conversation broke off while this call was open; its outcome is unknown"
NO_CALL = "[the result of a call that is not in this conversation]"


def with_calls_answered(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return a conversation that every provider takes: after a call comes its result, before all else.

    A call without a result gets an error, a result without its call becomes a message of the user; ids that are empty,
    too long, or there twice become ours, and empty answers are left out.
    """
    turns: list[list[Message]] = [[]]
    for message in messages:
        if isinstance(message, AssistantMessage):
            turns.append([])
        if message != AssistantMessage():
            turns[-1].append(message)
    return tuple(message for number, turn in enumerate(turns) for message in _answered(turn, number))


def _answered(turn: Sequence[Message], number: int) -> Iterator[Message]:
    """Yield an assistant message, the results of its calls, and the messages that follow."""
    others: list[Message] = []
    unanswered: list[tuple[str, str]] = []  # the ids of calls, as given and as kept
    for message in turn:
        if isinstance(message, AssistantMessage):  # the first message, if any
            ids = [*unique_ids(message.calls, number)]
            unanswered = [(call.id, id) for call, id in zip(message.calls, ids, strict=True)]
            yield evolve(message, calls=tuple(evolve(call, id=id) for call, id in zip(message.calls, ids, strict=True)))
        elif not isinstance(message, ToolMessage):
            others.append(message)
        elif asked := next((ids for ids in unanswered if ids[0] == message.call_id), None):
            unanswered.remove(asked)
            yield evolve(message, call_id=asked[1])
        else:
            others.append(UserMessage(f"{NO_CALL}\n{message.text}", message.images))
    yield from (ToolMessage(id, ToolResult(NO_RESULT, is_error=True)) for _, id in unanswered)
    yield from others


FailureReason = Literal["", "context_length_exceeded", "answer_too_long", "images_refused"]
"""Reasons for a missing answer to which the loop reacts; empty: any other reason."""
StopReason = Literal["stop", "tool_calls", "length", "content_filter", "incomplete"]
CUT_OFF: tuple[StopReason, ...] = ("length", "content_filter", "incomplete")
"""Stop reasons of an answer that was cut off; "incomplete": for a reason that is not known here."""


class Messages(Sequence[Message]):
    """The messages of a conversation up to now: its list only grows, so that this costs no copy of it."""

    __slots__ = ("_all", "_length")

    def __init__(self, growing: list[Message]) -> None:
        """Take the present items of `growing`, none of which may be changed or removed later."""
        self._all = growing
        self._length = len(growing)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(self._all, self._length)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._all[at] for at in range(*index.indices(self._length)))
        return self._all[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def shortened(text: str, most: int) -> str:
    """Return a text with at most `most` characters: its beginning, and a mark where more was."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: str, most: int) -> str:
    """Return a text as one line of at most `most` characters."""
    return shortened(" ".join(text.split()), most)


INCLUDED = "\n\n<file path="
"""Between a prompt as it was typed and each file that it includes."""


def typed(prompt: str) -> str:
    """Return a prompt as it was typed, in one line, without the files that it includes."""
    return " ".join(prompt.partition(INCLUDED)[0].split())


def without_middle(text: str, most: int, *, tail: float = 0.5) -> str:
    """Return at most `most` characters of a text, the part `tail` of them from its end, and how many are left out."""
    if len(text) <= most:
        return text
    last = int(most * tail)
    return f"{text[: most - last]} [... {len(text) - most} characters ...] {text[-last:]}"


_cut = partial(without_middle, most=4000)  # characters of one message that the summarizer is given


def transcript(messages: Iterable[Message]) -> str:
    """Return messages as one text, each after the name of its role."""
    return "\n\n".join(part for message in messages for part in _parts(message))


def _parts(message: Message) -> list[str]:
    match message:
        case UserMessage():
            return [f"USER: {_cut(message.text)}"]
        case AssistantMessage():
            said = [f"AGENT: {_cut(message.text)}"] if message.text.strip() else []
            return [
                *said,
                *(f"AGENT CALLS {call.name}: {_cut(call.arguments)}" for call in message.calls),
            ]
        case ToolMessage():
            return [f"RESULT{' (ERROR)' if message.result.is_error else ''}: {_cut(message.text)}"]
