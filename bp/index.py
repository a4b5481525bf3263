"""Who is concerned by an event, found without asking those who cannot be.

An index files each member (a b-thread at its synchronization point) under the rows of its event set: by single
event, by kind, by kind and field values, and by kind with a test. Looking up an event touches the rows of its kind
and nothing else, so that a thousand parked `where(Score, subject=...)` cost nothing until their score comes.
"""

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from bp.errors import EventSetError
from bp.event_sets import PredicateError, Selector, Test, selectors, values_of
from bp.events import Event, NamedEvent, check_kind

__all__ = ["NOBODY", "Index", "Kinds", "Register"]


class Named(Protocol):
    """A member has a name, to be blamed by."""

    name: str


M = TypeVar("M", bound=Named)
N = TypeVar("N")
Members = dict[N, None]
Tested = dict[N, list[Test] | None]
ByValues = dict[tuple[Any, ...], Members[Event]]
NOBODY: dict[Any, Any] = {}


class Kinds:
    """The event kinds that one program has met, by name."""

    __slots__ = ("by_name", "met")

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}
        self.met: set[Any] = set()

    def meet(self, kind: Any) -> None:
        """Raise TypeError when `kind` is no proper kind, or a kind and a plain event share its name."""
        if kind in self.met:
            return
        name = kind if isinstance(kind, str) else kind.name
        known = self.by_name.get(name)
        if known is kind or known == kind:
            return
        if known is not None and isinstance(known, str) is not isinstance(kind, str):
            raise TypeError(f"{name!r} is the name of an event kind and of a plain event; rename one of them")
        check_kind(kind)
        self.by_name[name] = kind
        self.met.add(kind)


