"""What a verification tells: the verdict, and for each thing that is wrong a shortest story of how it comes about."""

from typing import Any, Literal, NamedTuple

from attrs import field, frozen

from bp.events import Event

__all__ = ["Happened", "Verification", "Violation", "shown"]

LINES = 15  # of a printed violation, at most
Kind = Literal["error", "never", "deadlock", "hot", "endless"]


class Happened(NamedTuple):
    """One event of a trace: who requested it (nobody: it is possible from outside), and who else heard it."""

    event: Event
    requested_by: tuple[str, ...] = ()
    heard_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        requested = f"requested by {', '.join(self.requested_by)}" if self.requested_by else "from outside"
        return f"{shown(self.event)}: {requested}" + (
            f"; waited for by {', '.join(self.heard_by)}" if self.heard_by else ""
        )


@frozen
class Violation:
    """One thing that is wrong, and a shortest way there.

    kind: "error" (a b-thread raised), "never" (a forbidden event), "deadlock", "hot" (a b-thread must go on and need
    not), or "endless" (internal events without end). trace: the events from the start. bthread: the culprit, where
    there is one. blockers: at a deadlock, (who requests, what, blocked by whom). cycle: the events that repeat.
    story: the events of trace and cycle, with who requested and who heard them.
    """

    kind: Kind
    trace: tuple[Event, ...]
    message: str
    bthread: str | None = None
    blockers: tuple[tuple[str, Event, tuple[tuple[str, Any], ...]], ...] = ()
    cycle: tuple[Event, ...] = ()
    story: tuple[Happened, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Tell the story, one line for each event, in 15 lines at most; the last says what is wrong."""
        lines = [f"{number:>3}  {happened}" for number, happened in enumerate(self.story, start=1)]
        if self.cycle:
            lines.insert(len(self.trace), "     then again and again:")
        if len(lines) > LINES - 1:
            kept = (LINES - 2) // 2
            lines = [*lines[:kept], f"     ... {len(lines) - 2 * kept} more ...", *lines[-kept:]]
        return "\n".join([*lines, f"{self.kind}: {' '.join(self.message.split())}"])


@frozen
class Verification:
    """What `verify` found. It holds when nothing is wrong and no bound was hit.

    reduced: of orders that come to the same only some were tried, and are counted.
    """

    states: int
    transitions: int
    violations: tuple[Violation, ...]
    bounded: bool
    seconds: float = field(default=0.0, eq=False)
    reduced: bool = False

    @property
    def holds(self) -> bool:
        """True when every reachable state was looked at and nothing is wrong."""
        return not self.violations and not self.bounded

    def __str__(self) -> str:
        searched = f"{self.states:,} states, {self.transitions:,} transitions" + (" (reduced)" if self.reduced else "")
        if self.holds:
            return f"holds: {searched}"
        bound = " (bounded: not all states were looked at)" if self.bounded else ""
        found = len(self.violations)
        counted = "nothing wrong so far" if not found else f"{found} violation{'s' if found > 1 else ''}"
        return "\n\n".join([f"{counted}: {searched}{bound}", *map(str, self.violations)])


def shown(event: Event) -> str:
    """Return an event as it is told to people: a plain one by its name."""
    text = repr(event)
    return event.name if text == f"event({event.name!r})" else text
