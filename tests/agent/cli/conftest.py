"""The command as its users meet it: in this process, as a process of its own, and on a terminal."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from tests.agent.cli.sessions import (
    COMMAND,
    PATIENCE,
    Command,
    RunOf,
    Said,
    SlowTool,
    Start,
    Terminal,
    bash,
    environment,
    open_terminal,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of one's own, and an environment without keys or colors."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("BPAGENT_HOME")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "BPAGENT_MODEL", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return home


@pytest.fixture
def command(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("check", "ls")` runs the command line in this process."""

    def run(*argv: object) -> Said:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def start(home: Path, popen: Start) -> Start:
    """`start("run", ...)` starts the command as a process; what is left at the end is ended."""

    def start(*argv: object, stdin: Any = subprocess.DEVNULL, **options: Any) -> "subprocess.Popen[str]":
        words = [*COMMAND, *(str(word) for word in argv)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return popen(words, stdin=stdin, text=True, env=environment(), **pipes)

    return start


@pytest.fixture
def process(start: Start) -> Command:
    """`process("run", ..., input=...)` runs the command as a process to its end."""

    def run(*argv: object, input: str | None = None, **options: Any) -> Said:
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        started = start(*argv, stdin=options.pop("stdin", stdin), **options)
        out, err = started.communicate(input, timeout=PATIENCE)
        return Said(started.returncode, out, err)

    return run


@pytest.fixture
def on_terminal(home: Path) -> Iterator[Callable[..., Terminal]]:
    """`on_terminal("run", ...)` starts the command on a terminal; `out="pipe"` leaves standard output out of it."""
    opened: list[Terminal] = []

    def start(*argv: object, out: str = "all", **variables: str) -> Terminal:
        opened.append(open_terminal([str(word) for word in argv], environment() | variables, out))
        return opened[-1]

    yield start
    for terminal in opened:
        with terminal.process:
            terminal.process.kill()
        os.close(terminal.master)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The log of a run with a call that ran, one that nobody was there to approve, and one that was refused."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "workspace").mkdir()
    steps = [*map(bash, ("echo hi", "touch .git/config", "rm -rf /no/such/folder")), "Done."]
    (folder / "script.json").write_text(json.dumps({"steps": steps}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.delenv("BPAGENT_HOME")
        words = ("--workspace", f"{folder}/workspace", "--log", f"{folder}/log.jsonl")
        assert main(["run", "go", "--model", f"script:{folder}/script.json", *words]) == 0
    return (folder / "log.jsonl").read_bytes()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a run that is to come."""
    return tmp_path / "log.jsonl"


@pytest.fixture
def recorded_log(recorded: bytes, tmp_path: Path, home: Path) -> Path:
    """A copy of the recorded log, in a folder of its own."""
    log = tmp_path / "logs" / "log.jsonl"
    log.parent.mkdir()
    log.write_bytes(recorded)
    return log


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """`script(step, ...)` writes a scripted model and returns its name for `--model`."""

    def write(*steps: object) -> str:
        path = tmp_path / "script.yaml"
        path.write_text(json.dumps({"steps": list(steps)}))  # JSON is YAML
        return f"script:{path}"

    return write


@pytest.fixture
def run_of(script: Callable[..., str], workspace: Path) -> RunOf:
    """`run_of(step, ...)`: the words of a run of a scripted model in the workspace."""
    return lambda *steps: ("run", "go", "--model", script(*steps), "--workspace", workspace)


@pytest.fixture
def slow_tool(workspace: Path) -> SlowTool:
    """A command that runs until the test lets it finish."""
    for name in ("started", "go"):
        os.mkfifo(workspace / name)
    return SlowTool(workspace)
