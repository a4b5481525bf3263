"""The disk is looked at before a call is judged: what would be lost, what patterns stand for, what is declared."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.effects.execution import describe
from agent.tools.collections import workspace_tools
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from constitution import Disk, Level, judge
from tests.tables import rows

LONG_AGO = 1_000_000_000.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a saved file, a changed one, a new one and an ignored one."""
    files = {
        "saved.py": "a",
        "src/changed.py": "b",
        ".gitignore": "*.ign\n",
        "package.json": '{"dependencies": {"x": "1"}}',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    (tmp_path / "src/changed.py").write_text("c")
    (tmp_path / "new.txt").write_text("n")
    (tmp_path / "made.ign").write_text("i")
    return tmp_path


def disk(project: Path, command: str, *, since: float | None = None) -> Disk:
    toolbox = Toolbox(workspace_tools(project), Workspace(project))
    return describe(ToolCall("1", "bash", {"command": command}), toolbox, since=since).disk


def test_git_is_asked_which_files_a_command_would_lose(project: Path) -> None:
    assert disk(project, "rm new.txt saved.py made.ign").unsaved == (f"{project}/new.txt",)
    assert disk(project, "rm -rf src").unsaved == (f"{project}/src/changed.py",)
    assert disk(project, "rm *.txt").unsaved == (f"{project}/new.txt",)
    assert disk(project, "find . -name '*.py' -delete").unsaved == (f"{project}/src/changed.py", f"{project}/new.txt")
    assert disk(project, "cat new.txt").unsaved == ()


def test_files_that_changed_since_the_session_began_are_its_own_work(project: Path) -> None:
    os.utime(project / "new.txt", (LONG_AGO, LONG_AGO))

    assert disk(project, "rm new.txt", since=LONG_AGO + 1).unsaved == (f"{project}/new.txt",)
    assert disk(project, "rm new.txt", since=LONG_AGO - 1).unsaved == ()


def test_without_a_repository_nothing_is_known_to_be_lost(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")

    assert disk(tmp_path, "rm a").unsaved == ()


@pytest.mark.parametrize("end", ["kill -9 $$", "exit 128", "exit 3"])
def test_files_on_which_git_cannot_report_count_as_unsaved(
    project: Path, end: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = tmp_path_factory.mktemp("programs") / "git"
    git.write_text(f'#!/bin/sh\ncase "$*" in *status*) {end};; esac\nexec {shutil.which("git")} "$@"\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")

    assert disk(project, "rm saved.py").unsaved == (f"{project}/saved.py",)


def test_a_broken_index_saves_nothing(project: Path) -> None:
    (project / ".git/index").write_text("broken")

    assert disk(project, "rm saved.py").unsaved == (f"{project}/saved.py",)


@pytest.mark.parametrize("name", ["x", "a=b", "with space.and.dots"])
def test_git_starts_no_filter_that_the_repository_names(project: Path, name: str) -> None:
    """A filter reads each changed file; `required` would make git fail without it, and so hide what is lost."""
    (project / "filter.sh").write_text("#!/bin/sh\ntouch ran\ncat\n")
    (project / "filter.sh").chmod(0o755)
    subprocess.run(["git", "config", f"filter.{name}.clean", "./filter.sh"], cwd=project, check=True)
    subprocess.run(["git", "config", f"filter.{name}.process", "./filter.sh"], cwd=project, check=True)
    subprocess.run(["git", "config", f"filter.{name}.required", "true"], cwd=project, check=True)
    (project / ".gitattributes").write_text(f'"*" filter={name}\n' if " " not in name else "* filter=x\n")

    assert disk(project, "rm src/changed.py").unsaved == (f"{project}/src/changed.py",)
    assert not (project / "ran").exists()


def test_git_starts_no_program_that_the_repository_or_a_submodule_names(project: Path) -> None:
    inner, identity = project / "inner", ["-c", "user.name=x", "-c", "user.email=x@y"]
    (project / "hook.sh").write_text("#!/bin/sh\ntouch ran\n")
    (project / "hook.sh").chmod(0o755)
    subprocess.run(["git", "init", "-q", inner], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=inner, check=True)
    subprocess.run(["git", "add", "inner"], cwd=project, check=True, capture_output=True)
    for repository in (project, inner):
        subprocess.run(["git", "config", "core.fsmonitor", f"{project}/hook.sh"], cwd=repository, check=True)

    disk(project, "rm -rf inner new.txt")

    assert not list(project.rglob("ran"))


def test_folders_other_names_and_patterns_are_looked_up(project: Path) -> None:
    os.link(project / "saved.py", project / "other.py")
    (project / "link.py").symlink_to("/etc/hostname")
    subprocess.run(["git", "init", "-q", "--bare", "store"], cwd=project, check=True)

    assert f"{project}/src" in disk(project, "cd src; ls").folders
    assert disk(project, "echo x >> saved.py").linked == (f"{project}/saved.py",)
    assert disk(project, "cat l*").matches == {f"{project}/l*": f"{project}/link.py"}
    assert disk(project, "cd store && git log").repositories == (f"{project}/store",)


def test_packages_are_declared_in_the_files_of_a_project(project: Path) -> None:
    (project / "requirements-dev.txt").write_text("# tools\nPy_Test>=8\n-r other.txt\n")
    (project / "pyproject.toml").write_text(
        '[project]\ndependencies = ["attrs>=23"]\n[dependency-groups]\ndev = ["ruff"]\n'
        '[tool.poetry.dependencies]\npython = "^3.11"\n'
    )

    assert set(disk(project, "pip install y").declared) == {"x", "py-test", "attrs", "ruff", "python"}


def test_an_unreadable_project_file_declares_no_packages(project: Path) -> None:
    (project / "package.json").write_text("[")
    (project / "pyproject.toml").write_text("=")

    assert disk(project, "npm install y").declared == ()


@rows("path", ["new.txt", "src/changed.py"])
def test_a_file_tool_is_asked_about_like_a_command(project: Path, path: str) -> None:
    toolbox = Toolbox(workspace_tools(project), Workspace(project))

    action = describe(ToolCall("1", "write_file", {"path": path, "content": "x"}), toolbox)

    assert judge(action).level is Level.ask
