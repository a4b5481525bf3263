"""Every protocol is model-checked with the loop, alone and with others, and every planted fault is found and named."""

import time
from itertools import combinations, product
from random import Random
from typing import Literal

import pytest

from agent.presets import PRESETS
from agent.protocols import PROTOCOLS
from agent.protocols.flows import ask_on_critical, defer_on_critical, download_then_run, taint_flow
from agent.protocols.monitoring import audit_budget, blocking_monitor
from agent.protocols.policies import no_more_than
from agent.threads.endings import stop_on_request
from agent.verification import loop_rules, verify_loop
from agent.verification.counterexample import tell
from agent.verification.environment import EXAMPLES_WITH_PROTOCOLS, FEW_EXAMPLES
from agent.verification.protocol_invariants import invariants_of_protocols, sides_of
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import GateApproved, RunEnded, ToolStarted
from bp import NONE, BThread, BThreadBody, Event, VerificationError, bthread, sync, where
from bp.verification import agreement
from bp.verification.trials import forked
from constitution import Action
from tests.agent.faults import PROTOCOL_FAULTS as FAULTS
from tests.agent.faults import Fault, is_found, told
from tests.agent.protocols.protocol_programs import (
    IN_PAIRS,
    PROGRAMS,
    rules_named,
    together,
)
from tests.agent.verification.many_loops import (
    ENOUGH,
    Loops,
    few_examples_for,
    kill_and_resume,
    not_held,
    sampled,
    verify_each,
)
from tests.tables import rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_runs")]

ABORTED = rules_named("abort_on_request")
STOPS: tuple[Literal["call", "step"], ...] = ("call", "step")
LARGE = {"defer_to_resample", "audit_budget", "untrusted_monitoring", "ensemble"}
"""Protocols with many states: `make presets` looks at all of them."""


def test_every_protocol_of_the_catalogue_is_verified() -> None:
    assert set(PROGRAMS) == {entry.name for entry in PROTOCOLS}


def test_the_invariants_hold_for_each_protocol_with_stop_and_abort() -> None:
    """After the call that runs and after its step; those with many states: see `make presets`."""
    stopping = {after: (stop_on_request(after), *ABORTED) for after in STOPS}
    quick = [name for name in PROGRAMS if name not in ("untrusted_monitoring", "audit_budget")]
    both = sampled(product(STOPS, quick), 2)
    loops: Loops = {f"{name}, {after}": (stopping[after], PROGRAMS[name]) for after, name in both}

    assert not_held(loops, lambda _: FEW_EXAMPLES) == {}


def test_the_invariants_hold_for_pairs_of_small_protocols() -> None:
    pairs = combinations([name for name in PROGRAMS if name not in LARGE][:8], 2)  # `make presets` has all
    loops: Loops = {" + ".join(pair): ((), together(*pair)) for pair in sampled(pairs, 3)}

    assert not_held(loops, lambda _: FEW_EXAMPLES) == {}


def test_the_constitution_and_a_protocol_that_ask_about_one_call_do_so_one_after_the_other() -> None:
    loops: Loops = {"both": (ABORTED, together("constitution_only", "ask_on_critical"))}

    assert not_held(loops, few_examples_for) == {}


def test_loops_that_are_verified_in_one_space_give_what_each_gives_alone() -> None:
    """What was found out of b-threads in the loops before changes nothing, also where something is violated."""
    faulty = (planted_in(FAULTS[1]),)
    programs = {name: PROGRAMS[name] for name in ("blocking_monitor", "taint_flow", "upfront_audit")}
    loops = {label: (ABORTED, program) for label, program in {**programs, "faulty": faulty, "": faulty}.items()}

    for label, _, result in verify_each(loops, few_examples_for, max_states=2_000):
        alone = verify_loop(*loops[label], examples=few_examples_for(loops[label][1]), max_states=2_000)
        assert (result.states, result.transitions) == (alone.states, alone.transitions)
        assert list(map(tell, result.violations)) == list(map(tell, alone.violations))
        assert bool(result.violations) == (loops[label][1] == faulty)


TOMORROW = time.time() + 3600


