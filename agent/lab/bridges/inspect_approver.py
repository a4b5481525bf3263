"""The constitution as an approver of Inspect: `inspect eval task.py --approval constitution/gate`.

Inspect finds this module by the entry point `constitution` of the group `inspect_ai`, and importing it registers the
approver. allow becomes approve, deny reject, ask escalate: put another approver, such as `human`, after it.
"""

from typing import Any

from inspect_ai.approval import Approval, approver
from inspect_ai.approval._registry import approver_register

from agent.lab.bridges.gate import Gate
from constitution import POLICIES, Level

DECISIONS = {Level.allow: "approve", Level.deny: "reject", Level.ask: "escalate"}


def gate(policy: str = "default", workspace: str = "/root", harmless: str = "submit") -> Any:
    """Return an approver that judges calls by a policy of the constitution.

    workspace: the folder in the sandbox where tools start. harmless: tools that need no judging, with commas between.
    """
    judging = Gate(POLICIES[policy], workspace, "/root", frozenset(harmless.split(",")))

    async def approve(message: str, call: Any, view: Any, history: Any) -> Any:
        verdict = judging.verdict(call.function, call.arguments)
        told = f"{verdict.explanation} ({verdict.rule})"
        return Approval(decision=DECISIONS[verdict.level], explanation=told, metadata={"rule": verdict.rule})

    return approve


# The decorator prefixes the name of this package; users type `constitution/gate`.
approver_register(approver(gate), "constitution/gate", {}, ["policy", "workspace", "harmless"])
