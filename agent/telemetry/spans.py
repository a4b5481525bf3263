"""How the records of a run become spans: which record begins one, which ends it, and what is told in between.

| span                  | begins with           | ends with                                         |
| --------------------- | --------------------- | ------------------------------------------------- |
| `invoke_agent`        | `prompt_given`        | `run_ended`                                       |
| `chat`                | `inference_requested` | `inference_finished`, `inference_failed`          |
|                       | `summary_requested`   | `summary_finished`, `summary_failed`              |
| `gate`                | `proposed_action`     | `gate_approved`, `gate_rejected`, `call_answered` |
| `execute_tool`        | `tool_started`        | `tool_finished`                                   |

All hang below `invoke_agent`. A call that was refused before the gate heard of it has a `gate` span of no length, so
that every refused call has one, with who refused it and why. Whatever is open when the run ends, ends with it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from agent.telemetry.attributes import (
    Attributes,
    finished_inference,
    finished_tool,
    refusal_attributes,
    refusals_attributes,
    started_tool,
    used,
)

__all__ = ["Spans"]

Record = Mapping[str, Any]
Key = tuple[str, str]

WENT_WRONG = frozenset({"failed", "doom_loop", "aborted"})
"""How a run ends that did not do what it was asked for."""

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
        """End what is open: the run broke off, or nobody told how it ended."""
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
