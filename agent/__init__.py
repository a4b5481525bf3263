"""An agent loop in which everything is a b-thread: b-threads decide, projections remember, effects act.

Reading order:

- `calls`, `messages`: tool calls and the conversation as values. `events`: everything that can happen.
- `errors`: what breaks a run off. `reasons`: why b-threads refuse. `threads/`: the rules of the loop.
- `projections/`: what is remembered.
- `models/`, `tools/`, `effects/`: the world. `log/`, `header`: the record of a run, and its replay.
- `presets`: which rules, as data. `run`, `agent`: putting it together. `stateless`: the same as one function.
- `retracing`, `testing`, `pytest_plugin`: tests of agents and b-threads. `cli/`: the command.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.models import ScriptedModel, answer, call
    from agent.presets import Preset
    from agent.run import Run
    from agent.stateless import LoopConfig, agent_loop
    from agent.tools import Tool, tool, workspace_tools

__all__ = [
    "Agent",
    "LoopConfig",
    "Preset",
    "Run",
    "ScriptedModel",
    "Tool",
    "agent_loop",
    "answer",
    "call",
    "tool",
    "workspace_tools",
]

_HOMES = {
    "Agent": "agent.agent",
    "LoopConfig": "agent.stateless",
    "Preset": "agent.presets",
    "Run": "agent.run",
    "ScriptedModel": "agent.models",
    "Tool": "agent.tools",
    "agent_loop": "agent.stateless",
    "answer": "agent.models",
    "call": "agent.models",
    "tool": "agent.tools",
    "workspace_tools": "agent.tools",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is used: `import agent` alone is cheap, and so is `bpagent --help`."""
    if name not in _HOMES:
        raise AttributeError(f"module 'agent' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
