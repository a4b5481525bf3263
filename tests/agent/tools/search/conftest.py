"""The tools that search, over one workspace, with each engine that is installed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.tools.files.find import make_find, make_list_files
from agent.tools.files.grep import make_grep
from agent.tools.files.operations import Files
from agent.tools.files.patterns import Engine
from agent.tools.remote import RemoteFiles
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolResult

Use = Callable[..., Any]


def plant(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture(params=["python", "rg"])
def engine(request: pytest.FixtureRequest, needs: Callable[[str], Path]) -> Engine:
    if request.param == "rg":
        needs("rg")
    return "rg" if request.param == "rg" else "python"


@pytest.fixture
def grep(root: Path, engine: Engine) -> Use:
    tool = make_grep(Workspace(root), engine=engine, timeout=30)

    async def grep(pattern: str, **arguments: Any) -> ToolResult:
        return await tool.run({"pattern": pattern, **arguments})

    return grep


@pytest.fixture
def find(root: Path) -> Use:
    return finder_of(Workspace(root))


@pytest.fixture
def grep_there(root: Path, engine: Engine) -> Use:
    """Search on a machine that is reached over a shell."""
    tool = make_grep(RemoteFiles(("bash", "-c"), str(root)), engine=engine, timeout=30)

    async def grep(pattern: str, **arguments: Any) -> ToolResult:
        return await tool.run({"pattern": pattern, **arguments})

    return grep


@pytest.fixture
def find_there(root: Path) -> Use:
    return finder_of(RemoteFiles(("bash", "-c"), str(root)))


def finder_of(files: Files) -> Use:
    tools = {"find": make_find(files), "list_files": make_list_files(files)}

    async def find(pattern: str, *, tool: str = "find", **arguments: Any) -> ToolResult:
        return await tools[tool].run({"pattern": pattern, **arguments})

    return find
