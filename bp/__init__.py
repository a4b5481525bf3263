"""Behavioral programming: independent b-threads request, wait for, block and refuse events; one happens at a time.

Read in this order; each module needs only those above it:

    payload      what an event may carry: frozen values
    errors       what can go wrong, and whom to ask about it
    event_sets   sets of events as values: where, ALL, NONE, | & ~
    events       events and event kinds
    statements   what a b-thread says at a synchronization point: sync, any_of, start
    bthreads     b-threads as values
    index        who is concerned by an event, without asking the others
    standing     where every b-thread stands: the board
    super_step   the bound on what happens between two external events
    crew         the living b-threads: the one place that touches generators
    posts        external events on their way in
    habits       what a program does again and again, learned as an automaton
    strategies   which selectable event comes next
    steps        what a program tells about a step
    program      BProgram: one step after the other
    tape         a trace taken again: step by step, until it differs
    runner       programs with effects, on asyncio and trio (imported by name: `from bp.runner import Runner`)
    liveness     which locals of a suspended b-thread can still matter
    fingerprint  what makes two local states the same
    purity       what b-threads reach outside of their local states
    automaton    each b-thread as an automaton, unfolded as needed
    masks        what local states say about events, as bit masks
    selection    which events can be selected in a global state
    state_space  the global states of a program, and the steps between them
    reduction    which of the selectable events are enough, where some orders come to the same
    search       the search through a state space
    cycles       components of a state space, and which of them are fair
    ignored      what a reduced search leaves out, and when it must not
    violations   what a verification tells
    findings     what is wrong in a state space
    verifier     verify: every state that a program can reach, and what is wrong with any
    drawing      pictures of b-threads and of state spaces, as text for Graphviz and Mermaid
    driving      tests of b-threads in three lines (imported by name: `from bp.testing import drive`)
"""

from typing import TYPE_CHECKING, Any

from bp.board import Blocker
from bp.bthreads import BThread, BThreadBody, BThreadFunction, bthread
from bp.errors import BProgramError, BThreadError, Deadlock, EffectError, EndlessLoop, EventSetError, ProgramEnded
from bp.event_sets import ALL, NONE, EventSet, contains, where
from bp.events import Event, NamedEvent, event
from bp.payload import FrozenMapping, freeze
from bp.posts import Receipt
from bp.program import BProgram, Status
from bp.replay import Divergence, Replay, replay, state_at
from bp.statements import Refusal, Refusals, Start, Sync, any_of, start, sync
from bp.steps import Record, Step
from bp.strategies import Candidate, PriorityStrategy, RandomStrategy, RoundRobinStrategy, Strategy

if TYPE_CHECKING:
    from bp.verification.counterexamples import Verification, Violation
    from bp.verification.drawing import Graph, draw_bthread, draw_states
    from bp.verification.fingerprint import VerificationError
    from bp.verification.verifier import verify

__all__ = [
    "ALL",
    "NONE",
    "BProgram",
    "BProgramError",
    "BThread",
    "BThreadBody",
    "BThreadError",
    "BThreadFunction",
    "Blocker",
    "Candidate",
    "Deadlock",
    "Divergence",
    "EffectError",
    "EndlessLoop",
    "Event",
    "EventSet",
    "EventSetError",
    "FrozenMapping",
    "Graph",
    "NamedEvent",
    "PriorityStrategy",
    "ProgramEnded",
    "RandomStrategy",
    "Receipt",
    "Record",
    "Refusal",
    "Refusals",
    "Replay",
    "RoundRobinStrategy",
    "Start",
    "Status",
    "Step",
    "Strategy",
    "Sync",
    "Verification",
    "VerificationError",
    "Violation",
    "any_of",
    "bthread",
    "contains",
    "draw_bthread",
    "draw_states",
    "event",
    "freeze",
    "replay",
    "start",
    "state_at",
    "sync",
    "verify",
    "where",
]

_VERIFICATION = {
    "Graph": "bp.verification.drawing",
    "draw_bthread": "bp.verification.drawing",
    "draw_states": "bp.verification.drawing",
    "Verification": "bp.verification.counterexamples",
    "VerificationError": "bp.verification.fingerprint",
    "Violation": "bp.verification.counterexamples",
    "verify": "bp.verification.verifier",
}


def __getattr__(name: str) -> Any:
    """Import what verifies when it is used: running programs does not need it."""
    if name not in _VERIFICATION:
        raise AttributeError(f"module 'bp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_VERIFICATION[name]), name)
