"""What each kind of policy remembers of the actions that it knows, and what it forbids: pure values, all of them.

An action has *begun* when it was approved, and is *done* when its tool has ended without an error. What permits has to
be done; what forbids has begun: so neither is early in parallel calls.
"""

from attrs import evolve, frozen

from agent.protocols.policies.matching import Match
from agent.vocabulary.events import GateApproved
from bp import NONE, where

__all__ = ["Absence", "Bound", "Missing", "Pattern", "Precedence", "Response"]


@frozen
class Missing:
    """What a policy has against an action, and which event is missing, if that is what it is."""

    text: str
    event: str = ""
    category: str = "policy"

    def __str__(self) -> str:
        return self.text


def advanced(chain: tuple[Match, ...], place: int, approved: GateApproved) -> int:
    """Return how far a chain of actions is after one more of them."""
    return place + 1 if place < len(chain) and chain[place](approved) else place


@frozen
class Precedence:
    """No `what` before all of `first` were done, in their order."""

    what: Match
    first: tuple[Match, ...]
    place: int = 0

    def begun(self, approved: GateApproved) -> "Precedence":
        """Take an approval into account."""
        return self

    def done(self, approved: GateApproved) -> "Precedence":
        """Take an action into account that ended well."""
        return evolve(self, place=advanced(self.first, self.place, approved))

    def refuses(self) -> tuple[object, Missing]:
        """Return what is refused now, and why."""
        if self.place == len(self.first):
            return NONE, Missing("")
        event = str(self.first[self.place])
        text = f"{self.what} is allowed only after {event}, which is missing"
        return where(GateApproved, self.what), Missing(text, event)

    def owed(self) -> Missing | None:
        """Return what is missing for the end of the scope."""
        return None


@frozen
class Absence:
    """No `what` once all of `after` have begun, in their order; without `after`, none at all."""

    what: Match
    after: tuple[Match, ...] = ()
    place: int = 0

    def begun(self, approved: GateApproved) -> "Absence":
        """Take an approval into account."""
        return evolve(self, place=advanced(self.after, self.place, approved))

    def done(self, approved: GateApproved) -> "Absence":
        """Take an action into account that ended well."""
        return self

    def refuses(self) -> tuple[object, Missing]:
        """Return what is refused now, and why."""
        if self.place < len(self.after):
            return NONE, Missing("")
        since = f" after {self.after[-1]}" if self.after else ""
        return where(GateApproved, self.what), Missing(f"{self.what} is not allowed{since}")

    def owed(self) -> Missing | None:
        """Return what is missing for the end of the scope."""
        return None


@frozen
class Bound:
    """At most `most` of `what`."""

    what: Match
    most: int
    count: int = 0

    def begun(self, approved: GateApproved) -> "Bound":
        """Take an approval into account."""
        return evolve(self, count=min(self.count + self.what(approved), self.most))

    def done(self, approved: GateApproved) -> "Bound":
        """Take an action into account that ended well."""
        return self

    def refuses(self) -> tuple[object, Missing]:
        """Return what is refused now, and why."""
        if self.count < self.most:
            return NONE, Missing("")
        return where(GateApproved, self.what), Missing(f"{self.what} is allowed {self.most} times, and that was all")

    def owed(self) -> Missing | None:
        """Return what is missing for the end of the scope."""
        return None


@frozen
class Response:
    """Once all of `after` have begun, in their order, all of `what` have to be done, in theirs, before the end.

    Each time `after` is through, `what` is owed anew.
    """

    what: tuple[Match, ...]
    after: tuple[Match, ...]
    place: int = 0
    answered: int = -1  # how many of `what` are done; -1: none is owed

    def begun(self, approved: GateApproved) -> "Response":
        """Take an approval into account."""
        place = advanced(self.after, self.place, approved)
        if place < len(self.after) or not self.after:
            return evolve(self, place=place)
        return evolve(self, place=0, answered=0)

    def done(self, approved: GateApproved) -> "Response":
        """Take an action into account that ended well."""
        if self.answered < 0:
            return self
        answered = advanced(self.what, self.answered, approved)
        return evolve(self, answered=-1 if answered == len(self.what) else answered)

    def refuses(self) -> tuple[object, Missing]:
        """Return what is refused now: nothing."""
        return NONE, Missing("")

    def owed(self) -> Missing | None:
        """Return what is missing for the end of the scope."""
        if self.answered < 0:
            return None
        event = str(self.what[self.answered])
        return Missing(f"after {self.after[-1]} there has to be {event}, which is missing", event)


Pattern = Precedence | Absence | Bound | Response
