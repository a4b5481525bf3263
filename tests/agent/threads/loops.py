"""Programs of b-threads of the loop without the world: what would come from outside is posted by the test."""

from typing import Any

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, AnswerCommitted, InferenceFinished, PromptGiven, ToolFinished
from agent.vocabulary.messages import AssistantMessage, RequestedCall, ToolResult
from bp import BProgram, BThread, Event
from constitution import Action

A = ToolCall("a", "note", {"text": "a"})
B = ToolCall("b", "note", {"text": "b"})
FLAWED = ToolCall("f", "note", flaw="truncated: the arguments break off")


def action(call: ToolCall) -> Action:
    return Action(call.tool, call.category, "/w")


def described(call: ToolCall, **options: Any) -> ActionDescribed:
    return ActionDescribed(call, action(call), **options)


def message(text: str, *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(text, tuple(RequestedCall(call.id, call.tool) for call in calls))


def drafted(text: str = "", *calls: ToolCall, draft: str = "d0") -> InferenceFinished:
    return InferenceFinished(draft, message(text, *calls), calls)


def committed(*calls: ToolCall, text: str = "") -> AnswerCommitted:
    return AnswerCommitted("d0", message(text, *calls), calls)


def finished(call: ToolCall, result: str = "done", **options: Any) -> ToolFinished:
    return ToolFinished(call, ToolResult(result, **options))


class Loop:
    """A program, and the names of what happened in it."""

    def __init__(self, *bthreads: BThread) -> None:
        self.program = BProgram(*bthreads)
        self.events: list[Event] = [step.event for step in self.program.run()]

    def hear(self, *events: Event) -> list[str]:
        """Post events one after the other; return what happened, each event as `name` or `name:call`."""
        before = len(self.events)
        for event in events or (PromptGiven("Go"),):
            self.program.post(event)
            self.events.extend(step.event for step in self.program.run())
        return [told(event) for event in self.events[before:]]

    @property
    def story(self) -> list[str]:
        """What happened from the beginning, named as by `hear`."""
        return [told(event) for event in self.events]

    def can(self, event: Event) -> bool:
        """Tell whether nobody blocks or refuses `event` now."""
        return not self.program.blockers(event)

    def reasons(self, event: Event) -> list[str]:
        """Return why `event` is refused, as texts."""
        return [str(blocker.because) for blocker in self.program.blockers(event)]


def told(event: Event) -> str:
    call = getattr(event, "call", None)
    if call is None:
        return event.name
    return f"{event.name}:{call.id if isinstance(call, ToolCall) else call}"
