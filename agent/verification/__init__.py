"""The loop, model-checked as configured: whatever models, constitutions, people and tools do, in any order."""

from agent.verification.counterexample import tell
from agent.verification.loop import loop_rules, verify_loop

__all__ = ["loop_rules", "tell", "verify_loop"]
