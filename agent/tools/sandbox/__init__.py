"""The sandbox: commands of an agent run where they can do no harm, also when the judgement of them was wrong.

Modules in reading order:

- `permissions`: what one command may do, what is hidden, and what it may do beyond that, when the user said yes
- `limits`: memory, processes, file sizes and time
- `bubblewrap` (with `egress`), `landlock`: how the system keeps a command confined
- `sandbox`: the sandbox of an agent, and which of these this machine achieves
"""
