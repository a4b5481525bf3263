"""What must hold for every loop, as monitors: b-threads that only watch, and fail when it does not.

They are verified against everything that models, people and tools may do (`agent.verification`), and the same
monitors can run beside a real run. Some hold for every loop; the others are what a rule is there for.

- `calls`: each call is decided once, runs only when it was approved, and is answered once
- `runs`: one at a time, each goes on until its one end, and people are heard
- `people`: who steps in is heard
- `limits`: what limits count stays within them
- `spending`: tokens, money, time, the same call again, room in the context
- `work`: autonomous work, until it is complete
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

from agent.verification.invariants.calls import (
    answers_come_in_source_order,
    calls_come_one_at_a_time,
    each_answer_tells_what_happened,
    each_call_is_answered_once,
    each_proposal_is_decided_once,
    flawed_calls_do_not_run,
    starts_were_approved,
    the_constitution_is_obeyed,
    what_is_approved_runs,
)
from agent.verification.invariants.limits import (
    attempts_are_limited,
    empty_answers_are_limited,
    failures_are_limited,
    turns_are_limited,
)
from agent.verification.invariants.people import (
    a_continued_run_asks_again,
    follow_ups_are_heard,
    people_are_asked,
    steering_is_heard,
)
from agent.verification.invariants.runs import (
    STILL_UNDER_WAY,
    a_run_ends,
    a_run_goes_on,
    an_abort_ends_the_run,
    nothing_is_in_flight_at_the_end,
    nothing_starts_after_abort,
    nothing_starts_after_stop,
    one_answer_a_turn,
    one_run_after_the_other,
)
from agent.verification.invariants.spending import (
    a_deadline_ends_the_run,
    a_summary_stands_alone,
    cost_is_limited,
    nothing_starts_after_the_deadline,
    repetitions_are_limited,
    tokens_are_limited,
    tokens_of_a_turn_are_limited,
)
from agent.verification.invariants.work import (
    iterations_are_limited,
    objectives_do_not_overlap,
    wishes_to_stop_are_heard,
    work_ends_complete,
)
from bp import BThread, BThreadFunction

__all__ = ["ALWAYS", "OF_RULES", "STILL_UNDER_WAY", "Arguments", "arguments_of", "invariants_of", "statement_of"]

ALWAYS = (
    one_run_after_the_other(),
    one_answer_a_turn(),
    a_run_goes_on(),
    a_continued_run_asks_again(),
    nothing_is_in_flight_at_the_end(),
    starts_were_approved(),
    each_proposal_is_decided_once(),
    each_call_is_answered_once(),
    each_answer_tells_what_happened(),
)
"""What the core alone keeps."""

Arguments = Mapping[str, Any]
OF_RULES: tuple[tuple[tuple[str, ...], Callable[[Arguments], BThread]], ...] = (
    (("only_whole_calls",), lambda of: flawed_calls_do_not_run()),
    (("by_constitution",), lambda of: the_constitution_is_obeyed(of["judge"])),
    (("no_start_without_approval",), lambda of: what_is_approved_runs()),
    (("one_at_a_time",), lambda of: calls_come_one_at_a_time(of["together"])),
    (("answers_in_source_order",), lambda of: answers_come_in_source_order()),
    (("skip_when_steered",), lambda of: steering_is_heard()),
    (("continue_with_follow_ups",), lambda of: follow_ups_are_heard(of["at_once"], of["most"])),
    (("seek_steering",), lambda of: people_are_asked("steering")),
    (("seek_follow_ups",), lambda of: people_are_asked("follow_up")),
    (("at_most",), lambda of: turns_are_limited(of["turns"])),
    (("too_many_failures",), lambda of: failures_are_limited(of["limit"])),
    (("empty_answers",), lambda of: empty_answers_are_limited(of["limit"])),
    (("doom_loop",), lambda of: repetitions_are_limited(of["n"])),
    (("budget_of_tokens",), lambda of: tokens_are_limited(of["limit"])),
    (("budget_per_turn",), lambda of: tokens_of_a_turn_are_limited(of["limit"])),
    (("budget_of_cost",), lambda of: cost_is_limited(of["limit"])),
    (("deadline",), lambda of: nothing_starts_after_the_deadline()),
    (("deadline",), lambda of: a_deadline_ends_the_run()),
    (("complete_to_finish",), lambda of: work_ends_complete(of["after_objective"])),
    (("one_objective",), lambda of: objectives_do_not_overlap()),
    (("iterations_at_most",), lambda of: iterations_are_limited(of["turns"])),
    (("stop_when_said",), lambda of: wishes_to_stop_are_heard()),
    (("summarize_when_full",), lambda of: a_summary_stands_alone()),
    (("retry",), lambda of: attempts_are_limited(of["attempts"])),
    (("retry", "at_most"), lambda of: a_run_ends()),
    (("retry", "iterations_at_most"), lambda of: a_run_ends()),
    (("stop_on_request",), lambda of: nothing_starts_after_stop(of["after"])),
    (("abort_on_request",), lambda of: nothing_starts_after_abort()),
    (("abort_on_request",), lambda of: an_abort_ends_the_run()),
)
"""What holds only where certain rules are there; made with the arguments of the last of them."""


def invariants_of(rules: Sequence[BThread]) -> tuple[BThread, ...]:
    """Return the monitors of a loop with these rules. Rules are known by their names."""
    present = {rule.name: rule for rule in rules}
    kept = [make(arguments_of(present[names[-1]])) for names, make in OF_RULES if present.keys() >= set(names)]
    return (*ALWAYS, *kept)


def statement_of(name: str) -> str | None:
    """Return what the monitor of this name watches over; None when there is none."""
    monitor = globals().get(name)
    return str(monitor.__doc__) if isinstance(monitor, BThreadFunction) else None


def arguments_of(rule: BThread) -> Arguments:
    """Return the arguments of a b-thread by name, with those that were left to their defaults."""
    bound = signature(rule.function).bind(*rule.args, **rule.kwargs)
    bound.apply_defaults()
    return bound.arguments
