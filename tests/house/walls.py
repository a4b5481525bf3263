"""The walls between the rooms, as pure checks: each takes source text or names, and gives what is wrong with it."""

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter

from attrs import frozen

NAMES_THAT_SAY_NOTHING = frozenset(["base", "common", "helper", "helpers", "manager", "managers", "util", "utils"])

# What pure predicates may need of the standard library: nothing that reads, writes, waits, or differs by day or place.
PURE_MODULES = frozenset(
    """
    __future__ abc ast base64 binascii bisect collections contextlib copy dataclasses difflib enum fnmatch fractions
    functools hashlib heapq ipaddress itertools json keyword math operator posixpath re shlex string textwrap tomllib
    types typing unicodedata urllib warnings
    """.split()  # noqa: SIM905, a list of words
)
IMPURE_PARTS = frozenset({"urllib.request", "urllib.robotparser"})
IMPURE_CALLS = frozenset({"__import__", "breakpoint", "compile", "eval", "exec", "input", "open", "print"})


@frozen
class Import:
    """A module that a source imports, by its full dotted name, and the line where it does."""

    module: str
    line: int

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


STANDARD = sys.stdlib_module_names | {"annotationlib"}  # the latter from Python 3.14 on
Wall = Callable[[Import], bool]
Graph = Mapping[str, set[str]]  # a module, and the modules that it imports


def engine_may_import(imported: Import) -> bool:
    """`bp` stands alone: itself, attrs and the standard library."""
    return imported.top in {"bp", "attr", "attrs"} or imported.top in STANDARD


def engine_with(package: str) -> Callable[[Import], bool]:
    """A file of `bp` that meets the outside has one package more."""
    return lambda imported: engine_may_import(imported) or imported.top == package


def predicates_may_import(imported: Import) -> bool:
    """`constitution` is pure: itself, attrs, and what of the standard library does no I/O."""
    if imported.module in IMPURE_PARTS:
        return False
    return imported.top in PURE_MODULES or imported.top in {"attr", "attrs", "constitution"}


def breaches(source: str, wall: Wall, *, package: str) -> list[str]:
    """Every import in `source`, a module of `package`, that the wall does not let through, as `line 3: imports os`."""
    return [
        f"line {imported.line}: imports {imported.module}"
        for imported in imports_of(source, package=package)
        if not wall(imported)
    ]


@cache
def parsed(source: str) -> tuple[ast.AST, ...]:
    """Return every node of a source; each source is parsed once for all checks."""
    return tuple(ast.walk(ast.parse(source)))


def imports_of(source: str, *, package: str) -> Iterator[Import]:
    """Everything that `source` imports directly, also inside functions and for type checking only."""
    for node in parsed(source):
        match node:
            case ast.Import(names=names):
                yield from (Import(name.name, node.lineno) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = _absolute(module or "", level, package)
                yield Import(origin, node.lineno)
                yield from (Import(f"{origin}.{name.name}", node.lineno) for name in names if origin == "urllib")


def _absolute(module: str, level: int, package: str) -> str:
    if level == 0:
        return module
    above = package.split(".")
    return ".".join([*above[: len(above) - level + 1], module]).strip(".") or "(above the top)"


def impure_calls(source: str) -> list[str]:
    """Every call of a built-in that does I/O or runs text as code."""
    return [
        f"line {node.lineno}: calls {node.func.id}"
        for node in parsed(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS
    ]


def names_that_say_nothing(path: str) -> list[str]:
    """The words of a module's path that could stand above anything, as `utils` in `bp/text_utils.py`."""
    words = re.split(r"[/._]", path.removesuffix(".py"))
    return [word for word in words if word in NAMES_THAT_SAY_NOTHING]


def against_the_layers(imports: Graph, room: str, layers: Sequence[str]) -> list[str]:
    """The imports of `room` that go upwards: `bp.index imports bp.program`.

    `layers` names its modules and folders from bottom to top; those of one text, split by spaces, stand side by side.
    """
    level = {f"{room}.{name}": height for height, names in enumerate(layers) for name in names.split()}
    found = []
    for module, imported in imports.items():
        own = _level_of(module, level)
        found += [f"{module} imports {other}" for other in sorted(imported) if (_level_of(other, level) or 0) > own]
    return found


def _level_of(module: str, level: Mapping[str, int]) -> int:
    """How high a module stands; the room's own `__init__` stands on top of everything."""
    while module:
        if module in level:
            return level[module]
        module = module.rpartition(".")[0]
    return len(level)


def without_a_layer(modules: Iterable[str], room: str, layers: Sequence[str]) -> list[str]:
    """The modules of `room` that no layer names."""
    named = {name for names in layers for name in names.split()}
    return [module for module in modules if "." in module and module.split(".")[1] not in named]


def import_graph(sources: Mapping[str, str]) -> Graph:
    """What each module imports of the others: anywhere in its source, for types only, or by a text that names it."""
    return {module: _imported_modules(module, source, sources) for module, source in sources.items()}


def _imported_modules(module: str, source: str, modules: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for node in parsed(source):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=origin, names=names, level=0) if origin:
                inner = {f"{origin}.{name.name}" for name in names} & modules.keys()
                found |= inner if len(inner) == len(names) else {origin, *inner}
            case ast.Constant(value=str(text)) if text in modules and "." in text:
                found.add(text)
    return (found & modules.keys()) - {module}


def circles(graph: Graph) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others."""
    sorter = TopologicalSorter(graph)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = sorted(set(error.args[1]))
        rest = {module: imported - set(circle) for module, imported in graph.items() if module not in circle}
        return [circle, *circles(rest)]
    return []


def unpinned(constraints: str) -> list[str]:
    """The lines of a constraints file that are anything but a name and one version."""
    pin = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+(\s*;.*)?")
    lines = (line.strip() for line in constraints.splitlines())
    return [line for line in lines if line and not line.startswith("#") and not pin.fullmatch(line)]


# Written so that this file does not match itself.
ADDRESSES = re.compile(
    r"(?:py[p]i|pythonhoste[d]|npmj[s])\.(?:org|com)|--(?:extra-)?index-ur[l]|--find-link[s]", re.IGNORECASE
)


def addresses_in(text: str) -> list[str]:
    """Package registries that a text names, and options that choose one: which to use is each machine's business."""
    return ADDRESSES.findall(text)


# Python before 3.11.5 never matches some of these, `(?:(?!/).)*+/` for one; after a single character they are right.
MISMATCHED = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


def mismatched_patterns(text: str) -> list[str]:
    """The possessive repeats of groups, and the atomic groups, in the regular expressions of a text."""
    return MISMATCHED.findall(text)


def machine_paths_in(text: str, folders: Iterable[str]) -> list[str]:
    """Those of `folders`, places on one machine, that a text names."""
    named = (folder for folder in folders if folder in text)
    return [folder for folder in named if re.search(rf"(?<![\w.~*-]){re.escape(folder)}(?=/|\b)", text)]
