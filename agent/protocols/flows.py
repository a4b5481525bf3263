"""Taint flow: after a secret was read, nothing reaches the network.

Source: the flow rules of Invariant's guardrails. It holds for the whole conversation: models remember.
"""

from collections.abc import Callable

from agent.protocols.actions import REACHES_NETWORK, READS_SECRETS
from agent.protocols.reasons_of_protocols import Tainted
from agent.vocabulary.events import GateApproved
from bp import BThreadBody, bthread, sync, where

__all__ = ["taint_flow"]

Predicate = Callable[[GateApproved], bool]


@bthread
def taint_flow(reads: Predicate = READS_SECRETS, sends: Predicate = REACHES_NETWORK) -> BThreadBody:
    """Refuse what `sends`, once something that `reads` was approved; also what does both at once."""
    both, because = where(GateApproved, reads) & where(GateApproved, sends), Tainted("it reads a secret, and sends")
    yield sync(wait_for=where(GateApproved, reads), refuse=both, because=because)
    yield sync(refuse=where(GateApproved, sends), because=Tainted("a secret was read earlier"))
