"""Which b-threads the options choose: one line for each rule, in the order in which a program has them.

A new rule is a line of `RULES`, and a field of `Preset` for each of its options.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.threads import (
    abort_on_request,
    answers_in_source_order,
    at_most,
    by_constitution,
    continue_with_follow_ups,
    empty_answers,
    no_start_without_approval,
    one_at_a_time,
    only_whole_calls,
    retry,
    skip_when_steered,
    stop_on_request,
    too_many_failures,
)
from bp import BThread
from constitution import Action, Verdict

if TYPE_CHECKING:
    from agent.presets.preset import Preset

__all__ = ["RULES", "rules_of"]

Judgement = Callable[[Action], Verdict]
Choice = Callable[["Preset", Judgement | None], BThread | None]

RULES: tuple[Choice, ...] = (
    lambda preset, judge: only_whole_calls(),
    lambda preset, judge: by_constitution(judge) if judge else None,
    lambda preset, judge: no_start_without_approval(),
    lambda preset, judge: one_at_a_time(preset.together) if preset.sequential else None,
    lambda preset, judge: answers_in_source_order(),
    lambda preset, judge: skip_when_steered() if preset.steering else None,
    lambda preset, judge: _follow_ups(preset) if preset.follow_ups != "none" else None,
    lambda preset, judge: at_most(preset.max_iterations, preset.limit_text) if preset.max_iterations else None,
    lambda preset, judge: too_many_failures(preset.max_failures) if preset.max_failures else None,
    lambda preset, judge: empty_answers(preset.max_empty_answers) if preset.max_empty_answers else None,
    lambda preset, judge: retry(preset.attempts),
    lambda preset, judge: stop_on_request(preset.stop_after),
    lambda preset, judge: abort_on_request(),
)
"""Each line gives the b-thread that a preset's options choose, or None where they choose it not."""


def _follow_ups(preset: "Preset") -> BThread:
    return continue_with_follow_ups(preset.follow_ups == "all", preset.max_follow_ups)


def rules_of(preset: "Preset", judge: Judgement | None) -> tuple[BThread, ...]:
    """Return the rules that the options of `preset` choose; without `judge` nothing is judged."""
    chosen = (choose(preset, judge) for choose in RULES)
    return tuple(rule for rule in chosen if rule is not None)
