"""What makes two local states of a b-thread the same: everything that its future can depend on, by value and type.

A suspended generator is described by its position, its live locals, its cells and its evaluation stack (the iterator
of a `for` is in no variable), and by the same of every generator that it delegates to. Values are described as a
graph: which mutable objects are the same object is part of the state. What has no value of its own (files, set
iterators, objects compared by identity) is refused by name. Never `repr`, never identity.
"""

import gc
import itertools
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Mapping
from enum import Enum
from functools import cache, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

import attrs

from bp.errors import BProgramError
from bp.statements import Refusals
from bp.verification.live_variables import live_locals

__all__ = ["VerificationError", "check_interpreter", "fingerprint", "fingerprint_of_value"]

ATOMS = (type(None), bool, int, str, bytes, complex, type(...), type(NotImplemented))
ALONE = 3  # references to a cell that one generator holds: its own, the list of its referents, the one that is counted
SET_ITERATOR: type = type(iter(set[Any]()))
EMPTY_ITERATORS: tuple[Any, ...] = (
    *(iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), iter("é"), iter(b""), iter(bytearray())),
    *(iter({}), iter({}.values()), iter({}.items()), reversed([]), reversed(()), reversed({})),
    *(enumerate(()), zip(), map(abs, ()), filter(None, ())),
    *(iter(deque()), reversed(deque()), iter(OrderedDict()), iter(OrderedDict().items()), iter(OrderedDict().values())),
)
ITERATORS: tuple[type, ...] = tuple(dict.fromkeys(map(type, EMPTY_ITERATORS)))


class VerificationError(BProgramError):
    """A program cannot be verified: a b-thread keeps state where it cannot be seen; names it, and says the cure."""


def fingerprint(body: Generator[Any, Any, Any]) -> Any:
    """Return a hashable description of a suspended generator; equal descriptions mean equal futures.

    Take it once, from a generator that nobody looked into before (looking makes frame objects, which change what the
    generator refers to). Raises VerificationError for a value that cannot be compared.
    """
    return Description().generator(body, "")


def fingerprint_of_value(value: Any) -> Any:
    """Return a hashable description of a value, like those of local variables."""
    return Description().value(value, "value")


