"""Effects: what each start becomes, alone in a runner; and what they look up on disk before a call is judged."""

import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent.effects.approval import approval_effect, changes_between
from agent.effects.execution import coalesced, describe, join_texts
from agent.effects.loop import seconds_before
from agent.presets.configuration import load_policy
from agent.tools.collections import workspace_tools
from agent.tools.definition import Toolbox
from agent.tools.output import Spill, outputs_folder
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAnswered, ApprovalAsked, BackoffStarted
from bp.runner import Broken
from constitution import Action, Level, Verdict, judge
from tests.tables import rows

pytestmark = pytest.mark.anyio


@rows(
    ("attempt", "asked", "shortest", "longest"),
    [
        *((attempt, None, 0.75 * longest, longest) for attempt, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (50, 8.0))),
        *((1, asked, seconds, seconds) for asked, seconds in ((0.0, 0.0), (7.5, 7.5), (500.0, 120.0), (-1.0, 0.0))),
    ],
)
async def test_backoff_doubles_up_to_eight_seconds_and_retry_after_is_obeyed_up_to_two_minutes(
    attempt: int, asked: float | None, shortest: float, longest: float
) -> None:
    waits = [seconds_before(BackoffStarted(attempt, asked)) for _ in range(50)]

    assert shortest <= min(waits) <= max(waits) <= longest
    assert len(set(waits)) > 1 or asked is not None


@rows("how", ["failed", "cancelled", "abandoned"])
async def test_an_interrupted_question_counts_as_no(how: Any) -> None:
    asked = ApprovalAsked(ToolCall("a", "bash", {}), "May I?")
    error = ValueError("no terminal") if how == "failed" else None

    answered = approval_effect(None).broken(asked, Broken(how, error))

    assert isinstance(answered, ApprovalAnswered)
    assert not answered.yes
    assert answered.text == ("asking failed: no terminal" if error else "the question was withdrawn")


FACTS = Action("bash", "write", "/ws", cwd="/ws", command="ls", sandbox="bubblewrap")


@rows(
    ("now", "told"),
    [
        ({"cwd": "/ws/sub"}, "it would start in /ws/sub, not in /ws"),
        ({"sandbox": ""}, "its sandbox is off, not bubblewrap"),
        ({"resolved": {"a": "/b"}}, "a leads to /b, not to nothing"),
        ({"executables": {"ls": "/tmp/ls"}}, "ls starts /tmp/ls, not nothing"),
        ({"contents": {"x.sh": "1"}}, "x.sh, which it would run, has other content"),
        ({"kept": ("/ws",)}, "/ws is kept by snapshots"),
    ],
)
async def test_each_fact_that_changed_since_a_yes_is_told(now: dict[str, Any], told: str) -> None:
    assert list(changes_between(FACTS, evolve(FACTS, **now))) == [told]


def described(root: Path, command: str) -> Action:
    return describe(ToolCall("1", "bash", {"command": command}), toolbox_of(root))


def toolbox_of(root: Path) -> Toolbox:
    toolbox = Toolbox(workspace_tools(root), Workspace(root))
    toolbox.kept = (str(root),)
    return toolbox


async def test_calls_are_described_with_links_followed_and_programs_found(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write = ToolCall("a", "write_file", {"path": "link/a.txt", "content": ""})

    [used] = describe(write, toolbox_of(tmp_path)).paths
    action = described(tmp_path, "cat link/a.txt; nosuchprogram x")

    assert (used.given, used.resolved, used.access) == ("link/a.txt", f"{tmp_path}/real/a.txt", "write")
    assert action.command == "cat link/a.txt; nosuchprogram x"
    assert action.resolved[f"{tmp_path}/link/a.txt"] == f"{tmp_path}/real/a.txt"
    assert (action.executables["cat"] != "", action.executables["nosuchprogram"]) == (True, "")


async def test_a_command_that_reads_a_long_output_says_in_which_folder_it_is(tmp_path: Path) -> None:
    spill = Spill(10)
    spill.close()

    assert described(tmp_path, f"sed -n 5p {spill.path}").outputs == outputs_folder()
    assert described(tmp_path, f"sed -n 5p {spill.path}/../../x").outputs == ""


@rows("command", ["cat '\0'", "cat " + "x" * 5000, "x" * 5000, "'\0'", "", "cat \ud800", "((("])
async def test_a_command_that_names_nothing_possible_is_described_all_the_same(tmp_path: Path, command: str) -> None:
    assert described(tmp_path, command).command == command


@rows("command", ["comm -13 <(sort a) <(sort b)", "cat /proc/self/status", "sort /dev/fd/0"])
async def test_files_of_the_process_that_names_them_are_not_looked_up_in_ours(tmp_path: Path, command: str) -> None:
    assert judge(described(tmp_path, command), load_policy("default")) == Verdict.allow()


async def test_pieces_are_joined_and_none_is_lost_nor_an_error() -> None:
    seen: list[str] = []

    async def fail() -> None:
        async with coalesced(seen.append, join_texts) as show:
            for number in range(1000):
                show(str(number))
                if number % 100 == 0:
                    await anyio.lowlevel.checkpoint()
            raise KeyError("mine")

    with pytest.raises(KeyError):  # as itself
        await fail()
    assert "".join(seen) == "".join(map(str, range(1000)))
    assert len(seen) < 20


def test_the_latest_part_of_a_flood_is_shown() -> None:
    (shown,) = join_texts(["first", "x" * 300_000, "last"])

    assert shown.startswith("[37865 characters left out]\nxxx")
    assert shown.endswith("xlast")


# The disk is looked at before a call is judged: where the history is that it would lose.

LONG_AGO = 1_000_000_000.0
GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@y")
FILES = {
    "saved.py": "a", "src/changed.py": "b", ".gitignore": "*.ign\n", }  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with saved files, a changed one, a new one and an ignored one."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["init", "-q", "--bare", "made.ign"]):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True)
    (tmp_path / "src/changed.py").write_text("c")
    (tmp_path / "new.txt").write_text("n")
    return tmp_path


def test_the_history_that_a_command_would_lose_is_found_as_version_control_finds_it(project: Path) -> None:
    subprocess.run([*GIT, "worktree", "add", "-q", "tree.ign"], cwd=project, check=True)
    commands = {
        ".git": "git reset --hard", "src/.git": "cd src; git clean -f", "tree.ign/.git": "git -C tree.ign stash drop",
    }  # fmt: skip

    assert [described(project, command).resolved.get(f"{project}/{word}") for word, command in commands.items()] == [
        f"{project}/.git", f"{project}/.git", f"{project}/.git/worktrees/tree.ign",
    ]  # fmt: skip
    assert f"{project}/.git" not in described(project, "git status").resolved


def test_only_before_a_call_that_may_change_files_the_workspace_is_kept(project: Path) -> None:
    reset = ToolCall("1", "bash", {"command": "git reset --hard"})
    facts = [describe(evolve(reset, category=category), toolbox_of(project)) for category in ("read", "write")]

    assert [each.kept for each in facts] == [(), (str(project),)]
    assert [judge(each).level for each in facts] == [Level.ask, Level.allow]
