"""Fingerprints of local states: two states of a b-thread are the same when their fingerprints are equal.

A suspended generator is described by its position, its live locals and cells and its evaluation stack (the iterator
of a `for` is in no variable), and by the same of every generator that it delegates to. Values are described as a
graph: which mutable objects are the same object is part of the state. The types whose values can be taken apart are
known exactly (`SHAPES`, and classes written in Python, by their attributes); every other value is refused by name.
Never `repr`, never identity.
"""

import datetime
import dis
import gc
import re
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import _lru_cache_wrapper, cache, cached_property, partial
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, GeneratorType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple
from uuid import UUID

import attrs
from attrs import frozen

from bp.errors import BProgramError
from bp.events import EventKind, Intersection, NamedEvent, Union, Where
from bp.payload import FrozenMapping
from bp.statements import BThread, BThreadFunction, Refusals, Sync

ATOMS = frozenset({type(None), bool, int, str, bytes, type(...), type(NotImplemented)})
AT_ONCE = ATOMS | {type, EventKind}  # types whose values describe themselves
HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8  # flags of types: made at run time; made so by C code
IN_C = (types.MethodDescriptorType, types.ClassMethodDescriptorType, types.WrapperDescriptorType)
BY_IDENTITY = (*IN_C, types.MethodWrapperType, _lru_cache_wrapper, ModuleType, types.UnionType, types.GenericAlias)
BY_REDUCTION = (
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(Decimal, Fraction, UUID, PurePosixPath, PureWindowsPath, PosixPath, WindowsPath),
    *(attrgetter, itemgetter, methodcaller),
)
CACHED_HASHES = frozenset({"_hash", "_attrs_cached_hash"})
ITERATORS: tuple[Any, ...] = (
    *(iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), iter("é"), iter(b""), iter(bytearray())),
    *(reversed([]), reversed(()), enumerate(()), zip(), map(abs, ()), filter(None, ())),
    *(iter(deque()), reversed(deque())),
)
DICT_ITERATORS: tuple[Any, ...] = (
    *(iter({}), iter({}.values()), iter({}.items()), reversed({})),
    *(iter(OrderedDict()), iter(OrderedDict().items())),
)


class VerificationError(BProgramError):
    """A program cannot be verified: a b-thread has state that cannot be read; the message names it and the cure."""


class Shape(NamedTuple):
    """The decomposition of objects of one type.

    expand: returns a hashable header, which includes the number of parts, and the parts. mutable: the identity matters,
    too. comparable: objects of this type are compared by value. hashable: it has a hash although it could change; a
    class with its own `==` and hash is taken as immutable.
    """

    expand: Callable[[Any], tuple[Any, Any]]
    mutable: bool = False
    comparable: bool = True
    hashable: bool = False


