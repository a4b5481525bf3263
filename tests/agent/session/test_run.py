"""A run while it goes on, and an agent over several runs: who may look on, step in, and continue."""

from pathlib import Path

import anyio
import pytest

from agent import Agent, ScriptedModel, answer, call, tool, workspace_tools
from agent.presets.preset import OptionError
from agent.vocabulary.events import ApprovalAsked, GateApproved, GateRejected, RunEnded, ToolStarted
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage, Usage, UserMessage
from bp import BThreadBody, ProgramEnded, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, note
from tests.agent.soundness import recorded

pytestmark = pytest.mark.anyio

QUESTIONABLE = call("bash", command="git reset --hard")


# Looking on


async def test_steps_come_as_they_happen_and_to_each_reader_from_the_beginning(make_agent: MakeAgent) -> None:
    async with make_agent(call("note"), "Done.", tools=[note]).start("Go") as run:
        early = [step async for step in run]
        late = [step async for step in run]

    assert early == late == run.steps
    assert isinstance(early[-1].event, RunEnded)


async def test_a_reader_who_leaves_early_disturbs_nobody(make_agent: MakeAgent) -> None:
    """Found: the run broke off at its next step."""
    async with make_agent(call("note"), "Done.", tools=[note]).start("Go") as run:
        async for _ in run:
            break

    assert run.status == "completed"


async def test_a_run_tells_how_it_stands(make_agent: MakeAgent) -> None:
    agent = make_agent(answer("Done.", usage=Usage(3, 4)))

    async with agent.start("Go") as run:
        before = (run.status, run.reason, run.text, run.result)

    assert before == ("running", "", "", None)
    assert (run.status, run.reason, run.text, run.result) == ("completed", "answered", "Done.", None)
    assert run.usage == Usage(3, 4)
    assert run.log == agent.log_path
    assert run.agent is agent


async def test_text_and_output_are_shown_whole(make_agent: MakeAgent) -> None:
    said: list[str] = []
    shown: list[str] = []
    agent = make_agent(
        answer("Let me see.", call("bash", command="echo one; sleep 0.1; echo two")),
        "Done.",
        on_text=said.append,
        on_output=shown.append,
    )

    await agent.run("Go")

    assert "".join(said) == "Let me see.Done."
    assert "".join(shown) == "one\ntwo\n"


# Stepping in


@pytest.mark.parametrize("yes", [True, False])
async def test_whoever_started_a_run_answers_its_questions(make_agent: MakeAgent, yes: bool) -> None:
    async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                run.answer(step.event.call.id, yes, "fine" if yes else "rather not")

    assert any(isinstance(event, GateApproved if yes else GateRejected) for event in run.events)
    assert yes or "rather not" in answers(run.messages)[0]


async def test_only_the_first_answer_counts(make_agent: MakeAgent) -> None:
    """Found: a second answer in the same moment replaced the first."""
    async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                run.answer("call_1", yes=False)
                with pytest.raises(KeyError):
                    run.answer("call_1", yes=True)

    assert not any(isinstance(event, ToolStarted) for event in run.events)


async def test_a_question_may_be_answered_later(make_agent: MakeAgent) -> None:
    async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                await anyio.wait_all_tasks_blocked()
                run.answer("call_1", yes=True)

    assert any(isinstance(event, ToolStarted) for event in run.events)


async def test_an_answer_without_a_question_is_a_mistake(make_agent: MakeAgent) -> None:
    async with make_agent("Done.").start("Go") as run:
        with pytest.raises(KeyError):
            run.answer("call_1", yes=True)


async def test_in_a_run_without_a_person_the_answer_is_no(make_agent: MakeAgent) -> None:
    run = await make_agent(QUESTIONABLE, "Done.").run("Go")

    assert answers(run.messages)[0].startswith("denied: no person present")


# Several runs


async def test_a_second_run_continues_the_conversation(make_agent: MakeAgent) -> None:
    agent = make_agent("One.", "Two.")

    await agent.run("First")
    second = await agent.run("Second")

    assert [message.text for message in second.messages] == ["First", "One.", "Second", "Two."]
    assert second.steps[0].event.name == "prompt_given"
    assert [record["step"] for record in recorded(agent).records] == list(range(1, len(recorded(agent).records) + 1))


