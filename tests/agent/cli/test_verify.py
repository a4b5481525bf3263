"""`bpagent verify` tells for the loop as configured whether its invariants hold, and shows where they do not."""

import json
import re
from pathlib import Path

import pytest

from tests.agent.cli.sessions import Command

LEFT_OUT = ("max_iterations", "max_failures", "max_empty_answers", "policy", "doom_loop", "follow_ups")
FEW_RULES = ["--option=steering=false", *(f"--option={name}=none" for name in LEFT_OUT)]

CONTINUING = [option for option in FEW_RULES if "follow_ups" not in option]
"""With follow-ups a run goes on, so that there is an occasion for every invariant."""


@pytest.fixture
def protocols(tmp_path: Path) -> Path:
    """A protocol that keeps its promises, and one that holds approvals back for ever."""
    file = tmp_path / "my_protocols.py"
    file.write_text(
        """
from agent.events import GateApproved, ToolStarted
from bp import bthread, sync, where

@bthread
def three_tools_in_all():
    for _ in range(3):
        yield sync(wait_for=ToolStarted)
    yield sync(refuse=GateApproved, because="three tools have run")

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
        yield sync(wait_for=ToolStarted)
        counted.append(1)
"""
    )
    return file


@pytest.mark.slow
def test_the_loop_as_configured_holds(command: Command) -> None:
    said = command("verify", "--preset", "workspace", *CONTINUING)

    assert said.code == 0
    assert said.out.startswith("holds ")
    assert said.out.endswith(": as configured\n")


@pytest.mark.slow
def test_a_protocol_alone_is_verified_with_the_core(command: Command) -> None:
    said = command("verify", "--alone", "--protocol", "taint_flow")

    assert (said.code, said.out.split()[0]) == (0, "holds"), said


@pytest.mark.slow
def test_an_unreached_protocol_has_its_own_exit_code(command: Command, protocols: Path) -> None:
    said = command("verify", "--alone", "--protocol", f"{protocols}:no_deployment")
    as_data = json.loads(command("verify", "--alone", "--json", "--protocol", f"{protocols}:no_deployment").out)

    assert said.code == 7
    assert said.out.startswith("unreached ")
    assert "never reached: no_deployment" in said.out
    assert "EXAMPLES" in said.out
    assert (as_data["verdict"], as_data["unreached"], as_data["rules"]) == ("unreached", ["no_deployment"], [])


@pytest.mark.slow
def test_a_protocol_that_blocks_forever_is_found_with_its_story(command: Command, protocols: Path) -> None:
    said = command("verify", "--alone", "--protocol", f"{protocols}:hold_the_second_tool")

    assert said.code == 1
    assert said.out.startswith("violated ")
    assert re.findall(
        r"^deadlock: gate requests gate_approved c\d, and hold_the_second_tool blocks it$", said.out, re.M
    )
    assert re.findall("^(?:  1  |and)", said.out, re.M) == ["  1  ", "and"]  # one of many traces
    assert said.out.endswith("\nand 4 more; --json prints all of them\n")


@pytest.mark.slow
def test_a_protocol_that_keeps_state_elsewhere_cannot_be_verified(command: Command, protocols: Path) -> None:
    said = command("verify", "--protocol", f"{protocols}:counts_elsewhere", *FEW_RULES)

    assert said.code == 2
    assert "this cannot be verified: b-thread 'counts_elsewhere'" in said.err


@pytest.mark.slow
def test_a_page_shows_the_counterexample(command: Command, tmp_path: Path) -> None:
    page, rule = tmp_path / "verified.html", tmp_path / "mine.py"
    rule.write_text(
        "from agent.events import GateApproved\nfrom bp import bthread, sync\n\n\n@bthread\ndef mine():\n"
        "    yield sync(wait_for=GateApproved)\n    raise ValueError('wrong')\n"
    )

    said = command(
        "verify", "--preset", "passthrough", "--protocol", f"{rule}:mine", "--page", page, "--max-states", "2000"
    )

    assert said.code == 1
    assert f"the page: {page}" in said.err
    assert "ValueError: wrong" in page.read_text()
    assert '"name":"gate_approved"' in page.read_text()


@pytest.mark.slow
def test_the_examples_of_a_protocol_may_name_real_commands(command: Command, tmp_path: Path) -> None:
    (tmp_path / "pushes.py").write_text(
        """
from agent.events import GateApproved
from agent.vocabulary.calls import ToolCall
from bp import bthread, sync, where
from constitution import Action

PUSH = GateApproved(ToolCall("c1", "bash", {}), Action("bash", "write", "/", command="git push"))
EXAMPLES = {"no_push": (PUSH,)}

def pushes(approved):
    return approved.facts.command == "git push"

@bthread
def no_push():
    yield sync(refuse=where(GateApproved, pushes), because="not on a Friday")
"""
    )

    said = command("verify", "--alone", "--protocol", f"{tmp_path / 'pushes.py'}:no_push")

    assert said.code == 0, said.err


GROWS = """
from agent.events import ToolStarted
from bp import bthread, sync, where

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
"""


@pytest.mark.slow
def test_a_search_without_end_is_bounded_by_itself_and_says_what_grows_and_what_it_found(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "grows.py"
    file.write_text(GROWS)
    both = ("--protocol", f"{file}:counts_for_ever", "--protocol", f"{file}:one_tool")

    said = command("verify", "--alone", *both, "--max-states", "30000")
    as_data = json.loads(command("verify", "--alone", "--json", *both, "--max-states", "1000").out)

    assert said.code == 1
    assert "to look at, 1 violation so far" in said.err
    assert "not verified: there are more states than --max-states; only 30,000 states" in said.out
    most = said.out.partition("most local states, so look for one that counts without end: ")[2].partition("\n")[0]
    assert "counts_for_ever " in most
    assert "effect " not in most
    assert as_data["local_states"]["counts_for_ever"] > 3
