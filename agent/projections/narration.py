"""A run as the event stream of S2: starts and ends of agent, turns, messages and tools.

    agent_start turn* agent_end
    turn:    turn_start (message | tool)* turn_end
    message: message_start message_update* message_end
    tool:    tool_execution_start tool_execution_update* tool_execution_end

A turn is one answer of the model with its calls. Messages are those of the conversation, the prompt first; an answer
that breaks off, or is not committed, ends with an `error` and is in no later list of messages: the model never sees it
again.
"""

from collections.abc import Iterator
from typing import Literal

from attrs import evolve, frozen

from agent.models.model import Delta
from agent.projections.conversation import Conversation
from agent.threads.core import OWN
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    DraftsRefused,
    HistoryGiven,
    InferenceFailed,
    InferenceRequested,
    PromptGiven,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage
from bp import Event

Type = Literal[
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "turn_end",
    "agent_end",
]


@frozen
class StreamEvent:
    """One event of a run for a user interface; fields that its type does not use are empty.

    message: the message that starts, grows or ends; of a turn its answer. call: the call that runs. text: new text of a
    message or of a tool's output. piece: what is new in a message: text, reasoning, or arguments of a call. result: the
    answer to the call. messages: of a turn its results, at the end of the agent all that are new. error: why an answer
    was not committed.
    """

    type: Type
    message: Message | None = None
    call: ToolCall | None = None
    text: str = ""
    result: ToolMessage | None = None
    messages: tuple[Message, ...] = ()
    error: str = ""
    piece: Delta | None = None


def _grown(message: AssistantMessage, piece: Delta) -> AssistantMessage:
    """Return a message with more of its text, its reasoning, or a call."""
    if piece.kind == "text":
        return evolve(message, text=message.text + piece.text)
    if piece.kind == "reasoning":
        return evolve(message, reasoning=message.reasoning + piece.text)
    calls = list(message.calls) + [RequestedCall("", "")] * (piece.number - len(message.calls))
    before = calls[piece.number - 1]
    calls[piece.number - 1] = RequestedCall(before.id, piece.tool, before.arguments + piece.text)
    return evolve(message, calls=tuple(calls))


class Narration:
    """Translates the events of one run, and the pieces between them, into the events of S2."""

    def __init__(self) -> None:
        """Begin before the run."""
        self._conversation = Conversation()
        self._told = 0  # messages of the conversation that were narrated, or that are older than the run
        self._first = 0  # the index of the first new one
        self._draft: AssistantMessage | None = None  # the answer received so far; None when none is under way
        self._turn: list[Message] | None = None  # the answer of the turn, then the results
        self._calls: dict[str, ToolCall] = {}

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """Return the messages that the run added to the conversation so far."""
        return self._conversation.messages[self._first :]

    def tell(self, event: Event) -> Iterator[StreamEvent]:
        """Record an event of the run, and return its narration."""
        self._conversation.fold(event)
        match event:
            case HistoryGiven():
                self._told = self._first = len(self._conversation.messages)
            case PromptGiven():
                yield StreamEvent("agent_start")
                yield from self._begin_turn()
                yield from self._new_messages()
            case InferenceRequested() if event.draft == OWN:
                yield from self._begin_turn()
                yield from self._new_messages()
            case InferenceFailed() | DraftsRefused():
                yield from self._break_off(getattr(event, "error", "every draft was refused"))
            case AnswerCommitted():
                yield from self._answered(event)
            case ToolStarted():
                yield StreamEvent("tool_execution_start", call=event.call)
            case CallAnswered():
                yield from self._call_answered(event)
            case RunEnded():
                yield from self._break_off(event.reason)
                yield from self._end_turn()
                yield from self._new_messages()
                yield StreamEvent("agent_end", messages=self.new_messages)
            case _:
                return

    def piece(self, piece: Delta) -> Iterator[StreamEvent]:
        """Take a piece of the model's answer."""
        if self._draft is None:
            self._draft = AssistantMessage()
            yield StreamEvent("message_start", self._draft)
        self._draft = _grown(self._draft, piece)
        text = piece.text if piece.kind == "text" else ""
        yield StreamEvent("message_update", self._draft, text=text, piece=piece)

    def output(self, call: ToolCall, piece: str) -> Iterator[StreamEvent]:
        """Take a piece of a tool's output."""
        yield StreamEvent("tool_execution_update", call=call, text=piece)

    def _begin_turn(self) -> Iterator[StreamEvent]:
        if self._turn and isinstance(self._turn[0], AssistantMessage):
            yield from self._end_turn()
        if self._turn is None:
            self._turn = []
            yield StreamEvent("turn_start")

    def _end_turn(self) -> Iterator[StreamEvent]:
        if self._turn is not None:
            answer = self._turn[0] if self._turn else None
            yield StreamEvent("turn_end", answer, messages=tuple(self._turn[1:]))
        self._turn = None

    def _new_messages(self) -> Iterator[StreamEvent]:
        for message in self._conversation.messages[self._told :]:
            yield StreamEvent("message_start", message)
            yield StreamEvent("message_end", message)
        self._told = len(self._conversation.messages)

    def _answered(self, answer: AnswerCommitted) -> Iterator[StreamEvent]:
        self._calls = {call.id: call for call in answer.calls}
        if self._told == len(self._conversation.messages):
            yield from self._break_off("the answer is empty")
            return
        message = self._conversation.messages[-1]
        if self._draft is None:
            yield StreamEvent("message_start", message)
        self._draft, self._told = None, self._told + 1
        self._turn = [message]
        yield StreamEvent("message_end", message)

    def _break_off(self, error: str) -> Iterator[StreamEvent]:
        if self._draft is not None:
            yield StreamEvent("message_end", self._draft, error=error)
        self._draft = None

    def _call_answered(self, answered: CallAnswered) -> Iterator[StreamEvent]:
        message = self._conversation.messages[-1]
        assert isinstance(message, ToolMessage)
        if self._turn is not None:
            self._turn.append(message)
        yield StreamEvent("tool_execution_end", call=self._calls.get(answered.call), result=message)
        yield from self._new_messages()
