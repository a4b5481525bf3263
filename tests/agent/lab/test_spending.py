"""The budget of an experiment: no model is asked unless the ledger was below the limit since anybody was paid."""

from collections.abc import Callable

import pytest

from agent import call
from agent.effects.monitoring import laboratory
from agent.lab.spending import ASKS_MODELS, budget_of_experiment, nobody_is_asked_without_money
from agent.protocols.audits import upfront_audit
from agent.protocols.monitoring import blocking_monitor
from agent.protocols.substitution import defer_to_trusted
from agent.verification.environment import FEW_EXAMPLES
from agent.verification.loop import verify_loop
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import InferenceFinished, InferenceRequested, PromptGiven, RunEnded
from agent.vocabulary.messages import AssistantMessage
from agent.vocabulary.questions import LedgerGiven, LedgerRequested, QuestionForgone, ScoreRequested
from bp import BThread, Event, Sync, contains
from tests.agent.conftest import MakeAgent
from tests.agent.faults import money as faults
from tests.agent.faults.fault import told
from tests.agent.protocols.protocol_programs import MONITOR, rules_named

ASK = InferenceRequested("d0")
KEPT = InferenceFinished("d0", AssistantMessage("Done."))


def said_to(*events: Event) -> list[Sync]:
    """What the b-thread says at each synchronization point, when it hears these one after the other."""
    body = budget_of_experiment(2.0).begin()
    points = [next(body), *(body.send(event) for event in events)]
    return [point for point in points if isinstance(point, Sync)]


def holds(point: Sync, event: Event) -> bool:
    return point.block is not None and contains(point.block, event)


def test_alone_it_looks_before_anybody_is_asked_and_after_anybody_was_paid() -> None:
    begin, end = PromptGiven("Go"), LedgerGiven(2.0)
    points = said_to(begin, LedgerRequested(), LedgerGiven(1.9), KEPT, LedgerRequested(), end)

    assert [point.requests for point in points] == [(), (LedgerRequested(),), (), (), (LedgerRequested(),), (), ()]
    assert [holds(point, ASK) for point in points] == [False, True, True, False, True, True, False]
    assert contains(points[-1].refuse, ASK)
    assert contains(points[-1].refuse, ScoreRequested(ToolCall("c1", "bash"), MONITOR))
    assert contains(ASKS_MODELS, ASK)


def test_alone_it_looks_again_when_somebody_is_paid_while_it_looks() -> None:
    points = said_to(PromptGiven("Go"), LedgerRequested(), KEPT, LedgerGiven(0.0))

    assert points[-1].requests == (LedgerRequested(),)
    assert holds(points[-1], ASK)


@pytest.mark.anyio
@pytest.mark.parametrize(("costs", "asked"), [([0.0, 0.5, 1.0, 1.5], 2), ([1.0], 0), ([0.0, 0.9, 0.9, 0.9], 3)])
async def test_in_a_program_the_run_ends_when_the_money_of_all_is_gone(
    costs: list[float], asked: int, make_agent: MakeAgent
) -> None:
    """What others spend counts: the run itself has no cost that it knows."""
    ledger, events = iter([*costs, costs[-1]]), list[object]()
    agent = make_agent(
        call("bash", command="echo one"),
        call("bash", command="echo two"),
        "Done.",
        threads=[budget_of_experiment(1.0)],
        effects=laboratory(spent=lambda: next(ledger)),
        on_step=lambda step: events.append(step.event),
    )

    run = await agent.run("Go.")

    assert sum(isinstance(event, InferenceRequested) for event in events) == asked
    ended = ("limit", "experiment_money") if asked < 3 else ("completed", "answered")
    assert (run.status, run.reason) == ended
    assert ("$1 that the experiment may cost are used up" in run.text) == (asked < 3)


@pytest.mark.anyio
@pytest.mark.parametrize("broken", [None, lambda: 1 / 0])
async def test_a_ledger_that_nobody_can_read_is_used_up(
    broken: Callable[[], float] | None, make_agent: MakeAgent
) -> None:
    agent = make_agent("Done.", threads=[budget_of_experiment(1.0)], effects=laboratory(spent=broken))

    run = await agent.run("Go.")

    assert (run.reason, run.usage.tokens) == ("experiment_money", 0)


@pytest.mark.anyio
async def test_a_protocol_that_may_not_ask_forgoes_its_question(make_agent: MakeAgent) -> None:
    ledger = iter([0.0, 2.0, 2.0, 2.0])
    events: list[object] = []
    agent = make_agent(
        call("bash", command="echo one"),
        "Done.",
        threads=[blocking_monitor(MONITOR), budget_of_experiment(1.0)],
        effects=laboratory(spent=lambda: next(ledger)),
        on_step=lambda step: events.append(step.event),
    )

    run = await agent.run("Go.")

    assert any(isinstance(event, QuestionForgone) for event in events)
    assert not any(isinstance(event, ScoreRequested) for event in events)
    assert run.reason == "experiment_money"
    assert isinstance(events[-1], RunEnded)


ABORTED = rules_named("abort_on_request")
BUDGET = budget_of_experiment(1.0)
INVARIANTS = [nobody_is_asked_without_money(1.0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [(), (blocking_monitor(MONITOR),), (defer_to_trusted(MONITOR),), (upfront_audit(1, "auditor"),)]
)
def test_it_is_verified_alone_and_with_protocols(others: tuple[BThread, ...]) -> None:
    result = verify_loop(ABORTED, [BUDGET, *others], examples=FEW_EXAMPLES, invariants=INVARIANTS)

    assert result.holds, told(result)


FAULTS = (
    (faults.looks_once_in_a_run, "error", "nobody_is_asked_without_money", ()),
    (faults.lets_models_be_asked_while_it_looks, "error", "nobody_is_asked_without_money", ()),
    (faults.takes_what_nobody_knows_for_nothing, "error", "nobody_is_asked_without_money", ()),
    (faults.holds_when_the_money_is_gone, "deadlock", "converse", ()),
    (faults.misses_who_is_paid_meanwhile, "error", "nobody_is_asked_without_money", (blocking_monitor(MONITOR),)),
)


@pytest.mark.slow
@pytest.mark.parametrize(("planted", "kind", "culprit", "others"), FAULTS, ids=lambda each: getattr(each, "name", ""))
def test_a_planted_fault_is_found_and_named(
    planted: Callable[[float], BThread], kind: str, culprit: str, others: tuple[BThread, ...]
) -> None:
    result = verify_loop((), [planted(1.0), *others], examples=FEW_EXAMPLES, invariants=INVARIANTS, max_states=20_000)

    assert result.violations
    for violation in result.violations:
        culprits = {wish[0] for wish in violation.blockers} if kind == "deadlock" else {violation.bthread}
        assert (violation.kind, culprit in culprits) == (kind, True), told(result)
