"""The looks of a local state, by which two of a b-thread are distinguished: nested tuples of plain values.

A suspended generator looks like its position, its live variables and cells, and its evaluation stack (the iterator of a
`for` is in no variable), and so does every generator that it delegates to. Other objects look like their type, the
content that they have by a base in C, and their attributes. Objects are numbered as they are met: which of them are the
same object is part of the looks, but never an address. Looks decide which states are merged, no more: that a b-thread
does the same wherever it looks the same is seen by running it (`trials`).
"""

import dis
import gc
import re
import warnings
from collections import deque
from contextlib import nullcontext
from enum import Enum
from functools import cache, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import attrs

from bp.errors import BProgramError
from bp.events import Complement, Event, Intersection, Union, Where
from bp.payload import FrozenMapping
from bp.statements import BThread, Refusals, Sync

ATOMS = frozenset({type(None), bool, int, str, bytes, type(...), type(NotImplemented), complex})
SETS = (Where, Union, Intersection, Complement)
ITSELF, OF_MODULES = (type, ModuleType, CodeType), (ModuleType, type, type(None))
CACHES = frozenset({"_attrs_cached_hash", "_hash", "__dict__", "__weakref__", "__traceback__", "__context__"})
CONTENT = {dict: lambda value: [*dict.items(value)]} | {
    kind: kind.__iter__ for kind in (list, tuple, deque, set, frozenset)
}
HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8  # flags of types: made at run time; made so by C code


class VerificationError(BProgramError):
    """A program cannot be verified; the message names the b-thread, what was found, and the cure."""


class Looks:
    """Describes values. `known`: the looks of events by id, with the events, so that each is described once."""

    def __init__(self, known: dict[int, tuple[Any, Any]]) -> None:
        self._known = known
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is used again

    def of(self, value: Any) -> Any:
        """Return what distinguishes a value from others, hashable."""
        kind: Any = type(value)
        if kind in ATOMS:
            return kind, value
        if kind is float:
            return kind, value.hex()
        if kind is tuple:
            return kind, *map(self.of, value)
        if isinstance(value, Event):
            return self._of_event(value)
        if isinstance(value, ITSELF) or (kind is BuiltinFunctionType and isinstance(value.__self__, OF_MODULES)):
            return ("itself", value)
        number = self._numbers.get(id(value))
        if number is not None:
            return "again", number
        if kind.__eq__ is object.__eq__ or kind.__hash__ in (None, object.__hash__):  # else a value: copies are equal
            self._numbers[id(value)] = len(self._numbers)
        self._kept.append(value)
        return kind, *self._parts(value)

    def _of_event(self, event: Event) -> Any:
        known = self._known.get(id(event))
        if known is None:
            known = self._known[id(event)] = (event, (type(event), *Looks(self._known)._parts(event)))
        return known[1]

    def _parts(self, value: Any) -> list[Any]:
        """Return the looks of what a value consists of."""
        kind = type(value)
        if kind is GeneratorType:
            return self._generator(value)
        if kind is CellType:
            return _of_cell(self, value)
        if kind in PARTS or kind in SETS:
            return [self.of(part) for part in PARTS.get(kind, _of_set)(value)]
        if isinstance(value, Enum):
            return [value._name_, self.of(value._value_)]
        if kind in (set, frozenset, Refusals):
            return [self._unordered(value)]
        return [*self._content(value), *self._attributes(value)]

    def _unordered(self, values: Any) -> Any:
        """Return the looks of elements in the order in which numbers come; that of texts differs between processes."""
        looks = [Looks(self._known).of(value) for value in values]
        is_ordered = all(type(value) in (int, bool) for value in values)
        return tuple(looks) if is_ordered else (len(looks), frozenset(looks))

    def _content(self, value: Any) -> list[Any]:
        """Return what a value holds by the nearest base that is written in C."""
        bases: Any = type(value).__mro__[:-1]
        for base in bases:
            if base in (set, frozenset):
                return [self._unordered(base.__iter__(value))]
            if base in CONTENT:
                return [self.of(item) for item in CONTENT[base](value)]
            if base in ATOMS or base is float:
                return [base.__repr__(value)]
            if not base.__flags__ & HEAP_TYPE or base.__flags__ & IMMUTABLE_TYPE:
                return self._content_in_c(base, value)
        return []

    def _content_in_c(self, base: Any, value: Any) -> list[Any]:
        reduce = getattr(base, "__reduce__", object.__reduce__)
        try:
            with warnings.catch_warnings() if base.__module__ == "itertools" else nullcontext():
                warnings.simplefilter("ignore") if base.__module__ == "itertools" else None
                reduced = value.__reduce_ex__(4) if reduce is object.__reduce__ else reduce(value)
        except Exception:  # such as a lock or a file: what it shows, without addresses
            return [re.sub(r"0x[0-9a-fA-F]+", "", base.__repr__(value)), *map(self.of, gc.get_referents(value))]
        if isinstance(reduced, str):
            return [reduced]
        return [self.of(part if index < 3 or part is None else tuple(part)) for index, part in enumerate(reduced)]

    def _attributes(self, value: Any) -> list[Any]:
        """Return the names and looks of its own attributes: in `__dict__`, in slots, and of an error in C."""
        inside = getattr(value, "__dict__", None) or {}
        found = [(name, self.of(item)) for name, item in inside.items() if name not in CACHES]
        return found + [(name, self.of(item)) for name, item in _slots_of(value)]

    def _generator(self, body: Any) -> list[Any]:
        """Take a suspended generator apart, whose frame was not touched before: that changes its references."""
        referents = gc.get_referents(body)
        frame = body.gi_frame
        if frame is None:
            return ["finished"]
        code, at, values = frame.f_code, frame.f_lasti, frame.f_locals
        live = live_locals(code, at)
        names = [name for name in sorted(live.difference(code.co_cellvars, code.co_freevars)) if name in values]
        variables = [(name, self.of(values[name])) for name in names]
        cells = [
            (name, self.of(cell))
            for name, cell in _named_cells(referents, code)
            if name in live or name not in code.co_cellvars
        ]
        return [code, at, *variables, *cells, "stack", *map(self.of, _stack(referents, code, values))]


