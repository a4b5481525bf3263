"""The command, a server as its model, and the log: all that tests from outside may look at."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.outside.driving import COMMAND, PATIENCE, ROOT, Log, Said, Terminal, open_terminal
from tests.outside.model_server import ModelServer, Reply


def bash(command: str, id: str = "c1", tool: str = "bash", **more: object) -> dict[str, Any]:
    """Return a step of a script that calls a tool with a command."""
    return {"call": {"tool": tool, "arguments": {"command": command, **more}, "id": id}}


KEPT = ("PATH", "LANG", "SYSTEMROOT", "GIT_CEILING_DIRECTORIES")


@define
class Place:
    """One user's machine: a home, a workspace, a model's server, and the command."""

    folder: Path
    server: ModelServer
    running: list["subprocess.Popen[Any]"] = field(factory=list)
    terminals: list[Terminal] = field(factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def log(self) -> Log:
        return Log(self.folder / "log.jsonl")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        own = {"HOME": str(self.home), "TMPDIR": str(self.folder), "PYTHONPATH": str(ROOT), "TERM": "xterm"}
        return {**kept, **own, "OPENAI_BASE_URL": self.server.url, "OPENAI_API_KEY": "a-key-for-nobody"}

    def start(self, *words: object, stdin: Any = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        """Start the command with these words."""
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*COMMAND, *map(str, words)], stdin=stdin, env=self.environment, **pipes)
        self.running.append(process)
        return process

    def command(self, *words: object, input: str | None = None) -> Said:
        """Run the command to its end."""
        process = self.start(*words, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
        out, err = process.communicate(input, timeout=PATIENCE)
        return Said(process.returncode, out, err)

    def words(self, prompt: str, *options: object, model: str = "some-model") -> list[str]:
        """The words of a run with this prompt in this workspace, and this log."""
        where = ["--workspace", self.workspace, "--log", self.log.path, "--model", model]
        return list(map(str, ["run", prompt, *where, *options]))

    def run(self, *replies: Reply, options: tuple[object, ...] = (), input: str | None = None) -> Said:
        """Run with a model that gives these replies."""
        self.server.reply(*replies)
        return self.command(*self.words("Do it", *options), input=input)

    def script(self, *steps: object) -> str:
        """The name of a scripted model."""
        path = self.folder / "script.yaml"
        path.write_text(json.dumps({"steps": steps}))  # JSON is YAML
        return f"script:{path}"

    def play(self, *steps: object, options: tuple[object, ...] = (), input: str | None = None) -> Said:
        """Run with a scripted model: no network, and a second faster."""
        return self.command(*self.words("Do it", *options, model=self.script(*steps)), input=input)

    def on_terminal(self, *words: object) -> Terminal:
        """Start the command on a terminal."""
        self.terminals.append(open_terminal([str(word) for word in words], self.environment))
        return self.terminals[-1]

    def close(self) -> None:
        for process in (*self.running, *(terminal.process for terminal in self.terminals)):
            with process:
                process.kill()
        for terminal in self.terminals:
            os.close(terminal.master)
        self.server.close()


@pytest.fixture(scope="session")
def new_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Place]]:
    """A function that makes places."""
    made: list[Place] = []

    def make() -> Place:
        folder = tmp_path_factory.mktemp("place")
        for name in ("home", "workspace"):
            (folder / name).mkdir()
        made.append(Place(folder, ModelServer()))
        return made[-1]

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(new_place: Callable[[], Place]) -> Place:
    """A place of the test's own."""
    return new_place()
