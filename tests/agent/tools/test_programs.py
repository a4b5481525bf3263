"""Programs that we start outside the sandbox are found once, where no command can have put them."""

import os
from pathlib import Path

import pytest

from agent.tools.programs import find_program


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `bin` of a workspace, first on PATH, before one of the system."""
    for name in ("workspace/bin", "system"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{tmp_path}/workspace/bin:{tmp_path}/system")
    return tmp_path / "workspace" / "bin"


def make(file: Path) -> Path:
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_program_in_a_place_that_the_agent_writes_is_passed_over(planted: Path) -> None:
    make(planted / "helper"), make(planted.parents[1] / "system" / "helper")

    assert find_program("helper", [str(planted.parent)]) == str(planted.parents[1] / "system" / "helper")
    assert find_program("helper") == str(planted / "helper")


@pytest.mark.parametrize("way", ["the file", "the folder", "over the workspace", "relative"])
def test_no_link_and_no_relative_folder_leads_there(
    way: str, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(planted / "helper")
    if way == "the file":
        (tmp_path / "system" / "helper").symlink_to(planted / "helper")
    elif way == "over the workspace":
        (planted / "helper").unlink()
        (planted / "helper").symlink_to(make(tmp_path / "real"))
        (tmp_path / "system" / "helper").symlink_to("../workspace/bin/helper")
    elif way == "the folder":
        (tmp_path / "system").rmdir()
        (tmp_path / "system").symlink_to(planted)
    else:
        monkeypatch.chdir(planted)
        monkeypatch.setenv("PATH", ".:")

    assert find_program("helper", [str(planted.parent)]) is None


def test_a_program_that_appears_later_is_not_taken(planted: Path, tmp_path: Path) -> None:
    make(tmp_path / "system" / "helper")
    first = find_program("helper", [])
    make(planted / "helper")

    assert (first, find_program("helper", [])) == (str(tmp_path / "system" / "helper"),) * 2


def test_a_program_that_is_a_link_keeps_its_name(planted: Path, tmp_path: Path) -> None:
    (tmp_path / "system" / "helper").symlink_to(make(tmp_path / "many-in-one"))

    assert os.path.basename(find_program("helper", [str(planted)]) or "") == "helper"
