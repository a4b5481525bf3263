"""`make` alone says what there is, and a machine without a recent Python is told so in one sentence."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.documents import targets_of

ROOT = Path(__file__).parent.parent.parent
TARGETS = targets_of((ROOT / "Makefile").read_text(encoding="utf-8"))
FILES = ("Makefile", "pyproject.toml", "constraints.txt")


@pytest.fixture
def make(needs: Callable[[str], Path], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs make in a folder that has nothing set up yet, apart from the make that runs these tests."""
    program = needs("make")
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run([program, *arguments], cwd=tmp_path, env=outside, capture_output=True, text=True)

    return run


def test_make_alone_lists_the_targets(make: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    listed = make()

    assert listed.returncode == 0, listed.stderr
    assert {line.split()[1] for line in listed.stdout.splitlines()} == targets_of((ROOT / "Makefile").read_text()) - {
        "quick"
    }


@pytest.mark.parametrize("python", ["", "no-such-python", "false"])
def test_a_machine_without_a_recent_python_is_told_so(
    make: Callable[..., subprocess.CompletedProcess[str]], python: str
) -> None:
    refused = make(f"PYTHON={python}", "demo")

    assert refused.returncode == 2
    assert refused.stderr.startswith(f"bpagent needs Python 3.11 or later, found none (PYTHON='{python}')")
    assert refused.stdout == ""
