"""The cost of a turn beside its model and its tool, which do nothing and are quick; all else is the real agent."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import process_time

from attrs import evolve

from agent import Agent, ScriptedModel, call, tool
from agent.presets.shipped import preset_named
from tests.bench.rows import Aim, Row
from tests.bench.timing import scaled

__all__ = ["measure"]

MILLI = 1e3
TURNS = (50, 200, 800)


@tool(category="read", quick=True)
def do_nothing() -> str:
    """Do nothing."""
    return "done"


def measure(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds of CPU per turn, one call each, for runs of 50, 200 and 800 turns; and the Python calls of one."""
    counts = [scaled(turns, size) for turns in TURNS]
    logged = [cheapest(turns, log=True) for turns in counts]
    silent = cheapest(counts[1], log=False)
    for turns, cost in zip(TURNS, logged, strict=True):
        yield Row(f"{turns} turns, log on: CPU", cost, "ms/turn", logged[0], f"{TURNS[0]} turns", Aim(at_most=0.4))
    flat = Aim(at_most=1.2, of="ratio")
    yield Row("flatness", logged[-1], "ms/turn", logged[0], f"{TURNS[0]} turns", flat)
    yield Row(f"{TURNS[1]} turns, log off: CPU", silent, "ms/turn", logged[1], "log on")
    yield Row("Python calls of a turn, log on", calls(20) - calls(19), "calls", aim=Aim(at_most=600))


def cheapest(turns: int, *, log: bool, rounds: int = 3) -> float:
    """Return the milliseconds of CPU that a turn takes: the least of several runs."""
    return min(run(turns, log=log) for _ in range(rounds))


def calls(turns: int) -> int:
    """Return how many Python functions a run calls, the same on every machine of one version of Python."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        run(turns, log=True)
    finally:
        sys.setprofile(None)
    return count


def run(turns: int, *, log: bool) -> float:
    """Return the milliseconds of CPU per turn of an agent that calls the tool once in each."""
    model = ScriptedModel([*[call("do_nothing")] * turns, "Done."])
    unlimited = evolve(preset_named("default"), max_iterations=None, doom_loop=None)
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        agent = resources.enter_context(
            Agent(model, [do_nothing], preset=unlimited, workspace=folder, log=folder / "run.jsonl" if log else None)
        )
        begin = process_time()
        ended = agent.run_sync("Go on.")
        cost = (process_time() - begin) / turns * MILLI
    assert ended.status == "completed", ended.text
    return cost
