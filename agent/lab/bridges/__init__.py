"""Bridges to other frameworks; each module needs the package that it is named for, which no extra of ours installs.

- `gate`: the constitution as a gate for agents of pydantic-ai and openai-agents
- `inspect`: Inspect's tasks as settings, its models, our loop as one of its agents
- `inspect_logs`: experiments as .eval files
- `inspect_approver`: the constitution as an approver of Inspect, which Inspect finds by itself
- `control_arena`: ControlArena's settings, and its metrics beside ours
"""
