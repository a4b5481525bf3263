"""What is wrong in a state space: told by the search as it comes by, kept as violations, each with its story."""

from typing import Any

from attrs import evolve

from bp.event_sets import PredicateError, contains
from bp.events import Event
from bp.verification.counterexamples import Happened, Violation, shown
from bp.verification.fingerprint import VerificationError
from bp.verification.local_states import LocalFailure
from bp.verification.masks import bits
from bp.verification.search import Search
from bp.verification.selection import Choice
from bp.verification.state_space import StateSpace

__all__ = ["Violations"]


class Violations:
    """What was found: one for each deadlock state, `never` argument, failing b-thread, hot b-thread, endless component.

    `found` has them by what they are about; the first one stays, whose trace is a shortest.
    """

    def __init__(self, space: StateSpace, never: list[Any]) -> None:
        """Begin with nothing; `never` are the event sets that must not happen."""
        self.found: dict[Any, Violation] = {}
        self._space = space
        self._never = never

    def selected(self, search: Search, number: int, event: int) -> None:
        """Hear that an event can be selected in a state, for the first time: is it one that never must?"""
        happened = self._space.masks.events[event]
        for position, events in enumerate(self._never):
            if ("never", position) not in self.found and _contains(events, happened):
                message = f"{shown(happened)} happens, which is never to happen"
                self._keep(("never", position), Violation("never", (*search.path(number), happened), message))

    def ended(self, search: Search, number: int) -> None:
        """Judge a state where nothing internal and nothing promised comes: a deadlock, a hot end, or all is well."""
        state = search.states[number]
        blocked = self._space.selection.blocked(state)
        if blocked:
            self._deadlock(search, number, blocked)
            return
        for local in dict.fromkeys(map(ord, state)):
            if self._space.is_hot(local):
                self.hot(search, self._space.automaton.locals[local].name, number, ())

    def failed_at(self, search: Search, number: int, failure: LocalFailure) -> None:
        """Keep that a predicate or an `otherwise` fails in a state."""
        self.failed(failure, search.path(number))

    def failed_on(self, search: Search, number: int, choice: Choice) -> None:
        """Keep that b-threads fail when an event is selected in a state: each of them."""
        trace = (*search.path(number), self._space.masks.events[choice.event])
        for local in dict.fromkeys(map(ord, search.states[number])):
            try:
                self._space.place_after(local, choice)
            except LocalFailure as failure:
                self.failed(failure, trace)

    def failed(self, failure: LocalFailure, trace: tuple[Event, ...]) -> None:
        """Keep that a b-thread fails at the end of a trace."""
        self._keep(("error", failure.name), Violation("error", trace, str(failure), bthread=failure.name))

    def hot(self, search: Search, name: str, number: int, cycle: tuple[Event, ...]) -> None:
        """Keep that a b-thread stays hot, around a cycle or (without one) at an end."""
        message = f"b-thread {name!r} stays hot " + ("around a fair cycle" if cycle else "at an end")
        self._keep(("hot", name), Violation("hot", search.path(number), message, bthread=name, cycle=cycle))

    def endless(self, search: Search, number: int, cycle: tuple[Event, ...]) -> None:
        """Keep that internal events go on for ever."""
        message = "internal events go on without end"
        self._keep(("endless", number), Violation("endless", search.path(number), message, cycle=cycle))

    def _deadlock(self, search: Search, number: int, blocked: tuple[int, ...]) -> None:
        state = search.states[number]
        wishes = []
        for local in blocked:
            found = self._space.automaton.locals[local]
            wishes += [(found.name, event, self._space.blockers(state, event)) for event in found.statement.requests]
        told = "; ".join(
            f"{name!r} requests {shown(event)}, held by {', '.join(by for by, _ in blockers) or 'nobody'}"
            for name, event, blockers in wishes
        )
        violation = Violation("deadlock", search.path(number), told, blockers=tuple(wishes))
        self._keep(("deadlock", number), violation)

    def _keep(self, key: Any, violation: Violation) -> None:
        if key not in self.found:
            self.found[key] = evolve(violation, story=self._story((*violation.trace, *violation.cycle)))

    def _story(self, events: tuple[Event, ...]) -> tuple[Happened, ...]:
        """Follow events from the start, and note who requests and who hears them."""
        space, state, story = self._space, self._space.initial, []
        for position, event in enumerate(events):
            present, choices = space.selection.choices(state)
            number = space.masks.number(event)
            choice = next(choice for choice in choices if choice.event == number)
            story.append(self._happened(state, choice, event))
            if position < len(events) - 1:
                state = space.successor(state, present, choice)
        return tuple(story)

    def _happened(self, state: str, choice: Choice, event: Event) -> Happened:
        locals_ = self._space.automaton.locals
        instead = set(bits(choice.advancing))
        concerned = [local for local in dict.fromkeys(map(ord, state)) if self._is_concerned(local, choice)]
        requesting = [local for local in concerned if local in instead or event in locals_[local].statement.requests]
        heard_by = tuple(dict.fromkeys(locals_[local].name for local in concerned if local not in requesting))
        return Happened(event, tuple(dict.fromkeys(locals_[local].name for local in requesting)), heard_by)

    def _is_concerned(self, local: int, choice: Choice) -> bool:
        try:
            return self._space.advances(local, choice)
        except LocalFailure:  # it cannot tell: that is what the violation is about
            return True


def _contains(events: Any, event: Event) -> bool:
    try:
        return contains(events, event)
    except PredicateError as error:
        raise VerificationError(f"never={events!r}: {error}") from error