class Register(Generic[M]):
    """Members filed by single events: those who request one."""

    __slots__ = ("by_event", "by_fields", "by_kind", "kinds")

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty register of a program that has met `kinds`."""
        self.by_event: dict[Event, Members[M]] = {}
        self.by_kind: dict[Any, Members[Event]] = {}  # the events of `by_event`, by kind
        self.by_fields: dict[Any, dict[tuple[str, ...], ByValues]] = {}  # the same, for the fields asked about so far
        self.kinds = kinds

    def add(self, event: Event, member: M) -> None:
        """File `member` under `event`; raises TypeError when its kind is not proper."""
        members = self.by_event.get(event)
        if members is not None:
            members[member] = None
            return
        self.kinds.meet(event._kind)
        self.by_event[event] = {member: None}
        self.by_kind.setdefault(event._kind, {})[event] = None
        for fields, by_values in self.by_fields.get(event._kind, NOBODY).items():
            by_values.setdefault(values_of(event, fields), {})[event] = None

    def remove(self, event: Event, member: M) -> None:
        """Take `member`, filed under `event`, out again; it may have been taken out before."""
        members = self.by_event.get(event)
        if members is None:
            return
        members.pop(member, None)
        if not members:
            del self.by_event[event]
            self._forget(event)

    def _forget(self, event: Event) -> None:
        events = self.by_kind[event._kind]
        del events[event]
        if not events:
            del self.by_kind[event._kind]
            self.by_fields.pop(event._kind, None)
            return
        for fields, by_values in self.by_fields.get(event._kind, NOBODY).items():
            values = values_of(event, fields)
            del by_values[values][event]
            if not by_values[values]:
                del by_values[values]

    def concerned(self, events: Any) -> Members[M]:
        """Return the members with an event that the set `events` may contain: too many rather than too few."""
        if type(events) is NamedEvent:
            return self.by_event.get(events, NOBODY)
        found: Members[M] = {}
        for row in selectors(events):
            for event in self._possible(row):
                found.update(self.by_event[event])
        return found

    def _possible(self, row: Selector) -> Iterable[Event]:
        if row.kind is None:
            return self.by_event
        if row.fields == ():
            return (row.values,) if row.values in self.by_event else ()
        if row.fields is None or row.kind not in self.by_kind:
            return self.by_kind.get(row.kind, ())
        return self._with_fields(row.kind, row.fields).get(row.values, ())

    def _with_fields(self, kind: Any, fields: tuple[str, ...]) -> ByValues:
        """Return the events of `kind` by these fields; filed when first asked for, up to date from then on."""
        filed = self.by_fields.setdefault(kind, {})
        by_values = filed.get(fields)
        if by_values is None:
            by_values = filed[fields] = {}
            for event in self.by_kind[kind]:
                by_values.setdefault(values_of(event, fields), {})[event] = None
        return by_values


class Rows(Generic[M]):
    """The members filed under one kind: by kind alone, by field values, and by tests."""

    __slots__ = ("by_fields", "tested", "whole")

    def __init__(self) -> None:
        self.whole: Members[M] = {}
        self.by_fields: dict[tuple[str, ...], dict[Any, Tested[M]]] = {}
        self.tested: Tested[M] = {}


class Index(Generic[M]):
    """Members filed by their event sets."""

    __slots__ = ("by_event", "by_kind", "everywhere", "kinds")

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty index of a program that has met `kinds`."""
        self.by_event: dict[Event, Members[M]] = {}
        self.by_kind: dict[Any, Rows[M]] = {}
        self.everywhere: Tested[M] = {}
        self.kinds = kinds

    def add(self, events: Any, member: M) -> None:
        """File `member` under its event set; raises TypeError for a kind that is not proper."""
        if type(events) is NamedEvent:
            self._add_event(events, member)
            return
        for row in selectors(events):
            if row.kind is None:
                _add_test(self.everywhere, member, row.test)
            elif row.fields == ():
                self._add_event(row.values, member)
            else:
                self._add_row(row, member)

    def move(self, member: M, old: Any, new: Any) -> None:
        """File `member` under `new` instead of `old`; None is no set at all."""
        if type(old) is NamedEvent:  # written out: plain events are what small programs are made of
            members = self.by_event[old]
            del members[member]
            if not members:
                del self.by_event[old]
        elif old is not None:
            self.remove(old, member)
        if type(new) is NamedEvent:
            self._add_event(new, member)
        elif new is not None:
            self.add(new, member)

    def remove(self, events: Any, member: M) -> None:
        """Take `member`, filed under `events`, out again."""
        if type(events) is NamedEvent:
            self._remove_event(events, member)
            return
        for row in selectors(events):
            if row.kind is None:
                self.everywhere.pop(member, None)
            elif row.fields == ():
                self._remove_event(row.values, member)
            elif row.kind in self.by_kind:
                self._remove_row(row, member)

    def holds_sets(self) -> bool:
        """Tell whether anybody is filed under more than single events."""
        return bool(self.by_kind or self.everywhere)

    def members(self, event: Event) -> Members[M]:
        """Return the members whose sets contain `event`, once each, in no particular order.

        Raises EventSetError when a predicate that had to be asked fails.
        """
        exact = self.by_event.get(event, NOBODY) if self.by_event else NOBODY
        if not self.by_kind and not self.everywhere:
            return exact
        rows = self.by_kind.get(event._kind)
        if rows is None and not self.everywhere:
            return exact
        found: Members[M] = {**exact}
        if rows is not None:
            found.update(rows.whole)
            for fields, by_values in rows.by_fields.items():
                tested = by_values.get(values_of(event, fields))
                if tested:
                    _add_passing(found, tested, event)
            if rows.tested:
                _add_passing(found, rows.tested, event)
        if self.everywhere:
            _add_passing(found, self.everywhere, event)
        return found

    def _add_event(self, event: Event, member: M) -> None:
        members = self.by_event.get(event)
        if members is not None:
            members[member] = None
            return
        if self.kinds.by_name.get(event._kind) is not event._kind:
            self.kinds.meet(event._kind)
        self.by_event[event] = {member: None}

    def _remove_event(self, event: Event, member: M) -> None:
        members = self.by_event.get(event)
        if members is not None:
            members.pop(member, None)
            if not members:
                del self.by_event[event]

    def _add_row(self, row: Selector, member: M) -> None:
        rows = self.by_kind.get(row.kind)
        if rows is None:
            self.kinds.meet(row.kind)
            rows = self.by_kind[row.kind] = Rows()
        if row.fields is not None:
            _add_test(rows.by_fields.setdefault(row.fields, {}).setdefault(row.values, {}), member, row.test)
        elif row.test is not None:
            _add_test(rows.tested, member, row.test)
        else:
            rows.whole[member] = None

    def _remove_row(self, row: Selector, member: M) -> None:
        rows = self.by_kind[row.kind]
        if row.fields is not None:
            _remove_values(rows.by_fields, row, member)
        elif row.test is not None:
            rows.tested.pop(member, None)
        else:
            rows.whole.pop(member, None)
        if not (rows.whole or rows.by_fields or rows.tested):
            del self.by_kind[row.kind]


def _add_test(tested: Tested[M], member: M, test: Test | None) -> None:
    """File `member` under a test; None lets every event through, whatever other tests say."""
    if test is None:
        tested[member] = None
        return
    tests = tested.setdefault(member, [])
    if tests is not None:
        tests.append(test)


def _remove_values(by_fields: dict[tuple[str, ...], dict[Any, Tested[M]]], row: Selector, member: M) -> None:
    assert row.fields is not None
    by_values = by_fields.get(row.fields, {})
    tested = by_values.get(row.values)
    if tested is not None:
        tested.pop(member, None)
        if not tested:
            del by_values[row.values]
            if not by_values:
                del by_fields[row.fields]


def _add_passing(found: Members[M], tested: Tested[M], event: Event) -> None:
    for member, tests in tested.items():
        if tests is None or _passes(member, tests, event):
            found[member] = None


def _passes(member: M, tests: list[Test], event: Event) -> bool:
    try:
        for test in tests:  # noqa: SIM110 - asked at every step, and `any` takes twice as long
            if test(event):
                return True
        return False
    except PredicateError as error:
        message = f"b-thread {member.name!r}: {error}"
        raise EventSetError(message, bthread=member.name, event_set=error.event_set, event=event) from error.__cause__
