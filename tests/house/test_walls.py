"""The rooms keep their walls: who may import whom, how modules introduce themselves, what no tracked file names.

Each check stands in `walls.py` as a pure function. The first half of this file holds the rooms against the checks; the
second half shows that every check can fail.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.house import walls

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("bp", "constitution", "agent")
MODULES = sorted(path.relative_to(ROOT).as_posix() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
PACKAGES = sorted({str(Path(module).parent) for module in MODULES})
READS_ITS_TABLES = "constitution/tables/__init__.py"
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
        "verdict effects",
        "action tables",
        "zones rules",
        "policy shell",
        "analysis",
        "judge",
        "checks",
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

LABORATORY = {"agent.cli.experiment"}
"""The command that needs it; others import it only when it is used."""

HEAVY = {"httpx2", "openai", "opentelemetry", "ruamel.yaml", "rich", "tree_sitter", "trio"}


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def package_of(module: str) -> str:
    return str(Path(module).parent).replace("/", ".")


def name_of(module: str) -> str:
    return module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def modules_of(room: str) -> list[str]:
    return [module for module in MODULES if module.startswith(f"{room}/")]


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
@pytest.mark.parametrize("room", LAYERS)
def test_imports_go_downwards(room: str) -> None:
    sources = {name_of(module): read(module) for module in modules_of(room)}

    assert walls.without_a_layer(sources, room, LAYERS[room]) == []
    assert walls.against_the_layers(walls.import_graph(sources), room, LAYERS[room]) == []


@pytest.mark.slow
def test_only_the_commands_of_the_laboratory_import_it() -> None:
    graph = walls.import_graph({name_of(module): read(module) for module in modules_of("agent")})

    importing = {module for module, imported in graph.items() if any(each.startswith("agent.lab") for each in imported)}

    assert {module for module in importing if not module.startswith("agent.lab")} == LABORATORY


@pytest.mark.slow
@pytest.mark.parametrize("room", LAYERS)
def test_no_modules_import_each_other(room: str) -> None:
    assert walls.circles(walls.import_graph({name_of(module): read(module) for module in modules_of(room)})) == []


@pytest.mark.slow
def test_importing_a_room_loads_nothing_heavy() -> None:
    loaded = output_of("import bp, constitution, agent, sys; print(*sys.modules)").split()

    assert HEAVY.isdisjoint(loaded)


def test_the_command_is_a_console_script_only() -> None:
    """`python -m agent` would obey a `constitution/` folder that lies in the workspace."""
    assert not (ROOT / "agent/__main__.py").exists()


def test_modules_are_named_for_their_ideas() -> None:
    assert failing(MODULES, walls.names_that_say_nothing) == {}


@pytest.mark.slow
def test_packages_have_the_names_that_they_export() -> None:
    exported = {package.replace("/", "."): exported_by(init_of(package)) for package in PACKAGES}

    missing = output_of(
        f"import importlib\nfor package, names in {exported}.items():\n"
        "    module = importlib.import_module(package)\n"
        "    print(*[f'{package}.{name}' for name in names if not hasattr(module, name)])"
    )

    assert missing.split() == []


def test_constraints_are_versions_only() -> None:
    assert walls.unpinned(read("constraints.txt")) == []


@pytest.mark.slow
def test_no_tracked_file_names_a_registry() -> None:
    judging = ("constitution/", "tests/constitution/")  # what judges such options has to name them
    found = {path: walls.addresses_in(text) for path, text in tracked_texts() if not path.startswith(judging)}

    assert {path: addresses for path, addresses in found.items() if addresses} == {}


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("CI") == "true", reason="where CI checks out is nobody's machine, and a usual name")
def test_no_tracked_file_names_a_folder_of_this_machine() -> None:
    folders = folders_of_this_machine()

    found = {path: walls.machine_paths_in(text, folders) for path, text in tracked_texts()}

    assert {path: paths for path, paths in found.items() if paths} == {}


def failing(modules: Iterable[str], check: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """The modules in which a check finds something, with what it finds."""
    found = {module: check(module) for module in modules}
    return {module: wrong for module, wrong in found.items() if wrong}


def output_of(statements: str) -> str:
    """What a fresh interpreter prints."""
    finished = subprocess.run([sys.executable, "-c", statements], cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def init_of(package: str) -> str:
    return read(f"{package}/__init__.py")


def exported_by(source: str) -> list[str]:
    """The value of `__all__`, which is a literal list of names."""
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
            case _:
                pass
    return []


def tracked_files() -> list[str]:
    git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


def tracked_texts() -> list[tuple[str, str]]:
    return [(path, (ROOT / path).read_text(encoding="utf-8", errors="replace")) for path in tracked_files()]


def folders_of_this_machine() -> list[str]:
    """Where this checkout, its neighbours and the interpreter lie, except for places that any machine has."""
    common = ["git", "-c", "safe.directory=*", "rev-parse", "--path-format=absolute", "--git-common-dir"]
    main = Path(subprocess.run(common, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()).parent
    candidates = {ROOT, ROOT.parent, main, main.parent, Path(sys.base_prefix)}
    usual = {Path(place) for place in ("/", "/usr", "/usr/local", "/opt", "/home", "/root", "/srv", "/tmp", "/var/tmp")}
    return sorted(str(folder) for folder in candidates - usual - {Path.home()})


# The checks themselves can fail


@pytest.mark.parametrize(
    "source",
    [
        "import agent",
        "import constitution.rules",
        "from constitution import judge",
        "import anyio",
        "import cattrs",
        "def f():\n    import openai",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agent import Agent",
        "from ..agent import calls",
    ],
)
def test_the_engines_wall_stops(source: str) -> None:
    assert len(walls.breaches(source, walls.engine_may_import, package="bp")) == 1


@pytest.mark.parametrize(
    "source", ["import gc, attrs", "from attr import s", "from . import events", "from bp import sync"]
)
def test_the_engines_wall_lets_through(source: str) -> None:
    assert walls.breaches(source, walls.engine_may_import, package="bp") == []


def test_only_the_runner_has_anyio() -> None:
    source = "import anyio\nfrom anyio.abc import TaskGroup"

    assert walls.breaches(source, walls.engine_with("anyio"), package="bp") == []
    assert walls.breaches(source, walls.engine_may_import, package="bp") == [
        "line 1: imports anyio",
        "line 2: imports anyio.abc",
    ]


@pytest.mark.parametrize(
    "module",
    [
        "os",
        "os.path",
        "subprocess",
        "socket",
        "anyio",
        "asyncio",
        "yaml",
        "ruamel.yaml",
        "shutil",
        "pathlib",
        "io",
        "tempfile",
        "sys",
        "time",
        "random",
        "logging",
        "urllib.request",
        "importlib",
        "bp",
        "agent",
        "openai",
    ],
)
def test_the_wall_around_the_predicates_stops(module: str) -> None:
    assert len(walls.breaches(f"import {module}", walls.predicates_may_import, package="constitution")) == 1
    assert len(walls.breaches(f"from {module} import x", walls.predicates_may_import, package="constitution")) == 1


def test_the_wall_around_the_predicates_stops_an_impure_part_of_a_pure_package() -> None:
    source = "from urllib import parse, request"

    found = walls.breaches(source, walls.predicates_may_import, package="constitution")

    assert found == ["line 1: imports urllib.request"]


@pytest.mark.parametrize(
    "source",
    ["import re", "from collections.abc import Set", "import tree_sitter", "from .rules import x", "import attrs"],
)
def test_the_wall_around_the_predicates_lets_through(source: str) -> None:
    assert walls.breaches(source, walls.predicates_may_import, package="constitution.shell") == []


def test_a_relative_import_is_resolved_before_it_is_judged() -> None:
    imported = walls.imports_of("from ...agent import x\nfrom ..rules import y", package="constitution.shell")

    assert [each.module for each in imported] == ["agent", "constitution.rules"]


def test_opening_a_file_in_a_predicate_is_found() -> None:
    assert walls.impure_calls("def judge(path):\n    return open(path)") == ["line 2: calls open"]
    assert walls.impure_calls("def judge(door):\n    return door.open()") == []


@pytest.mark.parametrize("path", ["bp/utils.py", "agent/models/base.py", "agent/common/x.py", "agent/tool_manager.py"])
def test_a_name_that_says_nothing_is_found(path: str) -> None:
    assert len(walls.names_that_say_nothing(path)) == 1


def test_a_name_that_only_contains_such_a_word_is_none() -> None:
    assert walls.names_that_say_nothing("agent/database.py") == []


SOURCES = {
    "bp.events": "import re",
    "bp.index": "from bp.events import Event",
    "bp.program": "def f():\n    from bp.index import Index",
    "bp.search": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bp.program import BProgram",
    "bp.lazy": "import_module('bp.search')",
}


def test_imports_are_found_in_functions_for_types_and_by_name() -> None:
    graph = walls.import_graph(SOURCES)

    assert graph["bp.program"] == {"bp.index"}
    assert graph["bp.search"] == {"bp.program"}
    assert graph["bp.lazy"] == {"bp.search"}


def test_an_import_upwards_is_found() -> None:
    layers = ("events", "program", "index search", "lazy")

    assert walls.against_the_layers(walls.import_graph(SOURCES), "bp", layers) == ["bp.program imports bp.index"]
    assert walls.without_a_layer(SOURCES, "bp", layers[1:]) == ["bp.events"]


def test_modules_that_import_each_other_are_found() -> None:
    graph = walls.import_graph({**SOURCES, "bp.events": "from bp.search import Search"})

    assert walls.circles(walls.import_graph(SOURCES)) == []
    assert walls.circles(graph) == [["bp.events", "bp.index", "bp.program", "bp.search"]]


@pytest.mark.parametrize("line", ["attrs", "attrs>=25", "-e .", "--pre", "x @ file:///x", "attrs==25.*", "./wheel.whl"])
def test_a_constraint_that_is_no_version_is_found(line: str) -> None:
    assert walls.unpinned(f"# versions\nanyio==4.12.0\n{line}\n") == [line]


@pytest.mark.parametrize(
    "text",
    [
        "https://py" + "pi.org/simple",
        "files.python" + "hosted.org",
        "registry.npm" + "js.org",
        "pip install --index-" + "url x",
        "--find-" + "links=x",
    ],
)
def test_a_registry_is_found(text: str) -> None:
    assert len(walls.addresses_in(f"before {text} after")) == 1


def test_a_folder_of_a_machine_is_found() -> None:
    assert walls.machine_paths_in("see /place/checkout/README.md", ["/place", "/elsewhere"]) == ["/place"]
    assert walls.machine_paths_in("see docs/place/x, /placeholder and ~/place", ["/place"]) == []


def test_exported_names_are_read_from_the_source() -> None:
    assert exported_by('__all__ = ["a", "b"]\nx = 1') == ["a", "b"]
    assert exported_by("x = 1") == []


@pytest.mark.slow
def test_a_heavy_module_would_be_seen_where_it_is_loaded() -> None:
    loaded = output_of("import ruamel.yaml, trio, sys; print(*sys.modules)").split()

    assert {"ruamel.yaml", "trio"} <= HEAVY.intersection(loaded)
