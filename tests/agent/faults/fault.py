"""A planted fault, and whether the checker found it: the b-thread, what it breaks, and how that is told."""

from typing import Any

from attrs import frozen

from agent.verification.counterexample import tell
from bp import Verification, Violation


@frozen
class Fault:
    """A b-thread in the place of another, what the checker says of it, and the rules or protocols beside it."""

    planted: Any
    kind: str
    culprit: str  # the invariant that breaks; at a deadlock, who requests in vain
    beside: tuple[Any, ...] = ()

    def is_told_by(self, violation: Violation) -> bool:
        """Whether a violation names the culprit."""
        is_deadlock = violation.kind == "deadlock"
        culprits = {wish[0] for wish in violation.blockers} if is_deadlock else {violation.bthread}
        return violation.kind == self.kind and self.culprit in culprits


def is_found(fault: Fault, result: Verification) -> bool:
    """Whether one of the violations names the culprit, and each can be read at a glance."""
    assert all(len(tell(violation).splitlines()) <= 15 for violation in result.violations)
    return any(map(fault.is_told_by, result.violations))


def told(result: Verification) -> str:
    """Return all violations as stories."""
    return "\n\n".join(map(tell, result.violations)) or str(result)
