"""Isolation: episodes can write only to their workspace, and reach only their own hosts.

- `cell`: the namespaces of one episode, and the agent's commands there (files and limits: `agent.tools.sandbox`)
- `levels`: the level that this machine achieves, found by attempts to escape
"""
