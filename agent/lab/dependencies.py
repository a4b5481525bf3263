"""The digest of what a row, an answer or a score depends on: under another digest nothing is reused.

    values     plain ones by content, attrs classes by their fields, other objects by what pickle would keep of them
    functions  by their code, defaults and closures, and the globals that they name
    code       of the user: the file, and all files of the user's that it imports, in the end; of installed packages
               their version; of this one all its files

An object that pickle cannot keep (a lock, an open file, a generator) cannot be known: its digest is a new one each
time, so nothing is reused. Not seen are what code reads while it runs (files, environment variables, the network), and
modules that are imported by a name in a string.
"""

import ast
import copyreg
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import blake2b
from importlib import metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from secrets import token_bytes, token_hex
from types import (
    CodeType,
    EllipsisType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import attrs
from attrs import define

NO_DIFFERENCE = frozenset({"against", "api_key", "timeout"})
"""Fields of our own classes that no result depends on."""

ATOMS = frozenset({NoneType, bool, int, float, complex, str, bytes, EllipsisType})
OURS = tuple(Path(str(files(name))).resolve() for name in ("agent", "bp", "constitution"))
PYTHON = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
PACKAGES = frozenset({"site-packages", "dist-packages"})
GENERATED = "<attrs generated"
FUNCTIONS = ("__func__", "__self__", "func", "fget", "fset", "fdel")
"""The attributes of methods and properties that they consist of."""


def digest_of(*values: object) -> str:
    """Return the digest of values, and of the code that they run; the same in every process.

    Where something cannot be known, the digest is new in each call.
    """
    digests = _Digests()
    try:
        return digests.of(values).hex()
    except RecursionError:
        return token_hex(10)


def _hash(*parts: str | bytes) -> bytes:
    digest = blake2b(digest_size=10)
    for part in parts:
        text = part if isinstance(part, bytes) else part.encode("utf-8", "backslashreplace")
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.digest()


@define
class _Digests:
    """The digests of objects by their id; an object is kept, so that no other one gets its id."""

    _known: dict[int, tuple[object, bytes]] = attrs.field(factory=dict)

    def of(self, value: object) -> bytes:
        if type(value) in ATOMS:
            return _hash(type(value).__name__, value if isinstance(value, bytes) else repr(value))
        if id(value) not in self._known:
            self._known[id(value)] = (value, b"inside itself")
            self._known[id(value)] = (value, self._made(value))
        return self._known[id(value)][1]

    def _made(self, value: object) -> bytes:
        if type(value) in (set, frozenset):
            return _hash("set", *sorted(map(self.of, value)))  # type: ignore[call-overload]
        try:
            kind, *parts = _parts(value)
        except Exception:  # whatever a foreign object may raise
            return token_bytes()
        return _hash(kind, *map(self.of, parts))


def _parts(value: Any) -> tuple[Any, ...]:
    """Return the kind of a value, and what it consists of. Raises an exception if that cannot be known."""
    match value:
        case FunctionType():
            return _parts_of_function(value)
        case CodeType():
            flags = (value.co_flags, value.co_argcount, value.co_kwonlyargcount, value.co_posonlyargcount)
            return ("code", value.co_code, value.co_consts, value.co_names, value.co_varnames, value.co_freevars, flags)
        case type():
            return _parts_of_class(value)
        case ModuleType():
            return ("module", value.__name__, _owner_of_module(value.__name__) or sources(_file_of(value.__name__)))
        case MethodType() | staticmethod() | classmethod() | property() | cached_property():
            return (type(value).__name__, *(getattr(value, name, None) for name in FUNCTIONS))
    if type(value) in (tuple, list):
        return (type(value).__name__, *value)
    if type(value) in (dict, MappingProxyType):
        return ("mapping", *value.keys(), *value.values())
    return _parts_of_object(value)


def _parts_of_object(value: Any) -> tuple[Any, ...]:
    kind = type(value)
    if attrs.has(kind) and kind.__reduce__ is object.__reduce__:
        left_out = NO_DIFFERENCE if kind.__module__.startswith("agent.") else frozenset[str]()
        names = [field.name for field in attrs.fields(kind) if field.name not in left_out]
        return ("object", kind, *names, *(getattr(value, name, None) for name in names))
    reduce = copyreg.dispatch_table.get(kind)
    reduced = reduce(value) if reduce else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return ("named", kind, reduced, getattr(value, "__module__", ""), getattr(value, "__dict__", None))
    function, arguments, *state = reduced
    return ("object", function, arguments, *(list(each) if isinstance(each, Iterator) else each for each in state))


def _parts_of_function(function: FunctionType) -> tuple[Any, ...]:
    file = function.__code__.co_filename
    cells = [_content(cell) for cell in function.__closure__ or ()]
    parts = ("function", function.__qualname__, function.__defaults__, function.__kwdefaults__, cells, vars(function))
    if owner := _owner(file):
        return (*parts, function.__module__, owner)
    names = sorted(_names(function.__code__))
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [each for each in found if isinstance(each, ModuleType) and not _owner_of_module(each.__name__)]
    found += [vars(module)[name] for module in modules for name in names if name in vars(module)]
    return (*parts, function.__code__, names, found, sources(Path(file)))


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return "empty"


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and the code inside it, looks up."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


def _parts_of_class(kind: type) -> tuple[Any, ...]:
    if owner := _owner_of_module(kind.__module__):
        return ("class", kind.__module__, kind.__qualname__, owner)
    own = {name: value for name, value in vars(kind).items() if _is_written(name, value)}
    return ("class", kind.__qualname__, kind.__bases__, own, sources(_file_of(kind.__module__)))


def _is_written(name: str, value: object) -> bool:
    """Return whether an entry of a class stands in its source, or was set from outside."""
    if isinstance(value, FunctionType):
        return not value.__code__.co_filename.startswith(GENERATED)
    descriptor = isinstance(value, GetSetDescriptorType | MemberDescriptorType)
    return not (descriptor or name == "_abc_impl" or (name.startswith("__") and name.endswith("__")))


# Files


def _owner_of_module(name: str) -> str:
    """Return what a module belongs to, with its version; empty for the user's own."""
    file = _file_of(name)
    built_in = not file.name and name.partition(".")[0] in sys.stdlib_module_names
    return "Python" if built_in else _owner(str(file))


def _file_of(module: str) -> Path:
    """Return the file of a module; the path of no file if it has none, as the cells of a notebook."""
    return Path(getattr(sys.modules.get(module), "__file__", None) or "")


@lru_cache(maxsize=4096)
def _owner(file: str) -> str:
    """Return what a file of code belongs to, with its version; empty for the user's own, and for no file."""
    path = Path(file).resolve()
    if any(path.is_relative_to(folder) for folder in OURS):
        return _ourselves()
    if PACKAGES.intersection(path.parts):
        at = max(number for number, part in enumerate(path.parts) if part in PACKAGES)
        return _installed(Path(path.parts[at + 1]).stem)
    in_python = file.startswith("<frozen") or any(path.is_relative_to(folder) for folder in PYTHON)
    return "Python" if in_python else ""


@cache
def _ourselves() -> str:
    paths = (path for folder in OURS for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".toml", ".yaml"))
    return _hash(*(path.read_bytes() for path in paths)).hex()


