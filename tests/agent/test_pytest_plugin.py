"""The pytest plugin, in a pytest of its own: its fixtures work for those who ask for them, and only there."""

import re
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return pytester


def run_pytest(inner: pytest.Pytester, source: str) -> pytest.RunResult:
    inner.makeconftest('pytest_plugins = ["agent.pytest_plugin"]')
    inner.makepyfile(source)
    return inner.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider", "-q", timeout=100)


@pytest.mark.slow
def test_the_documented_example_runs_as_it_stands(inner: pytest.Pytester) -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    protocol, test, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)

    run_pytest(inner, protocol + test).assert_outcomes(passed=1)


@pytest.mark.slow
def test_without_its_b_thread_the_example_fails_and_shows_the_trace(inner: pytest.Pytester) -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    _, test, *_ = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)

    result = run_pytest(inner, test.replace("threads=[read_before_writing()]", "threads=[]"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: gate_rejected never happened",
            "E*tool_started call_3 write_file(path='b.txt', content='beta') (carry_out)",
            "E*run_ended 'completed' 'answered' 'Done.' (converse)",
        ]
    )


@pytest.mark.slow
def test_the_fixtures_fit_together(inner: pytest.Pytester) -> None:
    result = run_pytest(
        inner,
        """
        from agent import Agent, call
        from agent.testing import assert_never

        def test_model_and_tools(scripted_model, scratch_tools, scratch_workspace):
            model = scripted_model(call("bash", command="echo 1 > a.txt"), "Done.")
            run = Agent(model, scratch_tools).run_sync("Go")
            assert run.status == "completed"
            assert (scratch_workspace / "a.txt").read_text() == "1\\n"
            model.assert_complete()

        def test_agents_with_a_log_are_closed(make_agent, tmp_path):
            run = make_agent("Hello.", log=tmp_path / "run.jsonl").run_sync("Go")
            assert run.log.exists()
            assert_never(run, "bash")

        def test_tools_of_ones_own(make_agent):
            run = make_agent(call("bash"), "No.", tools=[]).run_sync("Go")
            assert "bash" in run.messages[2].text
        """,
    )

    result.assert_outcomes(passed=3)


def test_pytest_does_not_load_it_by_itself() -> None:
    """Else a project with an `agent.py` of its own could not start pytest once this is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert "pytest11" not in project.get("entry-points", {})
