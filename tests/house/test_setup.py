"""`make` says what there is and which Python it needs; under CI a missing program fails its test."""

import os
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis.errors import HypothesisWarning

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
    targets = targets_of((ROOT / "Makefile").read_text()) - {"quick", "suite"}  # parts of `check` and of `test`
    assert {line.split()[1] for line in listed.stdout.splitlines()} == targets


@pytest.mark.parametrize("python", ["", "no-such-python", "false"])
def test_a_machine_without_a_recent_python_is_told_so(
    make: Callable[..., subprocess.CompletedProcess[str]], python: str
) -> None:
    refused = make(f"PYTHON={python}", "demo")

    assert refused.returncode == 2
    assert refused.stderr.startswith(f"bpagent needs Python 3.11 or later, found none (PYTHON='{python}')")
    assert refused.stdout == ""


def test_a_setup_whose_downloads_fail_says_so_in_a_sentence(
    make: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\ncase "$*" in *venv*) mkdir -p .venv/bin; ln -s "$(command -v false)" .venv/bin/python; esac\n'
    )
    python.chmod(0o755)

    refused = make(f"PYTHON={python}", "demo")

    assert refused.returncode == 2
    assert refused.stderr.splitlines()[0] == (
        "This setup downloads packages, and pip could not: is there a network? See build/pip.log."
    )


def test_a_warning_of_the_tool_that_tries_a_law_is_no_failure_of_the_law() -> None:
    """On Python 3.14 it warns of generators of random numbers that nobody here made, each time in another test."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.warn("it could be garbage collected", HypothesisWarning, stacklevel=1)

    assert len(warned) == 1


# A test that skips for a missing program is a failure under CI, where everything has to be there.


pytest_plugins = ["pytester"]
ALONE = ("-p", "no:xdist", "-p", "no:cov", "-p", "no:hypothesispytest")

TESTS_THAT_SKIP = """
import pytest

@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch):
    monkeypatch.setenv("PATH", "")

def test_of_a_program_that_is_missing(needs):
    needs("bwrap")

@pytest.mark.skipif(True, reason="needs no-such-machine")
def test_of_a_missing_thing_by_mark():
    pass

def test_that_skips_for_another_reason():
    pytest.skip("only on another system")

@pytest.mark.xfail(reason="needs a fix")
def test_that_is_expected_to_fail():
    assert False
"""

MODULE_THAT_SKIPS = """
import pytest

pytest.skip("needs curl: install curl", allow_module_level=True)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty suite that stands below our conftest."""
    for name in ("conftest.py", "programs.txt"):
        shutil.copy(ROOT / "tests" / name, pytester.path)
    return pytester


@pytest.mark.slow
def test_a_missing_program_skips_the_test_and_fails_it_under_ci(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_some=TESTS_THAT_SKIP, test_module=MODULE_THAT_SKIPS)
    monkeypatch.delenv("CI", raising=False)
    skipping = suite.runpytest_inprocess(*ALONE)
    skipping.assert_outcomes(skipped=4, xfailed=1)
    skipping.stdout.fnmatch_lines(["*4 skipped*", "install bubblewrap, curl to run 2 more"])
    monkeypatch.setenv("CI", "true")

    result = suite.runpytest_inprocess(*ALONE, "--continue-on-collection-errors")

    result.assert_outcomes(skipped=1, xfailed=1, failed=1, errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs bwrap: install bubblewrap; with CI=true that is a failure*"])


def test_a_program_that_is_there_is_named_by_its_path(needs: Callable[[str], Path]) -> None:
    assert needs("git").is_file()


@pytest.mark.slow
def test_a_program_of_our_own_tools_is_found(needs: Callable[[str], Path]) -> None:
    """The model server that .ci/run installs, for the tests over real HTTP."""
    listed = subprocess.run([needs("llmock"), "--help"], capture_output=True, text=True, check=True)

    assert "--fixtures" in listed.stdout
