"""Places that run later: what a command changes there without a right does not last, whatever it does for it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.tools.background import Processes
from agent.tools.collections import workspace_tools
from agent.tools.definition import Toolbox, ToolContext, ignore
from agent.tools.sandbox.put_back import Guard, is_plain_setting
from agent.tools.sandbox.sandbox import Sandbox, make_sandbox, why_not
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

GIT = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


def git(where: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=where, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]) -> Path:
    """A repository with a file that runs later in its history, and one that is not."""
    needs("git")
    for name, value in {**GIT, "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}.items():
        monkeypatch.setenv(name, value)
    workspace = tmp_path / "home" / "ws"
    (workspace / ".vscode").mkdir(parents=True)
    git(workspace, "init", "-q")
    (workspace / ".pre-commit-config.yaml").write_text("old\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "old")
    (workspace / ".pre-commit-config.yaml").write_text("new\n")
    git(workspace, "commit", "-qam", "new")
    (workspace / ".vscode" / "tasks.json").write_text("mine\n")
    return workspace


def state(workspace: Path) -> dict[str, str]:
    """Return what is in the places that run later, and besides."""
    unlike = {"objects", "logs", "refs", "index", "COMMIT_EDITMSG"}
    paths = (path for path in workspace.rglob("*") if not unlike & {*path.parts} and path.suffix != ".sample")
    files = [path for path in paths if path.is_file() or path.is_symlink()]
    return {
        str(path.relative_to(workspace)): os.readlink(path) if path.is_symlink() else path.read_text() for path in files
    }


async def run(workspace: Path, command: str, *rights: str, level: str = "on") -> ToolResult:
    sandbox = make_sandbox("on", [str(workspace)])
    if level != "on":
        if why := why_not("landlock"):
            pytest.skip(why)
        sandbox = Sandbox((str(workspace),), "landlock")
        sandbox.guard = Guard(sandbox.guarded)
    bash = make_shell_tool(str(workspace), ShellOptions(env=GIT, sandbox=sandbox))
    return await bash.run({"command": command}, ToolContext(rights=rights))


PLANTED = {
    "a file that direnv runs": "echo evil > .envrc",
    "one in a folder below": "mkdir -p a/b && echo evil > a/b/.envrc",
    "a task of an editor that was there": "echo evil > .vscode/tasks.json",
    "a link in its place": "ln -sf /etc/passwd .vscode/tasks.json",
    "a folder in its place": "rm .vscode/tasks.json && mkdir .vscode/tasks.json && touch .vscode/tasks.json/a",
    "its removal": "rm .vscode/tasks.json",
    "a workflow": "mkdir -p .github/workflows && echo evil > .github/workflows/a.yml",
    "settings of an agent": "mkdir .claude && echo evil > .claude/settings.json",
    "a setting of git": "git config core.fsmonitor evil",
    "a setting in place": "printf '[alias]\\n  st = !evil\\n' >> .git/config",
    "an address that is a program": "git config remote.a.url 'ext::sh -c evil'",
    "settings that git cannot read": "echo '[' >> .git/config",
    "attributes of git": "echo '* filter=evil' > .gitattributes; echo '* filter=evil' > .git/info/attributes",
    "a repository in a folder": "git init -q inner && git -C inner config core.pager evil",
    "a bare one": "git init -q --bare bare && git -C bare config core.pager evil",
    "a hook in one": "git init -q other; echo evil > other/.git/hooks/pre-commit; chmod +x other/.git/hooks/pre-commit",
    "what was committed by the command": "echo evil > .envrc && git add -f .envrc && git commit -qm planted",
    "one with the old times": "cd .vscode; cp -p tasks.json ../t; echo evil > tasks.json; touch -r ../t tasks.json",
}


def is_as_before(workspace: Path, before: dict[str, str]) -> bool:
    after = state(workspace)
    has_evil = any("evil" in text or "/etc" in text for text in after.values())
    return not has_evil and all(after.get(path) == text for path, text in before.items())


@pytest.mark.parametrize("level", ["on", "landlock"])
async def test_what_runs_later_is_put_back(level: str, workspace: Path) -> None:
    before, lasts = state(workspace), dict[str, str]()
    for name, command in PLANTED.items():
        done = await run(workspace, command, level=level)
        if not is_as_before(workspace, before) or "[put back, since it runs later" not in done.text:
            lasts[name] = done.text

    assert lasts == {}


MOVED = "cp -r .git copy && {} && mkdir -p copy/hooks && echo evil > copy/hooks/pre-commit && mv copy .git"


@pytest.mark.parametrize("level", ["on", "landlock"])
async def test_a_folder_of_git_that_was_moved_has_no_hook(level: str, workspace: Path) -> None:
    await run(workspace, MOVED.format("mv .git gone"), level=level)

    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert git(workspace, "log", "--format=%s") == "new\nold\n"


async def test_a_hook_of_a_worktree_or_a_submodule_is_put_back(workspace: Path) -> None:
    git(workspace, "worktree", "add", "-q", "../tree")
    git(workspace.parent, "init", "-q", "outer")
    git(workspace.parent / "outer", "-c", "protocol.file.allow=always", "submodule", "add", str(workspace), "sub")
    hooks = "$(git rev-parse --git-path hooks)"

    for place in (workspace.parent / "tree", workspace.parent / "outer" / "sub", workspace.parent / "outer"):
        await run(place, f"cd sub; mkdir -p {hooks}; echo evil > {hooks}/pre-commit; git config core.hooksPath evil")

    assert not [*workspace.parent.rglob("hooks/pre-commit")]
    assert "evil" not in (workspace / ".git" / "config").read_text()
    assert "evil" not in (workspace.parent / "outer" / ".git" / "modules" / "sub" / "config").read_text()


EVERYDAY = {
    "a commit on a branch": "git checkout -qb side && echo 1 > a && git add a && git commit -qm more",
    "a checkout of what was committed before": "git checkout -q HEAD~1 -- .pre-commit-config.yaml",
    "a stash": "echo 2 > .pre-commit-config.yaml; git checkout -q . && echo 1 > a && git stash -qu && git stash pop -q",
    "a branch with an upstream": "git remote add a https://example.com/a.git && git config branch.master.remote a",
    "a worktree": "git worktree add -q inner",
    "a repository": "git init -q inner",
    "its removal": "git init -q inner && rm -rf inner",
    "an environment": "mkdir -p .venv/bin && touch .venv/bin/activate .venv/bin/python && rm -r .venv",
}


async def test_everyday_work_lasts(workspace: Path) -> None:
    texts = {name: (await run(workspace, f"set -e; {command}")).text for name, command in EVERYDAY.items()}

    assert {name: text for name, text in texts.items() if "put back" in text or "exit code" in text} == {}


async def test_what_the_user_granted_or_changes_between_two_commands_lasts(workspace: Path) -> None:
    sandbox = make_sandbox("on", [str(workspace)])
    bash = make_shell_tool(str(workspace), ShellOptions(sandbox=sandbox))

    granted = await bash.run({"command": "echo 1 > .envrc"}, ToolContext(rights=(f"write {workspace}/.envrc",)))
    (workspace / ".vscode" / "tasks.json").write_text("edited\n")
    later = await bash.run({"command": "echo 2 > .envrc"}, ToolContext())

    assert (granted.text, (workspace / ".envrc").read_text()) == ("(no output)", "1\n")
    assert (workspace / ".vscode" / "tasks.json").read_text() == "edited\n"
    assert f'give the command again with rights=["write {workspace}/.envrc"]' in later.text


async def test_a_process_that_writes_after_its_call_is_put_back_at_the_next_one_and_at_its_end(workspace: Path) -> None:
    processes, kept = Processes(), []
    sandbox = make_sandbox("on", [str(workspace)])
    bash = make_shell_tool(str(workspace), ShellOptions(sandbox=sandbox), processes=processes)

    async def keep() -> None:
        kept.append((workspace / ".envrc").read_text())

    os.mkfifo(workspace / "go")
    os.mkfifo(workspace / "done")
    writes = "while read -r line < go; do echo $line > .envrc; echo > done; done"
    await bash.run({"command": writes, "background": True}, ToolContext(keep=keep))

    def go(line: str) -> None:
        (workspace / "go").write_text(line + "\n")
        (workspace / "done").read_text()

    go("evil")
    told = await bash.run({"command": "test -e .envrc"}, ToolContext(keep=keep))
    assert (told.details["exit_code"], kept) == (1, ["evil\n"])
    assert "put back" in told.text
    go("again")
    assert bash.run_over is not None
    await bash.run_over()
    assert not (workspace / ".envrc").exists()


async def test_what_a_file_tool_has_written_lasts_while_a_process_is_looked_after(workspace: Path) -> None:
    sandbox, processes = make_sandbox("on", [str(workspace)]), Processes()
    bash = make_shell_tool(str(workspace), ShellOptions(sandbox=sandbox), processes=processes)
    toolbox = Toolbox([bash, *workspace_tools(workspace)][::-1], Workspace(workspace))
    [write] = [tool.name for tool in toolbox.tools if tool.name.startswith("write")]

    await toolbox.run(ToolCall("1", "bash", {"command": "sleep 300", "background": True}), ignore)
    await toolbox.run(ToolCall("2", write, {"path": ".envrc", "content": "approved\n"}), ignore)
    await toolbox.run(ToolCall("3", "bash", {"command": "true"}), ignore)
    await toolbox.run_over()

    assert (workspace / ".envrc").read_text() == "approved\n"


async def test_nothing_is_written_through_a_link(workspace: Path, tmp_path: Path) -> None:
    """A process that goes on may replace a folder by a link: our own program has more rights than the command."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "tasks.json").write_text("theirs\n")

    done = await run(workspace, f"rm -r .vscode && ln -s {tmp_path}/outside .vscode")

    assert (tmp_path / "outside" / "tasks.json").read_text() == "theirs\n"
    assert "put back" in done.text or "left" in done.text


PLAIN = """
branch.a/b.merge refs/heads/a | remote.o.url git@example.com:a/b.git | remote.o.url ../b | user.name a b
"""
OTHERS = """
core.fsmonitor x | alias.a !x | remote.o.url ext::sh | remote.o.url --upload-pack=x | core.pager x | filter.a.clean x
include.path x | core.hookspath x | remote.o.uploadpack x | core.sshcommand x | credential.helper !x | gpg.program x
core.worktree / | url.x.insteadof y | remote.o.url https://a b | remote.o.url a::b
"""


def test_settings_that_run_nothing_are_few() -> None:
    def settings(text: str) -> list[str]:
        return [each.strip().replace(" ", "\n", 1) for line in text.strip().splitlines() for each in line.split("|")]

    assert [each for each in settings(PLAIN) if not is_plain_setting(each)] == []
    assert [each for each in settings(OTHERS) if is_plain_setting(each)] == []
