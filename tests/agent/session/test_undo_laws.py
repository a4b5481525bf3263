"""The law of undo, over random runs: whatever happens, each step can be had back with every byte.

Calls write files, run commands, leave processes behind and start subagents; the user edits files between and during
them; the run is killed anywhere, and so is an undo.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import Agent, ScriptedModel, call
from agent.presets import PRESETS
from agent.session.subagents import SubagentStore, make_task
from agent.tools.background import Processes
from agent.tools.collections import workspace_tools
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.undo import undo
from agent.vocabulary.events import InferenceRequested, SnapshotTaken, ToolFinished, ToolStarted
from bp import Step
from tests.agent.losses import Edits, digest

CASES = int(os.environ.get("CASES", "100")) // 20  # `make laws` plays 250
CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.symlink", "os.chmod", "os.utime", "fcntl.flock"}
COMMANDS = (
    "mkdir -p {0} && echo {2} > {0}/{2}", "rm -rf {0}", "mv {0} {1}", "cp -r {0} {1}", "chmod 700 {0}", "touch {0}",
    "ln -sfn {1} {0}", "git init -q {0}; rm -rf {1}", "truncate -s {2} {0}", "find {0} -delete", "exit {2}",
)  # fmt: skip
KEEPS_WRITING = "for i in $(seq 20); do echo $i > theirs/$i; read -t 0.02 < <(:); done"


def in_a_child(act: Callable[[], object]) -> None:
    """Do it in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def until_killed(at: int, act: Callable[[], object]) -> None:
    """Do it in a process that dies before its change number `at`."""
    left = at

    def die(event: str, _: object) -> None:
        nonlocal left
        left -= event in CHANGES
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def act_until_then() -> None:
        sys.addaudithook(die)
        act()

    in_a_child(act_until_then)


class RandomRun:
    """A run of random calls in a folder, with a user who edits files in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.root, self.folder, self.chance = folder / "work", folder, random.Random(seed)
        (self.root / "theirs").mkdir(parents=True)
        self.user = Edits(self.root, seed)
        for _ in range(12):
            self.user.one()
        self.editing: Thread | None = None

    def command(self) -> str:
        names = [str(self.user.path().relative_to(self.root)) for _ in range(2)]
        edits = [
            each.format(*(repr(name) for name in names), self.chance.randint(1, 9)) for each in self.some(COMMANDS)
        ]
        return " ; ".join(edits)

    def some(self, choices: tuple[str, ...]) -> list[str]:
        return self.chance.choices(choices, k=self.chance.randint(1, 3))

    def call(self) -> Any:
        kind = self.chance.choice(["file", "shell", "shell", "background", "task"])
        if kind == "task":
            return call("task", description="x", prompt="x", subagent_type="general")
        if kind == "file":
            return call("write_file", path="a/new.txt", content=str(self.chance.random()))
        stays = kind == "background"
        return call(
            "bash", command=KEEPS_WRITING if stays else self.command(), **({"background": True} if stays else {})
        )

    def hear(self, step: Step) -> None:
        """Note the tree at each snapshot; edit files like a user between and beside calls."""
        if isinstance(step.event, SnapshotTaken):
            with open(self.folder / "states", "a") as file:
                file.write(f"{(step.event.snapshot, tree(self.root))!r}\n")
        elif isinstance(step.event, InferenceRequested):
            self.user.one()
        elif isinstance(step.event, ToolStarted):
            self.editing = Thread(target=self.user.several)
            self.editing.start()
        elif isinstance(step.event, ToolFinished) and self.editing is not None:
            self.editing.join()

    def play(self) -> None:
        processes = Processes()
        child = ScriptedModel([*(call("bash", command=self.command()) for _ in range(2)), "Done."] * 9)
        store = SubagentStore(child, PRESETS["coding"], lambda: workspace_tools(self.root))
        tools = [*workspace_tools(self.root, processes=processes), make_task(store)]
        script = ScriptedModel([*(self.call() for _ in range(5)), "Done."])
        with Agent(script, tools, preset="coding", on_step=self.hear) as agent:
            agent.run_sync("go")
        store.close()


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything but what a process that was left behind writes all the time."""
    while True:
        with suppress(FileNotFoundError):
            return {path: each for path, each in digest(root).items() if not path.startswith("theirs")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork")
@settings(max_examples=CASES, deadline=None)
@given(st.integers(0, 1 << 32))
def test_each_step_of_any_run_can_be_had_back_whole(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("run")
    playing = RandomRun(folder, seed)
    until_killed(playing.chance.randint(1, 150), playing.play)
    noted = folder / "states"
    states = dict(map(eval, noted.read_text().splitlines())) if noted.exists() else {}
    store, wrong = Snapshots(playing.root, Path(os.environ["BPAGENT_HOME"])), []

    for name in playing.chance.sample([*states], len(states)):
        again = partial(undo, store, name, force=True, git=True)
        if playing.chance.random() < 0.5:
            until_killed(playing.chance.randint(1, 40), again)
        left = again().left
        if not all(path.startswith("theirs") for path in left) or tree(playing.root) != states[name]:
            wrong.append((name, left, sorted(tree(playing.root).items() ^ states[name].items())[:6]))

    assert wrong == []
