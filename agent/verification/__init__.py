"""The shipped loop, model-checked: against a model, a constitution, a person and tools that may do anything.

- `environment`: what may come from outside, derived from the declarations of the effects
- `situations`: what else, where a rule listens to it
- `combinations`: which of the rules are there
- `loop`: the b-threads of a preset, with its invariants, in that environment
- `counterexample`: a violation, told in at most 15 lines
"""

from agent.verification.combinations import Combination, every_subset, small_combinations
from agent.verification.counterexample import short, tell
from agent.verification.loop import SMALL, loop_rules, verify_loop, verify_together
from agent.verification.situations import examples_for

__all__ = [
    "SMALL",
    "Combination",
    "every_subset",
    "examples_for",
    "loop_rules",
    "short",
    "small_combinations",
    "tell",
    "verify_loop",
    "verify_together",
]