async def test_a_prompt_waits_for_the_end_of_the_run_before_it(make_agent: MakeAgent) -> None:
    """Found: two runs at once ended in a deadlock error, and in a second `run_ended` within the first run."""
    agent = make_agent(call("note"), "One.", call("note"), "Two.", tools=[note])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.run, "First")
        tasks.start_soon(agent.run, "Second")

    texts = [message.text for message in agent.messages]
    assert sorted(texts[::4]) == ["First", "Second"]
    assert [text for text in texts if text in ("One.", "Two.")] == ["One.", "Two."]


async def test_what_comes_after_the_end_of_a_run_is_forgotten(make_agent: MakeAgent) -> None:
    agent = make_agent("One.", "Two.")
    async with agent.start("First") as first:
        pass
    first.stop()
    first.abort()

    assert (await agent.run("Second")).status == "completed"


async def test_an_earlier_conversation_can_be_given(make_agent: MakeAgent) -> None:
    history: list[Message] = [
        UserMessage("Before"),
        AssistantMessage("", (RequestedCall("x", "note", "{}"),)),
        ToolMessage("x", "noted"),
        AssistantMessage("One."),
    ]
    agent = make_agent("Two.", "Three.", history=history)

    await agent.run("Now")
    run = await agent.run("And now")

    assert list(run.messages[:4]) == history
    assert [message.text for message in run.messages[4:]] == ["Now", "Two.", "And now", "Three."]
    assert [record["name"] for record in recorded(agent).records[:2]] == ["history_given", "prompt_given"]


async def test_a_closed_agent_takes_no_run() -> None:
    agent = Agent(ScriptedModel(["Hello."]))
    agent.close()

    with pytest.raises(ProgramEnded):
        await agent.run("Go")


# Putting an agent together


async def test_tools_without_a_workspace_work_where_the_agent_does(tmp_path: Path) -> None:
    with Agent(ScriptedModel([]), [note], workspace=tmp_path) as agent:
        assert agent.toolbox.workspace.root == str(tmp_path)
    with Agent(ScriptedModel([]), [note, *workspace_tools(tmp_path)]) as agent:
        assert agent.toolbox.workspace.root == str(tmp_path)


async def test_the_shipped_prompt_names_tools_and_limits(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."])
    with Agent(model, workspace_tools(tmp_path)) as agent:
        await agent.run("Go")

    [request] = model.requests
    for words in (str(tmp_path), "bash, read_file, write_file, list_directory", "120 seconds", "20 turns"):
        assert words in request.system_prompt


async def test_a_preset_that_does_not_exist_is_named_with_the_nearest() -> None:
    with pytest.raises(OptionError, match="there is no preset 'defalt'; did you mean 'default'"):
        Agent(ScriptedModel([]), preset="defalt")


async def test_a_b_thread_of_ones_own_changes_the_run(make_agent: MakeAgent) -> None:
    @bthread
    def no_notes() -> BThreadBody:
        yield sync(refuse=GateApproved, because="no notes today")

    run = await make_agent(call("note"), "Well.", tools=[note], threads=[no_notes()]).run("Go")

    assert answers(run.messages) == ["rejected: no_notes: no notes today"]


def test_run_sync_needs_no_event_loop(make_agent: MakeAgent) -> None:
    agent = make_agent("One.", "Two.")

    assert [agent.run_sync(prompt).text for prompt in ("First", "Second")] == ["One.", "Two."]


async def test_ids_that_cannot_be_used_are_replaced_everywhere(make_agent: MakeAgent) -> None:
    @tool(category="read")
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    script = [call("echo", text=text).with_id(id) for text, id in (("a", "x"), ("b", "x"), ("c", ""))]
    agent = make_agent(script, "Done.", tools=[echo])
    run = await agent.run("Go")

    said = run.messages[1]
    assert isinstance(said, AssistantMessage)
    ids = [requested.id for requested in said.calls]
    assert ids[0] == "x"
    assert len(set(ids)) == 3
    assert answers(run.messages) == ["a", "b", "c"]
    [finished] = [record for record in recorded(agent).records if record["name"] == "inference_finished"][:1]
    assert [requested["id"] for requested in finished["data"]["message"]["calls"]] == ["x", "x", ""]
