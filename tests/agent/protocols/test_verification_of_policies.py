"""Temporal policies, model-checked: each keeps what it says, whatever happens, and lets no run hang."""

import pytest

from agent.protocols.policies import Scope, action, between, eventually, never, no_more_than, only_after, since
from agent.threads.judging import by_constitution
from agent.verification import verify_loop
from agent.verification.environment import any_verdict
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ApprovalAnswered,
    GateApproved,
    GateRejected,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from bp import BThread, BThreadBody, bthread, sync, where
from bp.verification.properties import absence, bounded_existence
from tests.agent.faults import Fault, is_found, told
from tests.agent.protocols.protocol_programs import rules_named
from tests.tables import rows

pytestmark = pytest.mark.slow


@bthread
def nothing_unasked_before(what: str, first: str) -> BThreadBody:
    """No `what` starts before `first` has ended well in the run, unless a person said yes to exactly that call."""
    done, allowed = False, frozenset[ToolCall]()
    while True:
        said = yield sync(wait_for=GateApproved | ToolFinished | ApprovalAnswered | ProposedAction | RunEnded)
        if isinstance(said, GateApproved):
            has_yes = said.call in allowed  # pytest shows the parts of an assertion, and a set has no order to show
            assert done or said.call.tool != what or has_yes, f"{what} starts without a yes"
        elif isinstance(said, ApprovalAnswered):
            allowed = allowed | {said.call} if said.yes else allowed - {said.call}
        elif isinstance(said, ProposedAction):
            allowed -= {said.call}
        else:
            done = isinstance(said, ToolFinished) and (done or (said.call.tool == first and not said.is_error))


@bthread
def nothing_goes_on_after(what: str, after: str) -> BThreadBody:
    """Once `what` was put up after `after`, no model is asked, nothing starts, and the run does not complete."""
    begun = broken = False
    while True:
        said = yield sync(wait_for=GateApproved | GateRejected | InferenceRequested | ToolStarted | RunEnded)
        if broken:
            assert not isinstance(said, InferenceRequested | ToolStarted | GateApproved), (
                f"on after {what}: {said.name}"
            )
            assert not isinstance(said, RunEnded) or said.status != "completed", "completed all the same"
        if isinstance(said, GateApproved):
            assert not (begun and said.call.tool == what), f"{what} after {after}"
            begun = begun or said.call.tool == after
        elif isinstance(said, GateRejected):
            broken = broken or (begun and said.call.tool == what)
        elif isinstance(said, RunEnded):
            begun = broken = False


FIRST, SECOND = (where(GateApproved, action(tool)) for tool in ("first", "second"))
SECOND_DONE = where(ToolFinished, lambda finished: finished.call.tool == "second" and not finished.is_error)
GIVEN_UP = where(RunEnded, lambda ended: ended.status != "completed")

UNASKED = nothing_unasked_before("second", "first")
NO_END = absence(where(RunEnded, status="completed"), after=FIRST, until=SECOND_DONE | GIVEN_UP)
KEPT = (
    (only_after("second", "first"), UNASKED),
    (only_after("second", "first", otherwise="ask"), UNASKED),
    (never("second", after="first"), absence(SECOND, after=FIRST, until=RunEnded)),
    (never("second", after="first", otherwise="stop"), nothing_goes_on_after("second", "first")),
    (no_more_than(1, "first"), bounded_existence(FIRST, 1, after=PromptGiven, until=RunEnded)),
    (eventually("second", after="first"), NO_END),
    (eventually("second", after="first", otherwise="stop"), NO_END),
)
ABORTED, STOPPED = rules_named("abort_on_request"), rules_named("abort_on_request", "stop_on_request")


@rows(("policy", "kept"), KEPT)
def test_each_pattern_keeps_what_it_says_and_lets_no_run_hang(policy: BThread, kept: BThread) -> None:
    result = verify_loop(STOPPED, [policy], invariants=[kept])

    assert result.holds, told(result)


@rows("kept", dict.fromkeys(kept for _, kept in KEPT))
def test_without_the_policy_its_invariant_breaks(kept: BThread) -> None:
    result = verify_loop(ABORTED, invariants=[kept], first=True)

    assert {violation.bthread for violation in result.violations} == {kept.name}


@rows("within", [between("first", "second"), since("first", "second"), since("first")])
def test_policies_of_a_scope_let_no_run_hang(within: Scope) -> None:
    policies = [no_more_than(1, "first", within=within), eventually("other", after="first", within=within)]

    result = verify_loop(ABORTED, policies)

    assert result.holds, told(result)


def test_a_policy_and_a_constitution_that_ask_do_so_one_after_the_other() -> None:
    policies = [only_after("second", "first", otherwise="ask"), by_constitution(any_verdict)]

    result = verify_loop(ABORTED, policies, invariants=[UNASKED], max_states=2_000)

    assert not result.violations, told(result)


FAULTS = (
    Fault("takes_an_attempt_for_a_success", "only_after", UNASKED.name,
          "memory.after(said), None if",
          "memory.after(evolve(said, is_error=False) if isinstance(said, ToolFinished) else said), None if"),
    Fault("refuses_the_call_alone", "never", KEPT[3][1].name,
          "ending = stopped(because) if broken and ending is None else ending",
          "ending = None"),
)  # fmt: skip


@rows("fault", FAULTS)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    policy, kept = next(each for each in KEPT if each[0].name == fault.bthread and each[1].name == fault.culprit)

    result = verify_loop((), [fault.planted_in(policy)], invariants=[kept], max_states=20_000)

    assert is_found(fault, result), told(result)
