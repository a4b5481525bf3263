"""The file tools of S2 over one workspace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.tools.files.editing import make_edit, make_write
from agent.tools.files.reading import make_ls, make_read
from agent.tools.remote import RemoteFiles
from agent.tools.workspace import Files, Workspace
from agent.vocabulary.calls import ToolResult

Use = Callable[..., Any]


@pytest.fixture
def anyio_backend() -> str:
    """These tools run in threads of ours, which are tested on every event loop beside `background`."""
    return "asyncio"


@pytest.fixture(params=["here", "there"])
def use(root: Path, request: pytest.FixtureRequest) -> Use:
    """Use a tool: on this machine, and on one that is reached over a shell."""
    return user_of(Workspace(root) if request.param == "here" else RemoteFiles(("bash", "-c"), str(root)))


@pytest.fixture
def use_here(root: Path) -> Use:
    return user_of(Workspace(root))


def user_of(files: Files) -> Use:
    tools = {tool.name: tool for make in (make_edit, make_ls, make_read, make_write) for tool in [make(files)]}

    async def use(name: str, **arguments: Any) -> ToolResult:
        return await tools[name].run(arguments)

    return use
