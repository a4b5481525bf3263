"""A test that skips for a missing program is a failure under CI, where everything has to be there."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS_THAT_SKIP = """
import pytest

def test_of_a_program_that_is_missing(needs):
    needs("no-such-program")

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

pytest.skip("needs no-such-program", allow_module_level=True)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """An empty suite that stands below our conftest."""
    pytester.makeconftest((Path(__file__).parent.parent / "conftest.py").read_text())
    return pytester


@pytest.mark.slow
def test_a_missing_program_skips_the_test_on_a_developers_machine(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    suite.makepyfile(TESTS_THAT_SKIP)

    result = suite.runpytest_subprocess()

    result.assert_outcomes(skipped=3, xfailed=1)


@pytest.mark.slow
def test_a_missing_program_fails_the_test_under_ci(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    suite.makepyfile(TESTS_THAT_SKIP)

    result = suite.runpytest_subprocess()

    outcomes = result.parseoutcomes()
    assert outcomes.pop("skipped") == 1
    assert outcomes.pop("xfailed") == 1
    assert sum(outcomes.values()) == 2, outcomes
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs no-such-program, which is not installed; with CI=true that is a failure*"])


@pytest.mark.slow
def test_a_module_that_skips_for_a_missing_program_fails_under_ci(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    suite.makepyfile(MODULE_THAT_SKIPS)

    result = suite.runpytest_subprocess()

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*needs no-such-program; with CI=true that is a failure*"])


def test_a_program_that_is_there_is_named_by_its_path(needs: Callable[[str], Path]) -> None:
    assert needs("git").is_file()


def test_a_program_of_our_own_tools_is_found(needs: Callable[[str], Path]) -> None:
    """The model server that .ci/run installs, for the tests over real HTTP."""
    listed = subprocess.run([needs("llmock"), "--help"], capture_output=True, text=True, check=True)

    assert "--fixtures" in listed.stdout
