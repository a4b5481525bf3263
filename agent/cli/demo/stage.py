"""The agent of the demo: the scripted model, the real tools over the workshop, the default rules and one protocol."""

from collections.abc import Callable, Sequence

from agent.cli.demo.protocol import nothing_leaves_after_a_secret
from agent.cli.demo.story import make_model
from agent.cli.demo.workshop import Workshop
from agent.effects.approval import Approver
from agent.presets.shipped import PRESETS
from agent.session.agent import Agent
from agent.tools.collection import workspace_tools
from bp import BThread, Step

__all__ = ["PROTOCOLS", "make_agent"]

PROTOCOLS = (nothing_leaves_after_a_secret(),)


def make_agent(
    workshop: Workshop,
    *,
    approve: Approver | None = None,
    on_step: Callable[[Step], None] | None = None,
    protocols: Sequence[BThread] = PROTOCOLS,
    pause: float = 0.0,
) -> Agent:
    """Return the demo's agent, its log in the workshop. Raises LogError when that cannot be written."""
    return Agent(
        make_model(pause),
        workspace_tools(workshop.project, env=workshop.environment),
        preset=PRESETS["default"],
        threads=protocols,
        approve=approve,
        log=workshop.log,
        on_step=on_step,
    )
