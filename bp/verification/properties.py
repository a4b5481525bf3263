"""Temporal properties of plain programs, one line each, as b-threads for `verify`, tests and runs.

    verify(*program, absence(ALARM, after=LOCKED), response(ORDER, DELIVERY), precedence(LOGIN, READ))

Source: the patterns and scopes of Dwyer, Avrunin and Corbett, "Patterns in property specifications for finite-state
verification" (1999). A forbidden event raises an AssertionError; an open obligation is `hot`.

A property holds in the whole run, or within a scope, which is open from just after an event of `after` (without it:
from the start) and is closed by an event of `before` or `until`, which is not in it. With `after` and one of these it
is opened repeatedly. `until` has the same demands if the scope is never closed; `before` then has none (so `after=Q,
before=R` is "between Q and R").
"""

from typing import Any

from attrs import field, frozen
from attrs.converters import optional

from bp.errors import require, shown
from bp.events import NONE, as_event_set, contains, union
from bp.statements import BThread, BThreadBody, bthread, sync

__all__ = ["absence", "bounded_existence", "existence", "precedence", "response"]


@frozen
class Scope:
    """The part of a run in which a property must hold; see the docstring of the module."""

    after: Any = field(default=None, converter=optional(as_event_set))
    before: Any = field(default=None, converter=optional(as_event_set))
    until: Any = field(default=None, converter=optional(as_event_set))

    @property
    def closes(self) -> Any:
        """The events that close it."""
        return union(*(events for events in (self.before, self.until) if events is not None))

    def __str__(self) -> str:
        words = (("after", self.after), ("before", self.before), ("until", self.until))
        return "".join(f" {word} {shown(events)}" for word, events in words if events is not None)


def absence(events: Any, **scope: Any) -> BThread:
    """Return a monitor: none of `events` happens. scope: `after`, and `before` or `until`."""
    return at_most(as_event_set(events), 0, NONE, Scope(**scope)).named(f"absence of {shown(events)}")


def bounded_existence(events: Any, most: int, **scope: Any) -> BThread:
    """Return a monitor: `events` happen at most so many times. scope: `after`, and `before` or `until`."""
    return at_most(as_event_set(events), most, NONE, Scope(**scope)).named(f"at most {most} of {shown(events)}")


def precedence(first: Any, events: Any, **scope: Any) -> BThread:
    """Return a monitor: none of `events` happens before one of `first`. scope: `after`, and `before` or `until`."""
    monitor = at_most(as_event_set(events), 0, as_event_set(first), Scope(**scope))
    return monitor.named(f"{shown(first)} before {shown(events)}")


def existence(events: Any, **scope: Any) -> BThread:
    """Return a monitor: one of `events` happens. scope: `after`, and `before` or `until`."""
    return answered(None, as_event_set(events), Scope(**scope)).named(f"existence of {shown(events)}")


def response(cause: Any, answer: Any, **scope: Any) -> BThread:
    """Return a monitor: each of `cause` is followed by one of `answer`. scope: `after`, and `before` or `until`."""
    monitor = answered(as_event_set(cause), as_event_set(answer), Scope(**scope))
    return monitor.named(f"{shown(answer)} after {shown(cause)}")


@bthread
def at_most(events: Any, most: int, permit: Any, scope: Scope) -> BThreadBody:
    """Until one of `permit`, `events` happen at most so many times in a scope."""
    while True:
        if scope.after is not None:
            yield sync(wait_for=scope.after)
        count = 0
        said = yield sync(wait_for=union(scope.closes, permit, events))
        while not contains(scope.closes, said) and not contains(permit, said):
            count = min(count + 1, most + 1)
            if scope.before is None:
                require(count <= most, f"{shown(said)} happens{_times(most)}{scope}")
            said = yield sync(wait_for=union(scope.closes, NONE if count > most else permit, events))
        require(count <= most, f"{shown(events)} happened{_times(most)}{scope}")
        if not contains(scope.closes, said) and scope.closes != NONE:
            said = yield sync(wait_for=scope.closes)
        if scope.after is None or scope.closes == NONE:
            return


@bthread
def answered(cause: Any, answer: Any, scope: Scope) -> BThreadBody:
    """In a scope each of `cause` is followed by one of `answer`; without a cause, one of `answer` happens."""
    while True:
        if scope.after is not None:
            yield sync(wait_for=scope.after)
        owed, is_open = cause is None, True
        while is_open:
            awaited = answer if owed else NONE if cause is None else cause
            said = yield sync(wait_for=union(scope.closes, awaited), hot=owed and scope.before is None)
            is_open = not contains(scope.closes, said)
            owed = owed if not is_open else not owed and not contains(answer, said)
        require(not owed, f"{shown(answer)} did not happen{scope}")
        if scope.after is None:
            return


def _times(most: int) -> str:
    return f" more than {most} times" if most else ""
