"""The b-threads that an event concerns, found without asking the others.

An `Index` files b-threads under the keys of their event sets (`bp/event_sets.py`); a `Register` files those that
request single events. An event is looked up under its own few keys: itself, its kind, None, and its values in each
combination of fields that is in use. So a thousand parked `where(Score, subject=...)` cost nothing until their score
comes.
"""

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from bp.errors import EventSetError
from bp.event_sets import PredicateError, Test, values_of
from bp.events import Event, EventKind, check_kind

__all__ = ["NOBODY", "Index", "Kinds", "Register"]


class Named(Protocol):
    """A member of an index has a name, which errors of its predicates give."""

    name: str


M = TypeVar("M", bound=Named)
N = TypeVar("N")
Tested = dict[N, list[Test]]  # each member with the tests of which one must accept the event
NOBODY: dict[Any, Any] = {}


class Kinds:
    """The event kinds that one program has met, by name."""

    __slots__ = ("by_name", "met")

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}
        self.met: set[Any] = {None}  # those that were checked; None stands for every kind

    def meet(self, kind: Any) -> None:
        """Raise TypeError when `kind` is no proper kind, or a kind and a plain event share its name."""
        if kind in self.met:
            return
        name = kind if isinstance(kind, str) else kind.name
        known = self.by_name.get(name)
        if known is not None and isinstance(known, str) is not isinstance(kind, str):
            raise TypeError(f"{name!r} is the name of an event kind and of a plain event; rename one of them")
        check_kind(kind)
        self.by_name.setdefault(name, kind)
        self.met.add(kind)


