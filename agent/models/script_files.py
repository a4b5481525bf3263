"""Scripts in YAML: the steps of a scripted model as a file; every error names file, line and column."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from agent.models.model import ModelError
from agent.models.scripted import ScriptedAnswer, ScriptedCall, ScriptedModel, Step, delay, fail
from agent.vocabulary.messages import FailureReason, StopReason, Usage
from agent.vocabulary.yaml_nodes import Node, NodeError, Reader, fields, read_yaml


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
    step = error or _answer(node, given)
    return step if seconds is None else delay(seconds, step)


def _answer(node: Node, given: dict[str, Any]) -> ScriptedAnswer:
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
