"""The file tools of S2 over one workspace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.calls import ToolResult
from agent.tools import Workspace
from agent.tools.files import make_edit, make_ls, make_read, make_write

Use = Callable[..., Any]


@pytest.fixture
def use(root: Path) -> Use:
    workspace = Workspace(root)
    tools = {tool.name: tool for make in (make_edit, make_ls, make_read, make_write) for tool in [make(workspace)]}

    async def use(name: str, **arguments: Any) -> ToolResult:
        return await tools[name].run(arguments)

    return use
