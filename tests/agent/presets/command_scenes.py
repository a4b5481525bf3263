"""What happens under a preset when commands run: shell, environment, time, output, and the form of the answer."""

import json
import re
from pathlib import Path

import pytest
from attrs import evolve

from agent import Preset, call
from agent.vocabulary.messages import ToolMessage
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import fate, results, within


async def a_short_sleep(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """What becomes of a command that takes a moment, and how long the model is told that commands may take."""
    preset = evolve(preset, result_form="text")
    agent = make_agent(
        call("bash", command="sleep 0.2; echo ran"),
        "Done.",
        tools=within(preset, Path.home() / "workspace"),
        preset=preset,
    )

    run = await agent.run("Sleep")

    said = re.search(r"A command ends after (.*) unless", agent.system_prompt)
    return fate(results(run)[0]), said[1] if said else ""


async def _command(command: str, make_agent: MakeAgent, preset: Preset, **arguments: object) -> ToolMessage:
    """What a command answers; nothing judges it."""
    preset = evolve(preset, policy=None)
    agent = make_agent(
        call("bash", {"command": command, **arguments}),
        "Done.",
        tools=within(preset, Path.home() / "workspace"),
        preset=preset,
    )

    run = await agent.run("Go")

    return next(message for message in run.messages if isinstance(message, ToolMessage))


async def _told(command: str, make_agent: MakeAgent, preset: Preset, **arguments: object) -> ToolMessage:
    """The same in words, all of them."""
    return await _command(command, make_agent, evolve(preset, result_form="text", compact=None), **arguments)


async def an_hour_asked_for(make_agent: MakeAgent, preset: Preset) -> str:
    """To how many seconds a timeout of an hour is cut."""
    answered = await _told("true", make_agent, preset, timeout=3600)

    found = re.search(r"timeout of 3600 seconds clamped to (\d+)", answered.text)
    return found[1] if found else "none"


async def a_second_asked_for(make_agent: MakeAgent, preset: Preset) -> str:
    """To how many seconds a timeout of one second is raised."""
    answered = await _told("true", make_agent, preset, timeout=1)

    found = re.search(r"timeout of 1 seconds raised to (\d+)", answered.text)
    return found[1] if found else "none"


async def which_shell(make_agent: MakeAgent, preset: Preset) -> str:
    """Which shell runs a command, and whether it is a login shell."""
    asking = 'tr "\\0" " " < /proc/$$/cmdline'
    answered = await _told(asking, make_agent, preset)

    return " ".join(answered.text.split()[:2])


async def a_variable_of_ours(make_agent: MakeAgent, preset: Preset) -> str:
    """What a command sees of a variable that is not on the list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OF_OURS", "ours")
        answered = await _told('echo "$OF_OURS"', make_agent, preset)

    return answered.text.replace("(no output)", "").strip()


async def both_streams(make_agent: MakeAgent, preset: Preset) -> str:
    """How the model is told of standard output and error."""
    return (await _told("echo err >&2; echo out", make_agent, preset)).text


async def three_thousand_lines(make_agent: MakeAgent, preset: Preset) -> int:
    """How many of 3,000 lines the model is shown."""
    answered = await _told("yes line | head -n 3000", make_agent, preset)

    return answered.text.splitlines().count("line")


async def both_ends(make_agent: MakeAgent, preset: Preset) -> tuple[bool, bool]:
    """Whether the model is shown the beginning and the end of a long output."""
    preset = evolve(preset, output_limit=1000)
    answered = await _told("echo first; yes | head -n 2000; echo last", make_agent, preset)

    lines = answered.text.splitlines()
    return "first" in lines, "last" in lines


async def a_whole_output_in_a_file(make_agent: MakeAgent, preset: Preset) -> bool:
    """Whether the model is told of a file with all of a long output."""
    preset = evolve(preset, output_limit=1000)
    answered = await _told("yes | head -n 2000", make_agent, preset)

    files = [Path(word) for word in re.findall(r"/[^\s\]]+", answered.text)]
    found = [file for file in files if file.is_file()]
    assert all(file.read_bytes() == b"y\n" * 2000 for file in found)
    return bool(found)


async def characters_of_a_long_line(make_agent: MakeAgent, preset: Preset) -> int:
    """How many characters of a line of 60,000 the model is shown."""
    preset = evolve(preset, result_form="text", output_limit=200_000)
    answered = await _command("head -c 60000 /dev/zero | tr '\\0' x", make_agent, preset)

    return len(answered.text)


async def form_of_a_result(make_agent: MakeAgent, preset: Preset) -> str:
    """The schema of what a command answers, or "text"."""
    answered = await _command("echo ran", make_agent, preset)

    return str(json.loads(answered.text)["schema"]) if answered.text.startswith("{") else "text"


async def exit_code_three(make_agent: MakeAgent, preset: Preset) -> tuple[str, bool]:
    """What the model is told of a command that exits with 3, and whether that is an error."""
    answered = await _told("exit 3", make_agent, preset)

    return answered.text.splitlines()[-1], answered.is_error


async def a_server_and_the_next_call(make_agent: MakeAgent, preset: Preset) -> str:
    """What becomes of a process that a call leaves running."""
    preset = evolve(preset, policy=None, result_form="text")
    tools = within(preset, Path.home() / "workspace")
    shell = next(tool.name for tool in tools if tool.command_in)
    stays = {"background": True} if "background" in str(tools[0].parameters) else {}
    command = "sleep 300" if stays else "sleep 300 &"
    agent = make_agent(call(shell, {"command": command, **stays}), "Done.", tools=tools, preset=preset)

    run = await agent.run("Serve")

    return "runs" if "runs in the background" in results(run)[0] else "killed"


async def a_write_beside_the_workspace(make_agent: MakeAgent, preset: Preset) -> str:
    """What becomes of a write outside of the workspace that nothing judges."""
    canary = Path.home() / "canary.txt"
    canary.write_text("alive")

    await _told(f"echo gone > {canary}", make_agent, preset)

    return "kept out" if canary.read_text() == "alive" else "written"
