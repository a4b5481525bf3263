"""What a user installs works without this checkout: the wheel, in an empty virtual environment, runs the demo."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.documents import blocks_of

ROOT = Path(__file__).parent.parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
ROOMS = {"bp", "agent", "constitution"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.wheel,
    pytest.mark.timeout(300),  # it comes from the network
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the pinned backend of this environment, without the network."""
    folder = tmp_path_factory.mktemp("dist")
    execute([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and what it depends on, in the pinned versions; nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    execute([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    install(folder, "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return folder


def install(environment: Path, *words: str) -> None:
    """Install with the pip of this environment; bytecode is made of what is imported, and not of everything."""
    execute([*PIP, "--python", str(environment), "install", "--no-compile", *words], environment)


def execute(command: list[str], folder: Path) -> str:
    """What a command writes; it runs in `folder` and sees nothing of this checkout, no key, terminal or input."""
    hidden = ("PYTHON", "OPENAI_", "VIRTUAL_ENV")
    finished = subprocess.run(
        command,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(hidden)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def test_the_wheel_holds_the_three_rooms_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == ROOMS
    assert [name for name in names if Path(name).match("test_*.py") or name.endswith("conftest.py")] == []


def test_the_wheel_says_that_it_is_typed_and_how_it_is_licensed(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {f"{room}/py.typed" for room in ROOMS} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_rooms_are_imported_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    statement = "import bp.payload; print(bp.payload.__file__)"

    origin = execute([str(environment / "bin" / "python"), "-c", statement], tmp_path)

    assert origin.startswith(str(environment))


def documented_imports() -> Iterator[str]:
    """Yield the imports from the three rooms in the documents, and in the templates of `bpagent new`."""
    documents = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    blocks = [block for each in documents for block in blocks_of(each.read_text(encoding="utf-8"), str(each))]
    templates = [each.read_text(encoding="utf-8") for each in (ROOT / "agent" / "cli" / "templates").iterdir()]
    for code in [*(block.code for block in blocks if block.language == "python"), *templates]:
        for node in ast.walk(ast.parse(code.replace("@", ""))):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ROOMS:
                yield from (f"from {node.module} import {name.name}" for name in node.names)


def test_every_documented_import_has_types(environment: Path, tmp_path: Path) -> None:
    imports = sorted({*documented_imports()})
    (tmp_path / "imports.py").write_text("".join(f"{each} as name{at}\n" for at, each in enumerate(imports)))
    installed = ["--python-executable", str(environment / "bin" / "python")]

    checked = execute([sys.executable, "-m", "mypy", "--strict", *installed, "imports.py"], tmp_path)

    assert checked.startswith("Success")


def test_the_installed_requirements_fit_together(environment: Path, tmp_path: Path) -> None:
    assert execute([*PIP, "--python", str(environment), "check"], tmp_path) == ""


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_command_explains_itself(environment: Path, empty_home: Path) -> None:
    assert "demo" in execute([str(environment / "bin" / "bpagent"), "--help"], empty_home)


def test_the_demo_runs(environment: Path, empty_home: Path) -> None:
    written = execute([str(environment / "bin" / "bpagent"), "demo"], empty_home)

    assert ".jsonl" in written


def test_a_project_with_an_agent_module_of_its_own_can_run_pytest(environment: Path, tmp_path: Path) -> None:
    python = str(environment / "bin" / "python")
    install(environment, "pytest")
    (tmp_path / "agent.py").write_text("X = 1\n")
    (tmp_path / "test_own.py").write_text("import agent\n\n\ndef test_own():\n    assert agent.X == 1\n")

    assert "1 passed" in execute([python, "-m", "pytest", "-q"], tmp_path)
