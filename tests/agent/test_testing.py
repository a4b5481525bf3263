"""Assertions on runs: each can fail, and then says what happened, who requested it, and who was in the way."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest

from agent import Agent, Run, ScriptedModel, call
from agent.history.playback import retaken, retrace
from agent.history.rebuilding import rebuild
from agent.log import RecordedRun, read_log
from agent.log.reading import recorded_steps
from agent.testing import assert_calls_answered, assert_never, assert_order, started, trace
from agent.vocabulary.events import CallAnswered, GateRejected, ProposedAction, RunEnded, ToolStarted
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage, ToolResult, UserMessage
from bp import BThreadBody, Deadlock, bthread, sync, where
from tests.agent.conftest import MakeAgent, grumble, note


@bthread
def no_grumbling() -> BThreadBody:
    yield sync(refuse=where(ToolStarted, lambda event: event.call.tool == "grumble"), because="not today")


@pytest.fixture
def run(make_agent: MakeAgent) -> Run:
    """A run in which `note` runs before `grumble` is refused."""
    agent = make_agent(
        [call("note", text="a"), call("grumble")], "Done.", tools=[note, grumble], threads=[no_grumbling()]
    )
    return agent.run_sync("Go")


def failure(assertion: object, *arguments: object) -> str:
    assert callable(assertion)
    with pytest.raises(AssertionError) as error:
        assertion(*arguments)
    return str(error.value)


# assert_never


def test_an_event_that_never_happened_passes(run: Run) -> None:
    assert_never(run, "grumble", GateRejected, started("note", text="b"), [GateRejected, started("grumble")])


@pytest.mark.parametrize("events", ["note", ToolStarted, started("note"), started("note", text="a"), [ToolStarted]])
def test_an_event_that_happened_fails_with_the_trace_up_to_it(run: Run, events: object) -> None:
    text = failure(assert_never, run, GateRejected, events)

    assert " happened, at step 9\n" in text
    assert text.splitlines()[-1] == "    9 tool_started call_1 note(text='a') (carry_out)"


# assert_order


def test_events_have_to_happen_in_order(run: Run) -> None:
    assert_order(run, "note", run.events[-1])
    for events, told in (
        ((run.events[-1], "note"), "the start of 'note' happened first at step 9, and RunEnded("),
        (("grumble",), "the start of 'grumble' never happened\n"),
        (("note", GateRejected), "gate_rejected never happened\n"),
        (("note", ToolStarted), "tool_started happened first at step 9"),  # it is not after itself
    ):
        assert failure(assert_order, run, *events).startswith(told)


def test_an_event_named_twice_has_to_happen_twice(make_agent: MakeAgent) -> None:
    steps = [call("note", text=text) for text in ("a", "b", "c")]
    run = make_agent(*steps, "Done.", tools=[note, grumble]).run_sync("Go")
    at = [step.number for step in run.steps if isinstance(step.event, ToolStarted)]

    assert_order(run, "note", "note", started("note", text="c"))
    text = failure(assert_order, run, "note", "note", "note", "note")
    assert text.startswith("the start of 'note' happened only 3 times, not 4\n")
    text = failure(assert_order, run, started("note", text="b"), "note", "note")
    assert text.startswith(f"the start of 'note' happened first at step {at[0]}, and where(ToolStarted, ")


@pytest.mark.slow
def test_the_assertions_need_no_pytest() -> None:
    code = "import agent.testing, sys; print('pytest' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert loaded.stdout == "False\n"


# The trace


def test_the_trace_of_a_run_that_broke_off_ends_with_what_was_held(make_agent: MakeAgent) -> None:
    @bthread
    def hold() -> BThreadBody:
        yield sync(block=ToolStarted)

    agent = make_agent(call("note"), tools=[note], threads=[hold()])
    runs: list[Run] = []

    async def main() -> None:
        async with agent.start("Go") as run:
            runs.append(run)

    with pytest.raises(Deadlock, match="nothing can happen any more"):
        anyio.run(main)

    assert trace(runs[0]).splitlines()[-1] == "      held: tool_started call_1 note() (carry_out), by hold"


def test_the_trace_says_who_requested_refused_and_held(run: Run) -> None:
    lines = trace(run, tail=100).splitlines()

    assert "    6 proposed_action call_1 note(text='a') (carry_out)" in lines
    assert "      held: proposed_action call_2 grumble() (carry_out), by one_at_a_time" in lines
    [refused] = [number for number, line in enumerate(lines) if line == "      refused by no_grumbling: not today"]
    assert "call_answered 'call_2' 'rejected: no_grumbling: not today'" in lines[refused - 1]


def test_a_later_run_of_a_conversation_is_retraced_too(make_agent: MakeAgent) -> None:
    agent = make_agent(call("note"), "One.", call("note"), "Two.", tools=[note])
    agent.run_sync("First")
    second = agent.run_sync("Second")

    moments = retrace(second.agent.bthreads, second.agent.journal.heard, second.steps)

    assert [step for step, _ in moments] == [*second.steps, None]


def test_a_b_thread_with_hidden_state_has_no_counterfactual(make_agent: MakeAgent) -> None:
    moods = iter([["calm"], [], []])

    @bthread
    def moody() -> BThreadBody:
        for _ in next(moods):
            yield sync(wait_for=ToolStarted)
        yield sync(block=ToolStarted, wait_for=where(ToolStarted))

    run = make_agent(call("note"), "Done.", tools=[note], threads=[moody()], sound=False).run_sync("Go")

    moments = retrace(run.agent.bthreads, run.agent.journal.heard, run.steps)
    assert [step for step, _ in moments] == [*run.steps]


# assert_calls_answered

ASKED = AssistantMessage("", (RequestedCall("a", "note"), RequestedCall("b", "note")))
A, B = ToolMessage("a", ToolResult("1")), ToolMessage("b", ToolResult("2"))


def test_calls_that_are_answered_in_order_pass() -> None:
    assert_calls_answered((UserMessage("Go"), ASKED, A, B, ASKED, A, B, AssistantMessage("Done.")))


@pytest.mark.parametrize(
    ("messages", "finding"),
    [
        ((ASKED, A), "nothing answers ['b']"),
        ((ASKED, B, A), "message 1 answers 'b'; 'a' comes first"),
        ((ASKED, A, A), "message 2 answers 'a'; 'b' comes first"),
        ((ASKED, A, B, B), "message 3 answers 'b', which no call before it asks for"),
        ((ASKED, A, UserMessage("?"), B), "message 2 (UserMessage) comes before the answers to ['b']"),
        ((A, ASKED, B), "message 0 answers 'a'"),
        ((AssistantMessage("", (RequestedCall("a", "x"),) * 2), A, A), "two calls with one id"),
        ((AssistantMessage("", (RequestedCall("", "x"),)), ToolMessage("", ToolResult(""))), "a call without an id"),
    ],
)
def test_calls_that_are_not_answered_in_order_fail(messages: tuple[Message, ...], finding: str) -> None:
    assert finding in failure(assert_calls_answered, messages)


def test_an_assertion_about_nothing_is_a_mistake(run: Run) -> None:
    """It would pass forever."""
    for check in (assert_never, assert_order):
        with pytest.raises(ValueError, match=f"{check.__name__} was given no events; name at least one"):
            check(run)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (started("notes"), "the agent has no tool 'notes'; its tools: note, grumble"),
        ([GateRejected, started("notes")], "the agent has no tool 'notes'"),
        (started("note", txt="a"), "the tool 'note' has no parameter 'txt'; its parameters: text"),
        (started("note", text=1), "no start of the tool 'note' can have these arguments: text: expected a string"),
        (started("note", text=None), "no start of the tool 'note' can have these arguments: text: expected a string"),
    ],
)
def test_starts_that_cannot_happen_are_a_mistake(run: Run, events: object, said: str) -> None:
    for check in (assert_never, assert_order):
        with pytest.raises(ValueError, match=re.escape(said)):
            check(run, events)


def test_an_object_that_is_no_run_is_an_error() -> None:
    with pytest.raises(TypeError, match="assert_never takes the result of"):
        assert_never(Agent(ScriptedModel([])), started("look"))  # type: ignore[arg-type]


# a recorded run


@pytest.fixture
def log(make_agent: MakeAgent, tmp_path: Path) -> RecordedRun:
    """The log of a run in which `note` runs and `grumble` is refused by a b-thread that does not ship."""
    script = [call("note", text="a"), call("grumble")], call("note", wrong=1), "Done."
    with make_agent(*script, tools=[note, grumble], threads=[no_grumbling()], log=tmp_path / "run.jsonl") as agent:
        agent.run_sync("Go")
    return read_log(tmp_path / "run.jsonl")


def test_the_assertions_take_a_log_without_its_program(log: RecordedRun) -> None:
    assert_never(log, "grumble", started("note", text="b"))
    assert_order(log, ProposedAction, "note", CallAnswered, RunEnded)
    assert "happened, at step 9" in failure(assert_never, log, "note")
    assert "refused by no_grumbling: not today" in trace(log)
    with pytest.raises(ValueError, match="the agent has no tool 'notes'; its tools: note, grumble"):
        assert_never(log, "notes")


def test_the_steps_of_a_log_are_those_of_its_program(log: RecordedRun) -> None:
    """But for a `because` that is a value, which comes back as its fields."""
    steps = [*retaken(log, rebuild(log, [no_grumbling()]))]

    assert [step._replace(refusals=None) for step in recorded_steps(log)] == [
        step._replace(refusals=None) for step in steps
    ]


# The pytest plugin, in a pytest of its own: its fixtures work for those who ask for them, and only there


pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return pytester


def run_pytest(inner: pytest.Pytester, source: str) -> pytest.RunResult:
    inner.makeconftest('pytest_plugins = ["agent.pytest_plugin"]')
    inner.makepyfile(source)
    return inner.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", "-q", timeout=100)


@pytest.mark.slow
def test_the_documented_example_runs_as_it_stands(inner: pytest.Pytester) -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    protocol, test, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)

    run_pytest(inner, protocol + test).assert_outcomes(passed=1)


@pytest.mark.slow
def test_the_fixtures_fit_together(inner: pytest.Pytester) -> None:
    result = run_pytest(
        inner,
        """
        from agent import Agent, call
        from agent.testing import assert_never

        def test_model_and_tools(scripted_model, scratch_tools, scratch_workspace):
            model = scripted_model(call("bash", command="echo 1 > a.txt"), "Done.")
            run = Agent(model, scratch_tools).run_sync("Go")
            assert run.status == "completed"
            assert (scratch_workspace / "a.txt").read_text() == "1\\n"
            model.assert_complete()

        def test_agents_with_a_log_are_closed(make_agent, tmp_path):
            run = make_agent("Hello.", log=tmp_path / "run.jsonl").run_sync("Go")
            assert run.log.exists()
            assert_never(run, "bash")

        def test_tools_of_ones_own(make_agent):
            run = make_agent(call("bash"), "No.", tools=[]).run_sync("Go")
            assert "bash" in run.messages[2].text
        """,
    )

    result.assert_outcomes(passed=3)


def test_pytest_does_not_load_it_by_itself() -> None:
    """Else a project with an `agent.py` of its own could not start pytest once this is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert "pytest11" not in project.get("entry-points", {})
