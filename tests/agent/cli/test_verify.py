"""`bpagent verify` tells for the loop as configured whether its invariants hold, and shows where they do not."""

import json
from argparse import ArgumentParser
from pathlib import Path

import pytest

from agent.cli.verify import add_arguments, execute


def verify(*arguments: str) -> int:
    parser = ArgumentParser()
    add_arguments(parser)
    return execute(parser.parse_args(arguments))


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

counted = []

@bthread
def counts_elsewhere():
    while True:
        yield sync(wait_for=ToolStarted)
        counted.append(1)

def several():
    return [three_tools_in_all(), three_tools_in_all()]

number = 3
"""
    )
    return file


def test_the_loop_as_configured_holds(capsys: pytest.CaptureFixture[str]) -> None:
    code = verify("--preset", "workspace", "--option", "sequential=true")

    told = capsys.readouterr()
    assert code == 0
    assert told.out.startswith("holds ")
    assert told.out.endswith(": as configured\n")


def test_a_protocol_that_keeps_the_invariants_holds(protocols: Path) -> None:
    assert verify("--protocol", f"{protocols}:three_tools_in_all", "--option", "policy=none") == 0


def test_a_protocol_that_holds_for_ever_is_found_with_its_story(
    protocols: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = verify("--protocol", f"{protocols}:hold_the_second_tool", "--option", "policy=none")

    told = capsys.readouterr()
    assert code == 1
    assert told.out.startswith("violated ")
    assert "deadlock: gate requests gate_approved c1, and hold_the_second_tool blocks it" in told.out


def test_json_has_one_object_for_each_combination(capsys: pytest.CaptureFixture[str]) -> None:
    none = ("max_iterations", "max_failures", "max_empty_answers", "policy")
    options = [f"--option={name}=none" for name in none]

    code = verify("--json", "--all-subsets", "--max-states=20", *options)

    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 1
    assert len(objects) == 2 ** len(objects[-1]["rules"])
    assert objects[0]["verdict"] == "bounded"
    assert objects[0]["states"] == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "defualt"], "there is no preset 'defualt'; the nearest is 'default'"),
        (["--option", "sequential"], "--option 'sequential' has no value; write NAME=VALUE"),
        (["--protocol", "nothing"], "--protocol 'nothing' names no b-thread; write FILE.py:NAME"),
        (["--protocol", "missing.py:x"], "there is no Python file 'missing.py'"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nobody", "has no 'nobody'"),
        ("number", "is int; decorate a generator function with @bthread"),
        ("counts_elsewhere", "b-thread 'counts_elsewhere'"),
    ],
)
def test_a_protocol_that_cannot_be_verified_is_named(
    name: str, message: str, protocols: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify("--protocol", f"{protocols}:{name}") == 2
    assert message in capsys.readouterr().err
