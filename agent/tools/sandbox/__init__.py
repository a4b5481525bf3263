"""The sandbox confines commands of an agent, so that they can do no harm even if the judge was wrong.

Modules in reading order:

- `repository`: the folders of git around a workspace; `put_back`: places that run later
- `permissions`: of one command: hidden places, and rights granted by the user
- `bubblewrap` (with `egress`), `landlock`: the mechanisms that confine a command
- `sandbox`: the sandbox of an agent, its limits, and the level that this machine achieves
"""
