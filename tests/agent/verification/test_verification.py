"""The shipped loop is model-checked: its invariants hold with any rules, and every planted fault is found."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Preset, call
from agent.effects.loop import declared_effects
from agent.presets import PRESETS
from agent.threads.core import CORE
from agent.threads.endings import at_most, budget_per_turn, retry, stop_on_request, too_many_failures
from agent.threads.steering import continue_with_follow_ups, seek_follow_ups, seek_steering
from agent.threads.tool_calls import doom_loop, one_at_a_time
from agent.verification import loop_rules, verify_loop
from agent.verification.counterexample import short, tell
from agent.verification.environment import (
    EXAMPLES,
    FIRST,
    SECOND,
    THIRD,
    Examples,
    descriptions,
    drafts,
    examples_for,
    in_threes,
    lookups,
    usual_examples,
)
from agent.verification.invariants import OF_RULES, invariants_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    CallAnswered,
    FactsRequested,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, ToolResult
from agent.vocabulary.questions import AuditGiven, ChanceDrawn, Draft, ScoreGiven, ScoreRequested, WholeEpisode
from bp import NONE, BThread, BThreadBody, Event, Verification, Violation, bthread, sync
from bp.verification.report import Happened
from constitution import GRANTED, Action
from tests.agent.conftest import MakeAgent
from tests.agent.faults import LEAVES_OUT_WITHOUT_A_YES, LIFTS_WITHOUT_A_YES, Fault, is_found, told
from tests.agent.faults import LOOP_FAULTS as FAULTS
from tests.agent.verification.many_loops import ENOUGH, WHOLE, Loop, Loops, loops_of, not_held, sampled, verify_each

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_runs")]

RULES = loop_rules(evolve(PRESETS["default"], together="none"))  # the tests of calls that run together say so
NAMES = tuple(rule.name for rule in RULES)
WORK = loop_rules(
    evolve(
        PRESETS["autonomous"],
        doom_loop=3,
        max_tokens=1,
        max_tokens_per_iteration=1,
        max_cost=1.0,
        deadline=1.0,
        context_tokens=1,
        compaction="summary",
    )
)
EVERY_RULE = {rule.name: rule for rule in (*WORK, *RULES, seek_steering(), seek_follow_ups())}
"""All rules that ship, by name: the others are those of autonomous work, of what a run may take, and of hooks."""

OTHERS = tuple(name for name in EVERY_RULE if name not in (*NAMES, "seek_steering", "seek_follow_ups"))


def rules_named(*names: str) -> tuple[BThread, ...]:
    return tuple(rule for name, rule in EVERY_RULE.items() if name in names)


def few_drafts(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return one call, one that is cut off, two; and what an answer without calls may be."""
    return tuple(draft for draft in drafts(requested) if getattr(draft, "calls", ()) not in ((FIRST,), (CUT, SECOND)))


CUT = evolve(FIRST, flaw="cut off")


