"""The loop as a whole: the b-threads of a preset, its invariants and its environment."""

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from agent.invariants import invariants_of
from agent.presets import Preset
from agent.threads import CORE
from agent.verification.environment import EXAMPLES, PEOPLE, Examples, any_verdict, environment, loop_effects
from bp import BThread, Verification, verify

__all__ = ["SMALL", "loop_rules", "verify_loop"]

SMALL = {"max_iterations": 2, "max_failures": 2, "max_empty_answers": 2, "attempts": 2}
"""Limits that are reached soon; what holds for two holds for twenty, because the b-threads only count."""


def verify_loop(
    rules: Sequence[BThread], *, core: Sequence[BThread] = CORE, examples: Examples = EXAMPLES, **options: Any
) -> Verification:
    """Model-check a loop of `core` and `rules` with its invariants; `options` are those of `bp.verify`."""
    world = environment(loop_effects(), examples)
    options = {"endless": True, **options}
    return verify(*core, *rules, *invariants_of(rules), environment=world, possible=PEOPLE, **options)


def loop_rules(preset: Preset) -> tuple[BThread, ...]:
    """Return the rules of `preset` with small limits and a constitution that may say anything."""
    limits: dict[str, Any] = {name: value for name, value in SMALL.items() if getattr(preset, name) is not None}
    return evolve(preset, **limits).rules(any_verdict)
