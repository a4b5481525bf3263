"""What every tool has to hold against: a world that changes under it, and input that means harm or nothing."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agent.session.subagents import SubagentStore, make_task
from agent.tools.collections import CodingOptions, create_all_tools, make_collection
from agent.tools.definition import Tool
from agent.tools.shell import ShellOptions
from agent.tools.workspace import Workspace
from agent.vocabulary.messages import ToolResult

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]

SWAP = """
import ctypes, os, signal, sys
directory, link = map(os.fsencode, sys.argv[1:])
running = True
def stop(*_):
    global running
    running = False
signal.signal(signal.SIGTERM, stop)
exchange, here, both = ctypes.CDLL(None).renameat2, -100, 2
print("ready", flush=True)
swaps = 0
while running:
    assert exchange(here, directory, here, link, both) == 0
    swaps += 1
print(swaps)
"""


@contextmanager
def swapping(directory: Path, link: Path) -> Iterator[list[int]]:
    """Exchange two names in another process; give the number of times, once that is over."""
    swaps: list[int] = []
    swapper = subprocess.Popen([sys.executable, "-c", SWAP, directory, link], stdout=subprocess.PIPE)
    assert swapper.stdout is not None
    swapper.stdout.readline()
    try:
        yield swaps
    finally:
        swapper.terminate()
        swaps.append(int(swapper.communicate()[0]))


NOBODY = 65534


@pytest.fixture
def tools(root: Path) -> Mapping[str, Tool]:
    """Every tool that ships, bounded by the workspace."""
    place, shell = Workspace(root, denied=["denied"]), ShellOptions(timeout=100)
    store = SubagentStore(None, None, lambda: ())  # type: ignore[arg-type]
    s2 = create_all_tools(root, CodingOptions(allowed=(), denied=("denied",), shell=shell, task=make_task(store)))
    others = [make_collection(name, place, shell) for name in ("workspace", "terminal", "gated", "command")]
    return {**s2, **{tool.name: tool for collection in others for tool in collection}}


TOUCHING: list[tuple[str, str, dict[str, Any]]] = [
    ("read", "path", {}), ("read_file", "path", {}), ("grep", "path", {"pattern": "secret"}),
    ("find", "path", {"pattern": "*"}), ("ls", "path", {}), ("list_directory", "path", {}),
    ("write", "path", {"content": "mine"}), ("write_file", "path", {"content": "mine"}),
    ("edit", "path", {"oldText": "secret", "newText": "mine"}),
]  # fmt: skip


async def test_no_tool_is_led_outside_by_a_directory_that_becomes_a_link(
    tools: Mapping[str, Tool], root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret of the outside")
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "sub" / "secret").write_text("inside: secret")
    (root / "link").symlink_to(outside)
    with swapping(root / "sub", root / "link") as swaps:
        for _ in range(20):
            for name, parameter, more in TOUCHING:
                for path in ("sub", "sub/secret", "."):
                    answer = await tools[name].run({parameter: path, **more})
                    assert "of the outside" not in answer.text

    assert swaps[0] > 1000
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "secret of the outside"


@pytest.mark.parametrize(
    "path",
    ["/etc/hosts", "../outside", "/proc/self/root/etc/hosts", "/proc/self/cwd/..", "out/hosts", "denied/x", "denied",
     "hard", "/proc/1/root", "../ws-evil/x", "~root/x/../../../etc/hosts",
     "fifo", "a\0b", "\ud800", "x" * 5000],
)  # fmt: skip
async def test_no_path_leads_outside(tools: Mapping[str, Tool], root: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "ws-evil").mkdir()
    (tmp_path / "ws-evil" / "x").write_text("secret")
    (root / "out").symlink_to("/etc")
    (root / "denied").mkdir()
    (root / "denied" / "x").write_text("secret")
    os.link(root / "denied" / "x", root / "hard")
    os.mkfifo(root / "fifo")

    for name, parameter, more in TOUCHING:
        result = await tools[name].run({parameter: path, **more})
        assert result.is_error, (name, result.text)
        result.text.encode()

    assert "mine" not in (tmp_path / "ws-evil" / "x").read_text() + (root / "denied" / "x").read_text()


STRANGE = ["\0", "a\0b", "\ud800", "x\udfff", "\x1b[2J", "\u202e", "", " ", "-", "--", "\n"]


async def test_strange_texts_in_any_parameter_give_a_result_that_can_be_written_down(
    tools: Mapping[str, Tool], root: Path
) -> None:
    (root / "file").write_text("whole")
    usual: dict[str, Any] = {
        "path": "file", "content": "c", "oldText": "nothing", "newText": "n", "pattern": "p", "command": "true",
        "query": "q", "url": "http://127.0.0.1:1/", "description": "d", "prompt": " ", "subagent_type": "t",
    }  # fmt: skip
    for tool in tools.values():
        properties: Any = tool.parameters["properties"]
        required: Any = tool.parameters["required"]
        texts = [name for name, schema in properties.items() if schema.get("type") == "string" and "enum" not in schema]
        for name in texts:
            for strange in STRANGE if "command" not in texts else STRANGE[:4]:
                filled = {key: usual[key] for key in required if key in usual}
                result = await tool.run({**filled, name: strange})
                assert isinstance(result, ToolResult)
                result.text.encode()
    assert "whole" in (root / "file").read_text() or (root / "file").read_text() in {"c", *STRANGE}


async def test_a_workspace_that_is_gone_is_an_error_of_every_tool_that_needs_it(
    tools: Mapping[str, Tool], root: Path
) -> None:
    root.rmdir()
    reading = [(name, {parameter: "x", **more}) for name, parameter, more in TOUCHING if "write" not in name]

    for name, arguments in (
        *reading,
        *((name, {"command": "touch x"}) for name in ("bash", "run_command", "terminal")),
    ):
        assert (await tools[name].run(arguments)).is_error, name
    assert not root.exists()


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """As on a full disk: every write beyond fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_on_a_full_disk_files_stay_whole(tools: Mapping[str, Tool], root: Path) -> None:
    (root / "file").write_text("old")
    large = "x" * 2000
    for name, arguments in (
        ("write", {"path": "file", "content": large}), ("edit", {"path": "file", "oldText": "old", "newText": large}),
        ("write_file", {"path": "new", "content": large}),
    ):  # fmt: skip
        with files_no_longer_than(1000):
            result = await tools[name].run(arguments)
        assert result.is_error
        assert result.text.endswith("the file is as it was")

    assert (root / "file").read_text() == "old"
    assert os.listdir(root) == ["file"]


