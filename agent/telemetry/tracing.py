"""Spans of a run while it happens, and of a run that only its log remembers."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent.log.reading import RecordedRun
from agent.vocabulary.encoding import to_record
from agent.vocabulary.errors import AgentError
from bp import Step

try:
    from opentelemetry.trace import TracerProvider, get_tracer
except ImportError as error:
    raise AgentError("tracing needs OpenTelemetry: pip install 'bpagent[otel]'") from error

from agent.telemetry.attributes import Attributes
from agent.telemetry.spans import Spans

__all__ = ["Tracing", "trace_log"]

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
