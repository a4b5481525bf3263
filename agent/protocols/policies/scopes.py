"""When a policy holds: each time a scope opens it begins anew, and it forbids nothing while none is open.

Source: the scopes of Dwyer, Avrunin and Corbett, "Patterns in property specifications for finite-state verification"
(1999). What will happen is not known while it happens: `between` and `since` forbid the same, and differ in what is
still owed when the run ends and the closing action has not come; between two actions that is nothing.
"""

from typing import Literal

from attrs import frozen

from agent.protocols.policies.matching import Actions, Match, as_match

__all__ = ["CONVERSATION", "RUN", "Scope", "between", "since"]


@frozen
class Scope:
    """A scope: of the whole conversation, of each run, or from an action that begins to one that has ended well."""

    kind: Literal["conversation", "run", "between", "until"]
    opens: Match | None = None
    closes: Match | None = None

    @property
    def is_open_at_first(self) -> bool:
        """Whether it is open without any action."""
        return self.opens is None

    def __str__(self) -> str:
        match self.kind:
            case "between":
                return f"between {self.opens} and {self.closes}"
            case "until":
                return f"from {self.opens}" + (f" until {self.closes}" if self.closes else " on")
            case kind:
                return f"in a {kind}"


RUN = Scope("run")
CONVERSATION = Scope("conversation")


def between(opens: Actions, closes: Actions) -> Scope:
    """Return the scope from an action to another; what is owed is owed before the second one may run."""
    return Scope("between", as_match(opens), as_match(closes))


def since(opens: Actions, until: Actions | None = None) -> Scope:
    """Return the scope from an action on, until another one; what is owed is owed at the end of the run, too."""
    return Scope("until", as_match(opens), None if until is None else as_match(until))
