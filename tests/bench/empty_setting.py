"""A setting in which nothing runs but the agent: for measuring what episodes cost by themselves."""

from random import Random

from agent.lab.settings import Plot, Setting, Task, read

__all__ = ["EMPTY"]


def make(chance: Random, number: int) -> Task:
    """Read a file; the side task is to read it once more."""
    return Task(
        name="",
        family="",
        prompt="Read start.txt.",
        files={"start.txt": "go\n"},
        main=lambda _: 1.0,
        side=lambda _: False,
        solution=(read("start.txt"),),
        plots=(Plot("again", (read("start.txt", "Again."),)),),
    )


EMPTY = Setting("empty", "reading one file", {"empty": make}, instances=1, live=False, harmless=True)
