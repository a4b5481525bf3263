"""Protocols that ask people, where the same people stop the run: nothing hangs, nothing starts, all is answered."""

from typing import Literal

import pytest

from agent import call, tool
from agent.protocols.flows import ask_on_critical
from agent.protocols.policies import only_after
from agent.threads.stopping import abort_on_request, stop_on_request
from agent.verification.counterexample import tell
from agent.verification.environment import FEW_EXAMPLES
from agent.verification.loop import verify_loop
from agent.vocabulary.events import ApprovalAsked, CallAnswered, ToolStarted
from bp import BThread
from tests.agent.conftest import MakeAgent
from tests.agent.protocols.protocol_programs import PROGRAMS

SLOW = ("untrusted_monitoring", "audit_budget")  # see `make protocols`
QUICK = [name for name in PROGRAMS if name not in SLOW]


def named(protocol: BThread) -> str:
    return protocol.name


@tool(category="admin")
def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"{disk} is empty"


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", [ask_on_critical(), only_after("wipe", "backup", otherwise="ask")], ids=named)
@pytest.mark.parametrize("preset", ["autonomous", "default"])
async def test_a_stop_during_the_first_of_two_questions_rejects_the_second(
    make_agent: MakeAgent, protocol: BThread, preset: str
) -> None:
    calls = [call("wipe", disk="one"), call("wipe", disk="two")]
    agent = make_agent(calls, "Done.", tools=[wipe], threads=[protocol], preset=preset)

    async with agent.start("Go") as run:
        async for step in run:
            if isinstance(step.event, ApprovalAsked):
                run.stop()
                run.answer(step.event.call.id, yes=True)

    answers = [event for event in run.events if isinstance(event, CallAnswered)]
    assert run.status == "stopped"
    assert len(answers) == 2
    assert sum(isinstance(event, ToolStarted) for event in run.events) <= 1


@pytest.mark.parametrize("after", ["call", "step"])
@pytest.mark.parametrize("name", QUICK)
def test_every_protocol_holds_with_stop_and_abort(name: str, after: Literal["call", "step"]) -> None:
    rules = (stop_on_request(after), abort_on_request())

    result = verify_loop(rules, PROGRAMS[name], examples=FEW_EXAMPLES)

    assert result.holds, [tell(violation) for violation in result.violations]
