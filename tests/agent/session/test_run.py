"""A run while it goes on, and an agent over several runs: who may look on, step in, and continue."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread, Timer
from time import sleep
from typing import Any

import anyio
import pytest

from agent import Agent, Preset, ScriptedModel, answer, call, tool, workspace_tools
from agent.models.scripted import delay, fail
from agent.session.agent import Run
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAsked,
    DraftsRefused,
    DraftsSettled,
    FollowUpGiven,
    GateApproved,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.messages import (
    AssistantMessage,
    Message,
    RequestedCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, ProgramEnded, Step, bthread, sync, where
from tests.agent.conftest import MakeAgent, answers, hang, note
from tests.agent.soundness import recorded
from tests.conftest import anyio_backend as anyio_backend
from tests.tables import rows

pytestmark = pytest.mark.anyio

QUESTIONABLE = call("bash", command="touch .git/config")


@tool(category="read", quick=True)
def count(n: int) -> str:
    """Count."""
    return str(n)


# Looking on


async def test_readers_see_each_step_and_one_that_stops_early_does_not_disturb_the_run(make_agent: MakeAgent) -> None:
    """Found: the run broke off at its next step."""
    async with make_agent(call("note"), answer("Done.", usage=Usage(3, 4)), tools=[note]).start("Go") as run:
        before = (run.status, run.reason, run.text, run.result)
        async for _ in run:
            break
        read = [step async for step in run]

    assert before == ("running", "", "", None)
    assert (run.status, run.reason, run.text, run.usage) == ("completed", "answered", "Done.", Usage(3, 4))
    assert read == run.steps


async def test_a_run_in_which_no_user_can_step_makes_the_same_records(make_agent: MakeAgent) -> None:
    """Its quick model answers without a task of its own."""
    script = (fail("busy", retryable=True), [call("note"), call("note")], delay(0.0, "So."), lambda _: "Done.")
    stepped, alone = (make_agent(*script, tools=[note], wait=lambda _: 0.0) for _ in range(2))

    async with stepped.start("Go") as run:
        pass
    again = await alone.run("Go")

    assert [type(event) for event in again.events] == [type(event) for event in run.events]
    assert again.messages == run.messages


async def test_a_run_of_a_quick_model_and_a_quick_tool_can_be_cancelled(make_agent: MakeAgent) -> None:
    scope = anyio.CancelScope()

    def cancel(step: Step) -> None:
        if step.number == 40:
            scope.cancel()

    calls = [call("count", n=n) for n in range(100)]
    agent = make_agent(*calls, tools=[count], preset="passthrough", on_step=cancel)

    with scope:
        await agent.run("Go")

    assert scope.cancelled_caught
    assert not agent.journal.is_under_way
    assert agent.totals.turns < 20


async def test_text_and_output_are_shown_whole(make_agent: MakeAgent) -> None:
    said: list[str] = []
    shown: list[str] = []
    look = answer("Let me see.", call("bash", command="echo one; echo two"))

    await make_agent(look, "Done.", on_text=said.append, on_output=shown.append).run("Go")

    assert ("".join(said), "".join(shown)) == ("Let me see.Done.", "one\ntwo\n")


# Stepping in


async def test_only_the_first_answer_counts(make_agent: MakeAgent) -> None:
    """Found: a second answer in the same moment replaced the first."""
    async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                run.answer("call_1", yes=False)
                with pytest.raises(KeyError, match=r"no question about the call 'call_1' .*; open: none"):
                    run.answer("call_1", yes=True)

    assert not any(isinstance(event, ToolStarted) for event in run.events)


# Several runs


async def test_a_prompt_waits_for_the_end_of_the_run_before_it(make_agent: MakeAgent) -> None:
    """Found: two runs at once ended in a deadlock error, and in a second `run_ended` within the first run."""
    agent = make_agent(call("note"), "One.", call("note"), "Two.", tools=[note])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.run, "First")
        tasks.start_soon(agent.run, "Second")

    texts = [message.text for message in agent.messages]
    assert sorted(texts[::4]) == ["First", "Second"]
    assert [text for text in texts if text in ("One.", "Two.")] == ["One.", "Two."]


async def test_an_earlier_conversation_can_be_given_and_each_run_continues_it(make_agent: MakeAgent) -> None:
    history: list[Message] = [
        UserMessage("Before"),
        AssistantMessage("", (RequestedCall("x", "note", "{}"),)),
        ToolMessage("x", ToolResult("noted")),
        AssistantMessage("One."),
    ]
    agent = make_agent("Two.", "Three.", history=history)

    await agent.run("Now")
    run = await agent.run("And now")

    assert list(run.messages[:4]) == history
    assert [message.text for message in run.messages[4:]] == ["Now", "Two.", "And now", "Three."]
    assert run.steps[0].event.name == "prompt_given"
    records = recorded(agent).records
    assert [record["name"] for record in records[:2]] == ["history_given", "prompt_given"]
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))


async def test_a_closed_agent_takes_no_run() -> None:
    agent = Agent(ScriptedModel(["Hello."]))
    agent.close()

    with pytest.raises(ProgramEnded):
        await agent.run("Go")


# Putting an agent together


async def test_the_shipped_prompt_names_tools_and_limits(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."])
    with Agent(model, workspace_tools(tmp_path)) as agent:
        await agent.run("Go")

    [request] = model.requests
    for words in (str(tmp_path), "bash, read_file, write_file, list_directory", "120 seconds", "20 turns"):
        assert words in request.system_prompt


async def test_tools_without_a_workspace_work_where_the_agent_does(tmp_path: Path) -> None:
    with Agent(ScriptedModel([]), [note], workspace=tmp_path) as agent:
        assert agent.toolbox.workspace.root == str(tmp_path)
    with Agent(ScriptedModel([]), [note, *workspace_tools(tmp_path)]) as agent:
        assert agent.toolbox.workspace.root == str(tmp_path)


# What a program that embeds agents meets first: models by name, tools as functions, and event loops


@tool
def price(item: str) -> str:
    """Look up a price."""
    return f"{item}: 3"


@tool
async def stock(item: str) -> str:
    """Look up the stock."""
    return f"{item}: 7"


async def test_a_tool_can_be_called_like_its_function_and_an_async_one_awaited() -> None:
    assert price(item="milk") == "milk: 3"
    assert price("milk") == "milk: 3"
    assert await stock("milk") == "milk: 7"


def test_a_model_may_be_given_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    assert Agent("gpt-5").model.name == "gpt-5"


async def test_run_sync_in_an_event_loop_says_to_await() -> None:
    agent = Agent(ScriptedModel(["Hello."]))

    with pytest.raises(RunError, match=r"an event loop is running already; write `await agent.run\(...\)`"):
        agent.run_sync("Go")

    assert repr(await agent.run("Go")) == "<Run: completed, answered, 6 steps>"
    assert repr(agent) == "<Agent: model scripted, preset default, tools: none>"


# A run and other threads: what people do from there is heard at once, on both event loops, and nothing is lost


SOON = 100.0  # seconds; the thing itself takes milliseconds, and nothing else wakes the event loop before
A_MOMENT = 0.05  # seconds


async def at(run: Run, kind: type[Any], do: Callable[[], object]) -> None:
    """Do something in another thread once an event of this kind happened, and the event loop waits."""
    async for step in run:
        if isinstance(step.event, kind):
            await anyio.wait_all_tasks_blocked()
            Timer(A_MOMENT, do).start()
            return


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_from_another_thread_is_heard_at_once(make_agent: MakeAgent, yes: bool) -> None:
    with anyio.fail_after(SOON):
        async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
            await at(run, ApprovalAsked, lambda: run.answer("call_1", yes, "fine" if yes else "rather not"))

    assert any(isinstance(event, GateApproved if yes else GateRejected) for event in run.events)
    assert yes or "rather not" in answers(run.messages)[0]


@pytest.mark.slow
async def test_a_message_of_another_thread_while_a_run_ends_begins_the_next_run(
    make_agent: MakeAgent,
) -> None:
    agent = make_agent(call("hang"), "Heard.", tools=[hang])
    words: list[str] = []

    def say(count: int) -> None:
        for _ in range(count):
            words.append(f"word {len(words)}")
            run.follow_up(words[-1])

    def say_until_the_end() -> None:
        while run.status == "running":
            say(1)
            sleep(0.001)
        say(3)

    thread = Thread(target=say_until_the_end)
    with anyio.fail_after(SOON):
        async with agent.start("Go") as run:
            thread.start()
            await at(run, FollowUpGiven, run.abort)
        await anyio.to_thread.run_sync(thread.join)
        await agent.run("And now")

    assert [message.text for message in agent.messages if message.text.startswith("word")] == words


# Drafts of several models: who is asked, what each is shown, and that a turn has one answer in the end


@bthread
def prefer(role: str, note: str = "") -> BThreadBody:
    """Have another role asked as well, and refuse the loop's own draft."""
    while True:
        yield sync(wait_for=where(InferenceFinished, draft="d0"))
        yield sync(request=InferenceRequested("other", role, note), block=DraftsSettled)
        yield sync(refuse=where(AnswerCommitted, draft="d0"), because="no", wait_for=AnswerCommitted | DraftsRefused)


