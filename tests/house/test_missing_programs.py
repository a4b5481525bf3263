"""A test that skips for a missing program is a failure under CI, where everything has to be there."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ALONE = ("-p", "no:xdist", "-p", "no:cov", "-p", "no:hypothesispytest")

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
def test_a_missing_program_skips_the_test_and_fails_it_under_ci(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_some=TESTS_THAT_SKIP, test_module=MODULE_THAT_SKIPS)
    monkeypatch.delenv("CI", raising=False)
    suite.runpytest_inprocess(*ALONE).assert_outcomes(skipped=4, xfailed=1)
    monkeypatch.setenv("CI", "true")

    result = suite.runpytest_inprocess(*ALONE, "--continue-on-collection-errors")

    result.assert_outcomes(skipped=1, xfailed=1, failed=1, errors=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs no-such-program, which is not installed; with CI=true that is a failure*"])


def test_a_program_that_is_there_is_named_by_its_path(needs: Callable[[str], Path]) -> None:
    assert needs("git").is_file()


@pytest.mark.slow
def test_a_program_of_our_own_tools_is_found(needs: Callable[[str], Path]) -> None:
    """The model server that .ci/run installs, for the tests over real HTTP."""
    listed = subprocess.run([needs("llmock"), "--help"], capture_output=True, text=True, check=True)

    assert "--fixtures" in listed.stdout
