"""Spans for OpenTelemetry: a run is a trace, in the names of the GenAI semantic conventions (extra `otel`)."""

from collections.abc import Sequence
from typing import Any

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.errors import AgentError
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult, Usage
from bp import Event, Refusal, Step

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Span,
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        get_tracer,
        set_span_in_context,
    )
except ImportError as error:
    raise AgentError("tracing needs OpenTelemetry: pip install 'bpagent[otel]'") from error

Attributes = dict[str, str | int | float | bool | Sequence[str]]

NAME = "bpagent"
SUMMARY = "summary"  # the key of a draft

WENT_WRONG = frozenset({"failed", "doom_loop", "aborted"})
"""Statuses of runs that did not complete their task."""


class Tracing:
    """A listener that makes spans of the steps of an agent: give it as `on_step`. One for each agent.

    `model`, `provider` and `agent` are names, as in the conventions. The spans go to `tracer_provider`, by default the
    program's own. They hold no prompts, answers, arguments or results, which may contain secrets. As a context manager
    it ends the spans that a failed run left open.
    """

    def __init__(
        self, *, model: str, provider: str = "openai", agent: str = NAME, tracer_provider: TracerProvider | None = None
    ) -> None:
        """Make a listener."""
        self._tracer = get_tracer(NAME, tracer_provider=tracer_provider)
        self._common: Attributes = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self._model, self._agent = model, agent
        self._run: Span | None = None
        self._open: dict[tuple[str, str], Span] = {}  # by operation, and draft or id of the call
        self._calls: dict[str, ToolCall] = {}
        self._used = Usage()

    def __call__(self, step: Step) -> None:
        """Update the spans for a step that happened now."""
        match step.event:
            case PromptGiven():
                self._begin_run()
            case AnswerCommitted(calls=calls):
                self._calls = {call.id: call for call in calls}
            case CallAnswered():
                self._end_call(step.event, step.refusals or ())
            case RunEnded():
                self._end_run(step.event, step.refusals or ())
            case _:
                self._take_inference(step.event)
                self._take_call(step.event)

    def close(self) -> None:
        """End the spans of a run that failed."""
        if self._run is not None:
            self._run.set_status(Status(StatusCode.ERROR, "broke off"))
            self._run.set_attribute("error.type", "broke_off")
            self._end_all()

    def __enter__(self) -> "Tracing":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin_run(self) -> None:
        self.close()
        named: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._agent}
        self._run = self._tracer.start_span(f"invoke_agent {self._agent}", attributes={**named, **self._common})

    def _end_run(self, ended: RunEnded, refusals: Sequence[Refusal]) -> None:
        if self._run is None:
            return
        how: Attributes = {"bpagent.status": ended.status, "bpagent.reason": ended.reason}
        self._run.set_attributes({**how, **_usage(self._used), **_refused(refusals)})
        if ended.status in WENT_WRONG:
            why = ended.text if ended.status == "failed" else ""  # any other final text may quote the user
            self._run.set_attribute("error.type", ended.reason)
            self._run.set_status(Status(StatusCode.ERROR, why or ended.reason))
        self._end_all()

    def _end_all(self) -> None:
        for span in (*self._open.values(), *((self._run,) if self._run else ())):
            span.end()
        self._run, self._open, self._calls, self._used = None, {}, {}, Usage()

    def _take_inference(self, event: Event) -> None:
        match event:
            case InferenceRequested(draft=draft, role=role):
                self._begin_inference(draft, role)
            case SummaryRequested(role=role):
                self._begin_inference(SUMMARY, role)
            case InferenceFinished(draft=draft, usage=usage, stop_reason=reason):
                self._end_inference(draft, usage, {"gen_ai.response.finish_reasons": [reason]})
            case SummaryFinished(usage=usage):
                self._end_inference(SUMMARY, usage, {})
            case InferenceFailed(draft=draft, error=error):
                self._end("chat", draft, {"error.type": "inference_failed"}, error=error)
            case SummaryFailed(error=error):
                self._end("chat", SUMMARY, {"error.type": "inference_failed"}, error=error)

    def _take_call(self, event: Event) -> None:
        match event:
            case ProposedAction(call=call):
                self._begin("gate", call.id, _of_call(call))
            case GateApproved(call=call):
                self._end("gate", call.id, {"bpagent.decision": "approved"})
            case GateRejected(call=call, refusals=refusals):
                self._end("gate", call.id, {"bpagent.decision": "rejected", **_refused(refusals)})
            case ToolStarted(call=call):
                self._begin("execute_tool", call.id, {"gen_ai.operation.name": "execute_tool", **_of_call(call)})
            case ToolFinished(call=call, result=ToolResult(is_error=True)):
                said: Attributes = {"error.type": "tool_error"}
                self._end("execute_tool", call.id, said, error="the tool says that it failed")
            case ToolFinished(call=call):
                self._end("execute_tool", call.id, {})

    def _begin_inference(self, draft: str, role: str) -> None:
        asked: Attributes = {"gen_ai.operation.name": "chat", "bpagent.draft": draft, "bpagent.role": role}
        self._begin("chat", draft, {**asked, **self._common}, SpanKind.CLIENT)

    def _end_inference(self, draft: str, usage: Usage, said: Attributes) -> None:
        self._used += usage
        self._end("chat", draft, {**said, **_usage(usage)})

    def _end_call(self, answered: CallAnswered, refusals: Sequence[Refusal]) -> None:
        """End the span of a call; with the refusals, if it was rejected or never reached the gate."""
        call = self._calls.get(answered.call)
        if refusals and call is not None and ("gate", call.id) not in self._open:
            self._begin("gate", call.id, _of_call(call))
        self._end("gate", answered.call, {"bpagent.decision": answered.outcome, **_refused(refusals)})

    def _begin(self, what: str, id: str, said: Attributes, kind: SpanKind = SpanKind.INTERNAL) -> None:
        if self._run is not None:
            name = f"{what} {said.get('gen_ai.tool.name', self._model)}"
            below = set_span_in_context(self._run, Context())
            self._open[what, id] = self._tracer.start_span(name, below, kind, said)

    def _end(self, what: str, id: str, said: Attributes, *, error: str | None = None) -> None:
        span = self._open.pop((what, id), None)
        if span is not None:
            span.set_attributes(said)
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, error))
            span.end()


def _of_call(call: ToolCall) -> Attributes:
    return {"gen_ai.tool.name": call.tool, "gen_ai.tool.call.id": call.id, "gen_ai.tool.type": "function"}


def _usage(usage: Usage) -> Attributes:
    """Return tokens and cost in US dollars; a number that the model did not report is left out."""
    told: Attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "bpagent.cost": usage.cost or 0,
    }
    return {name: amount for name, amount in told.items() if amount}


def _refused(refusals: Sequence[Refusal]) -> Attributes:
    """Return the refusing b-threads and their reasons, in the same order, without quoting the call."""
    if not refusals:
        return {}
    return {
        "bpagent.refused_by": [refusal.bthread for refusal in refusals],
        "bpagent.because": [_in_few_words(refusal.because) for refusal in refusals],
    }


def _in_few_words(because: Any) -> str:
    if isinstance(because, str):
        return because
    verdict = getattr(because, "verdict", because)
    level = getattr(verdict, "level", None)
    words = [getattr(because, "reason", None), level and level.name, getattr(verdict, "rule", None)]
    return ": ".join(f"{word}" for word in words if word) or f"{getattr(because, 'text', '')}".partition(":")[0]