class Description:
    """One pass over an object graph; numbers the mutable objects in the order in which it meets them."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps what was seen alive, so that no id is used twice

    def value(self, value: Any, path: str) -> Any:
        """Describe a value; `path` says where it was found, for errors."""
        kind = type(value)
        if kind in ATOMS:
            return (kind, value)
        if kind is float:
            return (kind, value.hex())
        if kind in (tuple, list, set, frozenset, dict, deque, bytearray):
            return self._collection(kind, value, path)
        describe = _special(kind)  # type: ignore[arg-type]
        return describe(self, value, path) if describe is not None else self._instance(kind, value, path)

    def generator(self, body: Any, path: str) -> Any:
        """Describe a suspended generator."""
        referents = gc.get_referents(body)  # before the frame is touched
        frame = body.gi_frame
        if frame is None:
            return ("finished",)
        code = frame.f_code
        found = dict(frame.f_locals)
        live = live_locals(code, frame.f_lasti)
        dead = _dead_cells(referents, code, live)
        matters = live | ({*code.co_cellvars, *code.co_freevars} - dead.keys())
        locals_ = tuple(
            (name, self.value(value, f"{path}{name}")) for name, value in sorted(found.items()) if name in matters
        )
        cells = [
            ("dead cell",) if id(item) in dead.values() else self.cell(item, f"{path}closure")
            for item in referents
            if type(item) is CellType
        ]
        stack = _stack(referents, code, found)
        return (
            "generator", _identity(code), frame.f_lasti, locals_, tuple(cells),
            tuple(self.value(item, f"{path}an expression under way") for item in stack),
        )  # fmt: skip

    def _collection(self, kind: type, value: Any, path: str) -> Any:
        if kind is tuple:
            return (kind, tuple(self.value(item, path) for item in value))
        if kind is frozenset:
            return (kind, frozenset(self.value(item, path) for item in value))
        return self.once(value, path, self._mutable)

    def once(self, value: Any, path: str, describe: Callable[[Any, str], Any]) -> Any:
        """Describe a mutable object where it is met first; later only say which one it is."""
        if id(value) in self._seen:
            return ("same as", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return describe(value, path)

    def _mutable(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is dict:
            pairs = tuple((self.value(key, path), self.value(item, f"{path}[{key!r}]")) for key, item in value.items())
            return (kind, pairs)
        if kind is set:
            return (kind, frozenset(self.value(item, path) for item in value))
        if kind is bytearray:
            return (kind, bytes(value))
        items = tuple(self.value(item, f"{path}[{at}]") for at, item in enumerate(value))
        return (kind, items, value.maxlen) if kind is deque else (kind, items)

    def cell(self, cell: Any, path: str) -> Any:
        """Describe a cell: a variable of an outer function."""
        return self.once(cell, path, self._contents)

    def _contents(self, cell: Any, path: str) -> Any:
        try:
            return ("cell", self.value(cell.cell_contents, path))
        except ValueError:
            return ("empty cell",)

    def refusals(self, value: Any, path: str) -> Any:
        """Describe refusals: in any order."""
        return (Refusals, frozenset(self.value(tuple(item), path) for item in value))

    def method(self, value: Any, path: str) -> Any:
        """Describe a bound method."""
        return ("method", self.value(value.__func__, path), self.value(value.__self__, path))

    def function(self, function: Any, path: str) -> Any:
        """Describe a function: its code, and what it keeps."""
        return (
            "function", _identity(function.__code__), self.value(function.__defaults__, path),
            self.value(function.__kwdefaults__, path),
            tuple(self.cell(cell, f"{path}'s closure") for cell in function.__closure__ or ()),
        )  # fmt: skip

    def builtin(self, function: Any, path: str) -> Any:
        """Describe a function that is not written in Python, with the object that it is bound to."""
        owner = function.__self__
        of = None if owner is None or isinstance(owner, ModuleType) else self.value(owner, path)
        return ("builtin", function.__module__, function.__qualname__, of)

    def exception(self, error: Any, path: str) -> Any:
        """Describe an exception."""
        return (type(error), self.value(error.args, path), self.value(vars(error), path))

    def reduced(self, value: Any, path: str) -> Any:
        """Describe an object by what it would be pickled to."""
        return self.once(value, path, lambda value, path: (type(value), self.value(value.__reduce__(), path)))

    def _instance(self, kind: type, value: Any, path: str) -> Any:
        if attrs.has(kind) and _has_value(kind):
            fields = [(field.name, getattr(value, field.name)) for field in attrs.fields(kind)]
            return self._fields(kind, value, fields, path)
        if hasattr(kind, "__dataclass_fields__") and _has_value(kind):
            return self._fields(kind, value, [(name, getattr(value, name)) for name in kind.__dataclass_fields__], path)
        if isinstance(value, Mapping) and kind.__hash__ is not None:
            return (kind, tuple((self.value(key, path), self.value(item, path)) for key, item in value.items()))
        if not _has_value(kind) and not _is_interned(value):
            raise VerificationError(_no_value(value, path))
        if kind is SET_ITERATOR or kind.__module__ == itertools.__name__:
            raise VerificationError(_no_value(value, path))
        return self.once(value, path, lambda value, path: (kind, self.value(_reduction(value, path), path)))

    def _fields(self, kind: type, value: Any, fields: list[tuple[str, Any]], path: str) -> Any:
        def describe(value: Any, path: str) -> Any:
            return (kind, tuple((name, self.value(item, f"{path}.{name}")) for name, item in fields))

        return describe(value, path) if kind.__hash__ is not None else self.once(value, path, describe)


SPECIAL: tuple[tuple[Any, Callable[[Description, Any, str], Any]], ...] = (
    (Refusals, Description.refusals),
    (Enum, lambda by, value, path: (type(value), value.name)),
    ((type, ModuleType), lambda by, value, path: ("named", value)),
    (CodeType, lambda by, value, path: ("code", _identity(value))),
    (FunctionType, Description.function),
    (MethodType, Description.method),
    (BuiltinFunctionType, Description.builtin),
    (CellType, Description.cell),
    (GeneratorType, lambda by, value, path: by.once(value, path, by.generator)),
    (ITERATORS, Description.reduced),
    ((range, slice, partial), Description.reduced),
    (BaseException, lambda by, value, path: by.once(value, path, by.exception)),
)


@cache
def _special(kind: type) -> Callable[[Description, Any, str], Any] | None:
    """Return how objects of a class are described that are neither plain nor compared by their own `==`."""
    return next((describe for kinds, describe in SPECIAL if issubclass(kind, kinds)), None)


def _dead_cells(referents: list[Any], code: CodeType, live: frozenset[str]) -> dict[str, int]:
    """Return the cells, id by name, that nobody will read: this code writes into them first, and only it holds them.

    Who else might hold one (a function, a generator, a predicate) cannot be followed everywhere, but is counted.
    """
    own = [name for name in code.co_varnames if name in code.co_cellvars]
    named = (*own, *(name for name in code.co_cellvars if name not in own), *code.co_freevars)
    places = [at for at, item in enumerate(referents) if type(item) is CellType]
    if len(places) != len(named):
        return {}
    return {
        name: id(referents[at])
        for name, at in zip(named, places, strict=True)
        if name in code.co_cellvars and name not in live and sys.getrefcount(referents[at]) == ALONE
    }


def _stack(referents: list[Any], code: CodeType, found: dict[str, Any]) -> list[Any]:
    """Return what stands on the evaluation stack: what the frame refers to after its variables.

    A generator refers to its name and code, then to all variables that are set, in order, then to its stack, and last
    to the exception that it handles, which is None after a function that it called has handled one. So Nones at the
    end say nothing; what stands there is decided by the position, whose stack is always equally deep.
    """
    shared = {*code.co_cellvars, *code.co_freevars}
    plain = sum(name in found and name not in shared for name in code.co_varnames)
    before = next(at for at in range(len(referents) - 1, -1, -1) if referents[at] is code) + 1
    stack = referents[before + plain + len(shared) :]
    while stack and stack[-1] is None:
        stack.pop()
    return stack


def _identity(code: CodeType) -> int:
    """Return a number for a code object, and keep it alive, so that no other gets the same."""
    _CODES[id(code)] = code
    return id(code)


_CODES: dict[int, CodeType] = {}


def _reduction(value: Any, path: str) -> Any:
    try:
        return value.__reduce_ex__(4)
    except TypeError as error:
        raise VerificationError(_no_value(value, path)) from error


def _has_value(kind: type) -> bool:
    """Tell whether objects of this class are compared by value, not by identity."""
    return getattr(kind, "__eq__", None) is not object.__eq__


def _is_interned(value: Any) -> bool:
    """Tell whether identity is value: plain named events are one object for each name."""
    from bp.bthreads import BThreadFunction
    from bp.events import NamedEvent

    return isinstance(value, NamedEvent | BThreadFunction)


def _no_value(value: Any, path: str) -> str:
    return (
        f"{path} holds a {type(value).__name__}, which has no value to compare; "
        "keep values in b-threads (numbers, text, tuples, lists, frozen attrs classes) and make such objects in effects"
    )


@cache
def check_interpreter() -> None:
    """Raise VerificationError on an interpreter where two different positions of a generator look equal."""

    def loop() -> Generator[Any, Any, Any]:
        for item in ("x", "x"):  # noqa: UP028 - the position in this loop is what is looked at
            yield item

    def nested() -> Generator[Any, Any, Any]:
        yield from loop()
        for _ in (0, 0):
            _ = (1, (yield "x")) if (yield "x") else None

    for function, positions in ((loop, 2), (nested, 6)):
        looks = set()
        for steps in range(positions):
            body = function()
            next(body)
            for _ in range(steps):
                body.send(True)
            looks.add(fingerprint(body))
        if len(looks) != positions or not all(isinstance(look, tuple) for look in looks):
            raise VerificationError("this Python hides where a generator stands; verify on CPython 3.11 to 3.13")
