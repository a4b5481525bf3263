"""Effects: what each start becomes, alone in a runner, whatever the world does."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import workspace_tools
from agent.effects.approval import approval_effect
from agent.effects.execution import coalesced, describe, join_texts
from agent.effects.loop import seconds_before
from agent.presets.configuration import load_policy
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAnswered, ApprovalAsked, BackoffStarted
from bp.runner import Broken
from constitution import Verdict, judge
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