class Index(Generic[M]):
    """Members filed by their event sets: under single events, and under the other keys of their rows.

    `is_used`: a member was ever filed. A member that is filed under a key with tests stands in `_by_test` there.
    `_fields` counts, by kind, how often keys with these fields are filed.
    """

    __slots__ = ("_by_event", "_by_key", "_by_test", "_fields", "_kinds", "is_used")

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty index of a program that has met `kinds`."""
        self._by_event: dict[Event, dict[M, None]] = {}
        self._by_key: dict[Any, dict[M, None]] = {}
        self._by_test: dict[Any, Tested[M]] = {}
        self._fields: dict[Any, dict[tuple[str, ...], int]] = {}
        self._kinds = kinds
        self.is_used = False

    def move(self, member: M, old: Any, new: Any) -> None:
        """File `member` under the set `new` instead of `old`; None is no set. Raises TypeError for improper kinds."""
        filed: dict[Any, Any] | None
        if old is not None:
            filed = self._by_event if type(type(old)) is EventKind else self._by_key if type(old) is EventKind else None
            if filed is not None:  # for a single event or a kind
                members = filed[old]
                del members[member]
                if not members:
                    del filed[old]
            elif new is not None and old._rows == new._rows:
                return
            else:
                self._remove(member, old)
        if new is not None:
            filed = self._by_event if type(type(new)) is EventKind else self._by_key if type(new) is EventKind else None
            if filed is None:
                self._add(member, new)
            elif new in filed:
                filed[new][member] = None
            else:
                self._open(new._kind)
                filed[new] = {member: None}

    def _open(self, kind: Any) -> None:
        self.is_used = True
        if kind not in self._kinds.met:
            self._kinds.meet(kind)

    def _remove(self, member: M, events: Any) -> None:
        for key, kind, fields, test in events._rows:
            filed: dict[Any, Any] = self._by_test if test is not None else self._by_key
            if fields is not None:
                count = self._fields[kind]
                count[fields] -= 1
                if not count[fields]:
                    del count[fields]
            elif key is not kind:
                filed = self._by_event
            members = filed.get(key, NOBODY)
            members.pop(member, None)  # two rows of one set may have the same key
            if not members:
                filed.pop(key, None)

    def _add(self, member: M, events: Any) -> None:
        self.is_used = True
        for key, kind, fields, test in events._rows:
            if kind not in self._kinds.met:
                self._kinds.meet(kind)
            if test is not None:
                self._by_test.setdefault(key, {}).setdefault(member, []).append(test)
            elif fields is None and key is not kind:
                self._by_event.setdefault(key, {})[member] = None
            else:
                self._by_key.setdefault(key, {})[member] = None
            if fields is not None:
                count = self._fields.setdefault(kind, {})
                count[fields] = count.get(fields, 0) + 1

    def members(self, event: Event) -> dict[M, Any]:
        """Return the members whose sets contain `event`, once each, in no particular order.

        Raises EventSetError when a predicate that had to be asked fails.
        """
        found = self._by_event.get(event, NOBODY) if self._by_event else NOBODY
        by_key, by_test = self._by_key, self._by_test
        if not by_key and not by_test:
            return found
        keys: list[Any] = [None, *event._kinds]
        for kind in event._kinds:
            for fields in self._fields.get(kind, ()):
                keys += ((kind, fields, values_of(event, fields)),)
        found = {**found}
        tested: list[tuple[M, list[Test]]] = []
        for key in keys:
            if (filed := by_key.get(key)) is not None:
                found.update(filed)
            if by_test and key in by_test:
                tested.extend(by_test[key].items())
        return _with_accepting(found, tested, event) if tested else found


def _with_accepting(sure: dict[M, Any], tested: list[tuple[M, list[Test]]], event: Event) -> dict[M, Any]:
    """Return `sure`, and the members that accept an event. All tests of a member are asked, as by `contains`."""
    found = {**sure}
    for member, tests in tested:
        if member not in sure and _passes(member, tests, event):
            found[member] = None
    return found


def _passes(member: M, tests: list[Test], event: Event) -> bool:
    try:
        return True in [test(event) for test in tests]
    except PredicateError as error:
        message = f"b-thread {member.name!r}: {error}"
        raise EventSetError(message, bthread=member.name, event_set=error.event_set, event=event) from error.__cause__


class Register(Generic[M]):
    """Members filed by the single events that they request, which `concerned` finds for a whole event set.

    `_by_key` has the events of `by_event` under the kinds, and the fields of them, that were asked about so far.
    """

    __slots__ = ("_by_key", "_fields", "_kinds", "by_event")

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty register of a program that has met `kinds`."""
        self.by_event: dict[Event, dict[M, None]] = {}
        self._by_key: dict[Any, dict[Event, None]] = {}
        self._fields: dict[Any, dict[tuple[str, ...] | None, None]] = {}  # by kind; None: the kind as a whole
        self._kinds = kinds

    def add(self, event: Event, member: M) -> None:
        """File `member` under `event`; raises TypeError when its kind is not proper."""
        if event._kind not in self._kinds.met:
            self._kinds.meet(event._kind)
        members = self.by_event.setdefault(event, {})
        members[member] = None
        if len(members) > 1:
            return
        for key in self._keys_of(event) if self._fields else ():
            self._by_key.setdefault(key, {})[event] = None

    def remove(self, event: Event, member: M) -> None:
        """Take `member`, filed under `event`, out again; it may have been taken out before."""
        members = self.by_event.get(event)
        if members is None:
            return
        members.pop(member, None)
        if members:
            return
        del self.by_event[event]
        for key in self._keys_of(event) if self._fields else ():
            events = self._by_key[key]
            del events[event]
            if not events:
                del self._by_key[key]

    def concerned(self, *sets: Any) -> dict[M, None]:
        """Return the members that request an event which has the key of a row of a set; None is no set."""
        found: dict[M, None] = {}
        if not self.by_event:
            return found
        for events in sets:
            if type(type(events)) is EventKind:  # a single event
                found.update(self.by_event.get(events, NOBODY))
            elif events is not None:
                for key, kind, fields, _ in events._rows:
                    for event in self._events_of(key, kind, fields):
                        found.update(self.by_event.get(event, NOBODY))
        return found

    def _events_of(self, key: Any, kind: Any, fields: tuple[str, ...] | None) -> Iterable[Event]:
        """Return the events with a key; those of its kind are filed by its fields from now on."""
        if kind is None:
            return self.by_event
        if fields is None and key is not kind:
            return (key,)
        known = self._fields.setdefault(kind, {})
        if fields not in known:
            known[fields] = None
            for event in self.by_event:
                if kind in event._kinds:
                    self._by_key.setdefault(_key(event, kind, fields), {})[event] = None
        return self._by_key.get(key, ())

    def _keys_of(self, event: Event) -> list[Any]:
        keys: list[Any] = []
        for kind in event._kinds:
            for fields in self._fields.get(kind, ()):
                keys += (kind if fields is None else (kind, fields, values_of(event, fields)),)
        return keys


def _key(event: Event, kind: Any, fields: tuple[str, ...] | None) -> Any:
    return kind if fields is None else (kind, fields, values_of(event, fields))