def _of_function(function: Any) -> list[Any]:
    return [
        function.__code__, function.__defaults__, function.__kwdefaults__, vars(function), *(function.__closure__ or ())
    ]  # fmt: skip


def _of_set(events: Any) -> list[Any]:
    fields = [field for field in attrs.fields(type(events)) if field.eq]
    values = [getattr(events, field.name) for field in fields]
    return [frozenset(value) if field.eq_key else value for field, value in zip(fields, values, strict=True)]


def _of_cell(looks: Looks, cell: CellType) -> list[Any]:
    try:
        return [looks.of(cell.cell_contents)]
    except ValueError:
        return ["empty"]


PARTS: dict[Any, Any] = {
    Sync: tuple,
    BThread: lambda bthread: (bthread.function, bthread.args, bthread.kwargs, bthread.name, bthread.priority),
    FrozenMapping: lambda mapping: tuple(mapping.items()),
    FunctionType: _of_function,
    partial: lambda part: (part.func, part.args, part.keywords, *vars(part).items()),
    MethodType: lambda method: (method.__func__, method.__self__),
    BuiltinFunctionType: lambda method: (method.__name__, method.__self__),
    MethodWrapperType: lambda method: (method.__name__, method.__self__),
}


def _slots_of(value: Any) -> list[tuple[str, Any]]:
    """Return the set attributes that a value has in slots; of an error, those that it has in C as well."""
    members = (MemberDescriptorType, GetSetDescriptorType) if isinstance(value, BaseException) else MemberDescriptorType
    found = []
    for kind in type(value).__mro__[:-1]:
        for name, member in vars(kind).items():
            if isinstance(member, members) and name not in CACHES:
                try:
                    found.append((name, member.__get__(value)))
                except AttributeError:
                    continue
    return found


def look_at(known: dict[int, tuple[Any, Any]], *values: Any) -> Any:
    """Return the looks of values together. Raises VerificationError for one that is too deep."""
    looks = Looks(known)
    try:
        return tuple(map(looks.of, values))
    except RecursionError:
        raise VerificationError("it holds a value that is too deep to be compared") from None


