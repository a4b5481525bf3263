"""An agent loop in which everything is a b-thread: b-threads decide, projections remember, effects act.

    from agent import Agent, ScriptedModel, workspace_tools

    agent = Agent(ScriptedModel(["Hello."]), workspace_tools(folder))
    run = await agent.run("Say hello")  # or agent.run_sync(...)

The folders are layers; each imports only from those before it: `vocabulary`, `tools`, `models`, `threads` (the rules
of the loop), `protocols`, `projections`, `effects`, `log`, `presets`, `history`, `session` (agents and runs),
`verification`, `page` and `telemetry`, `testing`, `lab` (experiments), `cli` (the command).
"""

from agent.vocabulary import from_modules

TYPE_CHECKING = False  # `typing` takes thirty times as long to import, in which Ctrl-C would be a traceback
if TYPE_CHECKING:
    from agent.effects.loop import Hooks
    from agent.models.scripted import ScriptedModel, answer, call
    from agent.presets.preset import Preset
    from agent.session.agent import Agent, Run
    from agent.session.resume import resume
    from agent.session.stateless import LoopConfig, agent_loop
    from agent.tools.collections import workspace_tools
    from agent.tools.definition import Tool, tool

__all__ = [
    "Agent",
    "Hooks",
    "LoopConfig",
    "Preset",
    "Run",
    "ScriptedModel",
    "Tool",
    "agent_loop",
    "answer",
    "call",
    "resume",
    "tool",
    "workspace_tools",
]

__getattr__, __dir__ = from_modules(
    "agent",
    {
        "effects.loop": "Hooks",
        "session.stateless": "LoopConfig agent_loop",
        "presets.preset": "Preset",
        "session.agent": "Agent Run",
        "models.scripted": "ScriptedModel answer call",
        "tools.definition": "Tool tool",
        "session.resume": "resume",
        "tools.collections": "workspace_tools",
    },
)
