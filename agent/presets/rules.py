"""Which b-threads the options choose: one line for each rule, in the order in which a program has them.

A new rule is a line of `RULES`, and a field of `Preset` for each of its options.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent.threads.budget import budget_of_cost, budget_of_tokens, budget_per_turn
from agent.threads.completion import complete_to_finish, iterations_at_most, one_objective
from agent.threads.deadlines import deadline
from agent.threads.flaws import only_whole_calls
from agent.threads.follow_ups import continue_with_follow_ups
from agent.threads.judging import by_constitution
from agent.threads.limits import at_most, empty_answers, too_many_failures
from agent.threads.order import answers_in_source_order, one_at_a_time
from agent.threads.repetition import doom_loop
from agent.threads.retries import retry
from agent.threads.starts import no_start_without_approval
from agent.threads.steering import skip_when_steered
from agent.threads.stopping import abort_on_request, stop_on_request
from agent.threads.summaries import summarize_when_full
from agent.threads.wishes import stop_when_said
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
    lambda preset, judge: follow_ups(preset) if preset.follow_ups != "none" else None,
    lambda preset, judge: iteration_limit(preset) if preset.max_iterations else None,
    lambda preset, judge: too_many_failures(preset.max_failures) if preset.max_failures else None,
    lambda preset, judge: empty_answers(preset.max_empty_answers) if preset.max_empty_answers else None,
    lambda preset, judge: doom_loop(preset.doom_loop) if preset.doom_loop else None,
    lambda preset, judge: budget_of_tokens(preset.max_tokens) if preset.max_tokens else None,
    lambda preset, judge: budget_per_turn(preset.max_tokens_per_iteration) if preset.max_tokens_per_iteration else None,
    lambda preset, judge: budget_of_cost(preset.max_cost) if preset.max_cost else None,
    lambda preset, judge: deadline(preset.deadline) if preset.deadline else None,
    lambda preset, judge: complete_to_finish(preset.objective_tool) if preset.finishes_by_tool else None,
    lambda preset, judge: one_objective() if preset.objective_tool else None,
    lambda preset, judge: summarize_when_full(preset.summary_from) if preset.summary_from else None,
    lambda preset, judge: retry(preset.attempts),
    lambda preset, judge: stop_on_request(preset.stop_after),
    lambda preset, judge: stop_when_said() if preset.stop_text == "letters" else None,
    lambda preset, judge: abort_on_request(),
)
"""Each line gives the b-thread that a preset's options choose, or None where they choose none."""


def follow_ups(preset: "Preset") -> BThread:
    """Return the b-thread that goes on with follow-ups, one by one or all at once."""
    return continue_with_follow_ups(preset.follow_ups == "all", preset.max_follow_ups)


def iteration_limit(preset: "Preset") -> BThread:
    """Return the b-thread that counts iterations: from the first objective on, where objectives are taken."""
    limit = iterations_at_most if preset.objective_tool else at_most
    return limit(preset.max_iterations or 0, preset.limit_text)


def rules_of(preset: "Preset", judge: Judgement | None) -> tuple[BThread, ...]:
    """Return the rules that the options of `preset` choose; without `judge` nothing is judged."""
    chosen = (choose(preset, judge) for choose in RULES)
    return tuple(rule for rule in chosen if rule is not None)
