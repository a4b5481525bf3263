"""`bpagent verify` tells for the loop as configured whether its invariants hold, and shows where they do not."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command, Said

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_runs")]

LEFT_OUT = ("max_iterations", "max_failures", "max_empty_answers", "policy", "doom_loop")
CONTINUING = ["--option=steering=false", *(f"--option={name}=none" for name in LEFT_OUT)]
"""With follow-ups a run goes on, so that there is an occasion for every invariant."""

RULES = """
from agent.events import GateApproved, ProposedAction, ToolStarted
from agent.vocabulary.calls import ToolCall
from bp import bthread, sync, where
from constitution import Action

@bthread
def hold_the_second_tool():
    yield sync(wait_for=ToolStarted)
    yield sync(block=GateApproved)

@bthread
def no_deployment():
    yield sync(refuse=where(GateApproved, lambda approved: approved.call.tool == "deploy"), because="not today")

counted = []

@bthread
def counts_elsewhere():
    while True:
        yield sync(wait_for=ToolStarted, hot=len(counted) % 3 == 2)
        counted.append(1)

@bthread
def fails():
    yield sync(wait_for=GateApproved)
    raise ValueError('wrong')

@bthread
def counts_for_ever():
    started = 0
    while True:
        yield sync(wait_for=ToolStarted)
        started += 1

@bthread
def one_tool():
    yield sync(wait_for=where(ToolStarted, lambda started: started.call.id == "c2"))
    raise AssertionError("a second tool")

@bthread
def asserts():
    yield sync(wait_for=GateApproved)
    assert False, "a call is approved"

@bthread
def proposes_again():
    proposed = yield sync(wait_for=ProposedAction)
    yield sync(request=proposed)

def pushes(approved):
    return approved.facts.command == "git push"

@bthread
def no_push():
    yield sync(refuse=where(GateApproved, pushes), because="not on a Friday")

PUSH = GateApproved(ToolCall("c1", "bash", {}), Action("bash", "write", "/", command="git push"))
EXAMPLES = {"no_push": (PUSH,)}
"""


@pytest.fixture
def verify(command: Command, tmp_path: Path) -> Callable[..., Said]:
    """`verify(name, ..., options=...)` verifies the core with these rules, unless the options say otherwise."""
    (tmp_path / "rules.py").write_text(RULES)

    def run(*names: str, options: tuple[object, ...] = ("--alone",)) -> Said:
        return command("verify", *(f"--protocol={tmp_path / 'rules.py'}:{name}" for name in names), *options)

    return run


def test_the_loop_as_configured_holds(command: Command) -> None:
    said = command("verify", "--preset", "workspace", *CONTINUING)

    assert said.code == 0
    assert said.out.startswith("holds ")
    assert said.out.splitlines()[0].endswith(": as configured")
    assert said.out.splitlines()[1].strip().startswith("agreed: ")


def test_a_protocol_alone_is_verified_with_the_core(command: Command) -> None:
    said = command("verify", "--alone", "--protocol", "taint_flow")

    assert (said.code, said.out.split()[0]) == (0, "holds"), said


def test_the_examples_of_a_protocol_may_name_real_commands(verify: Callable[..., Said]) -> None:
    assert verify("no_push").code == 0


def test_an_unreached_protocol_has_its_own_exit_code(verify: Callable[..., Said]) -> None:
    said = verify("no_deployment")
    as_data = json.loads(verify("no_deployment", options=("--alone", "--json")).out)

    assert said.code == 7
    assert said.out.startswith("unreached ")
    assert "never reached: no_deployment" in said.out
    assert "EXAMPLES" in said.out
    assert (as_data["verdict"], as_data["unreached"], as_data["rules"]) == ("unreached", ["no_deployment"], [])


def test_a_protocol_that_blocks_forever_is_found_with_its_story(verify: Callable[..., Said]) -> None:
    said = verify("hold_the_second_tool")

    assert said.code == 1
    assert said.out.startswith("violated ")
    assert re.findall(
        r"^deadlock: gate requests gate_approved c\d, and hold_the_second_tool blocks it$", said.out, re.M
    )
    assert re.findall("^  1  ", said.out, re.M) == ["  1  "]  # one of many traces


def test_a_protocol_that_keeps_state_elsewhere_cannot_be_verified(verify: Callable[..., Said]) -> None:
    said = verify("counts_elsewhere", options=(*CONTINUING, "--option=follow_ups=none"))

    assert said.code == 2
    assert "this cannot be verified: b-thread 'counts_elsewhere'" in said.err


def test_without_assertions_our_monitors_still_fail_and_others_are_refused(
    process: Command, verify: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    protocols = [f"--protocol={tmp_path / 'rules.py'}:{name}" for name in ("proposes_again", "asserts")]

    violated, refused = (process("verify", "--alone", each) for each in protocols)

    assert violated.code == 1, violated
    assert "each_proposal_is_decided_once is broken: c1 is proposed twice" in violated.out
    assert (refused.code, refused.out) == (2, "")
    assert "'asserts', which has lost its assertions: Python runs with -O" in refused.err


def test_a_page_shows_the_counterexample(verify: Callable[..., Said], tmp_path: Path) -> None:
    page = tmp_path / "verified.html"

    said = verify("fails", options=("--preset", "passthrough", "--page", page, "--max-states", 2000))

    assert said.code == 1
    assert f"the page: {page}" in said.err
    assert "ValueError: wrong" in page.read_text()
    assert '"name":"gate_approved"' in page.read_text()


def test_a_search_without_end_is_bounded_by_itself_and_says_what_grows_and_what_it_found(
    verify: Callable[..., Said],
) -> None:
    both = ("counts_for_ever", "one_tool")
    said = verify(*both, options=("--alone", "--max-states", 15000))
    as_data = json.loads(verify(*both, options=("--alone", "--json", "--max-states", 1000)).out)

    assert said.code == 1
    assert "to look at, 1 violation so far" in said.err
    assert "not verified: there are more states than --max-states; only 15,000 states" in said.out
    most = said.out.partition("most local states, so look for one that counts without end: ")[2].partition("\n")[0]
    assert "counts_for_ever " in most
    assert "effect " not in most
    assert as_data["local_states"]["counts_for_ever"] > 3
