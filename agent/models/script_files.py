"""Scripts in YAML: the steps of a scripted model as a file; every mistake is told with file, line and column."""

from pathlib import Path
from typing import get_args

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
        return ScriptedModel([_step(step) for step in steps.items()], script.read("name", Node.text, Path(path).stem))
    except NodeError as error:
        raise ScriptError(f"{error}") from error
    except RecursionError as error:
        raise ScriptError(f"{path}: not a script: values are nested too deeply, or within themselves") from error


def _step(node: Node) -> Step:
    if isinstance(node.value, str):
        return node.text()
    node.mapping(*STEP_KEYS)
    step: Step = node.read("error", lambda error: _error(node, error), None) or _answer(node)
    return node.read("delay", lambda seconds: delay(seconds.number(), step), step)


def _error(step: Node, error: Node) -> ModelError:
    beside = [key for key in STEP_KEYS[:-2] if step.get(key)]
    if beside:
        raise error.wrong(f"a step is an answer or an error; this one has {beside[0]!r} too")
    error.mapping("message", "retryable", "retry_after", "reason")
    return fail(
        error.required("message").text(),
        retryable=error.read("retryable", Node.boolean, False),
        retry_after=error.read("retry_after", Node.number, None),
        reason=error.read("reason", lambda reason: reason.one_of(get_args(FailureReason)), ""),
    )


def _answer(node: Node) -> ScriptedAnswer:
    if not any(node.get(key) for key in ("say", "call", "calls", "reasoning", "stop_reason")):
        raise node.wrong("a step says or calls something, or fails: give 'say', 'call', 'calls' or 'error'")
    calls = node.read("call", lambda single: [single], []) + node.read("calls", lambda several: [*several.items()], [])
    return ScriptedAnswer(
        text=node.read("say", Node.text, ""),
        calls=tuple(_call(call) for call in calls),
        reasoning=node.read("reasoning", Node.text, ""),
        stop_reason=node.read("stop_reason", lambda reason: reason.one_of(STOP_REASONS), None),
        usage=node.read("usage", _usage, Usage()),
    )


def _call(node: Node) -> ScriptedCall:
    node.mapping("tool", "arguments", "id")
    return ScriptedCall(
        tool=node.required("tool").text(),
        arguments=node.read("arguments", _argument_text, "{}"),
        id=node.read("id", Node.text, None),
    )


def _argument_text(node: Node) -> str:
    return node.text() if isinstance(node.value, str) else node.json()


def _usage(node: Node) -> Usage:
    node.mapping("input_tokens", "output_tokens")
    return Usage(
        input_tokens=node.read("input_tokens", Node.count, 0),
        output_tokens=node.read("output_tokens", Node.count, 0),
    )
