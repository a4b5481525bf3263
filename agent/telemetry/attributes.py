"""What the records of a run say as attributes of spans.

Names that begin with `gen_ai.` and `error.` are those of the GenAI semantic conventions of OpenTelemetry; what these
have no word for (who refused, and why) begins with `bpagent.`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "Attributes",
    "finished_inference",
    "finished_tool",
    "refusal_attributes",
    "refusals_attributes",
    "started_tool",
    "used",
]

Attributes = dict[str, str | int | float | bool | Sequence[str]]
Record = Mapping[str, Any]


NAMES_OF_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cost": "bpagent.cost",
}
"""What was used: tokens, and US dollars."""


def finished_inference(data: Record) -> Attributes:
    """Return how an inference ended, and what it took; where nobody counted, there is no number."""
    finish_reasons: Attributes = {}
    if data.get("stop_reason"):
        finish_reasons = {"gen_ai.response.finish_reasons": [str(data["stop_reason"])]}
    return {**finish_reasons, **used(data.get("usage") or {})}


def used(usage: Mapping[str, Any]) -> Attributes:
    """Return tokens and cost, as far as they are known."""
    return {name: usage[key] for key, name in NAMES_OF_USAGE.items() if usage.get(key)}


def started_tool(call: Record, *, content: bool) -> Attributes:
    """Return which tool a call is for; its arguments only when content is wanted."""
    named: Attributes = {"gen_ai.tool.name": str(call.get("tool")), "gen_ai.tool.call.id": str(call.get("id"))}
    shown = {"gen_ai.tool.call.arguments": _json(call.get("arguments", {}))} if content else {}
    return {**named, "gen_ai.tool.type": "function", **shown}


def finished_tool(data: Record, *, content: bool) -> Attributes:
    """Return how a tool ended; its result only when content is wanted."""
    failed = {"error.type": "tool_error"} if data.get("is_error") else {}
    shown = {"gen_ai.tool.call.result": str(data.get("result"))} if content else {}
    return {**failed, **shown}


def refusals_attributes(refusals: Sequence[Record], *, content: bool) -> Attributes:
    """Return who refused, and why, in the same order; evidence, which quotes the call, only when content is wanted."""
    return {
        "bpagent.refused_by": [str(refusal.get("bthread")) for refusal in refusals],
        "bpagent.because": [_because(refusal, content=content) for refusal in refusals],
    }


def refusal_attributes(refusal: Record, *, content: bool) -> Attributes:
    """Return one refusal: the b-thread, its reason, and the rule of the constitution where there is one."""
    why = _because(refusal, content=content)
    named: Attributes = {"bpagent.bthread": str(refusal.get("bthread")), "bpagent.because": why}
    rule = _verdict(refusal.get("because")).get("rule")
    return {**named, "bpagent.rule": str(rule)} if rule else named


def _because(refusal: Record, *, content: bool) -> str:
    """Return a reason: a text as it is, a value whole or in a few words that quote nothing."""
    because = refusal.get("because")
    if isinstance(because, str):
        return because
    return _json(because) if content or not isinstance(because, Mapping) else _in_few_words(because)


def _in_few_words(because: Record) -> str:
    verdict = _verdict(because)
    words = [because.get("reason"), verdict.get("level"), verdict.get("rule")]
    known = [str(word) for word in words if word]
    return ": ".join(known) or str(because.get("text", "")).partition(":")[0]


def _verdict(because: object) -> Record:
    """Return the verdict in a reason, or what stands in its place; nothing for a reason that has none."""
    if not isinstance(because, Mapping):
        return {}
    verdict = because.get("verdict", because)
    return verdict if isinstance(verdict, Mapping) else {}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
