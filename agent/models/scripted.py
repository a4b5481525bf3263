"""A model that answers by a script, in Python or in a YAML file: for demos, tests and experiments."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, get_args

import anyio
from attrs import evolve, field, frozen

from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.vocabulary.messages import AssistantMessage, FailureReason, RequestedCall, StopReason, Usage
from agent.vocabulary.yaml_nodes import Node, NodeError, Reader, fields, read_yaml


@frozen
class ScriptedCall:
    """A call of a script. `arguments`: JSON text, or any text for a cut-off or broken call; `id` None: numbered."""

    tool: str
    arguments: str = "{}"
    id: str | None = None

    def with_id(self, id: str) -> "ScriptedCall":
        """Return the same call under an id of its own."""
        return evolve(self, id=id)


@frozen
class ScriptedAnswer:
    """An answer of a script. `stop_reason` None: "tool_calls" if there are calls, else "stop"."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    reasoning: str = ""
    stop_reason: StopReason | None = None
    usage: Usage = field(factory=Usage)


@frozen
class Delayed:
    """A step after a delay in seconds."""

    seconds: float
    step: "Step"


Step = (
    str
    | Answer
    | ScriptedAnswer
    | ScriptedCall
    | Sequence[ScriptedCall]
    | Delayed
    | BaseException
    | Callable[[ModelRequest], "Step | Awaitable[Step]"]
)
"""A text, an answer, calls, a delay, an exception to raise, or a function (async or not) from the request to a step."""

QUICK = (str, Answer, ScriptedAnswer, ScriptedCall, tuple, list, Exception)
"""Steps that take no time. Of the others some are functions, which may wait, and some no mere errors: `SystemExit`."""


def answer(
    text: str = "",
    *calls: ScriptedCall,
    reasoning: str = "",
    stop_reason: StopReason | None = None,
    usage: Usage | None = None,
) -> ScriptedAnswer:
    """Return a step with a text and calls; `stop_reason="length"` makes it a cut-off answer."""
    return ScriptedAnswer(text, calls, reasoning, stop_reason, usage or Usage())


def call(tool: str, given: Mapping[str, object] | str | None = None, /, **arguments: object) -> ScriptedCall:
    """Return a call of a tool: `call("bash", command="ls")`.

    Arguments whose names are not identifiers are given as a mapping, and invalid JSON as text: `call("bash",
    '{"command": "l')`. Calls are numbered: call_1, call_2, ...; another id is given by `call("bash",
    command="ls").with_id("look")`.
    """
    text = given if isinstance(given, str) else json.dumps({**(given or {}), **arguments}, ensure_ascii=False)
    return ScriptedCall(tool, text)


def fail(
    message: str, *, retryable: bool = False, retry_after: float | None = None, reason: FailureReason = ""
) -> ModelError:
    """Return a step that raises ModelError; `retry_after` in seconds."""
    return ModelError(message, retryable=retryable, retry_after=retry_after, reason=reason)


def delay(seconds: float, step: Step) -> Delayed:
    """Return a step that waits `seconds` before `step`."""
    return Delayed(seconds, step)


class ScriptedModel:
    """A model that takes one step of its script for each request, in order.

    `name`: for the log. `requests`: those so far. A request after the last step raises `ModelError`.
    """

    def __init__(self, steps: Sequence[Step], name: str = "scripted") -> None:
        self.requests: list[ModelRequest] = []
        self.name = name
        self._steps = tuple(steps)
        self._call_numbers = count(1)
        self._skipped = 0

    def skip(self, requests: int) -> None:
        """Skip the steps that an earlier process answered; calls keep their numbers."""
        self._skipped = requests
        self._call_numbers = count(1 + sum(map(_unnamed_calls, self._steps[:requests])))

    @property
    def is_quick(self) -> bool:
        """True if the next answer comes without waiting."""
        at = self._skipped + len(self.requests)
        is_as_written = getattr(self.answer, "__func__", None) is ScriptedModel.answer  # else it may do anything
        return is_as_written and (at >= len(self._steps) or isinstance(self._steps[at], QUICK))

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the answer of the next step, streaming its text in a few pieces."""
        step = self._next_step(request)
        whole = await self._play(step, request)
        for piece in _pieces(whole.message):
            on_delta(piece)
        return whole

    def assert_complete(self) -> None:
        """Raise AssertionError that names the unused steps."""
        asked, steps = self._skipped + len(self.requests), self._steps
        if asked < len(steps):
            left = "; ".join(f"step {asked + n}: {_summary(step)}" for n, step in enumerate(steps[asked:], start=1))
            raise AssertionError(f"{len(steps) - asked} of {len(steps)} steps were never asked for: {left}")

    def _next_step(self, request: ModelRequest) -> Step:
        if not self.requests:
            self._call_numbers = count(max(next(self._call_numbers), 1 + _last_number(request)))
        self.requests.append(request)
        number = self._skipped + len(self.requests)
        if number > len(self._steps):
            last = request.messages[-1] if request.messages else None
            after = "no message at all" if last is None else f"{type(last).__name__} {last.text!r:.100}"
            raise ModelError(
                f"the script of {len(self._steps)} steps is used up; request {number} asked after {after}; "
                "add a step, or end the run before"
            )
        return self._steps[number - 1]

    async def _play(self, step: Step, request: ModelRequest) -> Answer:
        while (scripted := _as_answer(step)) is None:
            match step:
                case Answer():
                    return step
                case BaseException():
                    raise step
                case Delayed():
                    await anyio.sleep(step.seconds)
                    step = step.step
                case _:
                    step = await _ask(step, request)
        calls = tuple(
            RequestedCall(f"call_{next(self._call_numbers)}" if call.id is None else call.id, call.tool, call.arguments)
            for call in scripted.calls
        )
        stop_reason = scripted.stop_reason or ("tool_calls" if calls else "stop")
        return Answer(AssistantMessage(scripted.text, calls, scripted.reasoning), stop_reason, scripted.usage)


async def _ask(step: object, request: ModelRequest) -> Step:
    if not callable(step):
        raise TypeError(
            f"a step of the script is {step!r}; give a text, answer(...), call(...), a list of calls, "
            "delay(...), fail(...), an exception, or a function of the request"
        )
    made = step(request)
    next_step: Step = await made if inspect.isawaitable(made) else made
    return next_step


def _as_answer(step: object) -> ScriptedAnswer | None:
    match step:
        case ScriptedAnswer():
            return step
        case str():
            return ScriptedAnswer(step)
        case ScriptedCall():
            return ScriptedAnswer(calls=(step,))
        case Sequence() if all(isinstance(inner, ScriptedCall) for inner in step):
            return ScriptedAnswer(calls=tuple(step))
    return None


def _last_number(request: ModelRequest) -> int:
    """Return the number of the last numbered call in a request's conversation."""
    ids = [call.id for message in request.messages for call in getattr(message, "calls", ())]
    return max((int(found[1]) for found in map(re.compile(r"call_(\d+)").fullmatch, ids) if found), default=0)


