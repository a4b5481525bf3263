"""The b-threads that an event concerns, found without asking the others.

An `Index` files b-threads under the keys of their event sets (`bp/events.py`). An event is looked up under its own few
keys: itself, its kind, None, and its values in each combination of fields that is in use. So a thousand parked
`where(Score, subject=...)` cost nothing until their score comes.
"""

from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

from bp.errors import EventSetError
from bp.events import Event, EventKind, PredicateError, Test, check_kind


class Named(Protocol):
    """A member of an index has a name, which errors of its predicates give."""

    name: str


M = TypeVar("M", bound=Named)
N = TypeVar("N")
Filed = dict[N, list[Test] | None]  # each member with the tests of which one must accept the event; None: no test
NO_MEMBERS: dict[Any, Any] = {}


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
    """Members filed by their event sets, each under the keys of its rows.

    What was ever filed is known, so that nothing else is looked up: `_has_events`: single events; `_has_keys`: other
    keys; `_fields`: the fields of such keys and how to get them, by kind; `_asks`: rows with a test.
    """

    __slots__ = ("_asks", "_fields", "_has_events", "_has_keys", "_kinds", "filed")

    def __init__(self, kinds: Kinds) -> None:
        """Make an empty index of a program that has met `kinds`."""
        self.filed: dict[Any, Filed[M]] = {}
        self._has_events = False
        self._has_keys = False
        self._fields: dict[Any, dict[tuple[str, ...], attrgetter[Any]]] = {}
        self._asks = False
        self._kinds = kinds

    def move(self, member: M, old: Any, new: Any) -> None:
        """File `member` under the set `new` instead of `old`; None is no set. Raises TypeError for improper kinds."""
        filed = self.filed
        if old is not None:
            if type(type(old)) is EventKind or type(old) is EventKind:  # an event or a kind is its own key
                members = filed[old]
                del members[member]
                if not members:
                    del filed[old]
            elif new is not None and old._rows == new._rows:
                return
            else:
                self._remove(member, old)
        if new is not None:
            if type(type(new)) is EventKind:
                self._has_events = True
            elif type(new) is EventKind:
                self._has_keys = True
            else:
                self._add(member, new)
                return
            if new in filed:
                filed[new][member] = None
            else:
                if new._kind not in self._kinds.met:
                    self._kinds.meet(new._kind)
                filed[new] = {member: None}

    def _remove(self, member: M, events: Any) -> None:
        for key, _, _, _ in events._rows:
            members = self.filed.get(key, NO_MEMBERS)
            members.pop(member, None)  # two rows of one set may have the same key
            if not members:
                self.filed.pop(key, None)

    def _add(self, member: M, events: Any) -> None:
        for key, kind, fields, test in events._rows:
            if kind not in self._kinds.met:
                self._kinds.meet(kind)
            if fields is not None:
                self._has_keys = True
                known = self._fields.setdefault(kind, {})
                if fields not in known:
                    known[fields] = attrgetter(*fields)
            elif key is kind:
                self._has_keys = True
            else:
                self._has_events = True
            members = self.filed.setdefault(key, {})
            if test is None:
                members[member] = None
            else:
                self._asks = True
                tests = members.setdefault(member, [])
                if tests is not None:
                    tests.append(test)

    def members(self, event: Event) -> Filed[M]:
        """Return the members whose sets contain `event`, once each, in no particular order.

        Raises EventSetError when a predicate that had to be asked fails.
        """
        found = self.filed.get(event, NO_MEMBERS) if self._has_events else NO_MEMBERS
        if not self._has_keys:
            return found
        filed = self.filed
        matching = [filed[None]] if None in filed else []
        for kind in event._kinds:
            if kind in filed:
                matching.append(filed[kind])
            if kind in self._fields:
                for fields, values_of in self._fields[kind].items():
                    members = filed.get((kind, fields, values_of(event)))
                    if members is not None:
                        matching.append(members)
        if not matching:
            return found
        found = {**found}
        if self._asks:
            return _with_accepting(found, matching, event)
        for members in matching:
            found.update(members)
        return found


def _with_accepting(found: Filed[M], matching: list[Filed[M]], event: Event) -> Filed[M]:
    """Return `found` with the members that accept an event. All tests of a member are asked, as by `contains`."""
    asked: dict[M, list[Test]] = {}
    for filed in matching:
        for member, tests in filed.items():
            if tests is None:
                found[member] = None
            else:
                asked[member] = asked.get(member, []) + tests
    for member, tests in asked.items():
        if member not in found and _passes(member, tests, event):
            found[member] = None
    return found


def _passes(member: M, tests: list[Test], event: Event) -> bool:
    try:
        return True in [test(event) for test in tests]
    except PredicateError as error:
        message = f"b-thread {member.name!r}: {error}"
        raise EventSetError(message, bthread=member.name, event_set=error.event_set, event=event) from error.__cause__
