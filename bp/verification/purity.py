"""B-threads that keep state where the verifier cannot see it, found out.

A local state is what stands in the generator. So its arguments, defaults and closure must not change, it may assign to
nothing outside, and it may not ask for what changes by itself: the clock, randomness, files. The first two are looked
up in its values and code; the third is watched while it runs. (What globals hold: `surroundings`.)
"""

import dataclasses
import dis
import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache, partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import attrs

from bp.event_sets import EventSet, is_kind
from bp.events import NamedEvent
from bp.statements import BThread, BThreadFunction, Sync
from bp.verification.fingerprint import VerificationError
from bp.verification.live_variables import assigns_later

__all__ = ["ATOMS", "check_outside", "check_shared", "codes_of", "functions_of", "refuse_changeable", "watched"]

ATOMS = (type(None), bool, int, float, complex, str, bytes, range, Enum, type, ModuleType, BuiltinFunctionType)
IMPURE_MODULES = frozenset(
    {"time", "random", "_random", "secrets", "uuid", "io", "_io", "posix", "os", "socket", "_socket", "select"}
)
PURE_FUNCTIONS = frozenset({"fspath", "_path_normpath"})  # of `posix`: texts to texts, called by `posixpath`
IMPURE_METHODS = frozenset({"now", "today", "utcnow"})


def check_outside(bthread: BThread) -> None:
    """Raise VerificationError when something outside its generator could carry state into `bthread`."""
    named = f"b-thread {bthread.name!r}"
    for position, argument in enumerate((*bthread.args, *bthread.kwargs.values()), start=1):
        refuse_changeable(argument, f"{named}: argument {position}")
    for function in functions_of(bthread.function):
        _check_function(function, named)


def _check_function(function: FunctionType, named: str) -> None:
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        refuse_changeable(default, f"{named}: a default value of {function.__name__}")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if _is_filled(cell) and not isinstance(cell.cell_contents, FunctionType):  # functions are looked at as such
            refuse_changeable(cell.cell_contents, f"{named}: the variable {name!r} of an outer function")
    for code in codes_of(function.__code__):
        _check_assignments(code, function, named)


def _check_assignments(code: CodeType, function: FunctionType, named: str) -> None:
    outer = set(function.__code__.co_freevars)
    for operation, assigned in _assignments(code):
        if operation in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise VerificationError(
                f"{named} assigns to the global {assigned!r}: hidden state; keep it in a local variable, "
                "or request an event that carries it"
            )
        if operation in ("STORE_DEREF", "DELETE_DEREF") and assigned in outer:
            raise VerificationError(
                f"{named} assigns to {assigned!r} of an outer function: hidden state; keep it in a local "
                "variable, or request an event that carries it"
            )


@cache
def _assignments(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """Return the instructions of `code` that assign to what is not its own, each with the name."""
    elsewhere = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
    return tuple((one.opname, one.argval) for one in dis.get_instructions(code) if one.opname in elsewhere)


def refuse_changeable(value: Any, where: str) -> None:
    """Raise VerificationError when `value`, found at `where`, can change."""
    found = _changeable(value)
    if found is not None:
        raise VerificationError(
            f"{where} is or holds a {type(found).__name__}, which can change: hidden state; "
            "pass immutable values (tuples, frozensets, frozen attrs values)"
        )


def _changeable(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """Return the first thing in `value` that can change, or None; `within` are the functions it stands in."""
    if isinstance(value, ATOMS) or is_kind(value) or isinstance(value, BThreadFunction | CodeType):
        return None
    if isinstance(value, FunctionType | partial | MethodType):
        return None if value in within else _first_changeable(_held(value), (*within, value))
    if isinstance(value, tuple | frozenset):
        return _first_changeable(value, within)
    if isinstance(value, NamedEvent):
        return _changeable(value.data, within)
    if isinstance(value, BThread):
        return _first_changeable((value.function, *value.args, *value.kwargs.values()), within)
    if isinstance(value, Sync) or _is_frozen(type(value)):
        fields = attrs.fields(type(value)) if attrs.has(type(value)) else dataclasses.fields(value)
        return _first_changeable((getattr(value, field.name) for field in fields), within)
    return None if isinstance(value, EventSet) or _is_hashable_by_value(value) else value


def _first_changeable(values: Iterable[Any], within: tuple[Any, ...]) -> Any:
    return next((found for value in values if (found := _changeable(value, within)) is not None), None)


def _held(function: Any) -> Iterator[Any]:
    """Yield the values that a function keeps: defaults and closure, bound arguments, or its object."""
    if isinstance(function, MethodType):
        yield from (function.__func__, function.__self__)
    elif isinstance(function, partial):
        yield from (function.func, *function.args, *function.keywords.values())
    else:
        yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        yield from (cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell))


def _is_frozen(kind: type) -> bool:
    if attrs.has(kind):
        return attrs.inspect(kind).is_frozen
    return dataclasses.is_dataclass(kind) and bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def _is_hashable_by_value(value: Any) -> bool:
    """Tell whether a value says of itself that it never changes: dates, decimals, paths, frozen mappings."""
    kind: Any = type(value)
    if kind.__eq__ is object.__eq__ or kind.__hash__ is object.__hash__:
        return False
    try:
        hash(value)
    except TypeError:
        return False
    return True


def check_shared(child: BThread, starter: BThread, body: Any) -> None:
    """Raise VerificationError when `child` reads a variable of the b-thread that starts it, and that may change.

    `body` is the starter's generator, at the start; one that it delegates to counts as well.
    """
    cells = [
        (name, cell)
        for function in functions_of(child.function)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    ]
    while cells and isinstance(body, GeneratorType) and body.gi_frame is not None:
        own = {id(item) for item in gc.get_referents(body) if isinstance(item, CellType)}
        for name, cell in cells:
            if id(cell) in own and assigns_later(body.gi_code, body.gi_frame.f_lasti, name):
                raise VerificationError(
                    f"b-threads {child.name!r} and {starter.name!r} share the variable {name!r}, which the latter may "
                    "assign after it started the former: hidden state; pass its value as an argument"
                )
        body = body.gi_yieldfrom


def functions_of(function: Any) -> Iterator[FunctionType]:
    """Yield the function of a b-thread and the plain functions of its module that it calls by name."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, FunctionType) or id(current.__code__) in seen:
            continue
        seen.add(id(current.__code__))
        yield current
        named = [current.__globals__.get(name) for code in codes_of(current.__code__) for name in code.co_names]
        waiting += [value for value in named if _belongs_with(value, function)]
        waiting += [cell.cell_contents for cell in current.__closure__ or () if _is_filled(cell)]


def _belongs_with(value: Any, function: Any) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == function.__module__


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions and lambdas in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_of(constant)


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
    collecting = gc.isenabled()
    gc.disable()  # a collection may run anybody's callbacks in the middle of the b-thread
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
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
    if getattr(function, "__name__", "") in PURE_FUNCTIONS:
        return False
    if owner is not None and getattr(function, "__name__", "") in IMPURE_METHODS and "datetime" in str(modules):
        return True
    return any(module in IMPURE_MODULES for module in modules) or function is open or function is input
