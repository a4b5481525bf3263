"""Purity: a b-thread's next step must follow from its local state and the event alone.

So everything that it reaches outside of its generator must be known, and must not change. While a b-thread advances,
every function that it enters is read before it runs: the names in its code lead to modules, classes, functions and
objects, which are recorded with their content, and compared afterwards. Allowed are values of known types, functions
that were read, and the builtins and standard modules listed here. Known sources of hidden state are refused; unreadable
code is reported as `not_looked_into`.
"""

import ast
import builtins
import dis
import gc
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from enum import Enum
from functools import _lru_cache_wrapper, cache, cached_property
from importlib import import_module
from importlib.util import resolve_name
from itertools import pairwise, takewhile
from operator import is_
from re import Match
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from bp.events import Event
from bp.statements import BThread, BThreadFunction
from bp.verification.fingerprint import (
    ATOMS,
    SHAPES,
    VerificationError,
    assigns,
    base_in_c,
    cells_of,
    reachable,
    shape_of,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS = _words("""
    __build_class__ abs all any ascii bin callable chr delattr divmod format getattr hasattr hex isinstance issubclass
    iter len max min next oct ord pow print repr round setattr sorted sum
""")
MODULES = _words("""
    _abc _bisect _codecs _collections _collections_abc _datetime _decimal _functools _hashlib _heapq _json _locale
    _md5 _operator _pydatetime _pydecimal _sha1 _sha2 _sha256 _sha512 _sre _string _strptime _struct _typing
    _weakrefset abc array base64 binascii bisect calendar cmath collections contextlib copy copyreg dataclasses
    datetime decimal difflib enum fnmatch fractions functools genericpath hashlib heapq html ipaddress itertools
    json keyword locale math ntpath numbers operator posixpath re reprlib shlex sre_compile sre_parse string struct
    textwrap types typing unicodedata urllib.parse weakref zlib
""")
ENGINE = _words("attr attrs bp")  # reviewed by hand
PYTEST = _words("_pytest pluggy")
IMPURE = _words("""
    __subclasses__ abspath astimezone cache_clear cache_info cache_parameters exists expanduser expandvars
    fromtimestamp getatime getcontext getctime getmtime getsize import_module isdir isfile islink ismount lexists
    localcontext now realpath register reload relpath resetlocale samefile setcontext setfirstweekday setlocale
    timestamp today utcfromtimestamp utcnow
""")
OF_TEXTS = _words("_path_normpath fspath intern")  # of `posix` and `sys`, called for paths
OF_CACHES = _words("_lru_list_elem object type")
BY_IDENTITY = _words("__eq__ __hash__ __repr__")  # may call `hash` and `id`, whose results are not kept
REFLECTION = _words("""
    __annotations__ __builtins__ __closure__ __code__ __globals__ __subclasses__ __traceback__ ag_frame
    cell_contents cr_frame f_back f_builtins f_globals f_locals gi_frame tb_frame tb_lasti tb_lineno tb_next
""")
LEARNED = _words("""
    __abstractmethods__ __annotate_func__ __annotations__ __annotations_cache__ __slotnames__ _abc_impl _payload
    _value2member_map_
""")  # later
STORING = _words("__delattr__ __dict__ __setattr__ delattr setattr")
OUTER = {"GLOBAL": "GLOBAL", "NAME": "GLOBAL", "DEREF": "DEREF", "CLASSDEREF": "DEREF"}
OUTER |= {"FROM_DICT_OR_GLOBALS": "GLOBAL", "FROM_DICT_OR_DEREF": "DEREF"}
OF_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})
MISSING = object()
T = TypeVar("T")

import_module("_strptime")  # else `datetime.strptime` would import it within a b-thread


class LocalFailure(Exception):
    """A b-thread raised, or yielded an invalid statement; `error`: the exception."""

    def __init__(self, name: str, error: Exception) -> None:
        said = next(iter(str(error).splitlines()), "")  # what a test runner adds to an assertion is left out
        super().__init__(f"b-thread {name!r}: {type(error).__name__}: {said}")
        self.name = name
        self.error = error


