"""What stands around b-threads, remembered before they run, so that a change of it is found out afterwards.

Globals, the classes and modules that b-threads reach by name, and objects in them, are no part of a local state. A
b-thread that changes one keeps state there, or another reads it: either way what was explored was not all there is.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from bp.statements import BThread, BThreadFunction
from bp.verification.fingerprint import VerificationError, fingerprint_of_value
from bp.verification.purity import codes_of, functions_of

__all__ = ["Surroundings"]


class Remembered(NamedTuple):
    """A value outside: who reads it, what it is called, how to get at it, which attributes count, how it looked."""

    bthread: str
    called: str
    get: Callable[[], Any]
    names: frozenset[str]
    look: Any


class Surroundings:
    """The values that b-threads reach outside of themselves."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._remembered: dict[Any, Remembered] = {}
        self._known: dict[Any, None] = {}

    def remember(self, bthread: BThread) -> None:
        """Remember what the functions of `bthread` reach, before it runs for the first time."""
        code = getattr(bthread.function, "__code__", bthread.function)
        if code in self._known:
            return
        self._known[code] = None
        for argument in (*bthread.args, *bthread.kwargs.values()):
            self._keep(bthread, id(argument), "an argument", _constant(argument), _all_names(bthread))
        for function in functions_of(bthread.function):
            names = _names_in(function)
            for name in names & function.__globals__.keys():
                called = f"the global {name!r} of {function.__module__}"
                key = (id(function.__globals__), name)
                self._keep(bthread, key, called, partial(function.__globals__.get, name), names)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                called = f"the variable {name!r} of an outer function"
                self._keep(bthread, id(cell), called, partial(_contents, cell), names)

    def _keep(self, bthread: BThread, key: Any, called: str, get: Callable[[], Any], names: frozenset[str]) -> None:
        value = get()
        if isinstance(value, FunctionType | BThreadFunction):
            return
        names |= self._remembered[key].names if key in self._remembered else frozenset()
        self._remembered[key] = Remembered(bthread.name, called, get, names, _look(value, names))

    def check(self) -> None:
        """Raise VerificationError when anything outside looks different now."""
        for bthread, called, get, names, look in self._remembered.values():
            if _look(get(), names) != look:
                raise VerificationError(
                    f"b-thread {bthread!r} reads {called}, which changed meanwhile: hidden "
                    "state; keep it in a local variable, or request an event that carries it"
                )


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _names_in(function: FunctionType) -> frozenset[str]:
    return frozenset(name for code in codes_of(function.__code__) for name in code.co_names)


def _all_names(bthread: BThread) -> frozenset[str]:
    return frozenset().union(*(_names_in(function) for function in functions_of(bthread.function)))


def _look(value: Any, names: frozenset[str]) -> Any:
    """Describe a value; of a class or a module only the attributes that are named in the code."""
    if isinstance(value, type | ModuleType):
        spaces = [vars(kind) for kind in value.__mro__] if isinstance(value, type) else [vars(value)]
        found = {name: space[name] for space in reversed(spaces) for name in names & space.keys()}
        return (id(value), tuple((name, _inside(found[name], {id(value)})) for name in sorted(found)))
    return _inside(value, set())


def _inside(value: Any, seen: set[int]) -> Any:
    """Describe a value as well as it can be: by value, else by identity and by what it holds."""
    try:
        return fingerprint_of_value(value)
    except (VerificationError, RecursionError):
        pass
    if id(value) in seen or isinstance(value, type | ModuleType):
        return ("object", id(value))
    seen.add(id(value))
    return ("object", id(value), tuple((name, _inside(item, seen)) for name, item in _held(value)))


def _held(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return what a container or an object of a class of the program's own holds."""
    if isinstance(value, dict):
        return [(id(key), item) for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return enumerate(value)
    if type(value).__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return ()
    return _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
