from collections.abc import Sequence
from typing import Any

import pytest

from bp import (
    BProgram,
    BProgramError,
    BThread,
    Candidate,
    Event,
    PriorityStrategy,
    RandomStrategy,
    RoundRobinStrategy,
    Strategy,
    any_of,
    event,
    sync,
)
from bp.strategies import Chooser
from tests.bp.programs import COLD, HOT, STOP, keeps_saying, says, trace

A, B, C = event("a"), event("b"), event("c")


class Remembering:
    """A strategy of one's own: takes the last candidate, and remembers all."""

    def __init__(self) -> None:
        self.candidates: list[Sequence[Candidate]] = []

    def chooser(self) -> Chooser:
        def choose(candidates: Sequence[Candidate]) -> Candidate:
            self.candidates.append(candidates)
            return candidates[-1]

        return choose


def first_events(strategy: Strategy | None, *bthreads: BThread, steps: int) -> list[Event]:
    program = BProgram(*bthreads, strategy=strategy)
    return [step.event for step in (program.step() for _ in range(steps)) if step]


def test_the_priority_strategy_is_the_default_and_deterministic() -> None:
    bthreads = [says(sync(request=A)), says(sync(request=[B, A])).at_priority(1), says(sync(request=C)).at_priority(1)]

    assert trace(BProgram(*bthreads)) == trace(BProgram(*bthreads, strategy=PriorityStrategy())) == [B, C, A]


def test_strategies_choose_among_the_distinct_selectable_events_each_with_its_first_requester() -> None:
    strategy = Remembering()
    program = BProgram(
        says(sync(request=A)).named("old"),
        says(sync(request=any_of(B, A))).named("high").at_priority(1),
        says(sync(request=[HOT, COLD, STOP], block=HOT)).named("picky"),
        says(sync(request=C, otherwise=lambda _: STOP)).named("refused"),
        says(sync(refuse=C, because="no")),
        strategy=strategy,
    )

    step = program.step()

    assert strategy.candidates[0] == (
        Candidate(B, "high", 1, 1), Candidate(A, "high", 1, 1), Candidate(COLD, "picky", 0, 2),
        Candidate(STOP, "refused", 0, 3),
    )  # fmt: skip
    assert step is not None
    assert (step.event, step.bthread, step.refusals) == (STOP, "refused", (("says", "no"),))


def test_a_seeded_random_strategy_gives_the_same_trace_for_the_same_seed() -> None:
    bthreads = [keeps_saying(sync(request=any_of(A, B, C)))]

    one, same, other = (first_events(RandomStrategy(seed), *bthreads, steps=30) for seed in (1, 1, 2))

    assert one == same
    assert one != other
    assert {A, B, C} == set(one)


def test_a_strategy_is_a_value_that_serves_many_programs() -> None:
    strategy = RandomStrategy(7)
    bthreads = [keeps_saying(sync(request=any_of(A, B, C)))]

    traces = [first_events(strategy, *bthreads, steps=20) for _ in range(2)]

    assert traces[0] == traces[1]
    assert RandomStrategy(7) == strategy
    with pytest.raises(TypeError):
        RandomStrategy("seed")  # type: ignore[arg-type]


def test_round_robin_gives_the_b_threads_their_turns_by_age_whatever_their_priority() -> None:
    bthreads = [keeps_saying(sync(request=what)) for what in (A, B, C)]

    events = first_events(RoundRobinStrategy(), bthreads[0], bthreads[1].at_priority(9), bthreads[2], steps=7)

    assert events == [A, B, C, A, B, C, A]


def test_blocked_and_refused_events_never_reach_a_strategy() -> None:
    for guard in (sync(block=A), sync(refuse=A, because="no")):
        events = first_events(RandomStrategy(3), keeps_saying(sync(request=any_of(A, B))), says(guard), steps=20)

        assert set(events) == {B}


def test_a_strategy_that_chooses_no_candidate_is_an_error() -> None:
    class Wrong:
        def chooser(self) -> Chooser:
            return lambda candidates: Candidate(COLD, "nobody", 0, 0)

    program = BProgram(says(sync(request=HOT)), strategy=Wrong())

    with pytest.raises(BProgramError, match="which is no candidate"):
        trace(program)
    assert program.status == "failed"


def test_external_events_are_not_for_strategies() -> None:
    strategy = Remembering()
    program = BProgram(says(sync(wait_for=HOT)), strategy=strategy)
    program.post(HOT)

    assert trace(program) == [HOT]
    assert strategy.candidates == []


def test_a_strategy_is_made_not_named() -> None:
    wrong: Any = RandomStrategy

    with pytest.raises(TypeError, match=r"give a strategy, for example RandomStrategy\(\)"):
        BProgram(says(), strategy=wrong)
