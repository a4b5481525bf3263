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
from agent.log.reading import read_log
from agent.models.scripted import fail
from agent.telemetry import Spans, Tracing, trace_log
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import InferenceRequested
from agent.vocabulary.messages import Usage
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.notes import grumble, note

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


@pytest.fixture(params=["live", "from the log"])
async def spans(
    request: pytest.FixtureRequest, make_agent: MakeAgent, exporter: InMemorySpanExporter, provider: TracerProvider
) -> list[ReadableSpan]:
    """The spans of one run that went through everything, live and from its log: they say the same."""
    tools = [note, grumble, next(tool for tool in workspace_tools(Path.cwd()) if tool.name == "bash")]
    live = request.param == "live"
    tracing = Tracing(model="scripted", provider="unknown", tracer_provider=provider, content=True)
    agent = make_agent(*SCRIPT, tools=tools, on_step=tracing if live else None)
    await agent.run("Go")
    if not live:
        agent.close()
        trace_log(read_log(agent.log_path or ""), tracer_provider=provider, content=True)
    return list(exporter.get_finished_spans())


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def named(spans: list[ReadableSpan], name: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name]


def events(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


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


async def test_a_run_says_how_it_ended_and_what_it_took(spans: list[ReadableSpan]) -> None:
    [run] = named(spans, "invoke_agent bpagent")

    expected = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "bpagent",
        "gen_ai.provider.name": "unknown",
        "gen_ai.request.model": "scripted",
        "gen_ai.usage.input_tokens": 60,
        "gen_ai.usage.output_tokens": 18,
        "bpagent.status": "completed",
        "bpagent.reason": "answered",
    }
    assert {name: facts(run)[name] for name in expected} == expected
    assert run.status.status_code is StatusCode.UNSET
    assert [(name, said["attempt"]) for name, said in events(run)] == [
        ("bpagent.backoff_started", 1), ("bpagent.backoff_elapsed", 1),
    ]  # fmt: skip


async def test_an_inference_says_who_was_asked_and_what_it_took(spans: list[ReadableSpan]) -> None:
    first, failed, *_ = named(spans, "chat scripted")

    assert first.kind is SpanKind.CLIENT
    assert facts(first) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "unknown",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "bpagent.draft": "d0",
        "bpagent.role": "agent",
    }
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "busy")
    assert facts(failed)["error.type"] == "inference_failed"


async def test_a_tool_says_which_call_it_carries_out(spans: list[ReadableSpan]) -> None:
    [ran] = named(spans, "execute_tool note")
    [grumbled] = named(spans, "execute_tool grumble")

    assert facts(ran) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "note",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": '{"text":"a"}',
        "gen_ai.tool.call.result": "noted a",
    }
    assert facts(grumbled)["error.type"] == "tool_error"
    assert grumbled.status.status_code is StatusCode.ERROR


async def test_a_refused_call_says_who_refused_and_why(spans: list[ReadableSpan]) -> None:
    [rejected] = named(spans, "gate bash")
    [unknown] = named(spans, "gate unheard_of")
    [approved] = named(spans, "gate note")

    said = facts(rejected)
    assert said["bpagent.decision"] == "rejected"
    assert said["bpagent.refused_by"] == ("by_constitution",)
    assert '"level":"deny"' in said["bpagent.because"][0]
    [(name, refusal)] = events(rejected)
    assert (name, refusal["bpagent.bthread"]) == ("bpagent.refusal", "by_constitution")
    assert refusal["bpagent.rule"]
    assert facts(unknown)["bpagent.refused_by"] == ("only_whole_calls",)
    assert facts(unknown)["bpagent.decision"] == "invalid"
    assert facts(approved)["bpagent.decision"] == "approved"
    assert "bpagent.refused_by" not in facts(approved)


async def test_every_name_is_one_of_the_conventions_or_ours(spans: list[ReadableSpan]) -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")} | {"error.type"}

    names = {name for span in spans for name in facts(span)}

    assert {name for name in names if not name.startswith("bpagent.")} <= known


# What only some runs have


async def traced(make_agent: MakeAgent, provider: TracerProvider, *steps: Any, **options: Any) -> Any:
    tracing = Tracing(model="scripted", tracer_provider=provider)
    agent = make_agent(*steps, on_step=tracing, **{"tools": [note], **options})
    return await agent.run("Go")


@bthread
def enough() -> BThreadBody:
    yield sync(refuse=InferenceRequested, because=Ending("limit", "enough", "Stopped."))


async def test_who_ended_a_run_is_told(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    await traced(make_agent, provider, threads=[enough()])

    [run] = exporter.get_finished_spans()
    assert facts(run)["bpagent.status"] == "limit"
    assert facts(run)["bpagent.refused_by"] == ("enough",)


async def test_a_failed_run_is_an_error(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    await traced(make_agent, provider, fail("no such model"))

    *_, run = exporter.get_finished_spans()
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "no such model")
    assert facts(run)["error.type"] == "inference_failed"


async def test_content_is_told_only_when_it_is_wanted(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    steps = answer("thinking", call("note", text="secret"), call("bash", command="rm -rf /secret")), "secret words"
    shell = [tool for tool in workspace_tools(Path.cwd()) if tool.name == "bash"]

    await traced(make_agent, provider, *steps, tools=[note, *shell])

    [rejected] = named(list(exporter.get_finished_spans()), "gate bash")
    assert facts(rejected)["bpagent.because"] == ("deny: delete_outside_workspace",)
    assert "secret" not in "".join(span.to_json() for span in exporter.get_finished_spans())


async def test_each_run_is_a_trace_of_its_own(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    agent = make_agent("one", "two", on_step=Tracing(model="m", tracer_provider=provider))
    await agent.run("Go")
    await agent.run("Go on")

    assert len({span.context.trace_id for span in exporter.get_finished_spans()}) == 2


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
    spans = Spans(provider.get_tracer("test"), {"gen_ai.request.model": "m"}, {}, agent="a", content=False)
    records: list[tuple[str, dict[str, Any]]] = [
        ("prompt_given", {"text": "go"}),
        ("summary_requested", {"role": "summarizer"}),
        ("summary_finished", {"text": "all", "usage": {"input_tokens": 3, "cost": 0.5, "is_estimate": True}}),
        ("summary_requested", {"role": "summarizer"}),
        ("summary_failed", {"error": "busy"}),
        ("run_ended", {"status": "completed", "reason": "answered"}),
    ]
    for moment, (name, data) in enumerate(records):
        spans.take({"name": name, "data": data}, moment)

    finished, failed, run = exporter.get_finished_spans()
    assert facts(finished)["bpagent.role"] == "summarizer"
    assert facts(finished)["bpagent.cost"] == facts(run)["bpagent.cost"] == 0.5
    assert failed.status.status_code is StatusCode.ERROR


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


async def test_a_log_gives_tools_the_length_that_they_had(
    make_agent: MakeAgent, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    agent = make_agent(call("note", text="a"), "Done.", tools=[note])
    await agent.run("Go")
    agent.close()
    recorded = read_log(agent.log_path or "")
    duration = next(record["data"]["duration"] for record in recorded.records if record["name"] == "tool_finished")

    trace_log(recorded, tracer_provider=provider)

    [ran] = named(list(exporter.get_finished_spans()), "execute_tool note")
    [run] = named(list(exporter.get_finished_spans()), "invoke_agent bpagent")
    assert ((ran.end_time or 0) - (ran.start_time or 0)) / 1e6 == pytest.approx(duration, abs=0.002)
    assert facts(run)["bpagent.clock"] == "reconstructed"
    assert facts(run)["bpagent.preset"] == "default"
