"""A thousand calls of one answer take time in proportion to their number."""

import time
from pathlib import Path
from typing import Any

from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, tool
from agent.presets.shipped import DEFAULT


@tool(category="read", parallel=True)
def look(at: int) -> str:
    """Look."""
    return str(at)


def processor_time(calls: int, folder: Path) -> float:
    """Seconds of a processor for one answer with so many calls that run together."""
    preset = evolve(DEFAULT, max_failures=None)
    steps: list[Any] = [answer("", *[call("look", at=number) for number in range(calls)]), "Done."]
    begin = time.process_time()
    with Agent(ScriptedModel(steps), [look], preset=preset, log=folder / f"{calls}.jsonl") as agent:
        run = agent.run_sync("Look")
    assert run.status == "completed"
    return time.process_time() - begin


def test_four_times_the_calls_take_about_four_times_as_long(tmp_path: Path) -> None:
    processor_time(50, tmp_path)  # what is loaded and learned once

    few, many = (min(processor_time(calls + again, tmp_path) for again in range(2)) for calls in (250, 1000))

    assert many / few < 9, "in proportion 4, in squares 16"
