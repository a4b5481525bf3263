"""What a run may take, and autonomous work, model-checked: the invariants hold, and every planted fault is found."""

import pytest
from attrs import evolve

from agent.presets.shipped import PRESETS
from agent.verification.environment import EXAMPLES, FIRST, Examples
from agent.verification.loop import Combination, loop_rules, verify_loop
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import InferenceFinished, InferenceRequested
from agent.vocabulary.messages import AssistantMessage
from bp import Event
from tests.agent.faults import people
from tests.agent.faults import spending as faults
from tests.agent.faults.fault import Fault, is_found, told
from tests.agent.verification.many_loops import loops_of, verify_each

pytestmark = pytest.mark.slow

EVERYTHING = evolve(
    PRESETS["autonomous"],
    doom_loop=3,
    max_tokens=1,
    max_tokens_per_iteration=1,
    max_cost=1.0,
    deadline=1.0,
    context_tokens=1,
    compaction="summary",
)
RULES = {rule.name: rule for rule in loop_rules(EVERYTHING)}
NEW = (
    "doom_loop",
    "budget_of_tokens",
    "budget_per_turn",
    "budget_of_cost",
    "deadline",
    "complete_to_finish",
    "one_objective",
    "iterations_at_most",
    "stop_when_said",
    "summarize_when_full",
)
STOPPABLE = ("stop_on_request", "abort_on_request")


def test_the_invariants_hold_for_each_alone_and_for_some_with_a_stop_and_an_abort() -> None:
    alone = [Combination(f"only {name}", (name,)) for name in NEW]
    stopped = [Combination(f"{name}, stopped", (name, *STOPPABLE)) for name in ("deadline", "summarize_when_full")]
    stopped.append(Combination("work, stopped", ("complete_to_finish", "one_objective", *STOPPABLE)))
    people = ("skip_when_steered", "continue_with_follow_ups")
    stopped += [Combination(f"work, {name}", ("complete_to_finish", name)) for name in people]

    result = verify_each(loops_of([*RULES.values()], [*alone, *stopped]))

    assert result.holds, told(result)


def test_the_invariants_hold_for_all_that_the_autonomous_preset_has_of_its_own() -> None:
    preset = evolve(PRESETS["autonomous"], together="none", steering=False, follow_ups="none")  # verified elsewhere

    result = verify_loop(loop_rules(preset))

    assert result.holds, told(result)


def test_the_invariants_hold_where_complete_ends_every_run() -> None:
    rules = loop_rules(evolve(PRESETS["default"], complete_tool=True))
    present = ("one_at_a_time", "at_most", "complete_to_finish", "retry", *STOPPABLE)

    result = verify_loop([rule for rule in rules if rule.name in present])

    assert result.holds, told(result)


def twice(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return answers that hold the same call twice."""
    same = (FIRST, ToolCall("c2", FIRST.tool), ToolCall("c3", FIRST.tool))
    calls = ((FIRST,), same[:2], same)
    return tuple(InferenceFinished(requested.draft, AssistantMessage(), some) for some in calls)


def test_the_doom_loop_holds_within_an_answer_too_in_turn_and_in_parallel() -> None:
    examples: Examples = {**EXAMPLES, InferenceRequested: twice}
    for names in (("doom_loop",), ("doom_loop", "one_at_a_time", "answers_in_source_order")):
        result = verify_loop([RULES[name] for name in names], examples=examples)

        assert result.holds, told(result)


FAULTS = (
    Fault(faults.never_compares, (), "error", "repetitions_are_limited"),
    Fault(faults.holds_the_repeated_call, (), "deadlock", "carry_out"),
    Fault(faults.skips_the_repeated_call_and_goes_on, (), "error", "repetitions_are_limited"),
    Fault(faults.forgets_what_was_spent_at_each_turn, (), "error", "tokens_are_limited"),
    Fault(faults.holds_when_the_money_is_gone, (), "deadlock", "converse"),
    Fault(faults.allows_a_token_more, (), "error", "tokens_of_a_turn_are_limited"),
    Fault(faults.lets_approved_calls_start_late, (), "error", "nothing_starts_after_the_deadline"),
    Fault(faults.holds_when_the_time_is_over, (), "deadlock", "converse"),
    Fault(faults.ends_the_run_when_the_time_is_over, (), "error", "nothing_is_in_flight_at_the_end"),
    Fault(faults.holds_the_end, (), "deadlock", "converse"),
    Fault(faults.never_hears_complete, (), "error", "work_ends_complete"),
    Fault(faults.goes_on_with_the_batch, ("one_at_a_time",), "error", "work_ends_complete"),
    Fault(faults.refuses_every_completion, (), "deadlock", "converse"),
    Fault(faults.forgets_the_objective_at_the_next_turn, (), "error", "objectives_do_not_overlap"),
    Fault(faults.begins_anew_with_each_objective, (), "error", "iterations_are_limited"),
    Fault(faults.hears_answers_only, (), "hot", "wishes_to_stop_are_heard"),
    Fault(people.asks_after_a_stop, ("by_constitution",), "error", "nothing_starts_after_stop"),
    Fault(faults.sums_up_while_tools_run, (), "error", "a_summary_stands_alone"),
    Fault(faults.waits_for_a_summary_that_may_fail, (), "deadlock", "converse"),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.planted.__name__)
def test_every_planted_fault_is_found(fault: Fault) -> None:
    name = fault.planted.name  # type: ignore[attr-defined]
    planted = fault.planted(*RULES[name].args, **RULES[name].kwargs)

    result = verify_loop([planted, *(RULES[rule] for rule in fault.rules)])

    assert is_found(fault, result), told(result)