@bthread
def one_tool_a_day() -> BThreadBody:
    """Refuse tools from tomorrow on, by the clock, which no event carries."""
    while True:
        yield sync(wait_for=ToolStarted, refuse=GateApproved if time.time() > TOMORROW else NONE, because="too late")


def test_loops_that_are_verified_in_one_space_are_compared_with_real_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "forked", forked)  # despite `few_runs`
    loops = {"right": (ABORTED, PROGRAMS["taint_flow"]), "wrong": ((), (one_tool_a_day(),))}
    results = verify_each(loops, few_examples_for)

    assert next(results)[2].violations == ()
    with pytest.raises(VerificationError, match="one_tool_a_day"):
        next(results)


@pytest.mark.parametrize("pair", [("blocking_monitor", "taint_flow"), ("defer_to_trusted", "defer_on_critical")])
def test_the_order_of_protocols_makes_no_difference(pair: tuple[str, str]) -> None:
    one, other = (verify_loop(ABORTED, together(*names), examples=FEW_EXAMPLES) for names in (pair, pair[::-1]))

    assert one.holds
    assert (one.states, one.transitions) == (other.states, other.transitions)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_run_that_is_killed_after_any_record_goes_on_from_there(preset: str) -> None:
    """Every protocol, with people who say anything; `make presets` kills more of them."""
    rules, killed = loop_rules(PRESETS[preset]), list[str]()
    for protocols in PROGRAMS.values():
        killed += kill_and_resume(rules, protocols, few_examples_for((*rules, *protocols)), runs=1, kills=2)

    assert len(killed) == 2 * len(PROGRAMS)
    assert not any(killed), "\n".join(filter(None, killed))


def test_no_audit_is_left_behind_where_a_catch_ends_the_run() -> None:
    """Found: with a budget of two, the second audit was requested when the run was over, and blocked for ever."""
    protocols = (blocking_monitor("monitor"), audit_budget("monitor", budget=2))
    loops: Loops = {name: (rules, protocols) for name, rules in {"none": (), "abort": ABORTED}.items()}

    assert not_held(loops, lambda _: FEW_EXAMPLES) == {}


@bthread
def one_tool_for_a_process(started: list[Event]) -> BThreadBody:
    """Remember in a list of the process, and not in the log, that a tool was started."""
    while True:
        sync_until_start = sync(wait_for=ToolStarted, refuse=GateApproved if started else NONE, because="one is enough")
        started.append((yield sync_until_start))


def test_a_b_thread_that_remembers_what_no_log_tells_is_found_when_its_process_is_killed() -> None:
    problems = {*kill_and_resume((), [one_tool_for_a_process([])], FEW_EXAMPLES, runs=3, kills=9)} - {""}

    assert any("killed after record" in problem for problem in problems)


def planted_in(fault: Fault) -> BThread:
    """Return the b-thread of a protocol with the fault in it."""
    right = next(each for program in PROGRAMS.values() for each in program if each.name == fault.bthread)
    planted: BThread = fault.planted_in(right)
    return planted


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_named(fault: Fault) -> None:
    ((_, _, result),) = verify_each({fault.name: ((), [planted_in(fault), *fault.beside])}, max_states=ENOUGH)

    assert is_found(fault, result), told(result)


@rows(("fault", "size"), [(FAULTS[0], 3), (FAULTS[1], 4)])
def test_a_fault_is_found_in_a_set_of_protocols_too(fault: Fault, size: int) -> None:
    """A hold released too early, a single slot: the others hide none of it."""
    random = Random(f"{size}/{fault.name}")
    others = [name for name in sorted(set(IN_PAIRS) - LARGE) if name != fault.bthread]
    chosen = together(*random.sample(others, size - 1))

    result = verify_loop((), [planted_in(fault), *chosen], examples=FEW_EXAMPLES, max_states=ENOUGH)

    assert is_found(fault, result), told(result)


def test_every_invariant_of_a_protocol_has_a_fault_that_breaks_it() -> None:
    kept = {monitor for fault in FAULTS for monitor in [fault.culprit]}
    never_fail = {monitor for program in PROGRAMS.values() for monitor in sides_of(program)}
    named = {
        monitor.name for program in PROGRAMS.values() for monitor in {*invariants_of_protocols(program)} - never_fail
    }

    assert named <= kept | {"calls_are_scored", "starts_are_of_the_answer", "questions_do_not_overlap"}


