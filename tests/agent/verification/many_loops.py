"""Many loops model-checked in one space, where each b-thread is explored once for all; and killed runs, resumed."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from attrs import evolve, field, frozen

from agent.effects.loop import declared_effects
from agent.effects.monitoring import laboratory_effects
from agent.history.playback import retaken
from agent.log.reading import RecordedRun
from agent.threads.core import CORE
from agent.verification import invariants_with, world_of
from agent.verification.environment import (
    EXAMPLES,
    EXAMPLES_WITH_PROTOCOLS,
    FEW_EXAMPLES,
    Examples,
    declared_actions,
    people_for,
    usual_examples,
    with_actions,
)
from agent.vocabulary.encoding import to_record
from agent.vocabulary.events import HistoryGiven, PromptGiven, ProposedAction, RunEnded
from bp import BProgram, BThread, Event, Step, Verification
from bp.runner import Broken, Effect, Runner
from bp.verification import searched
from bp.verification.agreement import Trials
from bp.verification.model import Model
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.trials import Program
from tests.agent.faults import told

T = TypeVar("T")
Loop = tuple[Sequence[BThread], Sequence[BThread]] | tuple[Sequence[BThread], Sequence[BThread], Examples]
Loops = Mapping[str, Loop]
"""Rules and protocols of several loops, by what to call them; one may have examples of its own."""

Situations = Mapping[str, Callable[[Sequence[BThread]], Sequence[Event]]]
"""What people may say at any moment, given the rules and protocols of a loop."""

ANYTHING: Situations = {"anything": people_for}

WHOLE = os.environ.get("WHOLE") == "1"  # `make verify`; else the tests look at samples, and at a part of large loops

ENOUGH = 2_000
"""The states within which a planted fault has to be found."""

COPIES_OF_EACH = 3  # of the process, for real runs of a loop: the first and the last make one before the search


def verify_each(
    loops: Loops,
    examples: Callable[[Sequence[BThread]], Examples] | None = None,
    *,
    core: Sequence[BThread] = CORE,
    situations: Situations = ANYTHING,
    max_states: int | None = None,
    first: bool = False,
    left_out: bool = False,
) -> Iterator[tuple[str, str, Verification]]:
    """Model-check several loops, each of rules and protocols, in each situation; yield label, situation and result.

    That is much faster than `verify_loop` for each where they are small, and finds the same. Before its first search a
    few real runs of each loop are followed, in copies of this process; the share of moves they made is not counted,
    so a verdict is "unchecked" at best. Raises VerificationError where a run is not as the model says. first: stop each
    search at its first violation. left_out: what the rules require has to hold without them.

    Where two loops have b-threads of one name whose helpers differ, as with planted faults, look at each by itself.
    """
    model = Model()
    with closing(model):
        for label, (rules, protocols, *own) in loops.items():
            usual = usual_examples(rules, protocols) if examples is None else examples((*rules, *protocols))
            world = world_of(rules, protocols, own[0] if own else usual)
            present = () if left_out else rules
            program = (*core, *present, *protocols, *invariants_with(rules, protocols))
            for number, (situation, people) in enumerate(situations.items()):
                began, possible = time.perf_counter(), people((*rules, *protocols))
                with closing(Trials(Program(program, world, possible), 0 if number else COPIES_OF_EACH)) as trials:
                    model.begin(program, world, possible)
                    trials.before(model)
                search = Search(model, Violations(model, (), first=first), max_states)
                yield label, situation, searched(search, True, began)


def sampled(loops: Iterable[T], every: int) -> list[T]:
    """Return every so many of the loops, or of what they are made of; for `make verify` all."""
    return list(loops)[:: 1 if WHOLE else every]


def not_held(loops: Loops, examples: Callable[[Sequence[BThread]], Examples] | None = None) -> dict[str, str]:
    """Return what was found of those loops in which something is wrong, by what they are called."""
    results = verify_each(loops, examples)
    return {label: told(result) for label, _, result in results if result.violations or result.bounded}


def loops_of(rules: Sequence[BThread], subsets: Iterable[Collection[str]]) -> Loops:
    """Return the loops with each of the subsets of `rules`, by their names, for `verify_each`."""
    return {" + ".join(names) or "none": ([rule for rule in rules if rule.name in names], ()) for names in subsets}


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return few outcomes; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    examples: Examples = {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES
    return with_actions(examples, declared_actions(protocols))


# Runs that are killed after any record and resumed: with the real runner and playback, in the verified environment.

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


def played_world(examples: Examples, possible: Sequence[Event], random: Random) -> World:
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
        world = played_world(examples, people_for((*rules, *protocols)), random)
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
