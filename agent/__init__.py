"""An agent loop in which everything is a b-thread: b-threads decide, projections remember, effects act.

Reading order:

- `lazy`: names that are imported when they are used. `importing`: modules that a person names.
- `messages`, `calls`: the conversation and tool calls as values. `events`: everything that can happen, and `questions`:
  what protocols ask besides.
- `conversion`: JSON as values. `spelling`: what to say about an unknown name. `errors`: what breaks a run off.
- `reasons`: why b-threads refuse. `threads/`: the rules of the loop.
- `models/`, `tools/`: the world. `hooks`: what a program around the loop may change.
- `projections/`: what is remembered. `effects/`: what events start in the world.
- `log/`, `header`, `journal`: the record of a run, and its replay. `deciding`: what people say about calls.
- `narrator`: a run told as it happens.
- `presets`: which rules, as data. `run`, `agent`: putting it together. `stateless`: the same as one function.
- `shipping`, `rebuilding`: a log's program once more. `resuming`: going on with it. `subagents`: agents in a call.
- `invariants/`, `verification/`: the loop, model-checked.
- `hindsight/`: recorded runs judged again. `retracing`: what was held at each step.
- `telemetry/`: a run as a trace of spans.
- `lab/`: control protocols, and experiments with them.
- `page/`: a run as one HTML page.
- `testing`, `pytest_plugin`: tests of agents and b-threads. `cli/`: the command.
"""

from typing import TYPE_CHECKING

from agent.vocabulary.lazy import from_modules

if TYPE_CHECKING:
    from agent.effects.hooks import Hooks
    from agent.models.scripted import ScriptedModel, answer, call
    from agent.presets.preset import Preset
    from agent.session.agent import Agent
    from agent.session.resume import resume
    from agent.session.run import Run
    from agent.session.stateless import LoopConfig, agent_loop
    from agent.tools.collection import workspace_tools
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

__getattr__ = from_modules(  # `import agent` alone is cheap, and so is `bpagent --help`
    "agent",
    {
        "Agent": "session.agent",
        "Hooks": "effects.hooks",
        "LoopConfig": "session.stateless",
        "Preset": "presets",
        "Run": "session.run",
        "ScriptedModel": "models",
        "Tool": "tools",
        "agent_loop": "session.stateless",
        "answer": "models",
        "call": "models",
        "resume": "session.resume",
        "tool": "tools",
        "workspace_tools": "tools",
    },
)