@cache
def _installed(name: str) -> str:
    """Return a top-level module of the installed packages with its version."""
    try:
        return f"{name} {metadata.version(name)}"  # to read what all packages hold takes 0.2 s
    except metadata.PackageNotFoundError:
        return " ".join([name, *(f"{each} {metadata.version(each)}" for each in _distributions().get(name, []))])


@cache
def _distributions() -> dict[str, list[str]]:
    return {name: sorted(set(found)) for name, found in metadata.packages_distributions().items()}


def sources(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the digests of a file, and of the files and packages that it imports, in the end; empty without a file."""
    found, left = dict[Path, str](), [path]
    others = set[str]()
    while left:
        each = left.pop()
        if each not in found and each.is_file():
            seen = each.stat()
            found[each], imported, packages = _read(each, (seen.st_mtime_ns, seen.st_size, seen.st_ino))
            left += imported
            others |= packages
    return (*sorted((each.name, digest) for each, digest in found.items()), *((each, "") for each in sorted(others)))


@lru_cache(maxsize=4096)
def _read(path: Path, version: tuple[int, ...]) -> tuple[str, tuple[Path, ...], frozenset[str]]:
    """Return the digest of a file, the user's files that it imports, and the installed packages."""
    content = path.read_bytes()
    own, packages = set[Path](), set[str]()
    for base, parts in _imports(content, path) if path.suffix == ".py" else ():
        found = _within(base, parts) if base else _top_level(parts)
        for each in found:
            owner = _owner(str(each))
            packages.add(owner) if owner else own.add(each.resolve())
    return _hash(content).hex(), tuple(own), frozenset(packages)


def _imports(content: bytes, path: Path) -> Iterator[tuple[Path | None, Sequence[str]]]:
    """Yield the imported names of a file in parts, with the folder that relative ones start from."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else None
            yield from ((base, [*(node.module or "").split("."), alias.name]) for alias in node.names)


def _top_level(parts: Sequence[str]) -> Iterator[Path]:
    """Yield the files that importing an absolute name may run, except for those of Python."""
    top, *rest = parts
    if top in sys.stdlib_module_names:
        return
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    if spec.origin:
        yield Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        yield from _within(Path(folder), rest)


def _within(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the files that importing a name below a folder may run: the module, and the packages around it."""
    place = folder
    for part in ["", *filter(None, parts)]:
        place = place / part
        modules = (place / "__init__.py", *([place.with_name(f"{part}.py")] if part else []))
        yield from (module for module in modules if module.is_file())