def test_a_draft_that_was_not_committed_and_a_note_are_in_no_later_context_and_are_paid_for(
    make_agent: MakeAgent,
) -> None:
    look, done = call("bash", command="ls"), answer("Done.", usage=Usage(10, 5))
    trusted, note = ScriptedModel([answer("", look), done]), UserMessage("Improve this.")
    own = ("Secret plan.", answer("More of it.", usage=Usage(1, 2)))
    agent = make_agent(*own, threads=[prefer("trusted", note.text)], models={"trusted": trusted})

    run = agent.run_sync("Look around")

    first, second = trusted.requests
    assert first.messages == (UserMessage("Look around"), note)
    assert second.messages == (*run.messages[:-1], note)
    assert [message.text for message in run.messages if not isinstance(message, ToolMessage)] == [
        "Look around", "", "Done.",
    ]  # fmt: skip
    assert run.usage == Usage(11, 7)


def test_a_role_without_a_model_is_not_given_to_the_agents_model(make_agent: MakeAgent) -> None:
    agent = make_agent("Raw.", "Raw again.", threads=[prefer("trusted")])

    run = agent.run_sync("Write")

    [failed] = [event for event in run.events if isinstance(event, InferenceFailed)]
    assert failed.error == (
        "no model has the role 'trusted'; give one: Agent(models={'trusted': model}), or --role trusted=MODEL"
    )
    assert (run.status, run.reason) == ("failed", "drafts_refused")