@pytest.fixture
def without_rights() -> Iterator[Path]:
    """A workspace of somebody who is not the superuser, who may do anything; the test runs as that one."""
    with TemporaryDirectory(dir="/tmp") as folder:
        if superuser := os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if superuser:
                os.seteuid(0)
            for closed in Path(folder).glob("closed*"):
                closed.chmod(0o700)


async def test_a_file_without_permission_is_an_error_that_names_it(without_rights: Path) -> None:
    folder = without_rights
    for name in ("file", "closed-file"):
        (folder / name).write_text("old")
    (folder / "closed").mkdir()
    for name, mode in (("file", 0o400), ("closed-file", 0), ("closed", 0)):
        (folder / name).chmod(mode)
    tools = {tool.name: tool for tool in make_collection("workspace", Workspace(folder), ShellOptions(timeout=100))}
    tools |= create_all_tools(folder)

    for name, more in (("write", {"content": "x"}), ("edit", {"oldText": "old", "newText": "x"})):
        result = await tools[name].run({"path": "file", **more})
        assert (result.is_error, "not writable" in result.text) == (True, True)
    for name, path, more in (
        ("read", "closed-file", {}), ("read_file", "closed-file", {}), ("grep", "closed-file", {"pattern": "x"}),
        ("ls", "closed", {}), ("list_directory", "closed", {}), ("find", "closed", {"pattern": "*"}),
        ("grep", "closed", {"pattern": "x"}), ("write", "closed/new", {"content": "x"}), ("read", "closed/any", {}),
    ):  # fmt: skip
        result = await tools[name].run({"path": path, **more})
        assert result.is_error, name
        assert (path in result.text, "Permission denied" in result.text) == (True, True), (name, result.text)
    assert (folder / "file").read_text() == "old"