def few_descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return that the first call is asked about or denied, and others allowed or asked about."""
    allowed, asked, denied = descriptions(proposed)
    return (asked, denied) if proposed.call.id == FIRST.id else (allowed, asked)


SMALL: Examples = {
    **EXAMPLES,
    InferenceRequested: few_drafts,
    ProposedAction: few_descriptions,
    FactsRequested: lambda requested: lookups(requested)[:2],
}
"""Every kind of outcome once, for the many sets of rules that there are."""

SMALLER: Examples = {**SMALL, FactsRequested: lambda requested: lookups(requested)[:1]}
"""The same where nothing changes while a user is asked: for the sets with many rules."""


def test_the_invariants_hold_for_none_all_each_alone_and_each_left_out() -> None:
    left_out = [tuple(other for other in NAMES if other != name) for name in NAMES]
    every = [(), NAMES, *((name,) for name in NAMES), *sampled(left_out, 15)]

    assert not_held(loops_of(RULES, every), lambda _: SMALLER) == {}


def test_the_invariants_hold_for_pairs() -> None:
    assert not_held(loops_of(RULES, sampled(combinations(NAMES, 2), 8)), lambda _: SMALL) == {}


def test_the_invariants_hold_for_each_rule_of_work_and_for_some_with_people() -> None:
    stoppable = ("stop_on_request", "abort_on_request")
    work = ("complete_to_finish", "one_objective", *stoppable)
    stopped = [("deadline", *stoppable), ("summarize_when_full", *stoppable), work]
    with_people = [("complete_to_finish", name) for name in ("skip_when_steered", "continue_with_follow_ups")]

    subsets = [*((name,) for name in OTHERS), *stopped, *with_people]
    assert not_held(loops_of([*EVERY_RULE.values()], subsets)) == {}


@bthread
def one_tool_only() -> BThreadBody:
    yield sync(wait_for=ToolStarted)
    yield sync(refuse=GateApproved, because="one tool is enough")


def three_calls(requested: InferenceRequested) -> tuple[Event, ...]:
    return (*drafts(requested), InferenceFinished(requested.draft, AssistantMessage(), (FIRST, SECOND, THIRD)))


def too_large(requested: SnapshotRequested) -> tuple[Event, ...]:
    """Return a snapshot, and for one of the whole workspace that it is too large."""
    whole = () if requested.leave_out else (SnapshotFailed("it is too large", ("./data",)),)
    return (SnapshotTaken("kept"), *whole)


def twice(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return answers that hold the same call twice, and three times."""
    same = (FIRST, ToolCall("c2", FIRST.tool), ToolCall("c3", FIRST.tool))
    return tuple(InferenceFinished(requested.draft, AssistantMessage(), calls) for calls in (same[:1], same[:2], same))


def only_answers(rules: Sequence[BThread]) -> Examples:
    """Return what a model may answer where these rules make a difference."""
    return {InferenceRequested: examples_for(rules)[InferenceRequested]}


def confined_descriptions(proposed: ProposedAction) -> tuple[Event, ...]:
    """Return the same actions in a sandbox; one asks for a right beyond it, one was granted before."""
    told = descriptions(proposed)
    inside = (ActionDescribed(each.call, evolve(each.facts, sandbox="any")) for each in told)
    asking = (evolve(each, facts=evolve(each.facts, rights=("network",))) for each in inside)
    return (*asking, ActionDescribed(proposed.call, evolve(GRANTED_ACTION, tool=proposed.call.tool)))


GRANTED_ACTION = Action("any", "write", "/", command=GRANTED.rule, sandbox="any", needs=("network",))


TWICE: Examples = {**EXAMPLES, InferenceRequested: twice}
CONFINED: Examples = {**EXAMPLES, ProposedAction: confined_descriptions}
TOO_LARGE: Examples = {**SMALLER, SnapshotRequested: too_large}
GUARDED = ("only_whole_calls", "by_constitution", "no_start_without_approval", "stop_on_request")
LIMITS = ("at_most", "too_many_failures", "empty_answers", "retry", "continue_with_follow_ups", "one_at_a_time")
NEIGHBOURS = [*(rule for rule in RULES if rule.name not in LIMITS), one_at_a_time("neighbours")]
ALL_TOGETHER = [*rules_named("only_whole_calls", "answers_in_source_order", "abort_on_request"), one_at_a_time("all")]
ASKED = ("skip_when_steered", "continue_with_follow_ups", "at_most", "stop_on_request", "abort_on_request")
PEOPLE = rules_named("seek_steering", "seek_follow_ups", *ASKED)
AUTONOMOUS = evolve(PRESETS["autonomous"], together="none", steering=False, follow_ups="none")  # verified elsewhere
FINISHING = ("one_at_a_time", "at_most", "complete_to_finish", "retry", "stop_on_request", "abort_on_request")
UNDOABLE = rules_named(
    *("snapshot_before_change", "by_constitution", "no_start_without_approval", "answers_in_source_order"),
    *("skip_when_steered", "stop_on_request", "at_most"),
)
SEVERAL_WAIT = rules_named("skip_when_steered", "at_most", "stop_on_request")

