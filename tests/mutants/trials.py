"""Trials of mutants: a copy of the tree, environments that import a changed module from it, and tests run there.

The working tree is only read. Each worker has an environment of its own, in which Python, the command and all that they
start find the copy, with one module changed. A changed rule may run what a test expects to be refused (`rm -rf /`), so
a worker can write its own folder only, and reaches no network.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from marshal import dumps
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from coverage import CoverageData

from tests.mutants import loader
from tests.mutants.operators import Mutant

SLOWER = 10  # times as long as usual is too long
PATIENCE = 10.0  # seconds more, for a busy machine
RECORDING = 600.0  # seconds for one test of which nothing is known yet


class TrialError(Exception):
    """The tests cannot judge mutants: they fail without any."""


@frozen
class Oracle:
    """Tests that may notice a mutant: a name, options of pytest, files and folders, and those asked before."""

    name: str
    options: tuple[str, ...]
    paths: tuple[str, ...]
    besides: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """What pytest is given to find all its tests."""
        return (*self.options, *self.paths)


@frozen
class Recording:
    """What the tests of an oracle do without a mutant: how long each takes, and which lines it executes."""

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[str, frozenset[int]]]

    def tests_for(self, mutant: Mutant, without: Sequence[str] = ()) -> list[str]:
        """Return the tests that may notice a mutant, first those that execute its lines, quick ones first."""
        reaching = self.lines.get(mutant.path, {})
        direct = {test for test, lines in reaching.items() if not lines.isdisjoint(mutant.lines)}
        candidates = self.seconds if mutant.reaches_every_test else direct
        left = [test for test in candidates if test in self.seconds and not is_among(test, without)]
        return sorted(left, key=lambda test: (test not in direct, test not in reaching, self.seconds[test]))


def is_among(test: str, names: Sequence[str]) -> bool:
    """Tell whether a test is one of those named: by itself, by its function, its file or its folder."""
    return any(test == name or test.startswith((f"{name}::", f"{name}[", f"{name.rstrip('/')}/")) for name in names)


@frozen
class Outcome:
    """What became of a mutant: which oracle was asked last, which of its tests noticed it ("": none), and how."""

    oracle: str
    noticed_by: str = ""
    how: str = "survived"


# The copy


def digest_of(root: Path, paths: Iterable[str]) -> str:
    """Return a name for the contents of the files that can decide, which this tool and the pages cannot."""
    summed = sha256()
    for path in paths:
        if path.endswith((".py", ".toml", ".tsv", ".yaml", ".js")) and not path.startswith("tests/mutants/"):
            summed.update(path.encode() + b"\0" + (root / path).read_bytes() + b"\0")
    return summed.hexdigest()[:12]


def files_of(root: Path) -> list[str]:
    """Return the files of a checkout that are tracked, or could be."""
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(git, capture_output=True, text=True, check=True).stdout
    return sorted(path for path in listed.split("\0") if path and (root / path).is_file())


def copied(root: Path, paths: Iterable[str], copy: Path) -> Path:
    """Copy the files of a checkout, and this tool."""
    for path in paths:
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != (root / path).read_bytes():
            shutil.copy2(root / path, target)
    shutil.copytree(Path(__file__).parent, copy / "tests/mutants", dirs_exist_ok=True)
    return copy


def environment(folder: Path, copy: Path) -> Path:
    """Make an environment whose Python, and whose commands, import the copy, and else what this one imports."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.EnvBuilder(symlinks=True).create(folder)
    python, purelib = folder / "bin/python", Path(sysconfig.get_path("purelib"))
    packages = folder / purelib.relative_to(sys.prefix)
    shutil.copy(loader.__file__, packages / "mutants_loader.py")
    lines = [str(copy), str(purelib), "import mutants_loader; mutants_loader.begin()"]
    (packages / "mutants.pth").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for script in Path(sys.prefix, "bin").iterdir():
        target = folder / "bin" / script.name
        if not target.exists() and script.is_file() and f"#!{sys.prefix}".encode() in script.read_bytes()[:300]:
            target.write_text(script.read_text().replace(str(Path(sys.prefix, "bin")), str(folder / "bin"), 1))
            target.chmod(0o755)
    return python


def confined(readable: Iterable[Path], writable: Iterable[Path]) -> list[str]:
    """Return the words before a command that may write few folders. Raises TrialError without bubblewrap.

    readable: those that it needs, also where they lie in /tmp, of which it has one of its own.
    """
    if (bubblewrap := shutil.which("bwrap")) is None:
        raise TrialError("bwrap is not installed (bubblewrap), and a mutant may run what a rule would have refused")
    own = ["--tmpfs", "/tmp", "--dir", "/tmp/home", "--setenv", "HOME", "/tmp/home"]
    for path in (*map(str, readable), sys.prefix, sys.base_prefix):
        own += ["--ro-bind", path, path]
    for folder in writable:
        own += ["--bind", str(folder), str(folder)]
    system = ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    return [bubblewrap, *system, *own, "--unshare-net", "--die-with-parent", "--"]


