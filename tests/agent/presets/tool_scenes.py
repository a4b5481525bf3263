"""Which tools a preset offers."""

from pathlib import Path

from attrs import evolve

from agent import Preset, call
from agent.presets.equipment import equip
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import results


async def names_of_tools(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """What tools there are, besides those by which work begins and ends."""
    return sorted(tool.name for tool in equip(preset, Path.home() / "workspace"))


async def a_declared_tool(make_agent: MakeAgent, preset: Preset) -> str:
    """What becomes of a call of a tool that ~/mine.yaml declares; nothing is judged."""
    (Path.home() / "mine.yaml").write_text(
        "tools: [{name: greet, description: Greet., category: read, cmd: echo, args: [hello]}]"
    )
    preset = evolve(preset, policy=None)
    tools = equip(preset, Path.home() / "workspace")

    run = await make_agent(call("greet"), "Done.", tools=tools, preset=preset).run("Greet")

    return "unknown" if "unknown tool" in results(run)[0] else results(run)[0]
