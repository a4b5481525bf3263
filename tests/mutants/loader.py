"""Have every Python process of an environment import one module as changed, or record which lines it executes.

It is copied into the environment, which imports it at each start: so the command and the programs that tests start see
the change too. The text on the disk stays as it is. What is to be done stands in files of the environment.
"""

import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

HERE = Path(sys.prefix)
MUTANT, RECORDED, CURRENT = HERE / "mutant", HERE / "recorded", HERE / "current"
"""The changed module (its name and code), the folder whose lines are recorded, and the name of the test that runs."""


class ChangedModule:
    """Finds one module, with other code than its source."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual specification, with a loader that gives the changed code."""
        spec = PathFinder.find_spec(name, path, target) if name == self.name else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(spec.origin, self)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, path: str, changed: ChangedModule) -> None:
        super().__init__(changed.name, path)
        self.changed = changed

    def get_code(self, fullname: str) -> CodeType:
        return self.changed.code


def change() -> None:
    """Import the module that the environment has as changed, if it has one."""
    if MUTANT.exists():
        name, code = marshal.loads(MUTANT.read_bytes())
        sys.meta_path.insert(0, ChangedModule(name, marshal.loads(code)))


def record(test: str) -> Any:
    """Record the lines that `test` executes from now on, if the environment records; return the coverage."""
    if not RECORDED.exists():
        return None
    os.environ["COVERAGE_CORE"] = "ctrace"  # the one that knows which test runs
    import coverage

    folder = RECORDED.read_text(encoding="utf-8")
    recording = coverage.Coverage(
        str(HERE / "lines" / "data"), data_suffix=True, include=[f"{folder}/*"], config_file=False, messages=False
    )
    recording.set_option("run:disable_warnings", ["trace-changed", "no-data-collected", "module-not-measured"])
    recording.set_option("run:context", test)
    recording.start()
    return recording


def begin() -> None:
    """Do both, in a process that a test starts; its lines are those of the test."""
    change()
    if RECORDED.exists() and CURRENT.exists():
        import atexit

        recording = record(CURRENT.read_text(encoding="utf-8"))
        atexit.register(lambda: (recording.stop(), recording.save()))
