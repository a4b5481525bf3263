"""Runs that are killed after any record and resumed: with the real runner and playback, in the verified environment."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from attrs import evolve, field, frozen

from agent.effects.loop import declared_effects
from agent.effects.monitoring import laboratory_effects
from agent.history.playback import retaken
from agent.log.reading import RecordedRun
from agent.threads.core import CORE
from agent.verification import invariants_with
from agent.verification.environment import EXAMPLES_WITH_PROTOCOLS, Examples, people_for
from agent.vocabulary.encoding import to_record
from agent.vocabulary.events import HistoryGiven, PromptGiven, RunEnded
from bp import BProgram, BThread, Event, Step
from bp.runner import Broken, Effect, Runner

MOST_STEPS = 400  # of a run: none of a loop with small limits has so many


@frozen(eq=False)
class World:
    """Effects and people as the verifier has them, each choice drawn from `random`; it is the journal of a run, too."""

    effects: tuple[Effect, ...]
    possible: tuple[Event, ...]
    random: Random
    posting: list[Any] = field(factory=list)  # the runner, once it is there
    steps: list[Step] = field(factory=list)

    def record(self, step: Step) -> None:
        """Keep a step, as the log would."""
        self.steps.append(step)
        assert len(self.steps) < MOST_STEPS, "the run does not end"

    def flush(self) -> None:
        """Have people say something now and then, where the program rests."""
        if self.possible and self.random.random() < 0.1:
            self.posting[0].post(self.random.choice(self.possible), "drop")

    async def run(self, program: BProgram, taken: Sequence[Step]) -> None:
        """Run a program that has taken these steps to the end of its run. Raises what the program and runner raise."""
        runner = Runner(program, self.effects, journal=self)
        self.posting[:] = [runner]
        if taken:
            runner.resume(taken)
        else:
            runner.post(PromptGiven("go"))
        await runner.run(until=RunEnded)
        await runner.close()


def world_of(examples: Examples, possible: Sequence[Event], random: Random) -> World:
    """Return a world in which each effect has one of its examples as its outcome, or fails, after a while."""

    def played(effect: Effect) -> Effect:
        async def run(started: Event) -> Event:
            for _ in range(random.randrange(5)):
                await checkpoint()
            failed = effect.broken(started, Broken("failed", RuntimeError("broken")))
            outcomes: tuple[Event, ...] = (*given[effect.on](started), failed)
            return random.choice(outcomes)

        return evolve(effect, run=run)

    given: Mapping[Any, Any] = {**EXAMPLES_WITH_PROTOCOLS, **examples}
    effects = tuple(map(played, (*declared_effects(), *laboratory_effects())))
    said = tuple(event for event in possible if not isinstance(event, PromptGiven | HistoryGiven))
    return World(effects, said, random)


def kill_and_resume(
    rules: Sequence[BThread], protocols: Sequence[BThread], examples: Examples, *, runs: int, kills: int
) -> Iterator[str]:
    """Take random runs of a loop, with its invariants, and kill each so often; yield what went wrong, or ""."""
    bthreads = (*CORE, *rules, *protocols, *invariants_with(rules, protocols))
    for seed in range(runs):
        random = Random(seed)
        world = world_of(examples, people_for((*rules, *protocols)), random)
        with BProgram(*bthreads) as program:
            anyio.run(world.run, program, ())
        records = tuple(map(to_record, world.steps))
        places = range(1, len(records))
        for place in sorted(random.sample(places, min(kills, len(places)))):
            yield _resumed(bthreads, RecordedRun(Path(f"run {seed}"), {}, records[:place], torn=False), world)


def _resumed(bthreads: Sequence[BThread], log: RecordedRun, world: World) -> str:
    """Go on with a log; return what went wrong, with the record after which its process was killed."""
    try:
        with BProgram(*bthreads) as program:
            taken = tuple(retaken(log, program))
            world.steps.clear()
            anyio.run(world.run, program, taken)
    except Exception as error:
        return f"{log.path}, killed after record {len(log.records)} ({log.records[-1]['name']}): {error}"
    return ""
