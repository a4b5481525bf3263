"""The rooms keep their walls: who may import whom, how modules introduce themselves, what no tracked file names.

Each check stands in `walls.py` as a pure function. The first half of this file holds the rooms against the checks; the
second half shows that every check can fail.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import constitution
from tests.house import walls
from tests.tables import rows

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("bp", "constitution", "agent")
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
PACKAGES = sorted({str(Path(module).parent) for module in MODULES})
READS_ITS_TABLES = "constitution/tables.py"
"""It opens the files that are packaged beside it, and no others."""

MEET_THE_OUTSIDE = {"bp/runner.py": "anyio", "bp/testing.py": "hypothesis"}

# From bottom to top: a module imports from its own layer and those before it.
LAYERS: dict[str, tuple[str, ...]] = {
    "bp": (
        "errors payload",
        "events",
        "statements strategies",
        "board",
        "program",
        "replay runner testing",
        "verification",
    ),
    "constitution": (
        "verdict tables",
        "action places programs reader",
        "command_rules",
        "rules words",
        "walk",
        "inline_code",
        "special_programs",
        "judge",
        "grants",
    ),
    "agent": (
        "vocabulary",
        "events",
        "tools",
        "models",
        "threads",
        "protocols",
        "projections",
        "effects",
        "log",
        "presets",
        "history",
        "session",
        "verification",
        "page telemetry",
        "testing pytest_plugin",
        "lab",
        "cli",
    ),
}

LABORATORY = {"agent.cli.experiment", "agent.cli.parts"}
"""The commands that need it, of which `doctor` imports it when it is used."""

HEAVY = {"httpx2", "openai", "opentelemetry", "ruamel.yaml", "rich", "trio"}


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def package_of(module: str) -> str:
    return str(Path(module).parent).replace("/", ".")


def modules_of(room: str) -> list[str]:
    return [module for module in MODULES if module.startswith(f"{room}/")]


def graph_of(room: str) -> walls.Graph:
    names = {module: module.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for module in MODULES}
    return walls.import_graph({names[module]: read(module) for module in modules_of(room)})


# The rooms


@pytest.mark.slow
def test_the_engine_stands_alone() -> None:
    def breaches(module: str) -> list[str]:
        package = MEET_THE_OUTSIDE.get(module)
        wall = walls.engine_may_import if package is None else walls.engine_with(package)
        return walls.breaches(read(module), wall, package=package_of(module))

    assert failing(modules_of("bp"), breaches) == {}


@pytest.mark.slow
def test_predicates_are_pure() -> None:
    def breaches(module: str) -> list[str]:
        imported = walls.breaches(read(module), walls.predicates_may_import, package=package_of(module))
        return imported + (walls.impure_calls(read(module)) if module != READS_ITS_TABLES else [])

    assert failing(modules_of("constitution"), breaches) == {}


@pytest.mark.slow
@rows("room", LAYERS)
def test_imports_go_downwards_and_never_in_a_circle(room: str) -> None:
    graph = graph_of(room)

    assert walls.without_a_layer(graph, room, LAYERS[room]) == []
    assert walls.against_the_layers(graph, room, LAYERS[room]) == []
    assert walls.circles(graph) == []


@pytest.mark.slow
def test_only_the_commands_of_the_laboratory_import_it() -> None:
    importing = {
        name for name, found in graph_of("agent").items() if any(each.startswith("agent.lab") for each in found)
    }

    assert {module for module in importing if not module.startswith("agent.lab")} == LABORATORY


@pytest.mark.slow
def test_importing_a_room_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(loaded_by("import bp, constitution, agent"))
    assert {"ruamel.yaml", "trio"} <= HEAVY.intersection(loaded_by("import ruamel.yaml, trio"))


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    command = [sys.executable, "-c", f"{statement}, sys; print(*sys.modules)"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


def test_the_command_is_a_console_script_only() -> None:
    """`python -m agent` would obey a `constitution/` folder that lies in the workspace."""
    assert not (ROOT / "agent/__main__.py").exists()


def test_modules_are_named_for_their_ideas() -> None:
    assert failing(MODULES, walls.names_that_say_nothing) == {}


@pytest.mark.slow
@rows("package", PACKAGES)
def test_packages_have_the_names_that_they_export(package: str) -> None:
    module = import_module(package.replace("/", "."))

    assert [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)] == []


def test_the_constitution_names_its_modules_in_reading_order() -> None:
    modules = {Path(module).stem for module in modules_of("constitution")} - {"__init__"}

    assert modules <= set((constitution.__doc__ or "").replace("`", " ").split())


def test_constraints_are_versions_only() -> None:
    assert walls.unpinned(read("constraints.txt")) == []


@pytest.mark.slow
def test_no_tracked_file_names_a_registry() -> None:
    judging = ("constitution/", "tests/constitution/")  # what judges such options has to name them
    texts = {path: text for path, text in tracked_texts().items() if not path.startswith(judging)}

    assert failing(texts, lambda path: walls.addresses_in(texts[path])) == {}


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("CI") == "true", reason="the folder of a checkout under CI may have a usual name")
def test_no_tracked_file_names_a_folder_of_this_machine() -> None:
    texts, folders = tracked_texts(), folders_of_this_machine()

    assert failing(texts, lambda path: walls.machine_paths_in(texts[path], folders)) == {}


@pytest.mark.slow
def test_patterns_mean_the_same_in_every_release_of_python() -> None:
    texts = {path: text for path, text in tracked_texts().items() if path.startswith(ROOMS)}

    assert failing(texts, lambda path: walls.mismatched_patterns(texts[path])) == {}


def failing(modules: Iterable[str], check: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """The modules in which a check finds something, with what it finds."""
    found = {module: check(module) for module in modules}
    return {module: wrong for module, wrong in found.items() if wrong}


@cache
def tracked_texts() -> dict[str, str]:
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.split("\0") if path and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text(encoding="utf-8", errors="replace") for path in paths}


def folders_of_this_machine() -> list[str]:
    """Where this checkout, its neighbours and the interpreter lie, except for places that any machine has."""
    common = ["git", "-c", "safe.directory=*", "rev-parse", "--path-format=absolute", "--git-common-dir"]
    main = Path(subprocess.run(common, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()).parent
    candidates = {ROOT, ROOT.parent, main, main.parent, Path(sys.base_prefix)}
    usual = {Path(place) for place in ("/", "/usr", "/usr/local", "/opt", "/home", "/root", "/srv", "/tmp", "/var/tmp")}
    return sorted(str(folder) for folder in candidates - usual - {Path.home()})


# The checks themselves can fail


ENGINE = (walls.engine_may_import, "bp")
PREDICATES = (walls.predicates_may_import, "constitution")
IMPURE = """
    os os.path subprocess socket anyio asyncio yaml ruamel.yaml shutil pathlib io tempfile sys time random logging
    urllib.request importlib bp agent openai
