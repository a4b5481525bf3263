"""B-threads that keep state where the verifier cannot see it, found out.

A local state is what stands in the generator. So its arguments, defaults, closure and globals must not change, and it
may not ask for what changes by itself: the clock, randomness, files. The first is looked up in its code and values;
the second is watched while it runs.
"""

import dis
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import attrs

from bp.bthreads import BThread, BThreadFunction
from bp.event_sets import EventSet, is_kind
from bp.fingerprint import VerificationError, fingerprint_of_value

__all__ = ["Globals", "check_outside", "watched"]

ATOMS = (type(None), bool, int, float, complex, str, bytes, range, Enum, type, ModuleType, BuiltinFunctionType)
IMPURE_MODULES = frozenset(
    {"time", "random", "_random", "secrets", "uuid", "io", "_io", "posix", "os", "socket", "_socket", "select"}
)
IMPURE_METHODS = frozenset({"now", "today", "utcnow"})


def check_outside(bthread: BThread) -> None:
    """Raise VerificationError when something outside its generator could carry state into `bthread`."""
    named = f"b-thread {bthread.name!r}"
    for position, argument in enumerate((*bthread.args, *bthread.kwargs.values()), start=1):
        _refuse_changeable(argument, f"{named}: argument {position}")
    for function in _functions(bthread.function):
        _check_function(function, named)


def _check_function(function: FunctionType, named: str) -> None:
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        _refuse_changeable(default, f"{named}: a default value of {function.__name__}")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with _empty_cells_are_fine():
            _refuse_changeable(cell.cell_contents, f"{named}: the variable {name!r} of an outer function")
    for code in _codes(function.__code__):
        _check_assignments(code, function, named)


def _check_assignments(code: CodeType, function: FunctionType, named: str) -> None:
    outer = set(function.__code__.co_freevars)
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise VerificationError(
                f"{named} assigns to the global {instruction.argval!r}: hidden state; keep it in a local variable, "
                "or request an event that carries it"
            )
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in outer:
            raise VerificationError(
                f"{named} assigns to {instruction.argval!r} of an outer function: hidden state; keep it in a local "
                "variable, or request an event that carries it"
            )


def _refuse_changeable(value: Any, where: str) -> None:
    found = _changeable(value)
    if found is not None:
        raise VerificationError(
            f"{where} is or holds a {type(found).__name__}, which can change: hidden state; "
            "pass immutable values (tuples, frozensets, frozen attrs values)"
        )


def _changeable(value: Any) -> Any:
    """Return the first thing in `value` that can change, or None."""
    if isinstance(value, ATOMS) or is_kind(value) or isinstance(value, BThreadFunction | CodeType):
        return None
    if isinstance(value, FunctionType):
        return None  # its own closure is looked at by whoever calls it
    if isinstance(value, MethodType):
        return _changeable(value.__self__)
    if isinstance(value, tuple | frozenset):
        return _first_changeable(value)
    if isinstance(value, BThread):
        return _first_changeable((*value.args, *value.kwargs.values()))
    if attrs.has(type(value)) and type(value).__hash__ is not None:
        return _first_changeable(getattr(value, field.name) for field in attrs.fields(type(value)))
    if isinstance(value, EventSet) or (isinstance(value, Mapping) and type(value).__hash__ is not None):
        return None
    return value


def _first_changeable(values: Any) -> Any:
    return next((found for value in values if (found := _changeable(value)) is not None), None)


@contextmanager
def _empty_cells_are_fine() -> Iterator[None]:
    try:
        yield
    except ValueError:
        return


def _functions(function: Any) -> Iterator[FunctionType]:
    """Yield the function of a b-thread and the plain functions of its module that it calls by name."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, FunctionType) or id(current.__code__) in seen:
            continue
        seen.add(id(current.__code__))
        yield current
        waiting += [value for value in _globals_of(current).values() if _belongs_with(value, function)]
        waiting += [cell.cell_contents for cell in current.__closure__ or () if _is_filled(cell)]


def _belongs_with(value: Any, function: Any) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == function.__module__


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _globals_of(function: FunctionType) -> dict[str, Any]:
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    return {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}


class Globals:
    """The global values that b-threads read, remembered, so that a change is found out."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._before: dict[tuple[str, str], tuple[Any, dict[str, Any], Any]] = {}

    def remember(self, bthread: BThread) -> None:
        """Remember the globals that the functions of `bthread` read."""
        for function in _functions(bthread.function):
            for name, value in _globals_of(function).items():
                if isinstance(value, FunctionType | BThreadFunction) or (function.__module__, name) in self._before:
                    continue
                try:
                    description = fingerprint_of_value(value)
                except (VerificationError, RecursionError):
                    description = ("object", id(value))
                self._before[function.__module__, name] = (bthread.name, function.__globals__, description)

    def check(self) -> None:
        """Raise VerificationError when a global has another value now."""
        for (module, name), (bthread, namespace, before) in self._before.items():
            value = namespace.get(name)
            try:
                now = fingerprint_of_value(value)
            except (VerificationError, RecursionError):
                now = ("object", id(value))
            if now != before:
                raise VerificationError(
                    f"b-thread {bthread!r} reads the global {name!r} of {module}, which changed meanwhile: hidden "
                    "state; keep it in a local variable, or request an event that carries it"
                )


@contextmanager
def watched(name: str) -> Iterator[None]:
    """Run b-thread code; raise VerificationError when it reads the clock, draws at random, or opens something."""
    impure: list[str] = []

    def look(frame: Any, kind: str, function: Any) -> None:
        if kind == "c_call" and _is_impure(function):
            impure.append(getattr(function, "__qualname__", str(function)))

    before: Any = sys.getprofile()
    if before is not None and not callable(before):  # a profiler that cannot be put back: do not disturb it
        yield
        return
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
    if impure:
        raise VerificationError(
            f"b-thread {name!r} calls {impure[0]}, whose answer is not in the program: hidden state; "
            "have an effect ask, and wait for the event that carries the answer"
        )


def _is_impure(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    modules: tuple[Any, ...] = (
        getattr(function, "__module__", None),
        type(owner).__module__,
        getattr(owner, "__module__", None),
    )
    if isinstance(owner, ModuleType):
        modules = (owner.__name__,)
    if owner is not None and getattr(function, "__name__", "") in IMPURE_METHODS and "datetime" in str(modules):
        return True
    return any(module in IMPURE_MODULES for module in modules) or function is open or function is input
