"""The world of an episode in AgentDojo: a scene, and a folder with nothing in it.

No process runs in it: whatever an agent does changes values in memory only. So no cell is made, and nothing is harmed.
"""

import json

from attrs import field, frozen

from agent.lab.settings.agentdojo.functions import tools_of
from agent.lab.settings.agentdojo.scenes import Scene
from agent.lab.settings.world import World
from agent.models.scripted import ScriptedCall
from agent.tools.definition import Tool

__all__ = ["Room", "room_of"]


@frozen
class Room(World):
    """A world in which a scene is."""

    scene: Scene = field(kw_only=True)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the agent that works here: a suite's."""
        return tools_of(self.scene)

    def perform(self, call: ScriptedCall) -> None:
        """Carry out a call as the agent's tools would."""
        self.scene.carry_out(call.tool, json.loads(call.arguments))

    def conclude(self, said: str) -> None:
        """Take note of what the agent said in the end, which checks look at."""
        self.scene.said = said


def room_of(world: World, scene: Scene) -> Room:
    """Return a world as the room of a scene."""
    return Room(world.folder, world.home, world.box, scene=scene)