class Description:
    """One pass over an object graph; numbers the mutable objects in the order of traversal."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.assignable: dict[int, str] = {}  # cells, by id, that described code may still assign
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps objects alive, so that no id is reused

    def value(self, value: Any, named: str) -> tuple[Any, ...]:
        """Return a hashable description; `named`: where the value was found. Raises VerificationError."""
        found: list[Any] = []
        waiting = [value]
        while waiting:
            value = waiting.pop()
            kind: Any = type(value)
            if kind in AT_ONCE:
                found += (kind, value)
                continue
            if kind is Place:
                named = value
                continue
            shape = SHAPES.get(kind) or _learned_shape(kind)
            if shape is None or not shape.comparable:
                raise VerificationError(_no_value(value, named))
            if shape.mutable or (kind is float and value != value):
                number = self._seen.get(id(value))
                if number is not None:
                    found += ("same as", number)
                    continue
                self._seen[id(value)] = len(self._kept)
                self._kept.append(value)
            try:
                header, parts = self._expanded(value, named) if kind in IN_CONTEXT else shape.expand(value)
            except (TypeError, RuntimeError) as error:
                raise VerificationError(f"{_no_value(value, named)} ({error})") from error
            found += (kind, header)
            waiting += reversed(parts)
        return tuple(found)

    def _expanded(self, value: Any, named: str) -> tuple[Any, Sequence[Any]]:
        """Expand an object whose description depends on this pass."""
        if type(value) is GeneratorType:
            header, parts = self._generator(value)
            return header, (*parts, Place(named))
        if type(value) is Elements:
            return self._elements(value, named), ()
        self.assignable |= {id(cell): name for name, cell in cells_of(value) if assigns(value.__code__, name)}
        return _function(value)

    def _elements(self, elements: "Elements", named: str) -> Any:
        """Describe the elements of a set, which must all be immutable, each by itself.

        Their order depends on hashes and insertion; that of texts differs between processes.
        """
        looks = []
        for element in elements.elements:
            inner = Description()
            try:
                looks.append(inner.value(element, named))
            except RecursionError as error:
                raise VerificationError(f"{named} holds sets in sets, too deep: maximum recursion depth") from error
            if inner._seen:
                raise VerificationError(f"{named} holds a set of objects that can change; use a tuple or a dict")
        is_ordered = all(map(_has_same_hash_everywhere, elements.elements))
        return tuple(looks) if is_ordered else frozenset(Counter(looks).items())

    def _generator(self, body: Any) -> tuple[Any, list[Any]]:
        """Take a suspended generator apart.

        It must not have been inspected before: inspection creates frame objects, which change its references.
        """
        referents = gc.get_referents(body)
        frame = body.gi_frame
        if frame is None:
            return "finished", []
        code, at = frame.f_code, frame.f_lasti
        found = frame.f_locals
        live, plain = _live_names(code, at)
        plain = tuple([name for name in plain if name in found])
        parts: list[Any] = [part for name in plain for part in (name, found[name])]
        names = []
        for name, cell in _named_cells(referents, code):
            if not name or assigns_later(code, at, name):
                self.assignable[id(cell)] = name
            if name in live or name not in code.co_cellvars:
                names.append(name)
                parts += (Place(name or "a variable of a function"), cell)
        stack = _stack(referents, code, found)
        parts += (UNDER_WAY, *stack)
        return (_identity(code), body.__name__, body.__qualname__, at, plain, tuple(names), len(stack)), parts


@frozen(eq=False)
class Elements:
    """The elements of a set, as a part of it."""

    elements: tuple[Any, ...]


class Place(str):
    """The place of the following parts, for messages; not a part itself."""

    __slots__ = ()


UNDER_WAY = Place("an expression under way")
IN_CONTEXT = frozenset({GeneratorType, FunctionType, Elements})  # see `Description._expanded`


def fingerprint_of_value(value: Any) -> Any:
    """Return a hashable description of a value, like those of local variables. Raises VerificationError."""
    return Description().value(value, "value")


def reachable(*roots: Any) -> Iterator[Any]:
    """Yield the objects that values consist of, each once, without atoms.

    Unknown types, and classes with their own `==` and hash, are not taken apart.
    """
    seen: dict[int, Any] = {}
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if type(value) in ATOMS or id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        shape = shape_of(type(value))
        if shape is not None and (type(value) in SHAPES or not shape.hashable):
            waiting += shape.expand(value)[1]


# How values are taken apart.


def _items(base: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function for the items of a sequence or a mapping, by the base's methods, not overriding ones."""
    if issubclass(base, set):  # with the size of its table, which affects the order of added items
        return lambda value: (base.__sizeof__(value), (Elements(tuple(base.__iter__(value))),))
    if issubclass(base, frozenset):
        return lambda value: (None, (Elements(tuple(base.__iter__(value))),))
    if issubclass(base, Mapping):
        return lambda value: (base.__len__(value), tuple(chain.from_iterable(base.items(value))))
    return lambda value: (base.__len__(value), tuple(base.__iter__(value)))


def _has_same_hash_everywhere(value: Any) -> bool:
    """Return whether a value has the same hash in every process, so that the order of sets is reproducible."""
    if type(value) in (tuple, frozenset):
        return all(map(_has_same_hash_everywhere, value))
    return type(value) in (int, bool, float, complex, Decimal, Fraction)


def _defaultdict(value: Any) -> tuple[Any, Any]:
    header, parts = SHAPES[dict].expand(value)
    return header, (value.default_factory, *parts)


