"""Autonomous work (S1): from the invocation tool to `complete`, its limit, its stops, and what the model is shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, answer, call
from agent.models.scripted import ScriptedModel
from agent.presets import PRESETS
from agent.session.agent import Run
from agent.tools.shell import make_shell_tool
from agent.tools.terminal import make_terminal
from agent.vocabulary.events import ApprovalAsked, StopAsked, ToolFinished, ToolStarted
from agent.vocabulary.messages import Message, UserMessage
from tests.agent.conftest import MakeAgent, answers, note
from tests.tables import rows

pytestmark = pytest.mark.anyio

PURSUE = call("pursue_objective", user_prompt="Tidy up", objective="No loose ends")


def complete(status: str = "success") -> Any:
    return call("complete", result="All is tidy.", status=status)


def shown(agent: Agent, number: int) -> tuple[Message, ...]:
    """What the model was shown for its inference with this number."""
    assert isinstance(agent.model, ScriptedModel)
    return tuple(agent.model.requests[number - 1].messages)


def blocks(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.text.startswith("[You are in an agentic loop")]


async def test_the_block_stands_before_the_newest_prompt_while_there_is_an_objective_and_tells_the_iteration(
    make_agent: MakeAgent,
) -> None:
    agent = make_agent("Hello.", PURSUE, call("note"), complete(), "Hello again.", tools=[note], preset="autonomous")
    for prompt in ("Say hello", "Tidy up", "Say hello"):
        await agent.run(prompt)

    assert blocks(shown(agent, 2)) == blocks(shown(agent, 5)) == []
    for number, iteration in ((3, 1), (4, 2)):
        messages = shown(agent, number)
        [block] = blocks(messages)
        assert f"iteration {iteration} of 25" in block
        assert messages.index(UserMessage(block)) + 1 == messages.index(UserMessage("Tidy up"))
        assert messages.index(UserMessage("Tidy up")) == 3


async def test_a_second_objective_is_refused_while_one_is_pursued(make_agent: MakeAgent) -> None:
    run = await make_agent(PURSUE, PURSUE, complete(), preset="autonomous").run("Tidy up")

    assert answers(run.messages)[1].startswith("rejected: one_objective: an objective is being pursued")


async def test_at_the_limit_the_last_response_and_the_partial_results_are_returned(
    make_agent: MakeAgent, workspace: Path
) -> None:
    """S1 4.3 and 7.2: both, and the output says that the limit was reached."""
    written = answer("I write it down.", call("write_file", path="a.txt", content="a"))
    steps = (PURSUE, written, call("bash", command="echo half; exit 3"), "Never said.")
    run = await make_agent(*steps, preset=evolve(PRESETS["autonomous"], max_iterations=2)).run("Tidy up")

    assert (run.status, run.reason) == ("limit", "max_iterations")
    assert run.text == "Stopped: maximum iteration limit reached.\n\nLast response: I write it down."
    assert run.state.files_modified == (str(workspace / "a.txt"),)
    assert run.state.last_command is not None
    assert (run.state.last_command.text, run.state.last_command.exit_code) == ("echo half; exit 3", 3)
    assert run.state.objective == "No loose ends"


@rows(
    ("say", "said", "ran"),
    [
        (lambda run: run.answer("call_2", yes=False, text="no, Stop it"), "no, Stop it", ["finished"]),
        (lambda run: run.steer("nonstop!"), "nonstop!", []),
    ],
)
async def test_the_letters_stop_in_an_answer_or_in_steering_stop_after_the_step(
    make_agent: MakeAgent, say: Callable[[Run], None], said: str, ran: list[str]
) -> None:
    """S1 6.3, 8.1: the rest of the step is completed, no tool is cut short, and the state is returned."""
    risky = [call("bash", command="rm -rf old"), call("bash", command="echo finished")]
    agent = make_agent(PURSUE, risky, "Never said.", preset="autonomous")
    async with agent.start("Tidy up") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                say(run)

    assert (run.status, run.reason) == ("stopped", "stop_asked")
    assert StopAsked(said) in run.events
    assert run.state.iteration == 2
    assert [event.result.text.strip() for event in run.events if isinstance(event, ToolFinished)][1:] == ran


# The terminal that ships


async def test_the_terminal_that_ships_tells_the_state_tracker_where_it_is(
    make_agent: MakeAgent, workspace: Path
) -> None:
    (workspace / "src").mkdir()
    steps = [
        PURSUE,
        call("terminal", command="cd src; echo here; false", persistent=True),
        call("terminal", close=True),
        complete(),
    ]
    agent = make_agent(*steps, tools=[make_terminal(str(workspace))], preset="autonomous")
    run = await agent.run("Tidy up")

    assert run.status == "completed"
    [while_open], [closed] = blocks(shown(agent, 3)), blocks(shown(agent, 4))
    assert f"Terminal: open, in {workspace / 'src'}" in while_open
    assert "Last command: cd src; echo here; false (exit code 1)" in while_open
    assert "Terminal: closed" in closed


# `complete` without an objective ends the run (S1 4.1.5), and what it says is not lost


@rows("status", ["success", "failure", "partial"])
@rows("after", ["Some text.", ""])
async def test_complete_ends_a_run_that_has_no_objective_and_no_other_call_of_the_turn_runs(
    make_agent: MakeAgent, status: str, after: str
) -> None:
    agent = make_agent([complete(status), call("note")], *[after] * 3, tools=[note], preset="autonomous")

    run = await agent.run("Go")

    assert (run.status, run.reason, run.text) == ("completed", status, "All is tidy.")
    assert [event.call.tool for event in run.events if isinstance(event, ToolStarted)] == ["complete"]


# The state of a run names the files that commands change, not only those that file tools write (S1 2.2, 3.2)


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("echo x > a", ["a"]),
        ("touch a b", ["a", "b"]),
        ("cp old new", ["new"]),
        ("mv old new", ["old", "new"]),
        ("sed -i s/x/y/ old", ["old"]),
        ("tee a < old", ["a"]),
        ("cd sub && echo x > a", ["sub/a"]),
        ("cd nope; echo x > a", ["a", "nope/a"]),  # a cd that may fail leaves the command where it was
        ("rm old", ["old"]),
        ("cat old > /dev/null", []),
        ("cat old", []),
    ],
)
def test_files_that_a_command_changes_are_known(
    make_agent: MakeAgent, tmp_path: Path, command: str, changed: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "old").write_text("x\n")
    agent = make_agent(
        call("bash", command=command), "Done.", tools=[make_shell_tool(str(tmp_path))], preset="passthrough",
        workspace=tmp_path,
    )  # fmt: skip

    run = agent.run_sync("Go")

    assert sorted(run.state.files_modified) == sorted(str(tmp_path / name) for name in changed)