def portable(looks: Any) -> Any:
    """Return looks of which another process can tell whether they are the same: types and code by their names."""
    if type(looks) in (tuple, frozenset):
        return type(looks)(map(portable, looks))
    if isinstance(looks, CodeType):
        return (looks.co_name, looks.co_firstlineno)
    return looks if type(looks) in ATOMS else f"{getattr(looks, '__module__', '')}.{getattr(looks, '__name__', '')}"


# Where a generator keeps what.


def _named_cells(referents: list[Any], code: CodeType) -> list[tuple[str, CellType]]:
    """Return the cells of a generator, in order, with the names of their variables ("" if unknown)."""
    cells = [item for item in referents if type(item) is CellType]
    names = _cell_names(code)
    return list(zip(names if len(names) == len(cells) else ("",) * len(cells), cells, strict=True))


@cache
def _cell_names(code: CodeType) -> tuple[str, ...]:
    own = [name for name in code.co_varnames if name in code.co_cellvars]
    return (*own, *(name for name in code.co_cellvars if name not in own), *code.co_freevars)


def _stack(referents: list[Any], code: CodeType, values: dict[str, Any]) -> list[Any]:
    """Return the evaluation stack: the referents of the frame after its variables.

    A generator refers to its name and code, then to all set variables, in order, then to its stack, and last to the
    exception that it handles, which is None after a called function has handled one. So trailing Nones are ignored.
    """
    cells = _cell_names(code)
    first = 1 + max(place for place, item in enumerate(referents) if item is code)
    plain = [name for name in code.co_varnames if name in values and name not in cells]
    stack = referents[first + (len(plain) if cells else len(values)) + len(cells) :]
    while stack and stack[-1] is None:
        stack.pop()
    return stack


# Which local variables of a suspended b-thread can still matter.

NEVER_FALLS_THROUGH = frozenset(
    {"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}
    | {"JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT"}
)
JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


@cache
def live_locals(code: CodeType, offset: int) -> frozenset[str]:
    """Return the locals and cells that `code` may read, or pass on, after byte `offset`."""
    live, following = _live_before(code)
    return frozenset().union(*(live[after] for after in following[offset]))


@cache
def _live_before(code: CodeType) -> tuple[dict[int, frozenset[str]], dict[int, tuple[int, ...]]]:
    """Return the live variables before each instruction, and the instructions that may follow it."""
    instructions = list(dis.get_instructions(code))
    following = _following(code, instructions)
    effects = {instruction.offset: _reads_and_writes(instruction, code.co_cellvars) for instruction in instructions}
    live: dict[int, frozenset[str]] = {offset: frozenset() for offset in effects}
    changed = True
    while changed:
        changed = False
        for instruction in reversed(instructions):
            offset = instruction.offset
            reads, writes = effects[offset]
            after = frozenset().union(*(live[successor] for successor in following[offset]))
            before = reads | (after - writes)
            if before != live[offset]:
                live[offset] = before
                changed = True
    return live, following


def _following(code: CodeType, instructions: list[dis.Instruction]) -> dict[int, tuple[int, ...]]:
    """Return the possible next instructions: in line, by jump, or as an exception handler."""
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    following = {}
    for position, instruction in enumerate(instructions):
        successors = [entry.target for entry in handlers if entry.start <= instruction.offset < entry.end]
        if instruction.opname not in NEVER_FALLS_THROUGH and position + 1 < len(instructions):
            successors.append(instructions[position + 1].offset)
        if instruction.opcode in JUMPS:
            successors.append(instruction.argval)
        following[instruction.offset] = tuple(successors)
    return following


def _reads_and_writes(instruction: dis.Instruction, cells: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the locals that an instruction reads, and those that it writes without reading them first.

    Any use of a cell except writing may pass it on, and so counts as reading.
    """
    name = instruction.opname
    if instruction.argval in cells and "CONST" not in name:
        own = frozenset((instruction.argval,))
        return (frozenset(), own) if name == "STORE_DEREF" else (own, frozenset())
    if "FAST" not in name:
        return frozenset(), frozenset()
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    if not set(names).isdisjoint(cells):
        return frozenset(names), frozenset()
    if name in ("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_MAYBE_NULL"):
        return frozenset(), frozenset(names)
    if name == "STORE_FAST_LOAD_FAST":
        return frozenset(names[1:]) - frozenset(names[:1]), frozenset(names[:1])
    return frozenset(names), frozenset()
