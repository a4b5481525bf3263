"""A session of 45 steps on a small real project: at most three questions, and the sandbox is in the way of none."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

import pytest
from attrs import evolve

from agent import call
from agent.presets import DEFAULT
from agent.presets.equipment import equip
from agent.tools.sandbox.sandbox import why_not
from agent.vocabulary.events import ApprovalAsked, GateRejected, ToolFinished
from tests.agent.conftest import MakeAgent

MAKEFILE = """
build: src/cart.py
	mkdir -p build && cp src/cart.py build/
test:
	python3 -m unittest discover -s tests
"""
CART = "def total(prices):\n    return sum(prices)\n"
TEST = (
    "import sys, unittest\nsys.path.insert(0, 'src')\nfrom cart import total\n\n\n"
    "class Totals(unittest.TestCase):\n    def test_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)
INLINE = """python3 - <<'END'
import pathlib
for path in pathlib.Path('src').glob('*.py'):
    print(path, len(path.read_text()))
END"""
SERVE = "python3 -m http.server 4714 --bind 127.0.0.1 --directory build > serve.log 2>&1 & pid=$!; "
FETCH = "until curl -s http://127.0.0.1:4714/cart.py; do :; done; kill $pid"

WHEEL, INFO = "dep-1.0-py3-none-any.whl", "dep-1.0.dist-info"
IN_THE_WHEEL = {
    "dep.py": "NAME = 'dep'\n",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/RECORD": "",
}


def bash(command: str) -> Any:
    return call("bash", command=command)


STEPS = (
    bash("ls -la"), bash("git status --short"), bash("git log --oneline | head -5"),
    call("read_file", path="README.md"),
    bash("grep -rn total . --include=*.py"), bash("find . -name '*.py' -not -path './.git/*' | xargs wc -l"),
    bash("python3 -m unittest discover -s tests 2>&1 | tail -3"), bash("cat ~/.gitconfig; git config user.name"),
    call("write_file", path="src/cart.py", content=CART + "\n\ndef count(prices):\n    return len(prices)\n"),
    bash("git diff --stat"), bash("make test"), bash("git add -A && git commit -qm 'Count prices'"),
    bash("mkdir -p src/shop scripts && touch src/shop/__init__.py"),
    bash("cat > scripts/check.sh <<'END'\n#!/bin/sh\nset -e\npython3 -m unittest discover -s tests\nEND"),
    bash("chmod +x scripts/check.sh && ./scripts/check.sh"), bash("sed -i 's/prices/amounts/g' src/cart.py"),
    bash("make test 2>&1 | tail -2"), bash("make build"), bash(INLINE),
    bash("for file in src/*.py; do python3 -m py_compile \"$file\" && echo ok $file; done"),
    bash("git checkout -q -b feature"), bash("git mv README.md READ.md && git mv READ.md README.md"),
    bash("echo more >> README.md && git stash -q && git stash pop -q"), bash("git commit -qam 'Amounts, and a check'"),
    bash("git commit -q --amend --no-edit"), bash("git add -A && git diff --cached --stat"),
    bash("git commit -q -m 'A script that checks' ; git rebase -q main"), bash("rm -rf build && make build"),
    bash("tar czf /tmp/shop.tgz src && tar tzf /tmp/shop.tgz | head -3"), bash("curl --help | head -1"),
    bash(SERVE + FETCH), bash("eval \"echo $(date +%Y)\""), bash("env | sort | head -3; which python3"),
    bash("python3 -c 'import os; print(os.getcwd())'"), bash("printf '%s\\n' a b c | xargs -n 1 echo"),
    bash("diff <(git show HEAD:src/cart.py) src/cart.py && echo same"), bash("find build -name '*.pyc' -delete"),
    bash("python3 -c 'from multiprocessing import Pool; print(Pool(2).map(abs, [-1, 2]))'"),
    bash(f"{sys.executable} -m pip install -q --disable-pip-version-check --no-deps --target vendor ./{WHEEL}"),
    bash("PYTHONPATH=vendor python3 -c 'import dep; print(dep.NAME)'"),
    bash("git checkout -q main && git merge -q feature"),
    bash("git push -q origin main"), bash("git fetch -q origin && git log origin/main --oneline | head -1"),
    bash("git status -sb"), bash("make test > test.log 2>&1; tail -1 test.log"),
)  # fmt: skip


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder outside of /tmp, which the sandbox replaces."""
    with TemporaryDirectory(dir=os.path.expanduser("~"), prefix="bpagent-test-") as folder:
        monkeypatch.setenv("HOME", folder)
        yield Path(folder)


@pytest.fixture
def project(home: Path, workspace: Path, needs: Callable[[str], Path]) -> Path:
    """A repository with sources, a test, a Makefile, a package to install, and a server that takes what is pushed."""
    for program in ("bwrap", "git", "make", "curl"):
        needs(program)
    if why := why_not("bubblewrap"):
        pytest.skip(why)
    (home / ".gitconfig").write_text("[user]\n\tname = Me\n\temail = me@example.org\n[init]\n\tdefaultBranch = main\n")
    for name, content in (("Makefile", MAKEFILE), ("src/cart.py", CART), ("tests/test_cart.py", TEST)):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(content)
    (workspace / "README.md").write_text("# Shop\n")
    (workspace / ".gitignore").write_text("build/\nvendor/\n__pycache__/\n*.log\n*.whl\n")
    with ZipFile(workspace / WHEEL, "w") as wheel:
        for name, content in IN_THE_WHEEL.items():
            wheel.writestr(name, content)
    return workspace


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def origin(project: Path, tmp_path: Path, popen: Callable[..., object]) -> str:
    """A git server on the loopback of the machine."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "served/shop.git")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    popen(
        ["git", "daemon", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1", f"--port={port}",
         f"--base-path={tmp_path}/served", "--reuseaddr", str(tmp_path / "served")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    git(project, "init", "-q", "-b", "main")
    git(project, "remote", "add", "origin", f"git://127.0.0.1:{port}/shop.git")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Begin")
    while subprocess.run(["git", "push", "-q", "origin", "main"], cwd=project, capture_output=True).returncode:
        time.sleep(0.05)
    return f"git://127.0.0.1:{port}/shop.git"


def is_failure(event: ToolFinished) -> bool:
    return "[blocked" in event.result.text or "[exit code" in event.result.text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_work_of_45_steps_is_asked_about_three_times_at_most_and_never_blocked(
    make_agent: MakeAgent, project: Path, origin: str
) -> None:
    preset = evolve(DEFAULT, max_iterations=60)
    agent = make_agent(*STEPS, "Done.", tools=equip(preset, project), preset=preset, approve=lambda _: True)

    run = agent.run_sync("Work")

    finished = [event for event in run.events if isinstance(event, ToolFinished)]
    questions = [event.question for event in run.events if isinstance(event, ApprovalAsked)]
    in_the_way = [event.result.text for event in finished if is_failure(event)]
    assert (len(STEPS), len(finished)) == (45, 45)
    assert [event for event in run.events if isinstance(event, GateRejected)] == []
    assert in_the_way == []
    assert len(questions) <= 3, questions
