"""Isolation: episodes run where they can write their workspace and nothing else, and reach nothing but their own hosts.

- `cell`: the namespaces of one episode, and the shell tool of an agent there (files and limits: `agent.tools.sandbox`)
- `levels`: which level this machine achieves, found by trying to get out
"""