class Reading(NamedTuple):
    """The global names that a function's code reads, with their attributes, and whether the result is called directly.

    The modules that it imports; all attributes that it reads.
    """

    globals: frozenset[tuple[tuple[str, ...], bool]]
    variables: frozenset[tuple[tuple[str, ...], bool]]
    imports: frozenset[tuple[str, int]]
    attributes: frozenset[str]
    assigned: frozenset[str]
    reflects: frozenset[str]
    stores: bool


class Entry(NamedTuple):
    """An entered function: whether its calls are checked, and whether it assigns attributes.

    explains: it belongs to pytest's explanation of a failed assertion.
    """

    code: CodeType
    is_foreign: bool
    stores: bool
    explains: bool


class Snapshot(NamedTuple):
    """A mutable outside object as it was: what it is called, a header with the number of its parts, and these."""

    value: Any
    look: Callable[[Any], Any]
    called: str
    header: Any
    parts: tuple[Any, ...]

    def differs(self) -> bool:
        """Return whether the object looks different now."""
        header, parts = self.look(self.value) or (None, ())
        if header != self.header:
            return True
        return not all(map(is_, parts, self.parts)) and not all(map(_is_same, parts, self.parts))


class Purity:
    """Watches b-threads advance; records the outside objects that they reach, and detects their changes."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self.not_looked_into: dict[str, None] = {}  # functions that were reached and not read
        self._bthread = ""
        self._problem: str | None = None
        self._read: dict[int, Entry] = {}  # by the id of the code
        self._stores = False  # whether a function was entered, since the last check, that assigns attributes
        self._judged: set[Any] = set()
        self._cached: set[int] = set()  # the code of functions behind a cache, by id
        self._names: dict[tuple[int, str], tuple[dict[str, Any], str, Any, str]] = {}
        self._seen: dict[int, Any] = {}
        self._containers: list[Snapshot] = []  # objects changed by methods
        self._definitions: list[Snapshot] = []  # classes, functions, frozen objects: changed by assigned attributes

    def begin(self, bthread: BThread) -> None:
        """Check a b-thread before it begins: its arguments, default values and outer variables must be immutable."""
        named = f"b-thread {bthread.name!r}"
        self._bthread, self._problem = bthread.name, None
        for position, argument in enumerate((*bthread.args, *bthread.kwargs.values()), start=1):
            refuse_changeable(argument, f"{named}: argument {position}")
            self._keep(argument, "an argument")
        for value in reachable(bthread.function):
            if isinstance(value, FunctionType):
                _check_function(value, named)
                for name, cell in cells_of(value):
                    self._keep(cell, f"the variable {name!r} of an outer function")
        self._keep(bthread.function, "its function")
        self._raise_problem()

    def call(self, bthread: str, function: Callable[..., T], *arguments: Any, watched: bool = True) -> T:
        """Call a function with code of a b-thread.

        Raises VerificationError if, `watched`, it reaches an impure object, and LocalFailure for its exceptions.
        """
        try:
            return self._watched(bthread, function, *arguments) if watched else function(*arguments)
        except VerificationError:
            raise
        except Exception as error:
            raise LocalFailure(bthread, error) from error

    def _watched(self, bthread: str, function: Callable[..., T], *arguments: Any) -> T:
        before: Any = sys.getprofile()
        if before is not None and not callable(before):  # a profiler that cannot be restored
            self.not_looked_into["anything, since a profiler is running"] = None
            return function(*arguments)
        self._bthread, self._problem = bthread, None
        collecting = gc.isenabled()
        gc.disable()  # garbage collection may run other code's callbacks
        sys.setprofile(self._look)
        try:
            result = function(*arguments)
        except KeyboardInterrupt:  # calls of its handler are not calls of the b-thread
            self._problem = None
            raise
        finally:
            sys.setprofile(before)
            if collecting:
                gc.enable()
            self._raise_problem()
        if self._stores:
            self.check()
        else:
            self._compare(self._containers)
        return result

    def check(self) -> None:
        """Raise VerificationError if a recorded outside object has changed."""
        self._stores = False
        for namespace, name, value, known_as in self._names.values():
            if namespace.get(name, MISSING) is not value:
                self._refuse_changed(known_as)
        self._compare(self._containers + self._definitions)

    def _compare(self, snapshots: Iterable[Snapshot]) -> None:
        for snapshot in snapshots:
            if snapshot.differs():
                self._refuse_changed(snapshot.called)

    def _refuse_changed(self, called: str) -> None:
        raise VerificationError(
            f"b-thread {self._bthread!r} reads {called}, which changed meanwhile: hidden "
            "state; keep it in a local variable, or request an event that carries it"
        )

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise VerificationError(self._problem) from None

    def _refuse(self, what: str) -> None:
        self._problem = self._problem or (
            f"b-thread {self._bthread!r} calls {what}, whose answer is not in the program: hidden state; "
            "have an effect ask, and wait for the event that carries the answer"
        )

    # While a b-thread runs.

    def _look(self, frame: Any, happened: str, function: Any) -> None:
        if happened == "c_return":  # the most frequent events, with calls in C
            return
        code = frame.f_code
        entry = self._read.get(id(code))
        if happened == "call":
            if entry is None:
                entry = self._enter(frame, code)
            self._stores = self._stores or entry.stores
        elif happened == "return" and id(code) in self._cached:
            self._keep(function, f"what {code.co_name} keeps in its cache")
        elif happened == "c_call" and entry is not None and entry.is_foreign:
            owner = function.__self__
            of = owner if isinstance(owner, type | ModuleType) else type(owner)
            call = (of, function.__name__, code.co_name in BY_IDENTITY)
            if call not in self._judged:
                self._judged.add(call)
                self._judge(function, code)

    def _enter(self, frame: Any, code: CodeType) -> Entry:
        """Read a function at its first call, before it runs."""
        module = frame.f_globals.get("__name__", "")
        caller = self._read.get(id(frame.f_back.f_code))
        explains = _is_of_pytest(module) or (_is_standard(module) and caller is not None and caller.explains)
        is_foreign = not explains and not _is_known(module)
        is_of_attrs = code.co_filename.startswith("<attrs generated")  # it assigns to its new object
        stores = is_foreign and not is_of_attrs and _reading(code).stores
        entry = self._read[id(code)] = Entry(code, is_foreign, stores, explains)
        if code.co_name in IMPURE and (_is_standard(module) or _is_known(module)):
            self._refuse(code.co_qualname)
        if not is_foreign:
            return entry
        try:
            if not __debug__ and (lost := _lost_assertions(code, frame.f_globals)):
                self._problem = self._problem or f"b-thread {self._bthread!r} calls {code.co_qualname!r}, {lost}"
            self._follow(code, frame.f_globals, frame.f_locals if code.co_freevars else {})
        except Exception as error:  # such as an error of a module's `__getattr__`
            self._problem = self._problem or f"b-thread {self._bthread!r}: {code.co_qualname}: {error}"
        return entry

    def _follow(self, code: CodeType, names: dict[str, Any], variables: dict[str, Any]) -> None:
        reading = _reading(code)
        for name in reading.assigned:
            self._problem = self._problem or (
                f"b-thread {self._bthread!r} assigns to the global {name!r} in {code.co_name}: hidden state; keep it "
                "in a local variable, or request an event that carries it"
            )
        for name in reading.reflects:
            self._refuse(f"{code.co_qualname}, which reads {name}")
        for (name, *attributes), is_called in reading.globals:
            if not name.startswith("@"):  # pytest's own, in rewritten assertions
                value = self._name(names, name, f"the global {name!r} of {names.get('__name__')}")
                self._reach(value, attributes, is_called, code)
        for (name, *attributes), is_called in reading.variables:
            if isinstance(variables.get(name), ModuleType):
                self._reach(variables[name], attributes, is_called, code)
        for name, level in reading.imports:
            module = import_module(resolve_name("." * level + name, names.get("__package__") or ""))
            for attribute in reading.attributes:
                if hasattr(module, attribute):
                    self._reach(module, [attribute], False, code)

    def _name(self, namespace: dict[str, Any], name: str, called: str) -> Any:
        """Return the value of a global name, and record it."""
        value = namespace.get(name, MISSING)
        self._names.setdefault((id(namespace), name), (namespace, name, value, called))
        builtins = namespace.get("__builtins__", {})
        outer = vars(builtins) if isinstance(builtins, ModuleType) else builtins
        value = outer.get(name, MISSING) if value is MISSING else value
        if not isinstance(value, ModuleType | BuiltinFunctionType):
            self._keep(value, called)
        return value

    def _reach(self, value: Any, attributes: list[str], is_called: bool, code: CodeType) -> None:
        """Follow attributes of modules, and of classes in C, to another object."""
        for attribute in attributes:
            if isinstance(value, ModuleType):
                value = self._attribute(value, attribute)
            elif isinstance(value, type) and base_in_c(value) is value:
                value = getattr(value, attribute, MISSING)
            else:
                return
        if isinstance(value, ModuleType) and not _is_known(value.__name__):
            self.not_looked_into[f"{value.__name__}, which {code.co_name} hands on as a whole"] = None
        elif isinstance(value, BuiltinFunctionType) and (value is locals or not is_called):  # calls are checked later
            self._judge(value, code)

    def _attribute(self, module: ModuleType, name: str) -> Any:
        if name == "__dict__":
            self._refuse(f"{module.__name__}.__dict__")
        value = getattr(module, name, MISSING)
        called = f"the global {name!r} of {module.__name__}"
        if _is_known(module.__name__):
            self._names.setdefault(
                (id(vars(module)), name), (vars(module), name, vars(module).get(name, MISSING), called)
            )
            self._keep_itself(value, called, is_of_engine=_top(module.__name__) in ENGINE)
            return value
        return self._name(vars(module), name, called)

    def _judge(self, function: Any, code: CodeType | None) -> None:
        """Refuse an impure function in C, or record an unknown one as not looked into."""
        name, owner = function.__name__, getattr(function, "__self__", None)
        if owner is None and function.__module__ is None:  # a static method of a type: `str.maketrans`
            owner = getattr(builtins, function.__qualname__.partition(".")[0], None)
        if owner is None or isinstance(owner, ModuleType):
            module = function.__module__ or getattr(owner, "__name__", "")
        else:
            module = base_in_c(owner if isinstance(owner, type) else type(owner)).__module__
        if isinstance(owner, ModuleType) and module == "builtins":
            is_of_pytest = function is locals and code is not None and "@py_builtins" in code.co_names
            known = (
                name in BUILTINS
                or is_of_pytest
                or (name in ("hash", "id") and code is not None and code.co_name in BY_IDENTITY)
            )
        else:
            known = (module == "builtins" or _is_known(module) or name in OF_TEXTS) and name not in IMPURE
            known = known and not (isinstance(owner, set) and name == "pop")  # it depends on the order of insertion
        if not known and _is_standard(module):
            self._refuse(f"{module}.{name}" if module != "builtins" else name)
        elif not known:
            self.not_looked_into[f"{module}.{name}"] = None

    # Outside objects.

    def _keep(self, root: Any, called: str) -> None:
        """Record an outside object, with its content."""
        waiting = [root]
        while waiting:
            value = waiting.pop()
            kind: Any = type(value)
            if kind in ATOMS or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if isinstance(value, ModuleType):
                continue
            if isinstance(value, BuiltinFunctionType):
                self._judge(value, None)
                continue
            if isinstance(value, _lru_cache_wrapper):
                self._cached.add(id(getattr(value.__wrapped__, "__code__", None)))
                waiting += _results(value)
            if (parts := self._remember(value, called)) is None:
                self._cannot_see(value, called)
                continue
            waiting += parts
            if base_in_c(kind) is not kind:  # a class written in Python
                waiting.append(kind)

    def _keep_itself(self, value: Any, called: str, *, is_of_engine: bool) -> None:
        """Record an object of a known module, without its content."""
        if isinstance(value, ModuleType) or type(value) in ATOMS or id(value) in self._seen:
            return
        if self._remember(value, called) is None and not isinstance(value, type) and not is_of_engine:
            self._cannot_see(value, called)

    def _remember(self, value: Any, called: str) -> Any:
        """Record a snapshot of an object if it can change, and return its content; None if it cannot be seen."""
        kind: Any = type(value)
        look, can_change, holds_items = _recording(kind)
        if (found := look(value)) is not None and can_change:
            self._seen[id(value)] = value
            snapshot = Snapshot(value, look, called, found[0], tuple(found[1]))
            (self._containers if holds_items else self._definitions).append(snapshot)
        return found and found[1]

    def _cannot_see(self, value: Any, called: str) -> None:
        kind = value if isinstance(value, type) else type(value)
        if _is_standard(kind.__module__) or not isinstance(value, type):
            self._problem = self._problem or (
                f"b-thread {self._bthread!r} reaches {called}, which is or holds a {kind.__qualname__}: hidden state, "
                "which cannot be seen; keep values in local variables, and have effects ask for the rest"
            )
        else:
            self.not_looked_into[f"{kind.__module__}.{kind.__qualname__}"] = None


def refuse_changeable(value: Any, where: str) -> list[Any]:
    """Return the parts of `value`, found at `where`. Raises VerificationError if it is mutable."""
    parts = list(reachable(value))
    for found in parts:
        shape = shape_of(type(found))
        if shape is None or (shape.mutable and not shape.hashable):
            raise VerificationError(
                f"{where} is or holds a {type(found).__name__}, which can change: hidden state; "
                "pass immutable values (tuples, frozensets, frozen attrs values)"
            )
    return parts


def _results(function: Any) -> Iterator[Any]:
    """Yield the values in a function's cache, which all callers share."""
    for held in gc.get_referents(function):
        if held is not function.__wrapped__ and held is not vars(function):
            results = held.values() if type(held) is dict else (held,)
            yield from (result for result in results if type(result).__name__ not in OF_CACHES)


