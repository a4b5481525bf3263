"""What every test may rely on: both async backends, the same random examples, no silent skip under CI."""

import gc
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from bp.verification import agreement

ROOT = Path(__file__).parent.parent
INSTALL = re.compile(r"\binstall (?:the package |.* )?([\w@][^\s']*)$")
"""The package at the end of the reason of a skip."""

MANY = 1000  # tests

# The same on every machine: what is set for interpreters or terminals here would be passed on to each process.
for name in [name for name in os.environ if name.startswith("PYTHON") or name in ("COLUMNS", "LINES")]:
    del os.environ[name]
PROGRAMS = Path(__file__).with_name("programs.txt")
OUR_PROGRAMS = ROOT / ".tools" / "node_modules" / ".bin"

# The same examples in every run, and no judgement of a busy machine; `--hypothesis-profile default` explores.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

os.environ.setdefault("MPLCONFIGDIR", str(ROOT / ".pytest_cache" / "matplotlib"))  # not the home of the user who tests


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Async tests, marked with `pytest.mark.anyio`, run on both backends."""
    return str(request.param)


@pytest.fixture(scope="session")
def needs() -> Callable[[str], Path]:
    """`needs("git")` is the path of that program; where it is missing the test skips, and with CI=true it fails."""
    return _find_program


def _find_program(program: str) -> Path:
    found = shutil.which(program) or shutil.which(program, path=OUR_PROGRAMS)
    if found is None:
        pytest.skip(needed(program))
    return Path(found)


def needed(program: str) -> str:
    """Return the reason of a skip for a missing program: its name, and how to install it."""
    rows = (line.split(maxsplit=1) for line in PROGRAMS.read_text(encoding="utf-8").splitlines())
    return f"needs {program}: {dict(rows).get(program, 'install it')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_where_a_program_is_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_where_a_program_is_missing(report)
    return report


def _fail_where_a_program_is_missing(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") != "true" or report.outcome != "skipped":
        return
    reason = _reason(report.longrepr)
    if reason.startswith("needs "):
        report.outcome = "failed"
        report.longrepr = f"{reason}; with CI=true that is a failure: .ci/run installs what the tests start"


def _reason(longrepr: Any) -> str:
    text = longrepr[2] if isinstance(longrepr, tuple) else ""
    return str(text).removeprefix("Skipped: ")


def _say_what_to_install(reporter: pytest.TerminalReporter) -> None:
    reasons = [_reason(report.longrepr) for report in reporter.stats.get("skipped", ())]
    packages = [package[1] for reason in reasons if (package := INSTALL.search(reason))]
    if packages:
        reporter.write_line(f"install {', '.join(sorted({*packages}))} to run {len(packages)} more")


@pytest.fixture
def popen() -> Iterator[Callable[..., "subprocess.Popen[Any]"]]:
    """`subprocess.Popen`, whose processes are ended and whose pipes are closed with the test, however that ends."""
    with ExitStack() as stack:

        def start(*arguments: Any, **options: Any) -> "subprocess.Popen[Any]":
            process = stack.enter_context(subprocess.Popen(*arguments, **options))
            stack.callback(process.kill)
            return process

        yield start


@pytest.fixture(scope="session", autouse=True)
def agents_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what agents keep of their own out of the home of the user who tests, and that user's repositories out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BPAGENT_HOME", str(tmp_path_factory.mktemp("own")))
        patch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path_factory.getbasetemp()))
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than there are processors for slow tests: some wait for clocks, and leave theirs to others."""
    is_quick = "not slow" in config.option.markexpr
    return (os.cpu_count() or 1) + (0 if is_quick else 1)


TOGETHER = ("house/test_wheel.py", "house/test_walls.py", "outside/test_what_the_model_is_told.py")
"""Modules whose tests share what they set up, in one process. (Groups of pytest-xdist 3.8 fail with pytest 9.2.)"""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread the tests one by one, and those of `TOGETHER` by module, with `--dist loadscope`."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if module.endswith(TOGETHER) else nodeid

    return Scheduling(config, log) if config.option.dist == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage while tests are collected: all that is made then stays."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave thousands of collected tests out of every later garbage collection."""
    gc.enable()
    if len(session.items) > MANY:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Let plugins count who refers to what again; the last line says how to run what was skipped."""
    gc.unfreeze()
    yield
    if reporter := session.config.pluginmanager.get_plugin("terminalreporter"):
        _say_what_to_install(reporter)


@pytest.fixture
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verifications rest on a few runs in this process, whatever part of the moves these make."""
    for name in ("forked", "fresh"):
        monkeypatch.setattr(agreement, name, lambda *_: None)
    monkeypatch.setattr(agreement, "BEFORE", 0.05)
    monkeypatch.setattr(agreement, "AFTER", 0.05)
    monkeypatch.setattr(agreement, "AT_LEAST", 0.0)
