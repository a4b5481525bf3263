"""Background processes: started by a call, listed, read, stopped, and gone with the run or the program."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import Agent, ScriptedModel, call
from agent.effects.execution import describe
from agent.session.resume import resume
from agent.tools.background import MOST_PROCESSES, Processes
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool, Toolbox
from agent.tools.terminal import make_terminal
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import ToolMessage, ToolResult
from tests.outside.driving import is_running

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop waits for processes: each of both is tried."""
    return str(request.param)


@pytest.fixture
def processes() -> Processes:
    return Processes(settle=0.05)


@pytest.fixture
def tools(root: Path, processes: Processes) -> Mapping[str, Tool]:
    return {tool.name: tool for tool in workspace_tools(root, timeout=100, processes=processes)}


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.sleep(0.01)


async def start(tools: Mapping[str, Tool], command: str) -> ToolResult:
    return await tools["bash"].run({"command": command, "background": True})


async def read(tools: Mapping[str, Tool], **arguments: Any) -> str:
    return (await tools["process_output"].run(arguments)).text


async def number_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text() != "")
    return int(file.read_text())


async def test_a_process_stays_after_its_call_and_is_listed_read_and_stopped(
    tools: Mapping[str, Tool], root: Path
) -> None:
    started = await start(tools, "echo $$ > number; echo begun; exec sleep 300")
    number = await number_in(root / "number")
    listed = await read(tools)
    unknown = await tools["process_output"].run({"id": "bg_7"})
    running = is_running(number)
    stopped = await tools["process_stop"].run({"id": "bg_1"})

    assert "[bg_1 runs in the background until the run ends" in started.text
    assert listed.startswith("bg_1 is running: echo $$ > number; echo begun")
    assert unknown == ToolResult("there is no background process 'bg_7'; there are: bg_1", is_error=True)
    assert running
    assert stopped.text.endswith("[bg_1 ended: stopped]")
    assert not is_running(number)
    assert await read(tools, id="bg_1") == "(no new output)\n[bg_1 ended: stopped]"


async def test_output_is_given_once_and_a_reader_may_wait_for_it_or_the_end(
    tools: Mapping[str, Tool], root: Path
) -> None:
    os.mkfifo(root / "gate")
    texts = [(await start(tools, "echo one; read line < gate; echo $line; exit 5")).text]

    async def read_on() -> None:
        while "ended" not in "".join(texts):
            texts.append(await read(tools, id="bg_1", wait=60))

    async with anyio.create_task_group() as group:
        group.start_soon(read_on)
        await anyio.to_thread.run_sync((root / "gate").write_text, "hello\n")

    assert ("".join(texts).count("one\n"), "".join(texts).count("hello")) == (1, 1)
    assert texts[-1].endswith("[bg_1 ended: exit code 5]")
    assert len(texts) <= 4


async def test_an_early_end_is_reported_in_the_same_answer_and_a_later_one_in_the_next(
    tools: Mapping[str, Tool], root: Path
) -> None:
    patient = {tool.name: tool for tool in workspace_tools(root, processes=Processes(settle=1000))}
    failed = await start(patient, "echo address in use; exit 3")
    os.mkfifo(root / "gate")
    await start(tools, "read line < gate; exit 4")
    (root / "gate").write_text("now\n")
    while "bg_1" not in (told := await tools["bash"].run({"command": "echo hello"})).text:
        await anyio.sleep(0.01)

    assert failed.text == "address in use\n[bg_1 ended: exit code 3]"
    [row] = map(dict, failed.details["background"])
    assert row == {"id": "bg_1", "command": "echo address in use; exit 3", "status": "ended", "how": "exit code 3"}
    assert told.text == "hello\n[background process bg_1 ended: exit code 4]"


async def test_a_flood_is_bounded_and_there_are_at_most_so_many(
    tools: Mapping[str, Tool], processes: Processes, root: Path
) -> None:
    limit = processes.retention.limit
    started = await start(tools, f"head -c {10 * limit} /dev/zero | tr '\\0' x; touch over; sleep 300")
    await until((root / "over").exists)
    text = await read(tools, id="bg_1")
    for _ in range(MOST_PROCESSES - 1):
        await start(tools, "exec sleep 300")
    refused = await start(tools, "exec sleep 300")
    await processes.end_run()

    assert "bytes left out here]" in started.text + text
    assert max(len(started.text), len(text)) < limit + 1000
    assert refused.text == f"{MOST_PROCESSES} background processes are running already; stop one with process_stop"