def check_event(event: Event) -> None:
    """Raise VerificationError for an event with a mutable value, or one that is not equal to itself."""
    for found in refuse_changeable(event, f"event {event!r}"):
        if isinstance(found, FunctionType) and found.__closure__:
            raise VerificationError(
                f"event {event!r} carries a function with variables of another one, which may be assigned: hidden "
                "state; carry their values"
            )
        if isinstance(found, float | complex | Decimal) and found != found:
            raise VerificationError(f"event {event!r} carries {found!r}, which is not equal to itself; carry None")


def _check_function(function: FunctionType, named: str) -> None:
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        refuse_changeable(default, f"{named}: a default value of {function.__name__}")
    for name, cell in cells_of(function):
        if not any(isinstance(held, FunctionType) for held in gc.get_referents(cell)):  # checked as a b-thread
            refuse_changeable(cell, f"{named}: the variable {name!r} of an outer function")
        if assigns(function.__code__, name):
            raise VerificationError(
                f"{named} assigns to {name!r} of an outer function: hidden state; keep it in a local "
                "variable, or request an event that carries it"
            )


@cache
def _is_known(module: str) -> bool:
    """Return whether the functions of a module are known to be pure, except the listed ones."""
    return module in MODULES or _top(module) in MODULES or _top(module) in ENGINE


