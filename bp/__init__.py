"""Behavioral programming: independent b-threads request, wait for, block and refuse events; one happens at a time.

    from bp import BProgram, bthread, event, sync

    HOT, COLD = event("hot"), event("cold")

    @bthread
    def add(what, times):
        for _ in range(times):
            yield sync(request=what)

    @bthread
    def alternate():                      # added without touching the others
        while True:
            yield sync(wait_for=HOT, block=COLD)
            yield sync(wait_for=COLD, block=HOT)

    for step in BProgram(add(HOT, 3), add(COLD, 3), alternate()).run():
        print(step.event.name)            # hot, cold, hot, cold, hot, cold

`verify(...)` explores every state of such a program. `bp.runner` runs programs with effects on asyncio and trio,
`bp.testing` drives single b-threads in tests. To read the engine: `events`, `statements`, `board`, `program`.
"""

from typing import TYPE_CHECKING, Any

from bp.errors import BProgramError, BThreadError, Deadlock, EffectError, EndlessLoop, EventSetError, ProgramEnded
from bp.events import ALL, NONE, Event, EventSet, contains, event, where
from bp.payload import FrozenMapping, freeze
from bp.program import BProgram, Step
from bp.replay import replay
from bp.statements import BThread, BThreadBody, Refusal, Refusals, Sync, any_of, bthread, start, sync
from bp.strategies import RandomStrategy, RoundRobinStrategy

if TYPE_CHECKING:
    from bp.verification import Verification, verify
    from bp.verification.drawing import draw_bthread
    from bp.verification.looks import VerificationError
    from bp.verification.report import Violation

__all__ = [
    "ALL",
    "NONE",
    "BProgram",
    "BProgramError",
    "BThread",
    "BThreadBody",
    "BThreadError",
    "Deadlock",
    "EffectError",
    "EndlessLoop",
    "Event",
    "EventSet",
    "EventSetError",
    "FrozenMapping",
    "ProgramEnded",
    "RandomStrategy",
    "Refusal",
    "Refusals",
    "RoundRobinStrategy",
    "Step",
    "Sync",
    "Verification",
    "VerificationError",
    "Violation",
    "any_of",
    "bthread",
    "contains",
    "draw_bthread",
    "event",
    "freeze",
    "replay",
    "start",
    "sync",
    "verify",
    "where",
]

_VERIFICATION = {
    "draw_bthread": "bp.verification.drawing",
    "Verification": "bp.verification",
    "VerificationError": "bp.verification.looks",
    "Violation": "bp.verification.report",
    "verify": "bp.verification",
}


def __getattr__(name: str) -> Any:
    """Import the verifier when it is first used: running programs does not need it."""
    if name not in _VERIFICATION:
        raise AttributeError(f"module 'bp' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_VERIFICATION[name]), name)


def __dir__() -> list[str]:
    """Name the public names, those that are imported when used as well."""
    return [*__all__, "__doc__", "__name__", "__path__"]
