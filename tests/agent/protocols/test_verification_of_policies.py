"""Temporal policies, model-checked: each keeps what it says, whatever happens, and lets no run hang."""

import pytest

from agent.protocols.policies import Scope, action, between, eventually, never, no_more_than, only_after, since
from agent.verification.counterexample import tell
from agent.verification.loop import verify_loop
from agent.vocabulary.events import GateApproved, RunEnded, ToolFinished
from bp import BThread, BThreadBody, bthread, sync, where
from tests.agent.protocols.protocol_programs import rules_named
from tests.tables import rows

pytestmark = pytest.mark.slow


@bthread
def nothing_before(what: str, first: str) -> BThreadBody:
    """No `what` starts in a run in which `first` has not ended well."""
    done = False
    while True:
        said = yield sync(wait_for=GateApproved | ToolFinished | RunEnded)
        if isinstance(said, GateApproved):
            assert done or said.call.tool != what, f"{what} is approved, and {first} has not ended well"
        else:
            done = isinstance(said, ToolFinished) and (done or (said.call.tool == first and not said.is_error))


@bthread
def nothing_after(what: str, after: str) -> BThreadBody:
    """No `what` is approved in a run after `after` was."""
    begun = False
    while True:
        said = yield sync(wait_for=GateApproved | RunEnded)
        assert not (begun and isinstance(said, GateApproved) and said.call.tool == what), f"{what} after {after}"
        begun = isinstance(said, GateApproved) and (begun or said.call.tool == after)


@bthread
def so_often(what: str, most: int) -> BThreadBody:
    """`what` is approved at most so often in a run."""
    left = most
    while True:
        said = yield sync(wait_for=GateApproved | RunEnded)
        left = most if isinstance(said, RunEnded) else left - (said.call.tool == what)
        assert left >= 0, f"{what} once more"


@bthread
def no_end_without(what: str, after: str) -> BThreadBody:
    """No run completes in which `after` was approved, and `what` did not end well later."""
    owed = False
    while True:
        said = yield sync(wait_for=GateApproved | ToolFinished | RunEnded)
        if isinstance(said, RunEnded):
            assert not owed or said.status != "completed", f"completed without {what}"
            owed = False
        elif isinstance(said, GateApproved):
            owed = owed or said.call.tool == after
        elif said.call.tool == what and not said.is_error:
            owed = False


KEPT = (
    (only_after("second", "first"), nothing_before("second", "first")),
    (never("second", after="first"), nothing_after("second", "first")),
    (no_more_than(1, "first"), so_often("first", 1)),
    (eventually("second", after="first"), no_end_without("second", "first")),
)
ABORTED = rules_named("abort_on_request")


@rows(("policy", "kept"), KEPT)
def test_each_pattern_keeps_what_it_says_and_lets_no_run_hang(policy: BThread, kept: BThread) -> None:
    result = verify_loop(ABORTED, [policy], invariants=[kept])

    assert result.holds, "\n".join(map(tell, result.violations))


@rows(("policy", "kept"), KEPT)
def test_without_the_policy_its_invariant_breaks(policy: BThread, kept: BThread) -> None:
    result = verify_loop(ABORTED, invariants=[kept])

    assert {violation.bthread for violation in result.violations} == {kept.name}


@rows("within", [between("first", "second"), since("first", "second"), since("first")])
def test_policies_of_a_scope_let_no_run_hang(within: Scope) -> None:
    policies = [no_more_than(1, "first", within=within), eventually("other", after="first", within=within)]

    result = verify_loop(ABORTED, policies)

    assert result.holds, "\n".join(map(tell, result.violations))


def test_a_policy_that_takes_an_attempt_for_a_success_is_found() -> None:
    @bthread(name="only_after")
    def too_early() -> BThreadBody:
        first, second = (where(GateApproved, action(tool)) for tool in ("first", "second"))
        while True:
            yield sync(wait_for=first, refuse=second, because="first is missing")
            yield sync(wait_for=RunEnded)

    result = verify_loop((), [too_early()], invariants=[nothing_before("second", "first")])

    assert {violation.bthread for violation in result.violations} == {"nothing_before"}