"""
STOPPED = [
    *((ENGINE, f"import {module}") for module in ("agent", "constitution.rules", "anyio")),
    (ENGINE, "def f():\n    import openai"),
    (ENGINE, "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agent import Agent"),
    (ENGINE, "from ..agent import calls"),
    (PREDICATES, "from urllib import parse, request"),
    *((PREDICATES, f"import {module}") for module in IMPURE.split()),
    *((PREDICATES, f"from {module} import x") for module in IMPURE.split()),
]
LET_THROUGH = [
    (ENGINE, "import gc, attrs\nfrom attr import s\nfrom . import events"),
    ((walls.engine_with("anyio"), "bp"), "import anyio\nfrom anyio.abc import TaskGroup"),
    (PREDICATES, "import re, attrs\nfrom collections.abc import Set\nfrom .rules import x"),
]


@rows("stopped, room, source", [*((1, *each) for each in STOPPED), *((0, *each) for each in LET_THROUGH)])
def test_an_import_through_a_wall_is_found_and_others_are_let_through(
    stopped: int, room: tuple[walls.Wall, str], source: str
) -> None:
    wall, package = room

    assert len(walls.breaches(source, wall, package=package)) == stopped


SOURCES = {
    "bp.events": "import re",
    "bp.index": "from bp.events import Event",
    "bp.program": "def f():\n    from bp.index import Index",
    "bp.search": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bp.program import BProgram",
    "bp.lazy": "import_module('bp.search')",
}


def test_imports_upwards_and_in_a_circle_are_found_in_functions_for_types_and_by_name() -> None:
    graph = walls.import_graph(SOURCES)
    circle = walls.import_graph({**SOURCES, "bp.events": "from bp.search import Search"})
    layers = ("events", "program", "index search", "lazy")

    assert (graph["bp.program"], graph["bp.search"], graph["bp.lazy"]) == ({"bp.index"}, {"bp.program"}, {"bp.search"})
    assert walls.against_the_layers(graph, "bp", layers) == ["bp.program imports bp.index"]
    assert walls.without_a_layer(SOURCES, "bp", layers[1:]) == ["bp.events"]
    assert walls.circles(graph) == []
    assert walls.circles(circle) == [["bp.events", "bp.index", "bp.program", "bp.search"]]


LINES = ["attrs", "attrs>=25", "-e .", "--pre", "x @ file:///x", "attrs==25.*", "./wheel.whl"]
MARKED = ["py@pi.org/simple", "files.python@hosted.org", "registry.npm@js.org", "--index-@url x", "--find-@links"]
"""Registries and options that choose one; without the mark, which is there so that this file names none."""

FOUND = [
    (walls.impure_calls, "def judge(path):\n    return open(path)", ["line 2: calls open"]),
    (walls.impure_calls, "def judge(door):\n    return door.open()", []),
    (walls.names_that_say_nothing, "bp/utils.py", ["utils"]),
    (walls.names_that_say_nothing, "agent/models/base.py", ["base"]),
    (walls.names_that_say_nothing, "agent/tool_manager.py", ["manager"]),
    (walls.names_that_say_nothing, "agent/database.py", []),
    *((walls.unpinned, f"# versions\nanyio==4.12.0\n{line}\n", [line]) for line in LINES),
    (walls.mismatched_patterns, r"(?:a|b)*+ (?:a){1,2}+ (a)?+ (?>a)", [")*+", "){1,2}+", ")?+", "(?>"]),
    (walls.mismatched_patterns, r"\s*+\)?+[^)]++(?:a)+ (?<=a)", []),
    (lambda text: walls.machine_paths_in(text, ["/place"]), "see /place/checkout/README.md", ["/place"]),
    (lambda text: walls.machine_paths_in(text, ["/place"]), "see docs/place/x, /placeholder and ~/place", []),
]


@rows("check, text, found", FOUND)
def test_each_check_finds_what_it_is_for(check: Callable[[str], list[str]], text: str, found: list[str]) -> None:
    assert check(text) == found


@rows("text", MARKED)
def test_a_registry_is_found(text: str) -> None:
    assert len(walls.addresses_in(f"before {text.replace('@', '')} after")) == 1


# The project speaks plain technical English: docstrings are sentences, and messages name the actor.


VAGUE = re.compile(
    r"\b(somebody|someone|nobody|anybody|whoever|whomever"
    r"|anew|nought|mend(s|ed|ing)?|by lot|as good as|into account|for good|(for|of) what is no)\b"
)
CLAUSE = re.compile(r'^ *r?"""\s*((What|Who|Whose|Which|How|Where|Why|When|Whether)\b[^?\n]*?)("""|$)', re.MULTILINE)


def sources() -> Iterator[Path]:
    for module in MODULES:
        yield ROOT / module


def pages() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))


def tables() -> Iterator[Path]:
    yield from sorted((ROOT / "constitution").rglob("*.toml"))


def vague_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) where the actor is left open, or where a word is not plain English."""
    for found in VAGUE.finditer(text.lower()):
        number = text.count("\n", 0, found.start()) + 1
        yield number, text.split("\n")[number - 1].strip()


def clauses(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, first line) of each docstring that is a clause instead of a sentence."""
    for found in CLAUSE.finditer(source):
        yield source.count("\n", 0, found.start(1)) + 1, found[1]


def test_code_tables_and_pages_name_the_actor() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in (*sources(), *pages(), *tables())
        for number, line in vague_lines(path.read_text(encoding="utf-8"))
    ]

    assert not found, "name the user, the model, the caller or the b-thread, in plain English:\n" + "\n".join(found)


def test_docstrings_are_sentences() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {first}"
        for path in sources()
        for number, first in clauses(path.read_text(encoding="utf-8"))
    ]

    assert not found, "begin with what the thing is or does:\n" + "\n".join(found)


def test_a_vague_actor_and_a_clause_are_found() -> None:
    assert list(vague_lines("x = 1\n# Nobody answers.")) == [(2, "# Nobody answers.")]
    assert list(vague_lines("# Count anew.\nx = 1\n# A good start.")) == [(1, "# Count anew.")]
    assert list(clauses('def f():\n    """Whether it holds."""')) == [(2, "Whether it holds.")]
    assert not list(clauses('def f():\n    """Return whether it holds."""'))
