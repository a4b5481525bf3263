"""Everyday work goes through in the sandbox: commits in every layout of a repository, caches, editors that fail."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.tools.definition import Tool, ToolContext
from agent.tools.sandbox.repository import git_folders
from agent.tools.sandbox.sandbox import Level, Sandbox, make_sandbox, why_not
from agent.tools.shell import ShellOptions, make_shell_tool

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip
Git = Callable[..., str]


@pytest.fixture(params=["bubblewrap", "landlock"])
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    if why := why_not(chosen):
        pytest.skip(f"{chosen}: {why}")
    return chosen


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]) -> Path:
    needs("git")
    (tmp_path / "home").mkdir()
    for name, value in {**GIT, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}.items():
        monkeypatch.setenv(name, value)
    return tmp_path / "home"


@pytest.fixture
def git(home: Path) -> Git:
    def git(where: Path, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=where, check=True, capture_output=True, text=True).stdout

    return git


@pytest.fixture
def repository(home: Path, git: Git) -> Path:
    folder = home / "repository"
    (folder / "inner").mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def confined(workspace: Path) -> Tool:
    """Return the tool that runs commands as the preset `default` does."""
    sandbox = make_sandbox("on", [str(workspace)])
    return make_shell_tool(str(workspace), ShellOptions(timeout=60, env=GIT, sandbox=sandbox))


def worktree(repository: Path, git: Git) -> Path:
    git(repository, "worktree", "add", "-q", "../tree")
    return repository.parent / "tree"


def subfolder(repository: Path, git: Git) -> Path:
    return repository / "inner"


def submodule(repository: Path, git: Git) -> Path:
    git(repository.parent, "init", "-q", "outer")
    git(repository.parent / "outer", "-c", "protocol.file.allow=always", "submodule", "add", str(repository), "sub")
    return repository.parent / "outer" / "sub"


def separate_folder(repository: Path, git: Git) -> Path:
    git(repository, "init", "-q", "--separate-git-dir", str(repository.parent / "elsewhere"))
    return repository


def bare(repository: Path, git: Git) -> Path:
    git(repository.parent, "clone", "-q", "--bare", str(repository), "bare.git")
    git(repository.parent / "bare.git", "worktree", "add", "-q", "../of-bare")
    return repository.parent / "of-bare"


def linked(repository: Path, git: Git) -> Path:
    (repository / ".git").rename(repository.parent / "moved")
    (repository / ".git").symlink_to("../moved")
    return repository


@pytest.mark.parametrize("layout", [worktree, subfolder, submodule, separate_folder, bare, linked])
async def test_a_commit_works_in(layout: Callable[[Path, Git], Path], repository: Path, git: Git, level: Level) -> None:
    workspace = layout(repository, git)
    hook = git_folders(str(workspace))[-1] + "/hooks/pre-commit"
    bash = make_shell_tool(str(workspace), ShellOptions(env=GIT, sandbox=Sandbox((str(workspace),), level)))

    command = f"echo 1 > made && git add made && git commit -qm second; echo 1 > {hook}; git config user.name b"
    done = await bash.run({"command": command}, ToolContext())

    assert git(workspace, "log", "--format=%s").split() == ["second", "first"], done.text
    if level == "bubblewrap":
        assert not os.path.exists(hook)


async def test_a_folder_of_git_that_is_not_the_users_own_is_not_written(
    repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_folders(str(repository / "inner")) == (str(repository / ".git"),)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert git_folders(str(repository / "inner")) == ()
    assert git_folders(str(repository.parent)) == ()


async def test_the_folder_of_git_cannot_be_moved_away(repository: Path) -> None:
    if why := why_not("bubblewrap"):
        pytest.skip(why)
    bash = make_shell_tool(str(repository), ShellOptions(sandbox=Sandbox((str(repository),), "bubblewrap")))

    done = await bash.run({"command": "mv .git gone; ls .git/HEAD"}, ToolContext())

    assert "busy" in done.text
    assert ".git/HEAD\n" in done.text


async def test_each_project_has_caches_that_commands_can_write(home: Path, repository: Path) -> None:
    bash = confined(repository)
    write = 'for name in XDG_CACHE_HOME npm_config_cache PIP_CACHE_DIR GOCACHE; do mkdir -p "${!name}/made"; done'

    done = await bash.run({"command": f"set -e; {write}; echo $XDG_CACHE_HOME"}, ToolContext())

    [caches] = (home / ".cache" / "bpagent").iterdir()
    assert done.text == f"{caches}/xdg\n"
    assert {each.name for each in caches.iterdir()} == {"xdg", "npm", "pip", "go"}


async def test_caches_are_in_scratch_where_the_home_folder_cannot_be_written(
    home: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    bash = confined(repository)

    done = await bash.run({"command": 'mkdir -p "$PIP_CACHE_DIR" && [ "$PIP_CACHE_DIR" = "$TMPDIR/caches/pip" ]'})

    assert done.details["exit_code"] == 0, done.text


EDITED = ("commit --allow-empty", "commit --amend --allow-empty", "rebase -i HEAD~1", "tag -a v1")


@pytest.mark.parametrize("words", EDITED)
async def test_a_command_that_would_open_an_editor_fails_at_once(words: str, repository: Path, git: Git) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    git(repository, "config", "core.editor", "sleep 300")
    bash = confined(repository)

    done = await bash.run({"command": f"git {words}"})

    assert done.details["exit_code"] == 1
    assert "give the text with -m" in done.text
    assert not (repository / ".git" / "rebase-merge").exists()


async def test_a_merge_takes_its_own_message(repository: Path, git: Git) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    git(repository, "commit", "-q", "--allow-empty", "-m", "on the side")
    git(repository, "checkout", "-q", "-")
    bash = confined(repository)

    done = await bash.run({"command": "git merge --no-ff side"})

    assert (done.details["exit_code"], git(repository, "log", "-1", "--format=%s")) == (0, "Merge branch 'side'\n")
