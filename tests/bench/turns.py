"""What a turn costs besides its model and its tool: both do nothing here, everything else is the real agent."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter, process_time

from attrs import evolve, frozen

from agent import Agent, ScriptedModel, call, tool
from agent.presets.shipped import preset_named
from tests.bench.rows import Aim, Row
from tests.bench.timing import scaled

__all__ = ["measure"]

MILLI = 1e3
TURNS = (50, 200, 800)


@tool(category="read")
async def do_nothing() -> str:
    """Do nothing."""
    return "done"


@frozen
class Cost:
    """Milliseconds per turn."""

    cpu: float
    wall: float


def measure(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds per turn, one call each, for runs of 50, 200 and 800 turns, with the log and without."""
    counts = [scaled(turns, size) for turns in TURNS]
    logged = [cheapest(turns, log=True) for turns in counts]
    silent = cheapest(counts[1], log=False)
    for turns, cost in zip(TURNS, logged, strict=True):
        first = logged[0]
        yield Row(f"{turns} turns, log on: CPU", cost.cpu, "ms/turn", first.cpu, f"{TURNS[0]} turns", Aim(at_most=0.4))
    flat = Aim(at_most=1.2, of="ratio")
    yield Row("flatness", logged[-1].cpu, "ms/turn", logged[0].cpu, f"{TURNS[0]} turns", flat)
    yield Row(f"{TURNS[1]} turns, log on: wall", logged[1].wall, "ms/turn", logged[1].cpu, "its CPU time")
    yield Row(f"{TURNS[1]} turns, log off: CPU", silent.cpu, "ms/turn", logged[1].cpu, "log on")


def cheapest(turns: int, *, log: bool, rounds: int = 3) -> Cost:
    """Return the least of several runs, for CPU and wall time each."""
    costs = [run(turns, log=log) for _ in range(rounds)]
    return Cost(min(cost.cpu for cost in costs), min(cost.wall for cost in costs))


def run(turns: int, *, log: bool) -> Cost:
    """Run an agent that calls the tool once in each of `turns` turns."""
    model = ScriptedModel([*[call("do_nothing")] * turns, "Done."])
    unlimited = evolve(preset_named("default"), max_iterations=None, doom_loop=None)
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        agent = resources.enter_context(
            Agent(model, [do_nothing], preset=unlimited, workspace=folder, log=folder / "run.jsonl" if log else None)
        )
        cpu, wall = process_time(), perf_counter()
        ended = agent.run_sync("Go on.")
        cost = Cost((process_time() - cpu) / turns * MILLI, (perf_counter() - wall) / turns * MILLI)
    assert ended.status == "completed", ended.text
    return cost
