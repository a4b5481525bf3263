"""Scripts in YAML: the steps of a scripted model as a file; every mistake is told with file, line and column."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from agent.models.model import ModelError
from agent.models.scripted import ScriptedAnswer, ScriptedCall, ScriptedModel, Step, delay, fail
from agent.vocabulary.messages import FailureReason, StopReason, Usage
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

STEP_KEYS = ("say", "call", "calls", "reasoning", "stop_reason", "usage", "delay", "error")
STOP_REASONS = get_args(StopReason)


class ScriptError(ModelError):
    """A script file that cannot be read: the message names file, line and column, and the nearest valid key."""


def load_script(path: str | Path) -> ScriptedModel:
    """Return the scripted model that the YAML file at `path` describes. Raises `ScriptError`.

    name: explorer                        # optional
    steps:
      - say: I look around.
        call: {tool: bash, arguments: {command: ls}}
      - calls:
          - {tool: read_file, arguments: {path: notes.txt}, id: mine}
          - {tool: bash, arguments: '{"command": "ec'}        # a text goes out as it is: a call that was cut off
        stop_reason: length               # stop, tool_calls, length, content_filter
        usage: {input_tokens: 120, output_tokens: 8}
      - say: Done.
        delay: 0.5                        # seconds
      - error: {message: overloaded, retryable: true, retry_after: 2}
    """
    try:
        script = read_yaml(Path(path)).mapping("steps", "name")
        steps = script.required("steps")
        name = script.get("name")
        return ScriptedModel([_step(step) for step in steps.items()], name.text() if name else Path(path).stem)
    except NodeError as error:
        raise ScriptError(f"{error}") from error
    except RecursionError as error:
        raise ScriptError(f"{path}: not a script: values are nested too deeply, or within themselves") from error


def _step(node: Node) -> Step:
    if isinstance(node.value, str):
        return node.text()
    node.mapping(*STEP_KEYS)
    seconds, error = node.get("delay"), node.get("error")
    step: Step = _answer(node) if error is None else _error(node, error)
    return step if seconds is None else delay(seconds.number(), step)


def _error(step: Node, error: Node) -> ModelError:
    beside = [key for key in STEP_KEYS[:-2] if step.get(key)]
    if beside:
        raise error.wrong(f"a step is an answer or an error; this one has {beside[0]!r} too")
    error.mapping("message", "retryable", "retry_after", "reason")
    reason = error.get("reason")
    return fail(
        error.required("message").text(),
        retryable=_optional(error.get("retryable"), Node.boolean, False),
        retry_after=_optional(error.get("retry_after"), Node.number, None),
        reason="" if reason is None else reason.one_of(get_args(FailureReason)),
    )


def _answer(node: Node) -> ScriptedAnswer:
    single, several = node.get("call"), node.get("calls")
    if not any(node.get(key) for key in ("say", "call", "calls", "reasoning", "stop_reason")):
        raise node.wrong("a step says or calls something, or fails: give 'say', 'call', 'calls' or 'error'")
    calls = [*([single] if single else []), *(several.items() if several else [])]
    stop_reason = node.get("stop_reason")
    return ScriptedAnswer(
        text=_optional(node.get("say"), Node.text, ""),
        calls=tuple(_call(call) for call in calls),
        reasoning=_optional(node.get("reasoning"), Node.text, ""),
        stop_reason=stop_reason.one_of(STOP_REASONS) if stop_reason else None,
        usage=_optional(node.get("usage"), _usage, Usage()),
    )


def _call(node: Node) -> ScriptedCall:
    node.mapping("tool", "arguments", "id")
    arguments = node.get("arguments")
    return ScriptedCall(
        tool=node.required("tool").text(),
        arguments="{}" if arguments is None else _argument_text(arguments),
        id=_optional(node.get("id"), Node.text, None),
    )


def _argument_text(node: Node) -> str:
    return node.text() if isinstance(node.value, str) else node.json()


def _usage(node: Node) -> Usage:
    node.mapping("input_tokens", "output_tokens")
    return Usage(
        input_tokens=_optional(node.get("input_tokens"), Node.count, 0),
        output_tokens=_optional(node.get("output_tokens"), Node.count, 0),
    )


def _optional(node: Node | None, read: Callable[[Node], Any], default: Any) -> Any:
    return default if node is None else read(node)