@cache
def _is_of_pytest(module: str) -> bool:
    return _top(module) in PYTEST


@cache
def _is_standard(module: str) -> bool:
    return _top(module) in sys.stdlib_module_names


def _top(module: str) -> str:
    return module.partition(".")[0]


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in ATOMS and one == other)


@cache
def _recording(kind: Any) -> tuple[Callable[[Any], tuple[Any, Any] | None], bool, bool]:
    """Return how objects of a type are recorded.

    That is a function for the snapshot and the content of one (None if unknown); whether it can change; and whether
    methods can change it, not only assigned attributes.
    """
    shape = SHAPES.get(kind)
    items = shape or SHAPES.get(base_in_c(kind))
    can_change = shape is None or shape.mutable or issubclass(kind, _lru_cache_wrapper)
    holds_items = items is not None and items.mutable and not issubclass(kind, FunctionType | BThreadFunction)
    return _look_of(kind), can_change, holds_items


def _look_of(kind: Any) -> Callable[[Any], tuple[Any, Any] | None]:
    if issubclass(kind, type):
        return _parts_of_class
    if issubclass(kind, Enum):
        return lambda value: (tuple(vars(value)), tuple(vars(value).values()))
    if issubclass(kind, _lru_cache_wrapper):
        return lambda value: (None, (value.__wrapped__,))
    if issubclass(kind, set | frozenset):
        return lambda value: (len(value), tuple(value))
    if kind is object or kind.__module__ == "typing":
        return lambda value: (None, ())
    if kind is FunctionType:
        return _parts_of_function
    is_foreign = kind not in SHAPES and _is_standard(kind.__module__) and not _is_known(kind.__module__)
    shape = None if issubclass(kind, Iterator | Match) or is_foreign else shape_of(kind)
    return (lambda value: None) if shape is None else shape.expand


