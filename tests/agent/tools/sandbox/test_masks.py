"""Secrets in the workspace: a command sees empty files, git leaves them as they are, and who opens one is told."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.tools.definition import Tool, ToolContext
from agent.tools.sandbox.sandbox import NAMESPACED, achieved, make_sandbox
from agent.tools.shell import ShellOptions, make_shell_tool

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]) -> Path:
    """A repository with secrets: tracked, ignored, not ignored, and one in a folder."""
    needs("git")
    if achieved() not in NAMESPACED:
        pytest.skip("nothing is hidden in the workspace at this level")
    for name, value in {**GIT, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}.items():
        monkeypatch.setenv(name, value)
    workspace = tmp_path / "home" / "ws"
    (workspace / "conf").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    (workspace / "server.pem").write_text("TRACKED\n")
    (workspace / ".gitignore").write_text(".env\n")
    (workspace / "a").write_text("1\n")
    subprocess.run("git add -A && git commit -qm first", shell=True, cwd=workspace, check=True)
    for name in (".env", "id_rsa", "conf/key.pem"):
        (workspace / name).write_text("SECRET\n")
    return workspace


@pytest.fixture
def bash(workspace: Path) -> Tool:
    options = ShellOptions(env=GIT, sandbox=make_sandbox("on", [str(workspace)]))
    return make_shell_tool(str(workspace), options)


def secrets(workspace: Path) -> set[str]:
    return {(workspace / name).read_text() for name in (".env", "id_rsa", "conf/key.pem")}


async def test_commands_do_not_see_what_git_does_not_track(bash: Tool, workspace: Path) -> None:
    """Not by a search, a script, a copy, another name, or after the folder was renamed."""
    tries = (
        "cat .env id_rsa", "grep -r SECRET .", "python3 -c 'print(open(\"conf/key.pem\").read())'", "cp .env b; cat b",
        "ln .env c; ln -s .env d; cat c d", "mv conf moved; cat moved/key.pem", "cat moved/key.pem", "mv moved conf",
    )  # fmt: skip
    texts = [(await bash.run({"command": each}, ToolContext())).text for each in tries]

    assert [text for text in texts if "SECRET" in text] == []
    assert secrets(workspace) == {"SECRET\n"}
    assert (await bash.run({"command": "cat server.pem"}, ToolContext())).text == "TRACKED\n"


GIT_AT_WORK = (
    "echo 2 > a && git add -A && git commit -qm second",
    "echo 3 > a && git commit -qam third",
    "echo 4 > new && git stash -qu",
    "git stash pop -q",
    "git checkout -qb side && git checkout -q -",
)


async def test_git_leaves_them_as_they_are(bash: Tool, workspace: Path) -> None:
    texts = [
        (await bash.run({"command": f"set -e; {each}; git status --short"}, ToolContext())).text for each in GIT_AT_WORK
    ]
    tracked = await bash.run({"command": "git ls-files"}, ToolContext())

    assert [text.removeprefix("Already up to date.\n") for text in texts] == [*["(no output)"] * 3, *["?? new\n"] * 2]
    assert tracked.text.split() == [".gitignore", "a", "server.pem"]
    assert secrets(workspace) == {"SECRET\n"}


async def test_what_the_user_excludes_is_still_excluded(bash: Tool, workspace: Path) -> None:
    (workspace / ".git" / "own").write_text("mine\n")
    subprocess.run(["git", "config", "core.excludesFile", str(workspace / ".git" / "own")], cwd=workspace, check=True)
    (workspace / "mine").touch()

    done = await bash.run({"command": "git status --short"}, ToolContext())

    assert done.text == "(no output)"


async def test_who_opens_a_hidden_file_is_told_also_behind_a_pipe(bash: Tool, workspace: Path) -> None:
    opened = await bash.run({"command": "cat .env | tail -1 || true"}, ToolContext())
    listed = await bash.run({"command": "ls -l .env"}, ToolContext())
    failed = await bash.run({"command": "false"}, ToolContext())

    right = f"read {workspace}/.env"
    assert f'.env was an empty file, since it may hold secrets; give the command again with rights=["{right}"]' in (
        opened.text
    )
    assert opened.details["blocked"] == (right,)
    assert "blocked" not in listed.text
    hidden = ", ".join(f"{workspace}/{name}" for name in (".env", "conf/key.pem", "id_rsa"))
    assert f"reading {hidden}, keys and logins of the user" in failed.text


async def test_a_right_shows_one_file_and_another_lets_it_be_written(bash: Tool, workspace: Path) -> None:
    read = ToolContext(rights=(f"read {workspace}/.env",))
    write = ToolContext(rights=(f"write {workspace}/.env",))

    assert (await bash.run({"command": "cat .env id_rsa"}, read)).text.startswith("SECRET\n[blocked")
    await bash.run({"command": "echo 1 > .env"}, ToolContext())
    assert secrets(workspace) == {"SECRET\n"}
    await bash.run({"command": "echo 1 > .env"}, write)
    assert (workspace / ".env").read_text() == "1\n"


async def test_a_file_that_a_command_made_is_not_hidden_from_the_next_one(bash: Tool) -> None:
    await bash.run({"command": "mkdir made && echo mine > made/.env"}, ToolContext())

    assert (await bash.run({"command": "cat made/.env"}, ToolContext())).text == "mine\n"
