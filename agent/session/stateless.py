"""The loop as one function that keeps nothing: messages in, the same list of messages out, longer (S0 5.1)."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
from attrs import evolve, frozen

from agent.models.model import Delta, Model
from agent.presets import preset_named
from agent.presets.preset import Preset
from agent.projections.narration import StreamEvent
from agent.session.agent import Agent, Run
from agent.tools.definition import Tool
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import AnswerCommitted, CallAnswered, RunContinued, RunEnded
from agent.vocabulary.messages import Message, UserMessage, with_calls_answered
from bp import Step

LIMIT_REACHED = "Maximum iteration limit reached"
MESSAGE_NEWS = AnswerCommitted | CallAnswered | RunContinued | RunEnded  # the events that add to the conversation


@frozen
class LoopConfig:
    """The settings of the loop: at most `max_iterations` answers of the model, by the rules of `preset`."""

    max_iterations: int = 20
    preset: str | Preset = "workspace"


async def agent_loop(
    messages: list[Message],
    tools: Sequence[Tool],
    system_prompt: str,
    model: Model,
    config: LoopConfig = LoopConfig(),
    signal: anyio.Event | None = None,
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> list[Message]:
    """Answer the last of `messages`, which is a `UserMessage`; extend the list as it happens, and return it.

    Open calls before it are answered "no result recorded" first, in the list.

    What tools hold (terminal, list of tasks, processes) they keep for the next call: make tools for each conversation.
    Setting `signal` aborts: the list is returned with every call answered. `on_event` gets `{"type": "stream",
    "event": {"type": "text", "text": ...}}`, the same with "reasoning", or with "arguments" of a call (its "number" in
    the answer and its "tool"), `{"type": "toolResult", "toolResult": {...}}` and, at the limit,
    `{"type": "error", "message": "Maximum iteration limit reached"}`.

    Raises ValueError when no prompt comes last, RunError when the model failed or `on_event` did.
    """
    if not messages or not isinstance(messages[-1], UserMessage):
        raise ValueError("the last message is the prompt; it must be a UserMessage")
    if signal is not None and signal.is_set():
        return messages
    messages[:] = with_calls_answered(messages)
    chosen = preset_named(config.preset) if isinstance(config.preset, str) else config.preset
    listener = _Listener(messages, on_event)
    with Agent(
        model,
        tools,
        preset=evolve(chosen, max_iterations=config.max_iterations),
        system_prompt=system_prompt,
        history=messages[:-1],
        on_step=lambda step: listener.hear(step, agent),
        on_event=listener.stream,
    ) as agent:
        agent.has_own_state = False
        run = await _run_until(agent, messages[-1], signal)
    if run.status == "failed":
        raise RunError(run.text)
    return messages


async def _run_until(agent: Agent, prompt: UserMessage, signal: anyio.Event | None) -> Run:
    if signal is None:
        return await agent.run(prompt)
    async with agent.start(prompt) as run, anyio.create_task_group() as tasks:
        tasks.start_soon(_abort_on, signal, run)
        async for _ in run:
            pass
        tasks.cancel_scope.cancel()
    return run


async def _abort_on(signal: anyio.Event, run: Run) -> None:
    await signal.wait()
    run.abort()


class _Listener:
    """Passes events to `on_event` in the form of S0."""

    def __init__(self, messages: list[Message], on_event: Callable[[dict[str, Any]], None] | None) -> None:
        self._messages = messages
        self._tell = on_event or (lambda _: None)

    def stream(self, event: StreamEvent) -> None:
        match event.piece:
            case Delta(text, "arguments" as kind, number, tool):
                self._tell({"type": "stream", "event": {"type": kind, "number": number, "tool": tool, "text": text}})
            case Delta(text, kind):
                self._tell({"type": "stream", "event": {"type": kind, "text": text}})

    def hear(self, step: Step, agent: Agent) -> None:
        if isinstance(step.event, MESSAGE_NEWS):
            self._messages.extend(agent.messages[len(self._messages) :])
        match step.event:
            case CallAnswered(call=call, result=result):
                content = [{"type": "text", "text": result.text}]
                told = {"role": "toolResult", "toolCallId": call, "content": content, "isError": result.is_error}
                self._tell({"type": "toolResult", "toolResult": told})
            case RunEnded(status="limit"):
                self._tell({"type": "error", "message": LIMIT_REACHED})
            case _:
                pass
