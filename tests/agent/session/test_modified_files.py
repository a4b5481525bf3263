"""The state of a run names the files that commands change, not only those that file tools write (S1 2.2, 3.2)."""

from pathlib import Path

import pytest

from agent import call
from agent.tools.shell import make_shell_tool
from tests.agent.conftest import MakeAgent


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("echo x > a", ["a"]),
        ("touch a b", ["a", "b"]),
        ("cp old new", ["new"]),
        ("mv old new", ["old", "new"]),
        ("sed -i s/x/y/ old", ["old"]),
        ("tee a < old", ["a"]),
        ("cd sub && echo x > a", ["sub/a"]),
        ("cd sub; echo x > a", ["sub/a"]),  # the folder is there, as the disk says
        ("cd nope; echo x > a", ["a", "nope/a"]),  # a cd that may fail leaves the command where it was
        ("rm old", ["old"]),
        ("cat old > /dev/null", []),
        ("cat old", []),
    ],
)
def test_files_that_a_command_changes_are_known(
    make_agent: MakeAgent, tmp_path: Path, command: str, changed: list[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "old").write_text("x\n")
    agent = make_agent(
        call("bash", command=command), "Done.", tools=[make_shell_tool(str(tmp_path))], preset="passthrough",
        workspace=tmp_path,
    )  # fmt: skip

    run = agent.run_sync("Go")

    assert sorted(run.state.files_modified) == sorted(str(tmp_path / name) for name in changed)