def _parts_of_function(function: Any) -> tuple[Any, Any]:
    if _is_known(function.__module__ or ""):
        return (function.__code__, *vars(function)), ()
    return SHAPES[FunctionType].expand(function)


def _parts_of_class(kind: Any) -> tuple[Any, Any] | None:
    if base_in_c(kind) is kind:
        return (None, ()) if kind.__module__ == "builtins" or _is_known(kind.__module__) else None
    space = dict(vars(kind))
    for name in LEARNED & space.keys():
        del space[name]
    look = (kind.__qualname__, kind.__name__, kind.__bases__, tuple(space), tuple(map(id, space.values())))
    if _is_standard(kind.__module__) or _is_known(kind.__module__):
        return look, ()
    return look, (*kind.__bases__, *(part for name, item in space.items() for part in _parts_of_attribute(name, item)))


def _parts_of_attribute(name: str, item: Any) -> tuple[Any, ...]:
    if isinstance(item, staticmethod | classmethod):
        return (item.__func__,)
    if isinstance(item, property):
        return (item.fget, item.fset, item.fdel)
    if isinstance(item, cached_property):
        return (item.func,)
    kind: Any = type(item)
    is_special = name.startswith("__") and not isinstance(item, FunctionType)
    is_descriptor = kind not in SHAPES and hasattr(item, "__get__") and base_in_c(kind) is kind
    return () if is_special or is_descriptor else (item,)


