"""Effects: what each start becomes, alone in a runner; and what they look up on disk before a call is judged."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent.effects.approval import approval_effect
from agent.effects.execution import coalesced, describe, join_texts
from agent.effects.loop import seconds_before
from agent.presets.policy_files import load_policy
from agent.tools.collections import workspace_tools
from agent.tools.definition import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAnswered, ApprovalAsked, BackoffStarted
from bp.runner import Broken
from constitution import Disk, Level, Verdict, judge
from tests.tables import rows

pytestmark = pytest.mark.anyio

CALL = ToolCall("a", "bash", {"command": "env"})
ASKED = ApprovalAsked(CALL, "why")


# approval


@rows("how", ["failed", "cancelled", "abandoned"])
async def test_an_interrupted_question_counts_as_no(how: Any) -> None:
    error = ValueError("no terminal") if how == "failed" else None

    answered = approval_effect(None).broken(ASKED, Broken(how, error))

    assert isinstance(answered, ApprovalAnswered)
    assert not answered.yes
    assert answered.text == ("asking failed: no terminal" if error else "the question was withdrawn")


# backoff


@rows(("attempt", "longest"), [(1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (50, 8.0)])
async def test_backoff_doubles_up_to_eight_seconds_with_jitter(attempt: int, longest: float) -> None:
    waits = [seconds_before(BackoffStarted(attempt)) for _ in range(50)]

    assert 0.75 * longest <= min(waits) < max(waits) <= longest


@rows(("asked", "seconds"), [(0.0, 0.0), (7.5, 7.5), (500.0, 120.0), (-1.0, 0.0)])
async def test_retry_after_is_obeyed_up_to_two_minutes(asked: float, seconds: float) -> None:
    assert seconds_before(BackoffStarted(1, asked)) == seconds


# description


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    return Toolbox(workspace_tools(tmp_path), Workspace(tmp_path))


async def test_paths_are_described_as_given_and_with_links_followed(toolbox: Toolbox, tmp_path: Path) -> None:
    action = describe(ToolCall("a", "write_file", {"path": "link/a.txt", "content": ""}), toolbox)

    [used] = action.paths
    assert (used.given, used.resolved, used.access) == ("link/a.txt", str(tmp_path / "real/a.txt"), "write")


async def test_commands_are_described_with_their_paths_and_programs(toolbox: Toolbox, tmp_path: Path) -> None:
    action = describe(ToolCall("a", "bash", {"command": "cat link/a.txt; nosuchprogram x"}), toolbox)

    assert action.command == "cat link/a.txt; nosuchprogram x"
    assert action.resolved["link/a.txt"] == str(tmp_path / "real/a.txt")
    assert action.executables["cat"].endswith("cat") or action.executables["cat"]
    assert action.executables["nosuchprogram"] == ""


@rows("command", ["cat '\0'", "cat " + "x" * 5000, "x" * 5000, "'\0'", "", "cat \ud800", "((("])
async def test_a_command_that_names_nothing_possible_is_described_all_the_same(toolbox: Toolbox, command: str) -> None:
    assert describe(ToolCall("a", "bash", {"command": command}), toolbox).command == command


@rows("command", ["comm -13 <(sort a) <(sort b)", "cat /proc/self/status", "sort /dev/fd/0"])
async def test_files_of_the_process_that_names_them_are_not_looked_up_in_ours(toolbox: Toolbox, command: str) -> None:
    action = describe(ToolCall("a", "bash", {"command": command}), toolbox)

    assert judge(action, load_policy("default")) == Verdict.allow()


# streaming


async def test_pieces_are_joined_and_none_is_lost() -> None:
    seen: list[str] = []

    async with coalesced(seen.append, join_texts) as show:
        for number in range(1000):
            show(str(number))
            if number % 100 == 0:
                await anyio.lowlevel.checkpoint()

    assert "".join(seen) == "".join(map(str, range(1000)))
    assert len(seen) < 20


def test_the_latest_part_of_a_flood_is_shown() -> None:
    (shown,) = join_texts(["first", "x" * 300_000, "last"])

    assert shown.startswith("[37865 characters left out]\nxxx")
    assert shown.endswith("xlast")


async def test_an_error_passes_as_itself_after_the_last_piece() -> None:
    seen: list[str] = []

    async def fail() -> None:
        async with coalesced(seen.append, join_texts) as show:
            show("last")
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await fail()
    assert seen == ["last"]


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
