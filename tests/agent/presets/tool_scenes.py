"""What tools do under a preset: one call each of what the preset offers, with nothing judged."""

import json
import os
from pathlib import Path
from typing import Any

from attrs import evolve

from agent import Preset, call
from agent.cli.setup import tools_of
from agent.events import ToolFinished
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import results

SHELL = {"terminal": "terminal"}
"""What the tool for commands is called, where it is not `bash`."""


async def names_of_tools(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """What tools there are, besides those by which work begins and ends."""
    return sorted(tool.name for tool in tools_of(preset, Path.home() / "workspace"))


async def a_declared_tool(make_agent: MakeAgent, preset: Preset) -> str:
    """What becomes of a call of a tool that ~/mine.yaml declares."""
    (Path.home() / "mine.yaml").write_text(
        "tools: [{name: greet, description: Greet., category: read, cmd: echo, args: [hello]}]"
    )

    finished = await _last(make_agent, preset, "greet")

    return "unknown" if finished is None else finished.result


async def shell_of_a_command(make_agent: MakeAgent, preset: Preset) -> str:
    """Which shell runs a command, and whether it is a login shell."""
    return await _told(make_agent, preset, 'shopt -q login_shell 2>/dev/null && echo login; echo "${0##*/}"')


async def an_hour_is_asked_for(make_agent: MakeAgent, preset: Preset) -> str:
    """What is said of a command for which an hour is asked."""
    said = await _told(make_agent, evolve(preset, result_form="text"), "echo hi", timeout=3600)
    return said.removeprefix("hi\n")


async def five_thousand_lines(make_agent: MakeAgent, preset: Preset) -> tuple[int, str]:
    """How many lines are shown of 5,000 short ones, a notice among them, and the first one."""
    told = await _told(make_agent, evolve(preset, compact=None, result_form="text", spill=False), "seq 5000")
    lines = [line for line in told.split("\n") if line]
    return len(lines), lines[0]


async def a_flood(make_agent: MakeAgent, preset: Preset) -> tuple[str, bool]:
    """How what is shown of a very long output begins, and whether it says where all of it is."""
    preset = evolve(preset, compact=None, result_form="text")

    told = await _told(
        make_agent, preset, "head -c 300000 /dev/zero | tr '\\0' a; head -c 300000 /dev/zero | tr '\\0' b"
    )

    for path in Path(os.environ["TMPDIR"]).glob("bpagent-output-*"):
        path.unlink()
    return told[0], "all of it is in" in told


async def length_of_an_answer(make_agent: MakeAgent, preset: Preset) -> int:
    """How many characters the model is shown of 20,000."""
    told = await _told(make_agent, evolve(preset, output_keep="both"), "head -c 20000 /dev/zero | tr '\\0' a")
    return len(told)


async def an_exit_code(make_agent: MakeAgent, preset: Preset) -> bool:
    """Whether an exit code of 3 is an error."""
    finished = await _last(make_agent, preset, SHELL.get(preset.tools, "bash"), command="exit 3")
    assert finished is not None
    return finished.is_error


async def form_of_a_result(make_agent: MakeAgent, preset: Preset) -> tuple[str, bool]:
    """Whether the model is told text or an envelope, and whether programs are told what was left out."""
    preset = evolve(preset, output_keep="tail", output_limit=100)
    finished = await _last(make_agent, preset, SHELL.get(preset.tools, "bash"), command="seq 1000")
    assert finished is not None
    return finished.result[:9], "truncation" in finished.details


async def a_variable_of_ours(make_agent: MakeAgent, preset: Preset) -> str:
    """What a command sees of a variable that the program has."""
    return await _told(make_agent, preset, "echo [$OF_OURS]")


async def _told(make_agent: MakeAgent, preset: Preset, command: str, **arguments: Any) -> str:
    """What a command's answer says, without its envelope."""
    name = SHELL.get(preset.tools, "bash")
    finished = await _last(make_agent, preset, name, command=command, **arguments)
    assert finished is not None
    if preset.result_form == "envelope":
        return str(json.loads(finished.result)["result"]["output"]).rstrip("\n")
    return finished.result.rstrip("\n")


async def _last(make_agent: MakeAgent, preset: Preset, tool: str, **arguments: Any) -> ToolFinished | None:
    """How the tool ended; None if it never ran."""
    preset = evolve(preset, policy=None)
    tools = tools_of(preset, Path.home() / "workspace")
    run = await make_agent(call(tool, **arguments), "Done.", tools=tools, preset=preset).run("Go")
    assert results(run)
    return next((event for event in run.events if isinstance(event, ToolFinished)), None)
