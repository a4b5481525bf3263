"""Spans for OpenTelemetry: a run is a trace, in the names of the GenAI semantic conventions (extra `otel`)."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.log.reading import RecordedRun
from agent.vocabulary.encoding import to_record
from agent.vocabulary.errors import AgentError
from bp import Step

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Span,
        SpanKind,
        Status,
        StatusCode,
        Tracer,
        TracerProvider,
        get_tracer,
        set_span_in_context,
    )
except ImportError as error:
    raise AgentError("tracing needs OpenTelemetry: pip install 'bpagent[otel]'") from error

Attributes = dict[str, str | int | float | bool | Sequence[str]]
Record = Mapping[str, Any]


NAMES_OF_USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cost": "bpagent.cost",
}
"""The attributes of usage: tokens, and US dollars."""


def finished_inference(data: Record) -> Attributes:
    """Return how an inference ended, and its usage; a number that the model did not report is left out."""
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


Key = tuple[str, str]

WENT_WRONG = frozenset({"failed", "doom_loop", "aborted"})
"""The statuses of a run that did not do what it was asked for."""

NO_NEWS = frozenset({"history_given", "drafts_settled", "action_described"})
"""Records that every call or turn has and that say nothing about it that its spans do not."""


class Spans:
    """Spans while they are open. Take each record in order, at its moment (nanoseconds since 1970)."""

    def __init__(self, tracer: Tracer, common: Attributes, run: Attributes, *, agent: str, content: bool) -> None:
        """Make spans with `tracer`; `common` stands in each that asks a model, `run` in each `invoke_agent`."""
        self._tracer = tracer
        self._common, self._of_run = common, run
        self._agent = agent
        self._content = content
        self._run: Span | None = None
        self._open: dict[Key, Span] = {}
        self._calls: dict[str, Record] = {}
        self._used: dict[str, float] = {}
        self._takers: dict[str, Callable[[Record, int], None]] = {
            "prompt_given": self._begin_run,
            "inference_requested": self._begin_inference,
            "inference_finished": self._end_inference,
            "inference_failed": self._end_failed_inference,
            "summary_requested": self._begin_inference,
            "summary_finished": self._end_inference,
            "summary_failed": self._end_failed_inference,
            "answer_committed": self._learn_calls,
            "proposed_action": self._begin_gate,
            "gate_approved": self._end_gate,
            "gate_rejected": self._end_gate,
            "call_answered": self._end_call,
            "tool_started": self._begin_tool,
            "tool_finished": self._end_tool,
            "run_ended": self._end_run,
        }

    def take(self, record: Record, now: int) -> None:
        """Take a record into account; kinds that are not known here are events of the run, or of the gate."""
        taker = self._takers.get(record["name"])
        if taker is not None:
            taker(record, now)
        elif self._run is not None and record["name"] not in NO_NEWS:
            self._tell(record, now)

    def close(self, now: int) -> None:
        """End the spans that are open: the run broke off, or no record tells how it ended."""
        if self._run is not None:
            self._run.set_status(Status(StatusCode.ERROR, "broke off"))
            self._run.set_attribute("error.type", "broke_off")
            self._end_all(now)

    # The run.

    def _begin_run(self, record: Record, now: int) -> None:
        self.close(now)
        named: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._agent}
        self._run = self._tracer.start_span(
            f"invoke_agent {self._agent}", attributes={**named, **self._common, **self._of_run}, start_time=now
        )

    def _end_run(self, record: Record, now: int) -> None:
        if self._run is None:
            return
        data = record["data"]
        status = str(data.get("status"))
        how: Attributes = {"bpagent.status": status, "bpagent.reason": str(data.get("reason"))}
        self._run.set_attributes({**how, **used(self._used)})
        self._tell_refusals(self._run, record, now)
        if status in WENT_WRONG:
            why = data.get("text") if status == "failed" else None  # other last words may be a person's
            self._run.set_attribute("error.type", str(data.get("reason")))
            self._run.set_status(Status(StatusCode.ERROR, str(why or data.get("reason"))))
        self._end_all(now)

    def _end_all(self, now: int) -> None:
        for span in (*self._open.values(), *((self._run,) if self._run else ())):
            span.end(end_time=now)
        self._run = None
        self._open, self._calls, self._used = {}, {}, {}

    def _tell(self, record: Record, now: int) -> None:
        """Tell of anything else as an event of the span that it is about."""
        data = record["data"]
        plain = {key: value for key, value in data.items() if isinstance(value, bool | int | float)}
        about = self._open.get(("gate", str(data.get("call"))), self._run)
        assert about is not None
        about.add_event(f"bpagent.{record['name']}", plain, timestamp=now)
        self._tell_refusals(about, record, now)

    # An inference.

    def _begin_inference(self, record: Record, now: int) -> None:
        data = record["data"]
        ours: Attributes = {f"bpagent.{name}": data[name] for name in ("draft", "role") if name in data}
        said: Attributes = {"gen_ai.operation.name": "chat", **self._common, **ours}
        model = self._common.get("gen_ai.request.model", "")
        self._begin(_inference_of(data), f"chat {model}".strip(), said, now, SpanKind.CLIENT)

    def _end_inference(self, record: Record, now: int) -> None:
        data = record["data"]
        for name, amount in (data.get("usage") or {}).items():
            self._used[name] = self._used.get(name, 0) + (amount or 0)
        self._end(_inference_of(data), finished_inference(data), now)

    def _end_failed_inference(self, record: Record, now: int) -> None:
        data = record["data"]
        said: Attributes = {"error.type": "inference_failed", "bpagent.retryable": bool(data.get("retryable"))}
        self._end(_inference_of(data), said, now, error=str(data.get("error")))

    # A call.

    def _learn_calls(self, record: Record, now: int) -> None:
        self._calls = {call["id"]: call for call in record["data"].get("calls", ())}

    def _begin_gate(self, record: Record, now: int) -> None:
        call = record["data"]["call"]
        self._calls[call["id"]] = call
        self._begin(("gate", call["id"]), f"gate {call['tool']}", self._of_call(call["id"]), now)

    def _end_gate(self, record: Record, now: int) -> None:
        key = ("gate", record["data"]["call"])
        decision = record["name"].removeprefix("gate_")
        if key in self._open:
            self._tell_refusals(self._open[key], record, now)
        self._end(key, {"bpagent.decision": decision}, now)

    def _end_call(self, record: Record, now: int) -> None:
        """Take the answer to a call: its refusals, when it never came to the gate, or got no further."""
        data = record["data"]
        key = ("gate", data["call"])
        if record.get("refusals") and key not in self._open:
            self._begin(key, f"gate {self._tool_of(data['call'])}", self._of_call(data["call"]), now)
        if key in self._open:
            self._tell_refusals(self._open[key], record, now)
            self._end(key, {"bpagent.decision": str(data.get("outcome"))}, now)

    def _begin_tool(self, record: Record, now: int) -> None:
        id = record["data"]["call"]
        said: Attributes = {"gen_ai.operation.name": "execute_tool", **self._of_call(id)}
        self._begin(("tool", id), f"execute_tool {self._tool_of(id)}", said, now)

    def _end_tool(self, record: Record, now: int) -> None:
        data = record["data"]
        error = "the tool says that it failed" if data.get("is_error") else None
        self._end(("tool", data["call"]), finished_tool(data, content=self._content), now, error=error)

    def _of_call(self, id: str) -> Attributes:
        return started_tool({"id": id, **self._calls.get(id, {})}, content=self._content)

    def _tool_of(self, id: str) -> str:
        return str(self._calls.get(id, {}).get("tool", "unknown"))

    # Any span below the run.

    def _begin(self, key: Key, name: str, said: Attributes, now: int, kind: SpanKind = SpanKind.INTERNAL) -> None:
        if self._run is not None:
            below: Context = set_span_in_context(self._run, Context())
            self._open[key] = self._tracer.start_span(name, below, kind, said, start_time=now)

    def _end(self, key: Key, said: Attributes, now: int, *, error: str | None = None) -> None:
        span = self._open.pop(key, None)
        if span is not None:
            span.set_attributes(said)
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, error))
            span.end(end_time=now)

    def _tell_refusals(self, span: Span, record: Record, now: int) -> None:
        """Write the refusals that a record answers on `span`: as attributes, and as one event each."""
        refusals = record.get("refusals")
        if refusals:
            span.set_attributes(refusals_attributes(refusals, content=self._content))
            for refusal in refusals:
                said = refusal_attributes(refusal, content=self._content)
                span.add_event("bpagent.refusal", said, timestamp=now)


def _inference_of(data: Record) -> Key:
    """Return which inference a record is about: that of a draft, or the one of a summary."""
    return ("chat", str(data.get("draft", "summary")))


NAME = "bpagent"
SECOND, MILLISECOND, MICROSECOND = 10**9, 10**6, 10**3  # nanoseconds

AGENT = "bpagent"


class Tracing:
    """A listener that makes spans of the steps of an agent: give it as `on_step`. One for each agent.

    `model` names the model, `provider` who runs it, in the words of the conventions; `agent` names the agent. The spans
    go to `tracer_provider`, by default to the one that the program has set up. With `content` the arguments and results
    of tools are told, which may hold secrets. Prompts and answers never are. As a context manager it ends what a run
    that broke off left open.
    """

    def __init__(
        self,
        *,
        model: str,
        provider: str = "openai",
        agent: str = AGENT,
        tracer_provider: TracerProvider | None = None,
        content: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Make a listener; `attributes` stand in each run's span besides its own."""
        common: Attributes = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        tracer = get_tracer(NAME, tracer_provider=tracer_provider)
        self._spans = Spans(tracer, common, dict(attributes or {}), agent=agent, content=content)

    def __call__(self, step: Step) -> None:
        """Take a step, now."""
        self._spans.take(to_record(step), time.time_ns())

    def close(self) -> None:
        """End the spans of a run that broke off."""
        self._spans.close(time.time_ns())

    def __enter__(self) -> "Tracing":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def trace_log(
    run: RecordedRun,
    *,
    tracer_provider: TracerProvider | None = None,
    agent: str = AGENT,
    content: bool = False,
) -> None:
    """Make the spans of a recorded log: a trace for each of its runs.

    A log holds when it was begun, how long tools ran and how long backoffs took, and no other times. So spans stand
    in their order and tools have their length; an inference takes no time. `bpagent.clock` says "reconstructed".
    """
    header = run.header
    attributes: Attributes = {"bpagent.clock": "reconstructed", "bpagent.log": run.path.name}
    if header.get("preset"):
        attributes["bpagent.preset"] = str(header["preset"])
    provider = "openai" if header.get("api") else "unknown"
    common: Attributes = {
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": str(header.get("model") or "unknown"),
    }
    spans = Spans(get_tracer(NAME, tracer_provider=tracer_provider), common, attributes, agent=agent, content=content)
    now = _begun(header)
    for record in run.records:
        now += _took(record)
        spans.take(record, now)
    spans.close(now)


def _begun(header: Mapping[str, Any]) -> int:
    """Return when a log was begun, in nanoseconds; one that does not say began in 1970."""
    try:
        begun = datetime.fromisoformat(str(header.get("begun")))
    except ValueError:
        return 0
    return int((begun if begun.tzinfo else begun.replace(tzinfo=UTC)).timestamp() * SECOND)


def _took(record: Mapping[str, Any]) -> int:
    """Return the nanoseconds that passed before a record, as far as it says; a microsecond keeps the order."""
    data = record["data"]
    match record["name"]:
        case "tool_finished":
            return MICROSECOND + int(_number(data.get("duration")) * MILLISECOND)
        case "backoff_elapsed":
            return MICROSECOND + int(_number(data.get("seconds")) * SECOND)
    return MICROSECOND


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and 0 <= value < 10**6 else 0.0
