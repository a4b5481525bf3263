"""What a reduced search leaves out, and when it must not: an event must not be put off for ever.

What is not tried in a state can still be selected in the next one, and is put off again there, perhaps. As long as one
gets on from there to a state in which it is tried, nothing is lost. Where one does not, in a part of the state space
that no step leaves and in which some event is never tried though it always could be, it is tried after all.
"""

from bp.verification.liveness import components
from bp.verification.local_states import LocalFailure
from bp.verification.reduction import Reduction
from bp.verification.search import Search
from bp.verification.selection import Choice

__all__ = ["ByOrder"]


class ByOrder:
    """Has a search try what is enough, and afterwards what would have been put off for ever."""

    def __init__(self, reduction: Reduction) -> None:
        """Begin; `reduction` says what is enough."""
        self._reduction = reduction
        self._partly: set[int] = set()  # the states in which something is left out

    def take_enough(
        self, search: Search, number: int, state: str, present: int, choices: tuple[Choice, ...]
    ) -> tuple[Choice, ...]:
        """Take what is enough in a state; return what has to be taken besides."""
        if len(choices) < 2 or choices[0].origin != "internal":
            return choices
        enough = self._best(search, number, state, present, choices)
        if len(enough) == len(choices):
            return choices
        if not _all_succeed(search, number, state, present, enough):
            return tuple(choice for choice in choices if choice not in enough)
        self._partly.add(number)
        return ()

    def _best(
        self, search: Search, number: int, state: str, present: int, choices: tuple[Choice, ...]
    ) -> tuple[Choice, ...]:
        """Return the fewest choices that are enough; of as few, those that lead to somewhere new."""
        best = choices
        for enough in self._reduction.ways(present, choices):
            if len(enough) < len(best):
                best = enough
            if len(enough) == 1 and _leads_on(search, number, state, present, enough[0]):
                return enough
        return best

    def put_off(self, search: Search) -> list[tuple[int, tuple[Choice, ...]]]:
        """Return choices that are always there and never taken in a part of the state space that nothing leaves."""
        found = []
        for component in list(components(sorted(self._partly), lambda number: self._steps_within(search, number))):
            inside = set(component)
            steps = [step for number in component for step in search.steps(number)]
            if all(target in inside for target, _ in steps):
                missing = self._missing(search, component[0], {label for _, label in steps})
                found += [(component[0], missing)] if missing else []
        return found

    def _steps_within(self, search: Search, number: int) -> list[tuple[int, int]]:
        return [step for step in search.steps(number) if step[0] in self._partly]

    def _missing(self, search: Search, number: int, taken: set[int]) -> tuple[Choice, ...]:
        """Return all choices of a state that were not taken there, if some are not taken anywhere around."""
        _, choices = search.space.selection.choices(search.states[number])
        if all(choice.label in taken for choice in choices):
            return ()
        self._partly.discard(number)
        here = {label for _, label in search.steps(number)}
        return tuple(choice for choice in choices if choice.label not in here)


def _all_succeed(search: Search, number: int, state: str, present: int, choices: tuple[Choice, ...]) -> bool:
    """Take choices; tell whether each led to a state (where a b-thread fails, nothing follows)."""
    before = len(search.targets)
    search.take(number, state, present, choices)
    return len(search.targets) - before == len(choices)


def _leads_on(search: Search, number: int, state: str, present: int, choice: Choice) -> bool:
    """Tell whether a choice leads to a state that is not expanded yet, or nowhere."""
    try:
        after = search.space.successor(state, present, choice)
    except LocalFailure:
        return True
    return search.numbers.get(after, len(search.states)) > number