@pytest.mark.parametrize("size", [3, 4, 6])
def test_random_sets_of_protocols_hold_as_far_as_they_are_looked_at(size: int) -> None:
    """Several at a time, with every answer that a model may give, calls in parallel, in a bounded search."""
    names = Random(size).sample(sorted(IN_PAIRS), size)

    result = verify_loop(ABORTED, together(*names), examples=EXAMPLES_WITH_PROTOCOLS, max_states=500)

    assert not result.violations, told(result)


LOOKING = (taint_flow(), download_then_run(), ask_on_critical(), defer_on_critical())
"""Protocols that look at the action, with the predicates that ship."""


@rows("protocol", LOOKING)
def test_a_protocol_with_a_predicate_is_shown_actions_that_match_and_actions_that_do_not(protocol: BThread) -> None:
    """Looking up what an action would do is a pure function: the verifier watches, and finds nothing hidden."""
    result = verify_loop((), [protocol], examples=few_examples_for([protocol]))

    assert result.verdict == "holds", str(result)


@rows("protocol", LOOKING)
def test_a_predicate_that_never_holds_is_reported_as_not_reached(protocol: BThread) -> None:
    result = verify_loop((), [protocol], examples=FEW_EXAMPLES)

    assert result.verdict == "unreached"
    assert any(name.startswith(f"{protocol.name}: ") for name in result.coverage.unreached)
    assert "frozenset" not in str(result)


def test_a_predicate_that_holds_of_every_action_is_reported_as_not_reached() -> None:
    result = verify_loop((), [ask_on_critical(is_any)], examples=FEW_EXAMPLES, max_states=500)

    assert result.coverage.unreached == ("ask_on_critical: not is_critical",)


def is_any(call: ToolCall) -> bool:
    return True


def deploys(approved: GateApproved) -> bool:
    return approved.call.tool == "deploy"


@bthread
def one_deployment() -> BThreadBody:
    """Refuse every deployment but the first, by a predicate of which the environment knows examples."""
    yield sync(wait_for=where(GateApproved, deploys))
    yield sync(refuse=where(GateApproved, deploys), because="one is enough")


@bthread
def no_deployment() -> BThreadBody:
    """Refuse every deployment, by a predicate of which the environment knows nothing."""
    yield sync(refuse=where(GateApproved, deploys), because="not today")


EXAMPLES = {"one_deployment": (GateApproved(ToolCall("c1", "deploy"), Action("deploy", "write", "/ws")),)}


def test_a_protocol_of_ones_own_is_reached_with_the_examples_that_stand_beside_it_and_else_told() -> None:
    with_examples, without = (verify_loop((), [protocol()]) for protocol in (one_deployment, no_deployment))

    assert with_examples.verdict == "holds", str(with_examples)
    assert (without.verdict, without.coverage.unreached) == ("unreached", ("no_deployment",))


@bthread
def at_most(n: int) -> BThreadBody:
    """Refuse further deployments; the name is that of a rule that ships, with other parameters."""
    deployments = where(GateApproved, deploys)
    for _ in range(n):
        yield sync(wait_for=deployments | RunEnded)
    yield sync(refuse=deployments, because="not today")


@pytest.mark.parametrize("rules", [[], [at_most(2)]])
def test_a_bthread_of_the_user_may_have_the_name_of_one_that_ships(rules: list[BThread]) -> None:
    others = [at_most(1).named(name) for name in ("doom_loop", "ask_on_critical", "one_at_a_time", "by_constitution")]
    policy = no_more_than(1, "deploy", name="deadline")

    assert verify_loop(rules, [at_most(1), policy, *others], max_states=100).violations == ()


def test_a_predicate_that_accepts_nothing_is_reported_also_where_it_stands_in_a_union() -> None:
    result = verify_loop((), [at_most(1)])

    assert (result.violations, result.verdict) == ((), "unreached")
    assert result.coverage.unreached == ("at_most: where(GateApproved, deploys)",)
