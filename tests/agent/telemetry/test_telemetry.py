"""A run is a trace: spans with the names that dashboards know, and on them who refused what, and why."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from agent import Agent, ScriptedModel, answer, call, workspace_tools
from agent.models.scripted import fail
from agent.telemetry import Tracing
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import (
    InferenceRequested,
    PromptGiven,
    RunEnded,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.messages import Usage
from agent.vocabulary.reasons import Ending
from bp import BProgram, BThreadBody, Event, bthread, sync
from tests.agent.conftest import MakeAgent, grumble, note
from tests.agent.session.conftest import anyio_backend as anyio_backend

pytestmark = pytest.mark.anyio

SCRIPT = (
    answer("Look.", call("note", text="a"), call("bash", command="rm -rf /"), usage=Usage(10, 5)),
    fail("busy", retryable=True),
    answer("More.", call("grumble"), call("unheard_of"), usage=Usage(20, 6)),
    answer("Done.", usage=Usage(30, 7)),
)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
async def spans(make_agent: MakeAgent, exporter: InMemorySpanExporter, provider: TracerProvider) -> list[ReadableSpan]:
    """The spans of one run that went through everything."""
    tools = [note, grumble, next(tool for tool in workspace_tools(Path.cwd()) if tool.name == "bash")]
    tracing = Tracing(model="scripted", provider="unknown", tracer_provider=provider)
    await make_agent(*SCRIPT, tools=tools, on_step=tracing).run("Go")
    return list(exporter.get_finished_spans())


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def named(spans: list[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


async def test_a_run_is_one_trace_with_everything_below_it(spans: list[ReadableSpan]) -> None:
    [run] = named(spans, "invoke_agent bpagent")

    assert run.parent is None
    assert sorted(span.name for span in spans if span is not run) == [
        "chat scripted", "chat scripted", "chat scripted", "chat scripted",
        "execute_tool grumble", "execute_tool note",
        "gate bash", "gate grumble", "gate note", "gate unheard_of",
    ]  # fmt: skip
    assert {span.parent.span_id for span in spans if span.parent} == {run.context.span_id}
    assert len({span.context.trace_id for span in spans}) == 1
    assert all((span.start_time or 0) <= (span.end_time or 0) for span in spans)
    assert all((run.start_time or 0) <= (span.start_time or 0) for span in spans)


MODEL = {"gen_ai.provider.name": "unknown", "gen_ai.request.model": "scripted"}
FACTS: dict[str, dict[str, Any]] = {
    "invoke_agent bpagent": {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bpagent", **MODEL,
        "gen_ai.usage.input_tokens": 60, "gen_ai.usage.output_tokens": 18,
        "bpagent.status": "completed", "bpagent.reason": "answered",
    },
    "chat scripted": {
        "gen_ai.operation.name": "chat", **MODEL, "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5,
        "bpagent.draft": "d0", "bpagent.role": "agent",
    },
    "execute_tool note": {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "note", "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
    },
    "gate bash": {
        "gen_ai.tool.name": "bash", "gen_ai.tool.call.id": "call_2", "gen_ai.tool.type": "function",
        "bpagent.decision": "rejected", "bpagent.refused_by": ("by_constitution",),
        "bpagent.because": ("deny: delete_tree",),
    },
    "gate note": {
        "gen_ai.tool.name": "note", "gen_ai.tool.call.id": "call_1", "gen_ai.tool.type": "function",
        "bpagent.decision": "approved",
    },
}  # fmt: skip
"""What the first span of a name says."""


async def test_spans_say_who_was_asked_what_it_took_and_who_refused_and_why(spans: list[ReadableSpan]) -> None:
    assert {name: facts(named(spans, name)[0]) for name in FACTS} == FACTS
    [unknown] = named(spans, "gate unheard_of")
    assert (facts(unknown)["bpagent.refused_by"], facts(unknown)["bpagent.decision"]) == (
        ("only_whole_calls",), "invalid",
    )  # fmt: skip
    assert named(spans, "chat scripted")[0].kind is SpanKind.CLIENT
    assert not [span for span in spans if "rm -rf" in span.to_json()]


async def test_spans_say_what_failed(spans: list[ReadableSpan]) -> None:
    failed, [grumbled] = named(spans, "chat scripted")[1], named(spans, "execute_tool grumble")
    [run] = named(spans, "invoke_agent bpagent")

    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "busy")
    assert (facts(failed)["error.type"], facts(grumbled)["error.type"]) == ("inference_failed", "tool_error")
    assert grumbled.status.status_code is StatusCode.ERROR
    assert run.status.status_code is StatusCode.UNSET


async def test_every_name_is_one_of_the_conventions_or_ours(spans: list[ReadableSpan]) -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")} | {"error.type"}

    names = {name for span in spans for name in facts(span)}

    assert {name for name in names if not name.startswith("bpagent.")} <= known


# What only some runs have


async def traced(make_agent: MakeAgent, provider: TracerProvider, *steps: Any, **options: Any) -> None:
    tracing = Tracing(model="scripted", tracer_provider=provider)
    await make_agent(*steps, on_step=tracing, tools=[note], **options).run("Go")


@bthread
def enough() -> BThreadBody:
    yield sync(refuse=InferenceRequested, because=Ending("limit", "enough", "Stopped."))


async def test_the_span_of_a_run_says_who_ended_it_or_what_failed(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    await traced(make_agent, provider, threads=[enough()])
    await traced(make_agent, provider, fail("no such model"))

    ended, _, failed = exporter.get_finished_spans()
    assert (facts(ended)["bpagent.status"], facts(ended)["bpagent.refused_by"]) == ("limit", ("enough",))
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "no such model")
    assert facts(failed)["error.type"] == "inference_failed"
    assert ended.context.trace_id != failed.context.trace_id


async def test_a_run_within_a_span_of_the_program_hangs_below_it(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with provider.get_tracer("mine").start_as_current_span("mine") as mine:
        await traced(make_agent, provider, "Done.")

    run = next(span for span in exporter.get_finished_spans() if span.name.startswith("invoke_agent"))
    assert run.parent is not None
    assert run.parent.span_id == mine.get_span_context().span_id


async def test_a_run_that_broke_off_leaves_no_span_open(
    provider: TracerProvider, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    def listen(step: Any) -> None:
        tracing(step)
        if isinstance(step.event, InferenceRequested):
            raise OSError("disk full")

    with Tracing(model="m", tracer_provider=provider) as tracing, pytest.raises(RunError):
        await Agent(ScriptedModel(["Done."]), workspace=tmp_path, on_step=listen).run("Go")

    chat, run = exporter.get_finished_spans()
    assert (chat.name, run.name) == ("chat m", "invoke_agent bpagent")
    assert run.status.status_code is StatusCode.ERROR


async def test_a_summary_is_an_inference_too(provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
    tracing = Tracing(model="m", tracer_provider=provider)
    happened = (
        PromptGiven("go"), SummaryRequested(), SummaryFinished("all", Usage(3, 0, 0.5, is_estimate=True)),
        SummaryRequested(), SummaryFailed("busy"), RunEnded("completed", "answered"),
    )  # fmt: skip
    for step in BProgram(script(happened)).run():
        tracing(step)

    finished, failed, run = exporter.get_finished_spans()
    assert facts(finished)["bpagent.role"] == "summarizer"
    assert facts(finished)["bpagent.cost"] == facts(run)["bpagent.cost"] == 0.5
    assert failed.status.status_code is StatusCode.ERROR


@bthread
def script(events: tuple[Event, ...]) -> BThreadBody:
    for event in events:
        yield sync(request=event)


@pytest.mark.slow
async def test_without_opentelemetry_the_cure_is_named() -> None:
    code = """if True:
        import sys
        sys.modules["opentelemetry"] = None
        from agent.vocabulary.errors import AgentError
        try:
            import agent.telemetry
        except AgentError as error:
            print(error)
    """

    done = await anyio.run_process([sys.executable, "-c", code], cwd=Path(__file__).parents[3])

    assert done.stdout.decode() == "tracing needs OpenTelemetry: pip install 'bpagent[otel]'\n"