def test_a_run_whose_drafts_are_all_refused_ends_as_the_reason_says(make_agent: MakeAgent) -> None:
    @bthread
    def limit() -> BThreadBody:
        yield sync(refuse=AnswerCommitted, because=Ending("limit", "drafts", "No more."), wait_for=RunEnded)

    run = make_agent("Hello.", threads=[limit()]).run_sync("Hi")

    assert (run.status, run.reason, run.text) == ("limit", "drafts", "No more.")


def test_two_tools_of_one_name_and_an_object_that_is_no_tool_are_errors() -> None:
    @tool(name="note")
    def note_again(text: str) -> str:
        """Write something else down."""
        return text

    with pytest.raises(
        ValueError, match=r"two tools are called 'note': .*conftest\.py:\d+ and .*test_run\.py:\d+; rename"
    ):
        Agent(ScriptedModel([]), [note, note_again])
    assert Agent(ScriptedModel([]), [note, note]).toolbox.names == ("note",)
    with pytest.raises(TypeError, match="<built-in function len> is no tool; make one with @tool"):
        Agent(ScriptedModel([]), [len])  # type: ignore[list-item]


async def test_a_question_that_was_answered_is_open_no_more(workspace: Path) -> None:
    """So a reader may answer whatever waits, at every step."""
    answered: list[str] = []
    agent = Agent(ScriptedModel([QUESTIONABLE, "Done."]), workspace_tools(workspace))
    async with agent.start("Go") as run:
        async for _ in run:
            for asked in run.waiting_for:
                run.answer(asked.call.id, False, "not now")
                answered.append(asked.call.id)
                assert run.waiting_for == ()

    assert len(answered) == 1
    assert run.status == "completed"


