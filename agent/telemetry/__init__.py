"""Spans for OpenTelemetry: a run is a trace, in the names of the GenAI semantic conventions (extra `otel`).

    listener = Tracing(model=model.name)
    agent = Agent(model, tools, on_step=listener)

Modules in reading order:

- `attributes`: what a record says, in the names that dashboards know
- `spans`: records become spans, which begin and end with them
- `tracing`: live, and from a recorded log
"""

from agent.telemetry.tracing import Tracing, trace_log

__all__ = ["Tracing", "trace_log"]
