"""The shipped loop is model-checked: its invariants hold with any rules, and every planted fault is found."""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.effects.loop import declared_effects
from agent.presets.shipped import PRESETS
from agent.threads.core import CORE
from agent.threads.steering import continue_with_follow_ups, seek_follow_ups, seek_steering
from agent.threads.tool_calls import one_at_a_time
from agent.verification.counterexample import tell
from agent.verification.environment import EXAMPLES, FIRST, SECOND, Examples, confined_descriptions, examples_for
from agent.verification.invariants import ALWAYS, OF_RULES, invariants_of, not_claimed
from agent.verification.loop import loop_rules, verify_loop
from agent.vocabulary.events import (
    CallAnswered,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage
from bp import NONE, BThread, BThreadBody, Event, Verification, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.faults import core, people, rules
from tests.agent.faults.fault import Fault, is_found, told
from tests.agent.verification.many_loops import loops_of, small_combinations, verify_each
from tests.agent.verification.verify_every_subset import THREE_CALLS

pytestmark = pytest.mark.slow

RULES = loop_rules(evolve(PRESETS["default"], together="none"))  # the tests of calls that run together say so
NAMES = tuple(rule.name for rule in RULES)


@cache
def verified(names: tuple[str, ...]) -> Verification:
    """Model-check the loop with these rules, once."""
    return verify_loop(rules_named(names))


def rules_named(names: tuple[str, ...]) -> tuple[BThread, ...]:
    return tuple(rule for rule in RULES if rule.name in names)


@pytest.mark.timeout(300)
def test_the_invariants_hold_for_none_all_each_alone_each_left_out_and_every_pair() -> None:
    result = verify_each(loops_of(RULES, small_combinations(NAMES)))

    assert result.holds, told(result)


def test_the_invariants_hold_for_up_to_three_calls_in_turn() -> None:
    result = verify_loop(RULES, examples=THREE_CALLS)

    assert result.holds, told(result)


def test_the_invariants_hold_when_neighbours_run_together_that_may() -> None:
    limits = ("at_most", "too_many_failures", "empty_answers", "retry", "continue_with_follow_ups")
    names = tuple(name for name in NAMES if name not in (*limits, "one_at_a_time"))
    safe = [*rules_named(names), one_at_a_time("neighbours")]

    result = verify_loop(safe, examples=examples_for(safe))

    assert result.holds, told(result)


def test_the_invariants_hold_when_all_calls_of_an_answer_run_together_if_they_may() -> None:
    safe = [*rules_named(("only_whole_calls", "answers_in_source_order", "abort_on_request")), one_at_a_time("all")]

    result = verify_loop(safe, examples=examples_for(safe))

    assert result.holds, told(result)


@pytest.mark.parametrize(
    "planted", [people.forgets_the_barrier, people.takes_one_for_all, people.waits_for_the_barrier_to_begin]
)
def test_a_barrier_that_does_not_hold_is_found(planted: Callable[..., BThread]) -> None:
    fault = Fault(planted, (), "error", "calls_come_one_at_a_time")

    result = verify_loop([planted("neighbours")])

    assert is_found(fault, result), told(result)


def test_the_invariants_hold_when_people_are_asked_whether_they_have_something_to_say() -> None:
    names = ("skip_when_steered", "continue_with_follow_ups", "at_most", "stop_on_request", "abort_on_request")

    result = verify_loop([seek_steering(), seek_follow_ups(), *rules_named(names)])

    assert result.holds, told(result)


@pytest.mark.parametrize(
    ("planted", "kind", "culprit"),
    [
        (people.does_not_wait_for_people, "error", "people_are_asked"),
        (people.drops_what_people_say, "error", "people_are_asked"),
        (people.asks_once, "error", "people_are_asked"),
        (people.waits_for_people_after_the_end, "error", "nothing_is_in_flight_at_the_end"),
    ],
)
def test_people_who_are_not_asked_or_not_heard_are_found(
    planted: Callable[..., BThread], kind: str, culprit: str
) -> None:
    result = verify_loop([planted()])

    assert is_found(Fault(planted, (), kind, culprit), result)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_invariants_hold_when_several_follow_ups_wait(at_once: bool) -> None:
    names = ("skip_when_steered", "at_most", "stop_on_request")

    result = verify_loop([*rules_named(names), continue_with_follow_ups(at_once, most=2)])

    assert result.holds, told(result)


def test_a_second_follow_up_that_is_forgotten_is_found() -> None:
    fault = Fault(people.forgets_the_second, (), "error", "follow_ups_are_heard")

    result = verify_loop([people.forgets_the_second(False, 2)])

    assert is_found(fault, result), told(result)


def test_the_invariants_hold_when_the_calls_of_a_step_are_finished_after_a_stop() -> None:
    by_step = loop_rules(evolve(PRESETS["default"], stop_after="step", sequential=False))

    result = verify_loop(by_step)

    assert result.holds, told(result)


@bthread
def one_tool_only() -> BThreadBody:
    yield sync(wait_for=ToolStarted)
    yield sync(refuse=GateApproved, because="one tool is enough")


def test_a_question_is_over_before_the_call_is_answered_that_a_protocol_has_refused_meanwhile() -> None:
    """Found by the checker: its answer came in a later turn, and was taken for that of the next question."""
    result = verify_loop([*RULES, one_tool_only()])

    assert result.holds, told(result)


FAULTS = (
    Fault(core.does_not_wait_for_the_gate, (), "error", "starts_were_approved"),
    Fault(core.runs_other_arguments_than_approved, (), "error", "starts_were_approved"),
    Fault(core.does_not_answer_rejections, ("by_constitution",), "hot", "a_run_goes_on"),
    Fault(core.answers_before_the_tool_has_ended, (), "error", "each_answer_tells_what_happened"),
    Fault(core.answers_twice, (), "error", "each_call_is_answered_once"),
    Fault(core.insists_on_its_proposal, ("only_whole_calls",), "deadlock", "carry_out"),
    Fault(core.says_of_rejected_calls_that_they_ran, ("by_constitution",), "error", "each_answer_tells_what_happened"),
    Fault(core.without_otherwise, ("by_constitution",), "deadlock", "gate"),
    Fault(core.with_a_single_slot, ("by_constitution",), "hot", "a_run_goes_on"),
    Fault(core.decides_twice, (), "error", "each_proposal_is_decided_once"),
    Fault(core.commits_twice, (), "error", "one_answer_a_turn"),
    Fault(core.drops_calls, (), "error", "one_answer_a_turn"),
    Fault(core.forgets_that_inference_may_fail, (), "hot", "a_run_goes_on"),
    Fault(core.does_not_wait_for_all_answers, (), "error", "each_call_is_answered_once"),
    Fault(core.takes_a_text_for_the_end, (), "error", "each_call_is_answered_once"),
    Fault(core.takes_an_answer_with_text_for_text, (), "error", "one_answer_a_turn"),
    Fault(
        core.goes_on_after_a_refused_call, ("by_constitution", "one_at_a_time"), "error", "each_call_is_answered_once"
    ),
    Fault(rules.judges_the_first_call_of_an_answer, (), "error", "the_constitution_is_obeyed"),
    Fault(rules.holds_the_second_call_only, (), "error", "calls_come_one_at_a_time"),
    Fault(rules.hears_one_stop, (), "error", "nothing_starts_after_stop"),
    Fault(core.insists_on_inference, ("at_most",), "deadlock", "converse"),
    Fault(core.ends_twice, (), "deadlock", "converse"),
    Fault(core.ends_at_a_stop_by_itself, (), "error", "nothing_is_in_flight_at_the_end"),
    Fault(core.lets_prompts_through, (), "error", "one_run_after_the_other"),
    Fault(core.lets_everything_through_between_runs, (), "error", "one_run_after_the_other"),
    Fault(core.believes_every_yes, ("by_constitution",), "error", "what_starts_was_judged_as_it_is"),
    Fault(rules.takes_any_answer_for_a_yes, (), "error", "the_constitution_is_obeyed"),
    Fault(rules.judges_one_call_at_a_time, (), "error", "the_constitution_is_obeyed"),
    Fault(rules.never_lets_go, (), "deadlock", "gate"),
    Fault(rules.with_stale_objections, ("stop_on_request", "one_at_a_time"), "error", "the_constitution_is_obeyed"),
    Fault(rules.never_believes_the_gate, (), "error", "what_is_approved_runs"),
    Fault(rules.lets_calls_run_that_are_cut_off, (), "error", "flawed_calls_do_not_run"),
    Fault(rules.holds_flawed_calls, (), "deadlock", "carry_out"),
    Fault(rules.waits_for_the_last_answer, (), "deadlock", "carry_out"),
    Fault(rules.lets_go_when_the_first_call_is_proposed, (), "error", "calls_come_one_at_a_time"),
    Fault(rules.lets_go_at_the_next_result, (), "error", "answers_come_in_source_order"),
    Fault(rules.wants_the_last_answer_first, ("one_at_a_time",), "deadlock", "carry_out"),
    Fault(rules.holds_at_the_limit, (), "deadlock", "converse"),
    Fault(rules.allows_one_more, (), "error", "turns_are_limited"),
    Fault(rules.ends_the_run_itself, (), "error", "each_call_is_answered_once"),
    Fault(rules.holds_after_failures, (), "deadlock", "converse"),
    Fault(rules.forgives_failures_at_each_turn, (), "error", "failures_are_limited"),
    Fault(rules.takes_no_answer_for_empty, (), "error", "empty_answers_are_limited"),
    Fault(rules.holds_after_empty_answers, (), "deadlock", "converse"),
    Fault(rules.never_gives_up, (), "error", "attempts_are_limited"),
    Fault(rules.does_not_wait_for_the_backoff, (), "error", "attempts_are_limited"),
    Fault(rules.asks_again_though_it_was_too_long, (), "error", "an_overflow_is_mended_once"),
    Fault(rules.sums_up_again_and_again, (), "error", "an_overflow_is_mended_once"),
    Fault(rules.holds_for_good_after_a_failure, (), "deadlock", "converse"),
    Fault(rules.only_blocks, (), "deadlock", "converse"),
    Fault(rules.lets_approved_calls_start, (), "error", "nothing_starts_after_stop"),
    Fault(rules.lets_the_backoff_begin, ("retry",), "error", "nothing_starts_after_stop"),
    Fault(rules.ends_the_run_at_once, (), "error", "nothing_is_in_flight_at_the_end"),
    Fault(rules.lets_the_run_complete, (), "error", "nothing_starts_after_abort"),
    Fault(rules.waits_for_the_next_turn, (), "error", "nothing_starts_after_abort"),
    Fault(people.hears_steering_once, (), "error", "steering_is_heard"),
    Fault(people.lets_the_run_complete, (), "error", "steering_is_heard"),
    Fault(people.goes_on_with_the_batch, (), "error", "steering_is_heard"),
    Fault(people.skips_one_call, (), "error", "steering_is_heard"),
    Fault(people.holds_the_batch, (), "deadlock", "carry_out"),
    Fault(people.lets_the_run_complete_when_steered, (), "error", "follow_ups_are_heard"),
    Fault(people.repeats_the_first, (), "error", "follow_ups_are_heard"),
    Fault(people.takes_itself_for_heard, ("skip_when_steered",), "error", "follow_ups_are_heard"),
    Fault(people.holds_completion, (), "deadlock", "converse"),
    Fault(people.completes_all_the_same, ("continue_with_follow_ups",), "error", "a_continued_run_asks_again"),
)


def verify_fault(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> Verification:
    """Model-check the loop with the fault in the place of the b-thread whose name it has."""
    name = fault.planted.name  # type: ignore[attr-defined]
    present = rules_named((*fault.rules, name))
    if name == "carry_out":
        planted = lambda call, disclosure: fault.planted(call)  # noqa: E731 - it stands in for a b-thread function
        monkeypatch.setattr(import_module("agent.threads.core"), "carry_out", planted)
        return verify_loop(present)
    if name in NAMES:
        return verify_loop([_planted(fault, rule) if rule.name == name else rule for rule in present])
    return verify_loop(present, core=[fault.planted() if bthread.name == name else bthread for bthread in CORE])


def _planted(fault: Fault, rule: BThread) -> BThread:
    return fault.planted(*rule.args, **rule.kwargs)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.planted.name}_that_{fault.planted.__name__}")
def test_a_planted_fault_is_found_and_named(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    result = verify_fault(fault, monkeypatch)

    assert is_found(fault, result), told(result)


def equal_ids(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return an answer whose calls have one id, which no client gives to the loop."""
    return (InferenceFinished(requested.draft, AssistantMessage(), (FIRST, evolve(SECOND, id=FIRST.id))),)


def test_that_the_ids_of_an_answer_differ_is_assumed_and_an_environment_that_breaks_it_is_named() -> None:
    result = verify_loop(RULES, examples={**EXAMPLES, InferenceRequested: equal_ids}, first=True)

    broken = {violation.bthread for violation in result.violations}
    assert "ids_of_an_answer_differ" in broken
    assert "an answer has two calls of one id: c1, c1" in told(result)


NOT_NOTICED = {"no_start_without_approval"}
"""Defense in depth: `starts_were_approved` holds without it as long as `carry_out` waits for the gate."""


@pytest.mark.parametrize("left_out", NAMES)
def test_the_invariant_of_a_rule_that_is_left_out_breaks(left_out: str) -> None:
    """Invariants follow from what is required, and not from the rules that are there."""
    required = rules_named((left_out,))

    result = verify_loop([], required=required, first=True)

    assert bool(result.violations) == (left_out not in NOT_NOTICED)
    own = {monitor.name for monitor in invariants_of(required)} - {each.name for each in ALWAYS}
    assert {violation.bthread for violation in result.violations} <= own


def test_a_requirement_of_rules_that_are_not_there_is_told_as_not_claimed() -> None:
    without_stop = [rule for rule in RULES if rule.name != "stop_on_request"]

    assert not_claimed(without_stop, RULES) == ("nothing_starts_after_stop",)


@pytest.mark.parametrize("preset", ["workspace", "gated", "passthrough", "coding"])
def test_each_preset_holds_and_nothing_of_it_is_unreached(preset: str) -> None:
    result = verify_loop(PRESETS[preset])

    assert result.verdict == "holds", str(result)


DEFENSE_IN_DEPTH = "no_start_without_approval"


@pytest.mark.parametrize("rule", NAMES)
def test_each_rule_changes_what_can_happen_except_the_defense_in_depth(rule: str) -> None:
    """Where the invariant `starts_were_approved` holds without it, that rule has nothing to refuse."""
    alone, nothing = verified((rule,)), verified(())

    changes_nothing = (alone.states, alone.transitions) == (nothing.states, nothing.transitions)
    assert changes_nothing == (rule == DEFENSE_IN_DEPTH)


def test_the_defense_in_depth_stops_a_call_that_does_not_wait_for_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault(core.does_not_wait_for_the_gate, (DEFENSE_IN_DEPTH,), "error", "starts_were_approved")

    result = verify_fault(fault, monkeypatch)

    assert not is_found(fault, result)


def test_a_tool_that_an_abort_does_not_cut_short_keeps_the_run_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults of an effect's declaration are found too, because the environment is made of it."""
    endless = [evolve(effect, until=lambda _: NONE) for effect in declared_effects()]
    monkeypatch.setattr(import_module("agent.verification.loop"), "declared_effects", lambda: endless)

    result = verify_loop(rules_named(("abort_on_request",)))

    assert [(violation.kind, violation.bthread) for violation in result.violations] == [
        ("hot", "an_abort_ends_the_run")
    ]


def test_a_counterexample_names_events_calls_and_the_invariant_that_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = next(fault for fault in FAULTS if fault.planted is core.does_not_wait_for_the_gate)

    result = verify_fault(fault, monkeypatch)

    assert tell(result.violations[0]).splitlines()[-5:] == [
        "  5  answer_committed with c1: requested by choose; waited for by converse",
        "  6  proposed_action c1: requested by carry_out",
        "  7  action_described c1 (judged: allow): from outside; waited for by gate, carry_out",
        "  8  tool_started c1: requested by carry_out",
        "starts_were_approved is broken: c1 starts, and the gate has not approved it",
    ]


def test_the_invariants_can_run_beside_a_real_agent(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")
    calls = [call("read_file", path="a.txt"), call("bash", command="rm -rf /")]

    agent = make_agent(calls, "Done.", "Done again.", threads=invariants_of(PRESETS["default"].rules()))
    runs = [agent.run_sync("Look at a.txt"), agent.run_sync("And again")]

    assert [run.status for run in runs] == ["completed", "completed"]
    assert [event.outcome for event in runs[0].events if isinstance(event, CallAnswered)] == ["ran", "rejected"]


def test_the_documents_name_every_invariant() -> None:
    document = (Path(__file__).parents[3] / "docs" / "verification.md").read_text(encoding="utf-8")

    arguments: dict[str, Any] = defaultdict(lambda: 1)  # whatever the rules may be made with
    names = {monitor.name for monitor in (*ALWAYS, *(make(arguments) for _, make in OF_RULES))}
    assert names == set(re.findall(r"`(\w+)` \| \w", document)) & names


CONFINED: Examples = {**EXAMPLES, ProposedAction: confined_descriptions}
GUARDED = ("only_whole_calls", "by_constitution", "no_start_without_approval", "stop_on_request")


def test_the_invariants_hold_for_calls_in_a_sandbox() -> None:
    result = verify_loop(rules_named(GUARDED), examples=CONFINED)

    assert result.holds, told(result)


def test_a_sandbox_that_is_lifted_without_a_yes_is_found() -> None:
    present = [_planted(LIFTS, rule) if rule.name == "by_constitution" else rule for rule in rules_named(GUARDED)]

    assert is_found(LIFTS, verify_loop(present, examples=CONFINED, first=True))


LIFTS = Fault(rules.lifts_without_a_yes, GUARDED, "error", "rights_were_granted")