def _lost_assertions(code: CodeType, names: dict[str, Any]) -> str:
    """Return why a function says too little where Python runs without assertions, and the cure; empty if it does not.

    A name such as <lambda> or <listcomp> is that of an expression, which has no assertions, and neither have the
    methods of a dataclass.
    """
    source = "".join(linecache.getlines(code.co_filename, names))
    may_assert = code.co_name[0] != "<" and not code.co_qualname.startswith("__create_fn__.")
    if not may_assert or (source and code.co_firstlineno not in _functions_that_assert(source)):
        return ""
    found = "has lost its assertions" if source else "may have lost assertions, as its source cannot be read"
    return f"which {found}: Python runs with -O; run it without -O and PYTHONOPTIMIZE, or raise AssertionError"


@cache
def _functions_that_assert(source: str) -> frozenset[int]:
    """Return the first lines of the functions of a file that have an `assert` statement."""
    functions = [each for each in ast.walk(ast.parse(source)) if isinstance(each, ast.FunctionDef)]
    asserting = [each for each in functions if any(isinstance(inner, ast.Assert) for inner in ast.walk(each))]
    return frozenset((each.decorator_list[0] if each.decorator_list else each).lineno for each in asserting)


@cache
def _reading(code: CodeType) -> Reading:
    instructions = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
    found: dict[str, set[Any]] = {"GLOBAL": set(), "DEREF": set()}
    imports, assigned = set(), set()
    for position, instruction in enumerate(instructions):
        action, _, what = instruction.opname.partition("_")
        if action == "LOAD" and what in OUTER:
            names = [instruction, *takewhile(lambda one: one.opname in OF_ATTRIBUTES, instructions[position + 1 :])]
            follower = instructions[position + len(names)].opname if sys.version_info >= (3, 13) else names[-1].opname
            is_called = any("NULL" in one.argrepr for one in names) or follower in ("LOAD_METHOD", "PUSH_NULL")
            found[OUTER[what]].add((tuple(one.argval for one in names), is_called))
        elif instruction.opname == "IMPORT_NAME":
            imports.add((instruction.argval, instructions[position - 2].argval))
        elif instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            assigned.add(instruction.argval)
    constants = {constant for constant in code.co_consts if isinstance(constant, str)}
    reflects = REFLECTION & {*code.co_names, *constants}
    stores = not STORING.isdisjoint(code.co_names) or any(
        instruction.opname in ("STORE_ATTR", "DELETE_ATTR")
        and not (code.co_name == "__init__" and before.argval == code.co_varnames[0])
        for before, instruction in pairwise(instructions)
    )
    chains = frozenset(found["GLOBAL"]), frozenset(found["DEREF"])
    attributes = frozenset(one.argval for one in instructions if one.opname in (*OF_ATTRIBUTES, "IMPORT_FROM"))
    return Reading(*chains, frozenset(imports), attributes, frozenset(assigned), reflects, stores)
