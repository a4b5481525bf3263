"""Run tests in forks of one process that has loaded pytest and all libraries, but nothing of the project.

One request a line comes on standard input, as JSON; one answer a line goes to standard output.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import loader

MEMORY = 4 << 30  # bytes, for the mutants that collect without end
SET_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
OPTIONS = ("-q", "-p", "no:cacheprovider", "--basetemp=/tmp/tests")
prctl = ctypes.CDLL(None).prctl
COLLECTING = ""
"""In the place of a test, before the first."""


class OneByOne:
    """Run the tests in an order; say which one runs, how long it took, and which one failed."""

    def __init__(self, wanted: list[str] | None, recording: Any) -> None:
        self.wanted, self.recording = wanted, recording
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        if self.wanted is not None:
            known = {item.nodeid: item for item in items}
            if missing := [name for name in self.wanted if name not in known]:
                self.failed.append(missing[0])
                session.shouldstop = "a test is gone"
            items[:] = [known[name] for name in self.wanted if name in known]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        loader.CURRENT.write_text(nodeid, encoding="utf-8")
        if self.recording is not None:
            self.recording.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        gc.freeze()  # plugins collect garbage now: a fifth of the time of most mutants

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run pytest with these arguments and tests, in this process."""
    loader.change()
    recording = loader.record(COLLECTING)
    plugin = OneByOne(request["wanted"], recording)
    code = pytest.main([*OPTIONS, *request["arguments"]], plugins=[plugin])
    if recording is not None:
        recording.stop()
        recording.save()
    if code not in (0, 1) and not plugin.failed:
        plugin.failed.append(f"pytest ended with {int(code)}")
    return {"failed": plugin.failed, "seconds": plugin.seconds}


def in_a_fork(request: dict[str, Any]) -> dict[str, Any]:
    """Run in a fork; a test that takes longer than its limit is a failure of its own, and what is left is killed."""
    answer = loader.HERE / "answer"
    answer.unlink(missing_ok=True)
    loader.CURRENT.write_text(COLLECTING, encoding="utf-8")
    child = os.fork()
    if child == 0:
        _as_child(lambda: answer.write_text(json.dumps(run(request)), encoding="utf-8"))
    hung = _waited(child, request["limits"], request["limit"])
    while orphans := list(_children()):
        for orphan in orphans:
            _kill(orphan)
    if hung is not None:
        return {"failed": [hung], "hung": True}
    if not answer.exists():  # it ended in the middle of a test
        return {"failed": [loader.CURRENT.read_text(encoding="utf-8")]}
    return dict(json.loads(answer.read_text(encoding="utf-8")))


def _as_child(work: Callable[[], object]) -> None:
    os.setsid()
    prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(1, 2)  # what pytest says of a module that cannot be imported is no news
    try:
        work()
    finally:
        os._exit(0)


def _waited(child: int, limits: dict[str, float], usual: float) -> str | None:
    """Wait for the end of the child; return the test that took too long."""
    test, since = COLLECTING, time.monotonic()
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        time.sleep(0.02)
        if (now := loader.CURRENT.read_text(encoding="utf-8")) != test:
            test, since = now, time.monotonic()
        if time.monotonic() - since > limits.get(test, usual):
            _kill(child)
            return test
    return None


def _children() -> Iterator[int]:
    """The processes of the fork that are left, those too that began a session of their own."""
    yield from map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def _kill(process: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(process, 0)


def load_libraries(arguments: list[str]) -> None:
    """Collect the tests, and forget all modules of the project again: libraries stay."""
    pytest.main([*OPTIONS, "--collect-only", *arguments])
    root = f"{Path.cwd()}{os.sep}"
    ours = [name for name, module in sys.modules.items() if any(place.startswith(root) for place in _places(module))]
    for name in ours:
        if name != "__main__":
            del sys.modules[name]


def _places(module: Any) -> list[str]:
    return [str(place) for place in (getattr(module, "__file__", None), *getattr(module, "__path__", ()))]


def main() -> None:
    """Answer requests until there are no more."""
    prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        answers.write(f"{json.dumps(answered(json.loads(line)))}\n")
        answers.flush()


def answered(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is requested."""
    if request["what"] == "load":
        load_libraries(request["arguments"])
        return {}
    return in_a_fork(request)


if __name__ == "__main__":
    main()