LOOPS: Mapping[str, tuple[Any, Examples | None]] = {
    "up to three calls in turn": (RULES, {**SMALLER, InferenceRequested: three_calls}),
    "neighbours run together that may": (NEIGHBOURS, {**SMALLER, **only_answers(NEIGHBOURS)}),
    "all calls of an answer run together if they may": (ALL_TOGETHER, {**SMALLER, **only_answers(ALL_TOGETHER)}),
    "people are asked whether they have something to say": (PEOPLE, None),
    "several follow-ups wait": ([*SEVERAL_WAIT, continue_with_follow_ups(False, most=2)], None),
    "several follow-ups are heard at once": ([*SEVERAL_WAIT, continue_with_follow_ups(True, most=2)], None),
    "a step is finished after a stop": (
        loop_rules(evolve(PRESETS["default"], stop_after="step", sequential=False)),
        SMALLER,
    ),
    "a protocol refuses a call during its question": ([*RULES, one_tool_only()], SMALLER),
    "calls in a sandbox": (rules_named(*GUARDED), CONFINED),
    "a workspace is too large for a snapshot": (UNDOABLE, TOO_LARGE),
    "all that the autonomous preset has of its own": (AUTONOMOUS, None),
    "complete ends every run": (
        [rule for rule in loop_rules(evolve(PRESETS["default"], complete_tool=True)) if rule.name in FINISHING],
        None,
    ),
    "a call is repeated in an answer, in parallel": (rules_named("doom_loop"), TWICE),
    "a call is repeated in an answer, in turn": (
        rules_named("doom_loop", "one_at_a_time", "answers_in_source_order"),
        TWICE,
    ),
    **{preset: (PRESETS[preset], None) for preset in ("workspace", "gated", "passthrough", "coding")},
}


def test_the_invariants_hold_in_loops_of_every_kind() -> None:
    """Also of a preset; there, nothing is unreached where every state was looked at."""
    loops: Loops = {where: own_loop(rules, examples) for where, (rules, examples) in LOOPS.items()}
    for where, _, result in verify_each(loops, max_states=None if WHOLE else 500):
        assert not result.violations, f"{where}: {told(result)}"
        assert result.bounded <= (not WHOLE), where
        assert result.coverage.complete or result.bounded or where not in PRESETS, f"{where}: {result}"


def own_loop(rules: Preset | Sequence[BThread], examples: Examples | None) -> Loop:
    """Return the loop of a preset or of rules with the examples with which `verify_loop` would look at it."""
    chosen = loop_rules(rules) if isinstance(rules, Preset) else rules
    usual = usual_examples(chosen, ())
    is_one_at_a_time = any(rule.name == "one_at_a_time" for rule in chosen)
    return chosen, (), examples or (in_threes(usual) if is_one_at_a_time else usual)


ARGUMENTS: Mapping[str, BThread] = {
    "forgets_the_barrier": one_at_a_time("neighbours"),
    "waits_for_the_barrier_to_begin": one_at_a_time("neighbours"),
    "forgets_the_second": continue_with_follow_ups(False, most=2),
    "asks_after_a_stop": stop_on_request("step"),
}
"""The rules in which a fault is planted, where their arguments are others than usual."""


def verify_fault(fault: Fault, *, first: bool = False) -> Verification:
    """Model-check the loop with the fault in it."""
    ((_, _, result),) = verify_each({fault.name: loop_with(fault)}, core=(), max_states=ENOUGH, first=first)
    return result


def loop_with(fault: Fault) -> Loop:
    """Return the core and the rules of a fault, one of them with the fault in it."""
    core, beside = CORE, rules_named(*fault.beside)
    if fault.bthread in EVERY_RULE:
        beside = (fault.planted_in(ARGUMENTS.get(fault.name, EVERY_RULE[fault.bthread])), *beside)
    else:
        core = fault.planted("agent.threads.core")["CORE"]
    return own_loop((*core, *beside), None)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_named(fault: Fault) -> None:
    result = verify_fault(fault, first=True)
    if not is_found(fault, result):  # another invariant may break sooner
        result = verify_fault(fault)

    assert is_found(fault, result), told(result)


def test_a_sandbox_that_is_lifted_without_a_yes_is_found() -> None:
    present = [rule for rule in rules_named(*GUARDED) if rule.name != "by_constitution"]
    planted = LIFTS_WITHOUT_A_YES.planted_in(EVERY_RULE["by_constitution"])

    assert is_found(LIFTS_WITHOUT_A_YES, verify_loop([planted, *present], examples=CONFINED, first=True))


