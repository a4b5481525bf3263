"""The sandbox confines commands of an agent, so that they can do no harm even if the judge was wrong.

Modules in reading order:

- `repository`: the folders of git around a workspace; `put_back`: places that run later
- `permissions`: of one command: hidden places, and rights granted by the user
- `bubblewrap`: the files and namespaces of a command; `launcher`: a program that makes them where `bwrap` is missing,
  or uses Landlock; `seccomp`: filters of system calls
- `sockets`, `proxy`: what a command may connect to
- `sandbox`: the sandbox of an agent, its limits, and the level that this machine achieves
"""
