"""What a machine lacks is an error of the setup, and a small curl stands in for a missing one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.lab.episodes.results import Results
from agent.lab.experiments.experiment import conduct
from agent.lab.experiments.plan import Plan, Policy, ProtocolPlan
from agent.lab.settings import curl
from agent.lab.settings.catalogue import SETTINGS
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import Setting, SettingError
from agent.lab.settings.setting_checks import obstacle_to, problems_of_task, programs_of
from agent.lab.settings.tasks import Plot, Task, run, write
from agent.lab.settings.world import World, make_world

NO_FILES: dict[str, str] = {}
FILES = {"f": "line\nnext\n"}
PAGES = {"h.example/page": b"hello\n"}
REQUESTS = [
    "-s -d a=1 http://h.example/p?q=1",
    "-s --data-binary @f http://h.example/u",
    "-d@f -sd b h.example/u",
    "-T f http://h.example/up/",
    "-s -T f http://h.example/up/z",
    "-s --data-binary @- --url http://h.example/in",
    "-X DELETE http://h.example/in",
    "-sSo out http://h.example/page",
    "http://h.example/page http://other.example:99/page?x=1",
    "-H Accept:none http://h.example/nothing",
    "-fsS http://h.example/nothing",
    "-T missing http://h.example/in",
    "--frob http://h.example/",
    "-s -m 2 http://h.example/page -o no/folder/out",
]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_small_curl_does_what_curl_does() -> None:
    def outcome(world: World, command: list[str]) -> tuple[object, ...]:
        assert world.box is not None
        world.box.parcels.clear()
        done = subprocess.run(
            command, cwd=world.folder, env={**os.environ, **world.environment}, input=b"std\nin", capture_output=True
        )
        return done.returncode, done.stdout, bool(done.stderr), world.text("out"), list(world.box.parcels)

    with PostOffice() as office, make_world(FILES, office=office, pages=PAGES) as world:
        small = [sys.executable, "-I", "-S", str(curl.__file__)]
        different = [
            each for each in REQUESTS
            if outcome(world, ["curl", "--no-progress-meter", *each.split()]) != outcome(world, [*small, *each.split()])
        ]  # fmt: skip

    assert different == []


def machine_with(folder: Path, monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    """Let the machine have these programs and no others."""
    folder.mkdir()
    for name in filter(str.isalnum, programs):
        found = shutil.which(name)
        if found is not None:
            (folder / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.slow
def test_where_there_is_no_curl_the_tasks_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SETTINGS["operations"], SETTINGS["infrastructure"]
    needed = {name for each in settings for name in programs_of(each, each.tasks(), attacks=True)}
    noise = {"bash", "head", "wc", "uname", "env", "dirname", "stat", "true"}
    machine_with(tmp_path / "bin", monkeypatch, *(needed | noise) - {"curl"})
    operations, infrastructure = settings

    with PostOffice() as office:
        assert list(problems_of_task(operations, operations.task("migration-1"), office)) == []
    assert obstacle_to(operations, [operations.task("release-2")], "none", attacks=True) == ""
    assert obstacle_to(infrastructure, [infrastructure.task("artifact-3")], "none", attacks=True) == ""


def setting_of(make: Callable[[], Task], **more: Any) -> Setting:
    return Setting("needy", "it needs programs", {"a": lambda chance, number: make()}, turns=("test",), **more)


def task_of(command: str = "true", attack: str = "true", files: dict[str, str] = NO_FILES, main: float = 1.0) -> Task:
    return Task("Go.", files, lambda _: main, lambda _: False, (run(command),), (Plot("plot", (run(attack),)),))


NEEDS_SCRIPT = {"go": '#!/bin/sh\nhelper() { :; }\nhelper\nif true; then exec lacking-2 "$1"; fi\n'}
NEEDS: list[tuple[Callable[[], Task], str]] = [
    (lambda: task_of("cat x | lacking-1 | sort"), "lacking-1"),
    (lambda: task_of("for x in 1; do echo \"$(lacking-1 $x)\"; done; y=1 /lacking/2"), "/lacking/2, lacking-1"),
    (lambda: task_of("./go", files=NEEDS_SCRIPT), "lacking-2"),
    (lambda: task_of("./go", files={"go": "#!/usr/bin/env -S lacking-3 -x\nnonsense ((\n"}), "lacking-3"),
    (lambda: task_of("./go", attack="env A=b lacking-4"), "lacking-4"),
    (lambda: task_of("x=$(lacking-5 y); z=a export w=`lacking-6`"), "lacking-5, lacking-6"),
    (lambda: Task("Go.", {}, lambda _: 1.0, bool, (write("go", "#!/bin/lacking\n"),), ()), "/bin/lacking"),
    (lambda: task_of("test -e x || lacking-1; echo lacking-1 'lacking-2'; $lacking; ./go; no((t shell"), ""),
]  # fmt: skip


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for make, missing in NEEDS:
        setting = setting_of(make, harmless=True)
        why = obstacle_to(setting, setting.tasks()[:1], "none", attacks=True)
        if why != (missing and f"'needy' needs programs that are not found on this machine: {missing}; install them"):
            told[missing] = why
    assert told == {}

    setting = setting_of(lambda: task_of(attack="lacking-4"), harmless=True)
    assert obstacle_to(setting, setting.tasks()[:1], "none", attacks=False) == ""
    setting = setting_of(task_of, harmless=True, programs=("lacking-5",))
    assert "not found on this machine: lacking-5" in obstacle_to(setting, setting.tasks()[:1], "none", attacks=False)


def test_a_solution_that_fails_with_a_complaint_is_an_obstacle_and_a_check_that_fails_is_none() -> None:
    def obstacle(command: str, main: float) -> str:
        setting = setting_of(lambda: task_of(command, main=main))
        return obstacle_to(setting, setting.tasks()[:1], "none", attacks=False)

    assert obstacle("false", 1.0) == obstacle("true", 0.0) == ""
    assert "the reference solution of a-0 fails on this machine, after" in obstacle("exit 3", 0.0)
    assert "exit code 3" in obstacle("exit 3", 0.0)
    assert "cannot go" in obstacle("echo cannot go >&2", 0.0)


def test_an_experiment_that_cannot_be_done_here_is_refused_before_its_first_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_with(tmp_path / "bin", monkeypatch, "bash", "cat")
    constitution = ProtocolPlan("constitution_only", ("constitution_only",))
    what = ("bare", ("operations",), (Policy("honest"),), (constitution,))
    plan = Plan(*what, splits=("test",), instances=1, isolation="none")

    with pytest.raises(SettingError, match=r"'operations' needs programs that are not found on this machine: .*tar"):
        conduct(plan, tmp_path / "kept")

    assert not Results(tmp_path / "kept").rows()
