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


MAKERS = (make_edit, make_find, make_grep, make_list_files, make_ls, make_read, make_write)


@pytest.fixture
def use(root: Path) -> Use:
    tools = {tool.name: tool for make in MAKERS for tool in [make(Workspace(root))]}

    async def use(name: str, **arguments: Any) -> ToolResult:
        return await tools[name].run(arguments)

    return use


@pytest.fixture
def grep(use: Use) -> Use:
    return lambda pattern, **arguments: use("grep", pattern=pattern, **arguments)


@pytest.fixture
def find(use: Use) -> Use:
    return lambda pattern, tool="find", **arguments: use(tool, pattern=pattern, **arguments)


def plant(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
