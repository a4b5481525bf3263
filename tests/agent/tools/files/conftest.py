"""The file tools of S2 over one workspace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.tools.files.editing import make_edit, make_write
from agent.tools.files.reading import make_ls, make_read
from agent.tools.files.search import make_find, make_grep, make_list_files
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolResult

Use = Callable[..., Any]


@pytest.fixture
def use(root: Path) -> Use:
    files = Workspace(root)
    tools = {tool.name: tool for make in (make_edit, make_ls, make_read, make_write) for tool in [make(files)]}

    async def use(name: str, **arguments: Any) -> ToolResult:
        return await tools[name].run(arguments)

    return use


def plant(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def grep(root: Path) -> Use:
    tool = make_grep(Workspace(root))

    async def grep(pattern: str, **arguments: Any) -> ToolResult:
        return await tool.run({"pattern": pattern, **arguments})

    return grep


@pytest.fixture
def find(root: Path) -> Use:
    tools = {"find": make_find(Workspace(root)), "list_files": make_list_files(Workspace(root))}

    async def find(pattern: str, *, tool: str = "find", **arguments: Any) -> ToolResult:
        return await tools[tool].run({"pattern": pattern, **arguments})

    return find