def _unnamed_calls(step: Step) -> int:
    """Return the number of calls without an id in a step, as far as known from the script."""
    while isinstance(step, Delayed):
        step = step.step
    scripted = _as_answer(step)
    return 0 if scripted is None else sum(call.id is None for call in scripted.calls)


def _pieces(message: AssistantMessage) -> list[Delta]:
    """Cut reasoning, text and arguments into at most four pieces each, as a server would stream them."""
    calls = enumerate(message.calls, start=1)
    said = [Delta(message.reasoning, "reasoning"), Delta(message.text)]
    said += [Delta(call.arguments, "arguments", number, call.name) for number, call in calls]
    return [
        Delta(whole.text[start : start + size], whole.kind, whole.number, whole.tool)
        for whole in said
        for size in [max(1, -(-len(whole.text) // 4))]
        for start in range(0, len(whole.text), size)
    ]


def _summary(step: Step) -> str:
    match step:
        case ScriptedAnswer(text=text, calls=calls):
            return ", ".join([*([repr(text)] if text else []), *(f"{call.tool} {call.arguments}" for call in calls)])
        case ScriptedCall():
            return f"{step.tool} {step.arguments}"
        case _:
            return f"{step!r:.100}"


# Scripts in files


class ScriptError(ModelError):
    """A script file is invalid: the message names file, line and column, and the nearest valid key."""


def load_script(path: str | Path) -> ScriptedModel:
    """Return the scripted model that the YAML file at `path` describes. Raises `ScriptError`.

    name: explorer                        # optional
    steps:
      - say: I look around.
        call: {tool: bash, arguments: {command: ls}}
      - calls:
          - {tool: read_file, arguments: {path: notes.txt}, id: mine}
          - {tool: bash, arguments: '{"command": "ec'}        # a text is sent unchanged: a call that was cut off
        stop_reason: length               # stop, tool_calls, length, content_filter
        usage: {input_tokens: 120, output_tokens: 8}
      - say: Done.
        delay: 0.5                        # seconds
      - error: {message: overloaded, retryable: true, retry_after: 2}
    """
    try:
        script = read_yaml(Path(path)).mapping("steps", "name")
        steps = script.required("steps")
        return ScriptedModel([_step(step) for step in steps.items()], script.read("name", Node.text, Path(path).stem))
    except NodeError as error:
        raise ScriptError(f"{error}") from error
    except RecursionError as error:
        raise ScriptError(f"{path}: not a script: values are nested too deeply, or within themselves") from error


def _step(node: Node) -> Step:
    if isinstance(node.value, str):
        return node.text()
    given = fields(node, STEP)
    seconds, error = given.pop("delay", None), given.pop("error", None)
    if error is not None and given:
        raise node.required("error").wrong(f"a step is an answer or an error; this one has {next(iter(given))!r} too")
    step = error or _read_answer(node, given)
    return step if seconds is None else delay(seconds, step)


def _read_answer(node: Node, given: dict[str, Any]) -> ScriptedAnswer:
    if not given.keys() - {"usage"}:
        raise node.wrong("a step says or calls something, or fails: give 'say', 'call', 'calls' or 'error'")
    calls = (*given.pop("call", ()), *given.pop("calls", ()))
    return ScriptedAnswer(given.pop("say", ""), calls, **given)


def _call(node: Node) -> ScriptedCall:
    return ScriptedCall(**fields(node, CALL, "tool"))


CALL: Mapping[str, Reader] = {
    "tool": Node.text,
    "arguments": lambda node: node.text() if isinstance(node.value, str) else node.json(),
    "id": Node.text,
}
ERROR: Mapping[str, Reader] = {
    "message": Node.text,
    "retryable": Node.boolean,
    "retry_after": Node.number,
    "reason": lambda node: node.one_of(get_args(FailureReason)),
}
USAGE: Mapping[str, Reader] = {"input_tokens": Node.count, "output_tokens": Node.count}
STEP: Mapping[str, Reader] = {
    "say": Node.text,
    "call": lambda node: (_call(node),),
    "calls": lambda node: tuple(map(_call, node.items())),
    "reasoning": Node.text,
    "stop_reason": lambda node: node.one_of(get_args(StopReason)),
    "usage": lambda node: Usage(**fields(node, USAGE)),
    "delay": Node.number,
    "error": lambda node: fail(**fields(node, ERROR, "message")),
}
"""The keys of a step, and what each holds."""