async def test_an_abort_while_one_is_stopped_leaves_nothing(tools: Mapping[str, Tool], root: Path) -> None:
    await start(tools, "trap '' TERM; echo $$ > number; while true; do sleep 0.05; done")
    number = await number_in(root / "number")
    with anyio.move_on_after(0.1):
        await tools["process_stop"].run({"id": "bg_1"})

    assert not is_running(number)


def test_the_gate_sees_background_commands(tools: Mapping[str, Tool], root: Path) -> None:
    toolbox = Toolbox(tools.values(), Workspace(root))
    calls: list[dict[str, Any]] = [{"command": "sleep 1", "background": True}, {"command": "sleep 1"}]

    facts = [describe(ToolCall("1", "bash", arguments), toolbox) for arguments in calls]

    assert [(each.background, each.command) for each in facts] == [(True, "sleep 1"), (False, "sleep 1")]


async def test_in_a_terminal_it_starts_where_the_session_stands(root: Path, processes: Processes) -> None:
    terminal = make_terminal(str(root), processes=processes)
    await terminal.run({"command": "mkdir sub; cd sub; export NAME=world", "persistent": True})
    await terminal.run({"command": "echo hello $NAME from $PWD > said; exec sleep 300", "background": True})
    await until(lambda: (root / "sub/said").exists() and (root / "sub/said").read_text() != "")
    await processes.end_run()

    assert (root / "sub/said").read_text() == f"hello world from {root}/sub\n"


async def test_the_next_run_has_a_process_only_if_it_was_started_for_the_program(root: Path) -> None:
    told = []
    for until_end in ("run", "program"):
        processes = Processes(settle=0.05, until=until_end)
        tools = {tool.name: tool for tool in workspace_tools(root, processes=processes)}
        script: list[Any] = [
            call("bash", command="exec sleep 300", background=True),
            "Up.",
            call("process_output"),
            "Done.",
        ]
        with Agent(ScriptedModel(script), tools.values(), workspace=root) as agent:
            state = (await agent.run("Serve")).state
            again = await agent.run("Use it")
        told.append((len(state.background), again.new_messages[2].text))
    await tools["process_stop"].run({"id": "bg_1"})

    assert told == [(0, "bg_1 ended: with the run: exec sleep 300"), (1, "bg_1 is running: exec sleep 300")]


async def test_a_background_process_is_reported_as_gone_after_resume(
    root: Path, tmp_path: Path, tools: Mapping[str, Tool]
) -> None:
    stays, log = call("bash", command="exec sleep 300", background=True), tmp_path / "log.jsonl"
    script: list[Any] = [stays, call("bash", command="touch .git/config").with_id("x")]
    with Agent(ScriptedModel(script), tools.values(), workspace=root, log=log, approve="later") as agent:
        assert (await agent.run("Serve")).status == "waiting"
    fresh = workspace_tools(root, processes=Processes(settle=0.05))

    with resume(log, ScriptedModel([call("process_output"), stays, "Done."]), fresh) as agent:
        assert agent.journal.tracker.state.background == ()
        assert [process.id for process in agent.lost_processes] == ["bg_1"]
        agent.decide("x", False)
        run = await agent.run()

    listed, second = [message.text for message in run.messages if isinstance(message, ToolMessage)][2:]
    assert listed == "bg_1 ended: with the program that had started it: exec sleep 300"
    assert "[bg_2 runs in the background" in second


STARTER = """
import anyio, sys
from agent.tools.background import Processes
from agent.tools.collections import workspace_tools
async def main():
    tools = workspace_tools(sys.argv[1], processes=Processes(settle=0))
    await tools[0].run({"command": "echo $$ > number; setsid -f sh -c 'echo $$ > other; exec sleep 300'; sleep 300",
                        "background": True})
    print("started", flush=True)
    await anyio.sleep_forever()
anyio.run(main, backend=sys.argv[2])
"""


async def test_it_ends_with_a_program_that_is_killed(root: Path, anyio_backend: str, popen: Callable[..., Any]) -> None:
    program = popen([sys.executable, "-c", STARTER, root, anyio_backend], stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"started\n"
    numbers = [root / "number", root / "other"]
    await until(lambda: all(file.exists() and file.read_text() for file in numbers))

    program.send_signal(signal.SIGKILL)
    program.wait()

    await until(lambda: not any(is_running(int(file.read_text())) for file in numbers))
