"""The shipped loop, model-checked: against a model, a constitution, a person and tools that may do anything.

- `environment`: what may come from outside, derived from the declarations of the effects
- `loop`: the b-threads of a preset, with its invariants, in that environment
"""

from agent.verification.loop import SMALL, loop_rules, verify_loop

__all__ = ["SMALL", "loop_rules", "verify_loop"]