THREADS = ("endings", "judging", "snapshots", "steering", "summaries", "tool_calls")
REFUSE_NOTHING = {
    "no_start_without_approval",  # defense in depth: what it refuses does not come while `carry_out` waits
    "one_at_a_time",
    "answers_in_source_order",
    "summarize_when_full",
    "stop_when_said",
    "seek_steering",
    "seek_follow_ups",
}


def holding(**words: Any) -> Any:
    """Return the statement in which everything is held that should be refused."""
    held = [words.pop("refuse", NONE), words.pop("block", None) or NONE]
    words.pop("because", None)
    return sync(**words, block=held)


def test_a_snapshot_that_leaves_files_out_without_a_yes_is_found() -> None:
    present = [rule for rule in UNDOABLE if rule.name != "snapshot_before_change"]
    planted = LEAVES_OUT_WITHOUT_A_YES.planted_in(EVERY_RULE["snapshot_before_change"])

    assert is_found(LEAVES_OUT_WITHOUT_A_YES, verify_loop([planted, *present], examples=TOO_LARGE, first=True))


def test_a_rule_that_holds_what_it_should_refuse_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in THREADS:
        monkeypatch.setattr(import_module(f"agent.threads.{module}"), "sync", holding)

    alone = loops_of([*EVERY_RULE.values()], [(name,) for name in EVERY_RULE if name not in REFUSE_NOTHING])
    for name, _, result in verify_each(alone, max_states=ENOUGH, first=True):
        assert [violation.kind for violation in result.violations] == ["deadlock"], name


def test_the_invariant_of_a_rule_that_is_left_out_breaks() -> None:
    """Invariants follow from what is required, and not from the rules that are there."""
    unnoticed = []
    alone = loops_of([*EVERY_RULE.values()], [(name,) for name in EVERY_RULE])
    for name, _, result in verify_each(alone, max_states=ENOUGH, first=True, left_out=True):
        own = {monitor.name for monitor in invariants_of([EVERY_RULE[name]])} - {
            each.name for each in invariants_of([])
        }
        assert {violation.bthread for violation in result.violations} <= own
        unnoticed += [] if result.violations else [name]

    assert set(unnoticed) == {"summarize_when_full", "no_start_without_approval"}  # it says how, and defense in depth


LOOSER = (
    (at_most(3), at_most(2)),
    (too_many_failures(3), too_many_failures(2)),
    (retry(3), retry(2)),
    (budget_per_turn(2), budget_per_turn(1)),
    (doom_loop(3), doom_loop(2)),
    (one_at_a_time("neighbours"), one_at_a_time("none")),
    (continue_with_follow_ups(False, most=2), continue_with_follow_ups(False, most=1)),
    (stop_on_request("step"), stop_on_request("call")),
)


def test_a_rule_that_is_looser_than_required_is_found() -> None:
    found = [bool(verify_loop([rule], required=[wanted], first=True, runs=0).violations) for rule, wanted in LOOSER]

    assert found == [True] * len(LOOSER)


def test_every_invariant_is_broken_by_a_fault() -> None:
    names = {monitor.name for _, monitor in OF_RULES.rows}
    left_out = {"flawed_calls_do_not_run", "turns_are_limited", "empty_answers_are_limited", "cost_is_limited"}
    loosened = {"tokens_of_a_turn_are_limited"}
    elsewhere = {
        "rights_were_granted",
        "what_is_left_out_was_allowed",
        "ids_of_an_answer_differ",
        "an_abort_ends_the_run",
        "wishes_to_stop_are_heard",
    }
    alike = {"a_run_ends", "a_deadline_ends_the_run"}

    assert names == {fault.culprit for fault in FAULTS} & names | left_out | loosened | elsewhere | alike


def equal_ids(requested: InferenceRequested) -> tuple[Event, ...]:
    """Return an answer whose calls have one id, which no client gives to the loop."""
    return (InferenceFinished(requested.draft, AssistantMessage(), (FIRST, evolve(SECOND, id=FIRST.id))),)


def test_an_environment_that_gives_equal_ids_is_named() -> None:
    result = verify_loop(RULES, examples={**EXAMPLES, InferenceRequested: equal_ids}, first=True)

    assert "ids_of_an_answer_differ" in {violation.bthread for violation in result.violations}
    assert "an answer has two calls of one id: c1, c1" in told(result)