async def test_a_wrong_argument_of_an_agent_and_a_run_after_its_end_are_refused_at_once() -> None:
    model = ScriptedModel(["Done."])
    for name, wrong, cure in (
        ("approve", True, 'approve=True: give a function of the question, "later", or None'),
        ("approve", "latter", "approve='latter': give a function"),
        ("tools", note, "give a list, tools="),
        ("threads", prefer("x"), "give a list, threads="),
    ):
        options: dict[str, Any] = {name: wrong}
        with pytest.raises(TypeError, match=cure):
            Agent(model, **options)

    agent = Agent(model)
    agent.close()
    with pytest.raises(ProgramEnded, match=r"the agent was closed, .*; make a new Agent"):
        await agent.run("Go")


# What a whole run looks like


async def test_s5_1_without_tools_a_text_ends_the_run_after_one_iteration(make_agent: MakeAgent) -> None:
    agent = make_agent("Hello.", tools=())

    run = await agent.run("Say hello")

    assert (run.status, run.reason, run.text) == ("completed", "answered", "Hello.")
    assert run.messages == (UserMessage("Say hello"), AssistantMessage("Hello."))
    assert run.events.count(InferenceRequested()) == 1


@rows(
    ("arguments", "finding"),
    [
        ({}, "command"),
        ({"command": 5}, "command"),
        ({"command": "ls", "colour": "red"}, "colour"),
        ('{"command": "ls", "command": "pwd"}', "command"),
        ('"{\\"command\\": \\"ls\\"}"', "quoting"),
    ],
)
async def test_s6_2_invalid_parameters_are_an_error_for_the_model(
    make_agent: MakeAgent, arguments: Any, finding: str
) -> None:
    run = await make_agent(call("bash", arguments), "Sorry.").run("Go")

    [answered] = [message for message in run.messages if isinstance(message, ToolMessage)]
    assert answered.result.is_error
    assert finding in answered.text
    assert not any(isinstance(event, ToolStarted) for event in run.events)


@pytest.mark.parametrize("policy", ["default", None])
async def test_s6_12_a_link_that_points_outside_is_rejected(
    make_agent: MakeAgent, tmp_path: Path, workspace: Path, policy: str | None
) -> None:
    """Also where nothing is judged: then the tool itself refuses it."""
    (tmp_path / "outside.txt").write_text("secret")
    (workspace / "link.txt").symlink_to(tmp_path / "outside.txt")

    run = await make_agent(call("read_file", path="link.txt"), "No.", preset=Preset("any", policy=policy)).run("Go")

    [answered] = [message for message in run.messages if isinstance(message, ToolMessage)]
    assert answered.result.is_error
    assert "secret" not in answered.text


async def test_a_tool_finds_its_own_start_in_the_log(make_agent: MakeAgent, tmp_path: Path) -> None:
    log = tmp_path / "own.jsonl"

    @tool(category="read")
    def last_record() -> str:
        """Read the last line of the log."""
        return log.read_text().splitlines()[-1]

    run = await make_agent(call("last_record"), "Done.", tools=[last_record], log=log).run("Go")

    [answered] = answers(run.messages)
    assert json.loads(answered)["name"] == "tool_started"