# Trials


@define
class Worker:
    """A process that runs tests, one mutant after the other, in an environment of its own."""

    folder: Path
    copy: Path
    may_write_copy: bool = False
    """True while nothing is changed, so that Python keeps what it has compiled."""
    process: "subprocess.Popen[str]" = field(init=False)
    loaded: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        python = environment(self.folder, self.copy)
        writable = [self.folder, self.copy] if self.may_write_copy else [self.folder]
        self.process = subprocess.Popen(
            [*confined([self.copy], writable), str(python), "-m", "tests.mutants.server"],
            cwd=self.copy,
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )

    def close(self) -> None:
        """End its process, in the middle of a test too."""
        self.process.terminate()
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def record(self, oracle: Oracle, room: str) -> Recording:
        """Run the tests of an oracle without a mutant. Raises TrialError if one fails."""
        self._load(oracle)
        recorded, lines = self.folder / loader.RECORDED.name, self.folder / "lines"
        shutil.rmtree(lines, ignore_errors=True)
        lines.mkdir()
        recorded.write_text(str(self.copy / room), encoding="utf-8")
        answer = self._ask(what="run", arguments=oracle.arguments, wanted=None, limits={}, limit=RECORDING)
        recorded.unlink()
        if answer["failed"]:
            failed = "\n  ".join(answer["failed"])
            raise TrialError(f"without any mutant these tests of {oracle.name!r} fail, so mend them first:\n  {failed}")
        return Recording(answer["seconds"], _lines_in(lines, self.copy))

    def outcome(self, mutant: Mutant, oracle: Oracle, recording: Recording, without: Sequence[str] = ()) -> Outcome:
        """Run the tests that may notice a mutant, until one does."""
        tests = recording.tests_for(mutant, (*without, *oracle.besides))
        if not tests:
            return Outcome(oracle.name, how="not reached")
        self._load(oracle)
        changed = self.folder / loader.MUTANT.name
        changed.write_bytes(dumps((mutant.path.removesuffix(".py").replace("/", "."), dumps(mutant.compiled()))))
        answers = (self._noticed(batch, oracle, recording) for batch in _batches(tests))
        outcome = next((answer for answer in answers if answer.noticed_by), Outcome(oracle.name))
        changed.unlink()
        return outcome

    def _noticed(self, tests: list[str], oracle: Oracle, recording: Recording) -> Outcome:
        limits = {test: PATIENCE + SLOWER * recording.seconds[test] for test in tests}
        arguments = ["-x", *oracle.options, *dict.fromkeys(map(_file_of, tests))]
        answer = self._ask(what="run", arguments=arguments, wanted=tests, limits=limits, limit=3 * PATIENCE)
        if not answer["failed"]:
            return Outcome(oracle.name)
        return Outcome(oracle.name, answer["failed"][0] or "import", "timeout" if answer.get("hung") else "failed")

    def _load(self, oracle: Oracle) -> None:
        if oracle.name not in self.loaded:
            self.loaded.add(oracle.name)
            self._ask(what="load", arguments=oracle.arguments)

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(request)}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise TrialError(f"the process that runs the tests has ended with {self.process.wait()}")
        return dict(json.loads(line))


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _batches(tests: list[str]) -> list[list[str]]:
    """Return first the tests of the file that has most of them: mostly one of them fails, and no other is imported."""
    [(favourite, _)] = Counter(map(_file_of, tests)).most_common(1)
    first = [test for test in tests if _file_of(test) == favourite]
    return [first, rest] if (rest := [test for test in tests if _file_of(test) != favourite]) else [first]


def _lines_in(folder: Path, copy: Path) -> dict[str, dict[str, frozenset[int]]]:
    """Return for each file and test the lines that the test executed, in its own process and in those it started."""
    found: dict[str, dict[str, set[int]]] = {}
    for path in folder.iterdir():
        data = CoverageData(str(path))
        data.read()
        for file in data.measured_files():
            tests = found.setdefault(str(Path(file).relative_to(copy)), {})
            for line, names in data.contexts_by_lineno(file).items():
                for name in names:
                    tests.setdefault(name, set()).add(line)
    return {file: {test: frozenset(lines) for test, lines in tests.items()} for file, tests in found.items()}
