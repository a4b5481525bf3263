"""Model-checks the loop as configured: for all outcomes of models, constitution, users and tools, in any order."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

from attrs import evolve

from agent.effects.loop import declared_effects
from agent.effects.monitoring import laboratory_effects
from agent.presets.preset import Preset
from agent.threads.core import CORE
from agent.verification.counterexample import tell
from agent.verification.environment import (
    EXAMPLES_WITH_PROTOCOLS,
    Examples,
    any_verdict,
    declared_actions,
    environment,
    in_threes,
    people_for,
    usual_examples,
)
from agent.verification.invariants import invariants_of, shipped_name
from agent.verification.protocol_invariants import invariants_of_protocols
from bp import BProgram, BProgramError, BThread, Event, RandomStrategy, Verification, verify
from bp.statements import as_list
from constitution import Action, effects_of

__all__ = ["loop_rules", "sampled_events", "tell", "verify_loop"]

SMALL = {
    "max_iterations": 2,
    "max_failures": 2,
    "max_empty_answers": 2,
    "attempts": 2,
    "max_follow_ups": 1,
    "doom_loop": 2,
    "max_tokens": 2,
    "max_tokens_per_iteration": 1,
    "max_cost": 2.0,
    "deadline": 1.0,
    "context_tokens": 1,
}
"""Small limits for short searches; results carry over to larger ones, because the b-threads only count."""

BASH = Action("bash", "write", "/", command="true")


def verify_loop(
    rules: Preset | Sequence[BThread],
    protocols: Sequence[BThread] = (),
    *,
    core: Sequence[BThread] = CORE,
    examples: Examples | None = None,
    invariants: Sequence[BThread] = (),
    required: Sequence[BThread] | None = None,
    **options: Any,
) -> Verification:
    """Model-check a loop of `core`, `rules` and `protocols` with the invariants of all; `options`: of `bp.verify`.

    rules: a preset, which gets small limits, or b-threads. examples: outcomes of effects, by default all that make a
    difference. invariants: further ones, for custom protocols. required: the rules whose invariants have to hold, by
    default all given ones; name more to see what breaks without a rule. Raises TypeError for one b-thread in the place
    of a list.
    """
    chosen = loop_rules(rules) if isinstance(rules, Preset) else as_list("rules", rules)
    protocols, invariants = as_list("protocols", protocols), as_list("invariants", invariants)
    kept = dict.fromkeys((*invariants_with(chosen if required is None else required, protocols), *invariants))
    looked_at = (*chosen, *(required or ()))
    usual = usual_examples(looked_at, protocols)
    if not protocols and "one_at_a_time" in map(shipped_name, chosen):
        usual = in_threes(usual)  # with parallel calls, three would have too many states
    world = world_of(looked_at, protocols, examples or usual)
    possible = people_for((*looked_at, *protocols))
    program = (*core, *chosen, *protocols, *kept)
    return verify(*program, environment=world, **{"endless": True, "possible": possible, **options})


def world_of(rules: Sequence[BThread], protocols: Sequence[BThread], examples: Examples) -> tuple[BThread, ...]:
    """Return the environment of a loop with these rules, with the constitution's tables loaded."""
    for facts in (BASH, *(each.facts for each in declared_actions((*rules, *protocols)))):
        effects_of(facts)  # has the constitution load its tables now, so that no predicate does meanwhile
    effects = (*declared_effects(), *(laboratory_effects() if protocols else ()))
    return environment(effects, {**EXAMPLES_WITH_PROTOCOLS, **examples})


SAMPLE = 1500  # steps


def sampled_events(protocols: Sequence[BThread]) -> tuple[Event, ...]:
    """Return the events of a random run of the core with these protocols, for pictures of what they hear."""
    people, chance, heard = people_for(protocols), Random(0), dict[Event, None]()
    world = world_of((), protocols, usual_examples((), protocols))
    with BProgram(*CORE, *protocols, *world, strategy=RandomStrategy(0)) as program, suppress(BProgramError):
        for _ in range(SAMPLE if protocols else 0):
            if (step := program.step()) is None:
                program.post(chance.choice(people))
            else:
                heard[step.event] = None
    return tuple(heard)


def invariants_with(rules: Sequence[BThread], protocols: Sequence[BThread]) -> tuple[BThread, ...]:
    """Return all invariants of a loop with these rules and protocols."""
    return (*invariants_of((*rules, *protocols)), *(invariants_of_protocols(protocols) if protocols else ()))


def loop_rules(preset: Preset) -> tuple[BThread, ...]:
    """Return the rules of `preset` with small limits and a constitution with any verdict."""
    limits: dict[str, Any] = {name: value for name, value in SMALL.items() if getattr(preset, name, None) is not None}
    return evolve(preset, **limits).rules(any_verdict)