def _grouped(told: Any, *groups: Any) -> tuple[Any, Any]:
    """Return a header with the keys of mappings and the sizes of other groups of parts, and all parts."""
    keys = [tuple(group) if isinstance(group, dict) else len(group) for group in groups]
    parts = [group.values() if isinstance(group, dict) else group for group in groups]
    return (told, *keys), tuple(chain.from_iterable(parts))


def _function(function: Any) -> tuple[Any, Any]:
    told = (function.__name__, function.__qualname__, function.__module__, function.__doc__, function.__defaults__)
    keywords, cells = function.__kwdefaults__ or {}, function.__closure__ or ()
    return _grouped(_identity(function.__code__), told, keywords, vars(function), cells)


def cells_of(function: Any) -> tuple[tuple[str, CellType], ...]:
    """Return the variables of outer functions that a function uses."""
    return tuple(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _builtin(function: Any) -> tuple[Any, Any]:
    owner = function.__self__
    return (function.__module__, function.__qualname__), (None if isinstance(owner, ModuleType) else owner,)


def _cell(cell: Any) -> tuple[Any, Any]:
    try:
        return "cell", (cell.cell_contents,)
    except ValueError:
        return "empty cell", ()


def _reduced(value: Any) -> tuple[Any, Any]:
    _, arguments, *state = value.__reduce_ex__(4)
    return _grouped(None, arguments, state)


def _dict_iterator(value: Any) -> tuple[Any, Any]:
    """Return the dictionary of an iterator and its remaining items. Raises RuntimeError if the dictionary has grown."""
    of = [item for item in gc.get_referents(value) if isinstance(item, dict)]
    return len(of), (*of, tuple(value.__reduce__()[1][0]))


def _statement(said: Any) -> tuple[Any, Any]:
    rare = (said.interrupt, said.refuse, said.because, said.otherwise, said.hot)
    return (len(said.requests), said.any_of, len(rare)), (*said.requests, said.wait_for, said.block, *rare)


SHAPES: dict[Any, Shape] = {
    **{kind: Shape(_items(kind)) for kind in (tuple, frozenset, FrozenMapping)},
    **{kind: Shape(_items(kind), mutable=True) for kind in (list, set, dict)},
    OrderedDict: Shape(
        lambda value: _grouped(None, tuple(chain.from_iterable(OrderedDict.items(value))), vars(value)), mutable=True
    ),
    types.MappingProxyType: Shape(lambda value: (None, tuple(gc.get_referents(value))), mutable=True),
    deque: Shape(lambda value: ((len(value), value.maxlen), tuple(deque.__iter__(value))), mutable=True),
    defaultdict: Shape(_defaultdict, mutable=True),
    bytearray: Shape(lambda value: (bytes(value), ()), mutable=True),
    types.SimpleNamespace: Shape(lambda value: _grouped(None, vars(value)), mutable=True),
    Refusals: Shape(lambda value: (None, (Elements(tuple(map(tuple, value))),))),
    Elements: Shape(lambda value: (None, value.elements)),
    float: Shape(lambda value: (value.hex(), ())),
    complex: Shape(lambda value: ((value.real.hex(), value.imag.hex()), ())),
    range: Shape(lambda value: ((value.start, value.stop, value.step), ())),
    slice: Shape(lambda value: (None, (value.start, value.stop, value.step))),
    re.Pattern: Shape(lambda value: ((value.pattern, value.flags), ())),
    re.Match: Shape(lambda value: ((value.pos, value.endpos, value.regs), (value.re, value.string))),
    BThread: Shape(lambda value: _grouped((value.name, value.priority), (value.function,), value.args, value.kwargs)),
    BThreadFunction: Shape(lambda value: _grouped(None, vars(value)), mutable=True, hashable=True),
    FunctionType: Shape(_function, mutable=True, hashable=True),
    types.MethodType: Shape(lambda value: (None, (value.__func__, value.__self__))),
    partial: Shape(
        lambda value: _grouped(None, (value.func,), value.args, value.keywords, vars(value)),
        mutable=True,
        hashable=True,
    ),
    BuiltinFunctionType: Shape(_builtin),
    CellType: Shape(_cell, mutable=True, hashable=True),
    CodeType: Shape(lambda value: (_identity(value), ())),
    GeneratorType: Shape(lambda value: (None, ()), mutable=True),
    **{kind: Shape(lambda value: (value, ())) for kind in BY_IDENTITY},
    **{kind: Shape(_reduced) for kind in BY_REDUCTION},
    **{type(iterator): Shape(_reduced, mutable=True) for iterator in ITERATORS},
    **{type(iterator): Shape(_dict_iterator, mutable=True) for iterator in DICT_ITERATORS},
}


def shape_of(kind: Any) -> Shape | None:
    """Return how objects of a type are taken apart; None if unknown."""
    return SHAPES.get(kind) or _learned_shape(kind)


@cache
def _learned_shape(kind: Any) -> Shape | None:
    if issubclass(kind, type):
        return Shape(lambda value: (value, ()))
    if issubclass(kind, Enum):
        return Shape(lambda value: (value._name_, (value._value_,)))
    if issubclass(kind, NamedEvent):
        return Shape(lambda value: (value.name, (value.data,)))
    if issubclass(kind, BaseException):
        return Shape(
            lambda error: _grouped(None, (error.args, error.__cause__, error.__context__), attributes_of(error)),
            mutable=True,
        )
    if kind is Sync:
        return Shape(_statement, mutable=True, hashable=True)
    return _shape_of_class(kind)


def _shape_of_class(kind: Any) -> Shape | None:
    """Return the shape of a class written in Python: the content of its C base, and its attributes."""
    base = base_in_c(kind)
    if base is kind or not (base is object or base in SHAPES or base in ATOMS):
        return None
    content = _content(base)
    is_frozen = _is_frozen(kind)

    def expand(value: Any) -> tuple[Any, Any]:
        header, parts = content(value)
        attributes = attributes_of(value)
        return (header, tuple(attributes)), (*parts, *attributes.values())

    has_attributes = kind.__dictoffset__ != 0 or bool(_slots(kind))
    is_mutable = not is_frozen and (has_attributes or (base in SHAPES and SHAPES[base].mutable))
    comparable, hashed = kind.__eq__ is not object.__eq__, kind.__hash__ not in (None, object.__hash__)
    is_value = not is_frozen and comparable and hashed
    return Shape(expand, is_mutable and not (is_value and issubclass(kind, Mapping)), comparable, is_value)


def _content(base: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return a function for the content that objects of a class have by a base in C."""
    if base is object:
        return lambda value: (None, ())
    return SHAPES[base].expand if base in SHAPES else lambda value: (base.__getnewargs__(value), ())


@cache
def base_in_c(kind: Any) -> Any:
    """Return the nearest base that is written in C and has content."""
    for base in kind.__mro__:
        made_in_c = not base.__flags__ & HEAP_TYPE or base.__flags__ & IMMUTABLE_TYPE
        if (made_in_c or getattr(base.__new__, "__self__", None) is base) and base.__basicsize__ > object.__basicsize__:
            return base
    return object


@cache
def _is_frozen(kind: Any) -> bool:
    """Return whether the class itself, not one of its bases, was decorated as frozen."""
    if "__attrs_attrs__" in vars(kind):
        return bool(attrs.inspect(kind).is_frozen)
    return "__dataclass_params__" in vars(kind) and bool(kind.__dataclass_params__.frozen)


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object; of a frozen one, without caches."""
    kind: Any = type(value)
    found = {}
    for name, slot in _slots(kind):
        try:
            found[name] = slot(value)
        except AttributeError:
            continue
    if inside := getattr(value, "__dict__", None):
        found |= {name: item for name, item in inside.items() if not _is_cache(kind, name)}
    if CACHED_HASHES.isdisjoint(found) or kind.__hash__ is None:
        return found
    return {name: item for name, item in found.items() if name not in CACHED_HASHES or item not in (None, hash(value))}


def _is_cache(kind: Any, name: str) -> bool:
    return _is_frozen(kind) and isinstance(getattr(kind, name, None), cached_property)


@cache
def _slots(kind: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Return the slots of a class by name, each with the function that reads it."""
    spaces = [vars(base).items() for base in reversed(kind.__mro__)]
    slots = tuple(
        (name, slot.__get__) for space in spaces for name, slot in space if type(slot) is MemberDescriptorType
    )
    if kind in (Union, Intersection, Where):
        return tuple((name, slot) for name, slot in slots if name[0] != "_")  # derived from the others
    if not _is_frozen(kind):
        return slots
    fields = {field.name for field in attrs.fields(kind)} if attrs.has(kind) else kind.__dataclass_fields__
    return tuple((name, slot) for name, slot in slots if name in fields)


@cache
def _live_names(code: CodeType, at: int) -> tuple[frozenset[str], tuple[Place, ...]]:
    """Return the live variables at a position, and those of them that are not cells, sorted."""
    live = live_locals(code, at)
    return live, tuple(map(Place, sorted(live.difference(code.co_cellvars))))


def _named_cells(referents: list[Any], code: CodeType) -> list[tuple[str, CellType]]:
    """Return the cells of a generator, in order, with the names of their variables ("" if unknown)."""
    if CellType not in map(type, referents):
        return []
    cells = [item for item in referents if type(item) is CellType]
    names = _cell_names(code)
    return list(zip(names if len(names) == len(cells) else ("",) * len(cells), cells, strict=True))


@cache
def _cell_names(code: CodeType) -> tuple[str, ...]:
    own = [name for name in code.co_varnames if name in code.co_cellvars]
    return (*own, *(name for name in code.co_cellvars if name not in own), *code.co_freevars)


def _stack(referents: list[Any], code: CodeType, found: dict[str, Any]) -> list[Any]:
    """Return the evaluation stack: the referents of the frame after its variables.

    A generator refers to its name and code, then to all set variables, in order, then to its stack, and last to the
    exception that it handles, which is None after a called function has handled one. So trailing Nones are ignored; the
    depth of the stack is determined by the position.
    """
    cells = _cell_names(code)
    before = len(referents)
    while referents[before - 1] is not code:
        before -= 1
    plain = len([name for name in code.co_varnames if name in found and name not in cells]) if cells else len(found)
    stack = referents[before + plain + len(cells) :]
    while stack and stack[-1] is None:
        stack.pop()
    return stack


def _identity(code: CodeType) -> int:
    """Return a number for a code object, and keep it alive, so that the number is unique."""
    _CODES[id(code)] = code
    return id(code)


_CODES: dict[int, CodeType] = {}


def _no_value(value: Any, named: str) -> str:
    return (
        f"{named} holds a {type(value).__name__}, which has no value to compare; "
        "keep values in b-threads (numbers, text, tuples, lists, frozen attrs classes) and make such objects in effects"
    )


@cache
def check_interpreter() -> None:
    """Raise VerificationError if this interpreter does not expose the position of a generator."""

    def loop() -> Generator[Any, Any, Any]:
        for item in ("x", "x"):  # noqa: UP028 - the test needs a position in this loop
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
            looks.add(Description().value(body, ""))
        if len(looks) != positions or not all(isinstance(look, tuple) for look in looks):
            raise VerificationError("this Python hides where a generator stands; verify on CPython 3.11 to 3.14")


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
def assigns_later(code: CodeType, offset: int, name: str) -> bool:
    """Return whether `code`, or a function in it, may assign the cell `name` after byte `offset`."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if any(name in closure.co_freevars and assigns(closure, name) for closure in inner):
        return True
    _, following = _live_before(code)
    assigning = {instruction.offset for instruction in dis.get_instructions(code) if _is_assignment(instruction, name)}
    reached: set[int] = set()
    waiting = list(following[offset])
    while waiting:
        position = waiting.pop()
        if position not in reached:
            reached.add(position)
            waiting += following[position]
    return not assigning.isdisjoint(reached)


@cache
def assigns(code: CodeType, name: str) -> bool:
    """Return whether `code`, or a function in it, assigns the cell `name`."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return any(_is_assignment(instruction, name) for instruction in dis.get_instructions(code)) or any(
        name in closure.co_freevars and assigns(closure, name) for closure in inner
    )


def _is_assignment(instruction: dis.Instruction, name: str) -> bool:
    return instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval == name


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
