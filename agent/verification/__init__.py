"""The loop, model-checked as configured: whatever models, constitutions, people and tools do, in any order."""

from agent.verification.counterexample import tell
from agent.verification.loop import loop_rules, verify_loop
from agent.verification.protocols import verify_protocols

__all__ = ["loop_rules", "tell", "verify_loop", "verify_protocols"]
