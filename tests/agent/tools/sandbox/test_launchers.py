"""A command starts as it would from a shell on every level of the sandbox, whatever launches it."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.tools.background import Processes
from agent.tools.definition import Tool, ToolContext
from agent.tools.mcp import mcp_tools
from agent.tools.sandbox.sandbox import Level, Sandbox, why_not
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.terminal import make_terminal

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

LOOK = (
    "umask; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd; env | grep -E '^(LC_|LANG)';"
    " { ulimit -Sa; ulimit -Ha; } | grep -vE 'data seg|file size|cpu time|user processes'"
)
"""It prints what a program inherits, without the limits of resources that the sandbox is documented to set."""

OF_A_SESSION = {"200", "201"}
"""Descriptors of a terminal's session: the command, and the state that it leaves."""

SERVER = "from mcp.server import MCPServer; MCPServer('test').run('stdio')"


@pytest.fixture(params=["asyncio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """What launches is the same on both."""
    return str(request.param)


@pytest.fixture(autouse=True)
def c_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the C locale Python adds a variable to its environment."""
    for name in ("LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C")


def from_a_shell(folder: Path) -> list[str]:
    done = subprocess.run(["bash", "-c", LOOK], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("level", "rights"),
    [
        ("none", ()),
        ("landlock", ()),
        ("landlock", ("network",)),
        ("namespaces", ()),
        ("namespaces", ("network",)),
        ("bubblewrap", ()),
        ("bubblewrap", ("network",)),
        ("bubblewrap", ("network example.com",)),
    ],
)
async def test_a_command_starts_as_from_a_shell(level: Level, rights: tuple[str, ...], tmp_path: Path) -> None:
    if level != "none" and (why := why_not(level)):
        pytest.skip(f"needs {level}: {why}")
    options = ShellOptions(sandbox=Sandbox((str(tmp_path),), level))
    processes = Processes()
    bash = make_shell_tool(str(tmp_path), options, processes=processes)
    terminal = make_terminal(str(tmp_path), options)

    async def run(tool: Tool, command: str, **words: object) -> list[str]:
        done = await tool.run({"command": command, **words}, ToolContext(rights=rights))
        return [line for line in done.text.splitlines() if not line.startswith("[")]

    await run(bash, f"mkfifo told; ({LOOK}) > told", background=True)
    found = {
        "bash": await run(bash, LOOK),
        "terminal": await run(terminal, LOOK),
        "session": [each for each in await run(terminal, LOOK, persistent=True) if each not in OF_A_SESSION],
        "background": await run(bash, "until [ -p told ]; do :; done; cat told"),
    }
    await processes.end_run()

    assert {way: lines for way, lines in found.items() if lines != from_a_shell(tmp_path)} == {}


async def test_an_mcp_server_starts_as_from_a_shell(tmp_path: Path) -> None:
    command = ["bash", "-c", f'({LOOK}) > {tmp_path / "told"}; exec {sys.executable} -c "{SERVER}"']

    async with mcp_tools(command):
        assert (tmp_path / "told").read_text().splitlines() == from_a_shell(tmp_path)
