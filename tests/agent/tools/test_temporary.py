"""Nothing is left in the folder of temporary files, also by what was killed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.tools.temporary import make_folder

HOLDING = """
import sys
from agent.lab.settings.world import make_world
from agent.tools.output import Retention
from agent.tools.sandbox.sandbox import Sandbox
from agent.tools.temporary import make_folder

sandbox = Sandbox((".",), "none")
output = Retention(10, keep="tail", spill=True).collector()
output.add(b"x" * 100)
output.text()
with make_world({"a": "b"}), make_folder("demo"):
    print("made", flush=True)
    sys.stdin.read()
"""
KINDS = ["demo", "outputs", "scratch", "world"]


def kinds_in(folder: Path) -> list[str]:
    return sorted(path.name.split("-")[1] for path in folder.iterdir())


@pytest.mark.slow
def test_folders_of_killed_processes_are_removed_by_the_next_one_and_those_of_living_ones_are_not(
    tmp_path: Path, popen: Callable[..., Any]
) -> None:
    def hold() -> Any:
        env, pipe = {**os.environ, "TMPDIR": str(tmp_path)}, subprocess.PIPE
        held = popen([sys.executable, "-c", HOLDING], stdin=pipe, stdout=pipe, env=env)
        assert held.stdout.readline() == b"made\n"
        return held

    killed, living = hold(), hold()
    killed.kill()
    killed.wait()
    assert kinds_in(tmp_path) == sorted(2 * KINDS)

    hold().communicate()

    assert kinds_in(tmp_path) == KINDS
    living.communicate()
    assert kinds_in(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_removed_and_what_a_link_in_it_leads_to_is_not(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(0o500)
    with make_folder("scratch", str(tmp_path)) as folder:
        inside = Path(folder, "a", "b")
        inside.mkdir(parents=True)
        (inside / "link").symlink_to(outside)
        inside.chmod(0o500)
        inside.parent.chmod(0o500)

    assert list(tmp_path.iterdir()) == [outside]
    assert outside.stat().st_mode & 0o777 == 0o500
