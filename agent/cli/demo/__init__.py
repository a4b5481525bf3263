"""`bpagent demo`: a scripted model, real tools, the real gate; what is refused is refused by b-threads, live.

- `protocol`: a b-thread of ten lines, which the demo shows as source
- `workshop`: the scratch folder in which the demo works
- `story`: what the model says, and nothing else
- `stage`: the agent of the demo, from these three
- `performance`: the command, what is told before and after
"""

from agent.cli.demo.performance import execute

__all__ = ["execute"]