def test_the_defense_in_depth_stops_a_call_that_does_not_wait_for_the_gate() -> None:
    fault = evolve(FAULTS[0], beside=("no_start_without_approval",))

    assert not is_found(fault, verify_fault(fault))


def test_a_tool_that_an_abort_does_not_cut_short_keeps_the_run_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults of an effect's declaration are found too, because the environment is made of it."""
    endless = [evolve(effect, until=lambda _: NONE) for effect in declared_effects()]
    monkeypatch.setattr(import_module("agent.verification"), "declared_effects", lambda: endless)

    result = verify_loop(rules_named("abort_on_request"))

    assert [(violation.kind, violation.bthread) for violation in result.violations] == [
        ("hot", "an_abort_ends_the_run")
    ]


def test_a_counterexample_names_events_calls_and_the_invariant_that_broke() -> None:
    result = verify_fault(FAULTS[0])

    assert tell(result.violations[0]).splitlines()[-5:] == [
        "  5  answer_committed with c1: requested by choose; waited for by converse",
        "  6  proposed_action c1: requested by carry_out",
        "  7  action_described c1 (judged: allow): from outside; waited for by gate, carry_out",
        "  8  tool_started c1: requested by carry_out",
        "starts_were_approved is broken: c1 starts, and the gate has not approved it",
    ]


def test_events_of_a_counterexample_show_what_decides() -> None:
    one, draft, said = ToolCall("c1", "bash"), Draft("d0", AssistantMessage("Done.")), AssistantMessage("Done.")
    shown = {
        ScoreRequested(one, "watcher"): "score_requested c1 watcher",
        ScoreGiven(one, "watcher", 0.0): "score_given c1 watcher (low)",
        ScoreGiven(draft, "watcher", 1.0): "score_given d0 watcher (high)",
        ScoreGiven(draft, "watcher", None): "score_given d0 watcher (missing)",
        AuditGiven(one, "auditor", "missing"): "audit_given c1 auditor (missing)",
        AuditGiven(WholeEpisode(2), "auditor", "harmful"): "audit_given 2 auditor (harmful)",
        ChanceDrawn("key", 1): "chance_drawn key (1)",
        InferenceRequested("d1", "trusted", ""): "inference_requested d1 (trusted)",
        InferenceFinished("d1", said): "inference_finished d1 with text",
        AnswerCommitted("d0", said): "answer_committed with text",
        ToolFinished(one, ToolResult("no", is_error=True)): "tool_finished c1 (error)",
        ToolFinished(one, ToolResult("yes")): "tool_finished c1",
    }

    assert {short(event): text for event, text in shown.items()} == {text: text for text in shown.values()}


def test_a_long_counterexample_says_where_all_of_it_is() -> None:
    happened = Happened(ToolStarted(ToolCall("c1", "bash")), ("carry_out",), (), "")
    violation = Violation("error", (), "wrong", story=(happened,) * 30)

    assert "     ... 17 more; all: --json, --page, or `story` of the violation ..." in tell(violation).splitlines()


def test_the_invariants_can_run_beside_a_real_agent(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")
    calls = [call("read_file", path="a.txt"), call("bash", command="rm -rf /")]

    agent = make_agent(calls, "Done.", "Done again.", threads=invariants_of(PRESETS["default"].rules()))
    runs = [agent.run_sync("Look at a.txt"), agent.run_sync("And again")]

    assert [run.status for run in runs] == ["completed", "completed"]
    assert [event.outcome for event in runs[0].events if isinstance(event, CallAnswered)] == ["ran", "rejected"]


def test_one_b_thread_in_the_place_of_a_list_is_refused_by_the_name_of_the_argument() -> None:
    one: Any = one_at_a_time("neighbours")
    for arguments, name in (((one,), "rules"), (((), one), "protocols")):
        with pytest.raises(TypeError, match=rf"{name}=BThread.*: give a list, {name}="):
            verify_loop(*arguments)


def test_the_documents_name_every_invariant() -> None:
    document = (Path(__file__).parents[3] / "docs" / "verification.md").read_text(encoding="utf-8")

    names = {monitor.name for _, monitor in OF_RULES.rows}
    assert names == set(re.findall(r"`(\w+)` \| \w", document)) & names
