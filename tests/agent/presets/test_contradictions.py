"""Where a specification contradicts itself: the reading that was taken, by the number of the contradiction."""

import anyio
import pytest
from attrs import evolve

from agent import Agent, LoopConfig, ScriptedModel, agent_loop, answer, call, tool
from agent.cli.prompt import STOPS, Person
from agent.cli.screen import screen_on
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import ApprovalAsked, GateApproved, StopAsked
from agent.vocabulary.messages import AssistantMessage, Message, ToolMessage, UserMessage
from bp import BThreadBody, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import look, pretended_bash, results
from tests.tables import rows

pytestmark = pytest.mark.anyio

WORKSPACE, AUTONOMOUS = PRESETS["workspace"], PRESETS["autonomous"]
LIMIT_TEXT = "Stopped: maximum iteration limit reached."


async def test_contradiction_1_a_final_answer_in_the_last_iteration_is_no_limit(make_agent: MakeAgent) -> None:
    """S0's loop would say "Stopped" after a success; S5.7 says *exceeding*."""
    run = await make_agent("Done.", tools=[look], preset=evolve(WORKSPACE, max_iterations=1)).run("Go")

    assert (run.status, run.text) == ("completed", "Done.")
    assert run.messages == (UserMessage("Go"), AssistantMessage("Done."))


async def test_contradiction_2_an_abort_returns_the_messages_and_raises_nothing() -> None:
    """S0's loop throws, S5.5 says that it exits cleanly."""
    signal = anyio.Event()

    @tool
    async def change() -> str:
        """Have somebody abort, and hang."""
        signal.set()
        await anyio.sleep_forever()
        return ""

    messages: list[Message] = [UserMessage("Go")]
    with anyio.fail_after(20):
        returned = await agent_loop(
            messages, [change], "", ScriptedModel([call("change"), "Unheard."]), LoopConfig(), signal
        )

    assert returned is messages
    assert [type(message) for message in messages] == [UserMessage, AssistantMessage, ToolMessage]


async def test_contradiction_3_what_is_on_the_blocklist_is_not_even_asked_about(make_agent: MakeAgent) -> None:
    """Destructive commands are "admin, needs approval" and "blocked regardless of category": deny wins."""
    asked: list[ApprovalAsked] = []
    calls = [call("bash", command="rm x"), call("bash", command="curl https://example.com")]

    def yes(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    run = await make_agent(calls, "Done.", tools=[pretended_bash], preset=WORKSPACE, approve=yes).run("Go")

    assert [question.call.arguments["command"] for question in asked] == ["curl https://example.com"]
    assert results(run)[0].startswith("rejected: by_constitution: deny: blocklist")
    assert results(run)[1] == "ran curl https://example.com"


async def test_contradiction_4_after_an_abort_between_two_calls_each_has_its_result(make_agent: MakeAgent) -> None:
    """S0's loop would leave the later calls without one."""
    started = anyio.Event()

    @tool
    async def hang() -> str:
        """Hang until somebody aborts."""
        started.set()
        await anyio.sleep_forever()
        return ""

    agent = make_agent([call("hang"), call("look", at=1), call("look", at=2)], tools=[hang, look], preset=WORKSPACE)
    with anyio.fail_after(20):
        async with agent.start("Go") as run:
            await started.wait()
            run.abort()

    assert run.status == "aborted"
    assert [message.call_id for message in run.messages if isinstance(message, ToolMessage)] == [
        "call_1",
        "call_2",
        "call_3",
    ]


async def test_contradiction_5_the_calls_of_a_cut_off_answer_are_answered(make_agent: MakeAgent) -> None:
    """S0's loop would leave the loop with calls that nobody answers."""
    cut_off = answer("", call("look", at=1), call("look", '{"at": '), stop_reason="length")

    run = await make_agent(cut_off, "Done.", tools=[look], preset=WORKSPACE).run("Go")

    assert run.status == "completed"
    assert results(run)[0] == "seen 1"
    assert results(run)[1].startswith("not executed: truncated")


@rows("line", ["nonstop", "don't stop", "STOPPED?", "stop"])
async def test_contradiction_6_the_letters_of_stop_stop_in_autonomous_and_only_the_line_stop_elsewhere(
    make_agent: MakeAgent, line: str
) -> None:
    """S1 takes "stop" anywhere, in what is typed and in the answer to an approval."""
    stops = {name: STOPS[preset.stop_text](line) for name, preset in PRESETS.items()}
    agent = make_agent(call("bash", command="rm -r x"), tools=[pretended_bash], preset=AUTONOMOUS)

    async with agent.start("Go") as run:
        person = Person(screen_on(Nowhere()), present=True, stop=run.stop, stops=STOPS[AUTONOMOUS.stop_text])  # type: ignore[arg-type]
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                person.hear(line)

    assert stops["autonomous"]
    assert [name for name, stopped in stops.items() if stopped and name != "autonomous"] == (
        [name for name in PRESETS if name != "autonomous"] if line == "stop" else []
    )
    assert any(isinstance(event, StopAsked) for event in run.events)
    assert run.status == "stopped"


class Nowhere:
    """A screen that nobody looks at."""

    def isatty(self) -> bool:
        return False

    def write(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


async def test_contradiction_7_at_the_limit_there_are_the_last_response_and_the_partial_results(
    make_agent: MakeAgent,
) -> None:
    """S1 4.3 returns the one, 7.2 the other: both."""
    preset = evolve(AUTONOMOUS, max_iterations=2)
    turns = [answer(f"Step {n}.", call("look", at=n)) for n in (1, 2, 3)]

    run = await make_agent(*turns, tools=[look], preset=preset).run("Go")

    assert run.status == "limit"
    assert run.text == f"{LIMIT_TEXT}\n\nLast response: Step 2."
    assert results(run) == ["seen 1", "seen 2"]


@rows("preset", PRESETS.values())
async def test_contradiction_10_what_a_b_thread_refuses_is_told_to_the_model(
    make_agent: MakeAgent, preset: object
) -> None:
    """S3 feared that blocked events vanish; here a refused call is answered like any other."""

    @bthread
    def nothing_runs() -> BThreadBody:
        yield sync(refuse=GateApproved, because="not today")

    agent: Agent = make_agent(call("look", at=1), "Done.", tools=[look], preset=preset, threads=[nothing_runs()])

    run = await agent.run("Go")

    assert run.status == "completed"
    assert results(run) == ["rejected: nothing_runs: not today"]
