"""The settings that ship: large enough, right four ways, and no toys."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agent.effects.execution import describe
from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.settings.catalogue import SETTINGS, setting_named
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import SPLITS, Setting, SettingError
from agent.lab.settings.setting_checks import keyword_auc, problems_of_task
from agent.lab.settings.tasks import run
from agent.lab.settings.workers import ABLE
from agent.lab.settings.world import make_world, remove_abandoned
from agent.tools.definition import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from tests.bench.experiments import EMPTY, FILES, episodes_of

FEW = [(setting.name, family) for setting in SETTINGS.values() for family in setting.families]


@pytest.fixture(scope="module")
def office() -> Iterator[PostOffice]:
    with PostOffice() as office:
        yield office


def test_settings_are_large_in_six_families_of_one_split_each_and_tasks_are_the_same_by_their_names() -> None:
    for setting in SETTINGS.values():
        tasks = setting.tasks()
        assert len({task.family for task in tasks}) >= 6
        assert len({repr((sorted(task.files.items()), task.prompt)) for task in tasks}) == len(tasks) >= 20
        families = [family for split in SPLITS for family in setting.families_of(split)]
        assert sorted(families) == sorted(setting.families)
        assert all(len(setting.tasks(split)) >= 6 for split in SPLITS)
        one, again = tasks[7], setting.task(tasks[7].name)
        assert (again.name, again.files, again.solution) == (one.name, one.files, one.solution)
        with pytest.raises(KeyError):
            setting.task("nothing-0")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "family"), FEW)
def test_an_instance_of_each_family_passes_the_four_checks(name: str, family: str, office: PostOffice) -> None:
    """`make settings` does it for every instance, in a minute."""
    setting = SETTINGS[name]
    number = list(setting.families).index(family) % setting.instances

    assert list(problems_of_task(setting, setting.task(f"{family}-{number}"), office)) == []


def test_honest_work_looks_alarming_at_times_and_words_do_not_tell_attacks_from_it() -> None:
    """With an area of 0.9 or more the setting would be a toy. `docs/results/settings.md` has the figures."""
    for setting in SETTINGS.values():
        area = keyword_auc(setting)
        text = repr([task.solution + task.noise + task.alarming for task in setting.tasks()])

        assert area is not None
        assert 0.4 < area < 0.9
        assert all(word in text for word in ("curl", "chmod", "rm "))
    assert 0.05 <= ABLE.alarming <= 0.10


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(SettingError, match="did you mean 'operations'"):
        setting_named("operation")
    with pytest.raises(SettingError, match="cannot be imported"):
        setting_named("nowhere.py:SETTING")
    with pytest.raises(SettingError, match="is not a setting"):
        setting_named("agent.lab.settings.workers:LADDER")


@pytest.mark.skipif(find_spec("agentdojo") is not None, reason="AgentDojo is installed")
def test_a_setting_whose_extra_is_missing_names_it() -> None:
    with pytest.raises(SettingError, match=r"needs the extra 'agentdojo'.*pip install 'bpagent\[agentdojo\]'"):
        setting_named("agentdojo")
    with pytest.raises(SettingError, match="did you mean 'agentdojo'"):
        setting_named("agentdoja")


def test_a_setting_without_families_is_refused() -> None:
    with pytest.raises(ValueError, match="families"):
        Setting("empty", "nothing", {})


def test_an_episode_of_a_setting_in_memory_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    in_memory, with_files = (
        run_batch(Conditions(tmp_path / "results", isolation="none"), episodes_of(setting, 1))[0]
        for setting in (EMPTY, FILES)
    )

    assert (in_memory.status, in_memory.main) == ("ran", 1.0)
    assert "FileNotFoundError" in with_files.error


def test_a_git_checkout_around_a_world_does_not_affect_it(tmp_path: Path) -> None:
    """Facts and commands look for git upward, and `TMPDIR` may lie in a repository: its rows were others."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    before, delete = dict(os.environ), ToolCall("c1", "bash", {"command": "rm old.txt"})

    with make_world({"old.txt": "x"}, folder=tmp_path) as world, make_world({"old.txt": "x"}, folder=tmp_path) as other:
        toolboxes = [Toolbox(each.tools(), Workspace(each.folder)) for each in (world, other)]
        world.perform(run("git rev-parse --show-toplevel > found").calls[0])

        assert [describe(delete, toolbox).disk.unsaved for toolbox in toolboxes] == [(), ()]
        assert world.text("found") == ""
    assert dict(os.environ) == before


@pytest.mark.slow
def test_worlds_of_killed_processes_are_removed_and_those_of_living_ones_are_not(
    tmp_path: Path, popen: Callable[..., Any]
) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from agent.lab.settings.world import make_world\n"
        "with make_world({'a': 'b'}, folder=Path(sys.argv[1])) : print('made', flush=True); time.sleep(600)"
    )
    killed, living = (popen([sys.executable, "-c", holding, tmp_path], stdout=subprocess.PIPE) for _ in range(2))
    assert (killed.stdout.readline(), living.stdout.readline()) == (b"made\n", b"made\n")
    killed.kill()
    killed.wait()
    assert remove_abandoned(tmp_path) == 0  # they are not a minute old
    for world in tmp_path.iterdir():
        os.utime(world, (0, 0))

    assert remove_abandoned(tmp_path) == 1
    assert len(list(tmp_path.iterdir())) == 1
