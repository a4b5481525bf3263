"""`bpagent replay`: equal, torn, broken, changed, of another program, of a newer format."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import NOTHING_TODAY, Command, bash

Script = Callable[..., str]


@pytest.fixture
def log(command: Command, script: Script, workspace: Path, tmp_path: Path) -> Path:
    """The log of a run with a call that ran and one that was refused."""
    log = tmp_path / "log.jsonl"
    model = script(bash("echo hi"), bash("rm -rf /no/such/folder"), "Done.")
    assert command("run", "go", "--model", model, "--workspace", workspace, "--log", log).code == 0
    return log


def edit(log: Path, change: Callable[[list[str]], list[str]]) -> None:
    log.write_text("\n".join(change(log.read_text().splitlines())) + "\n")


def with_header(log: Path, **changes: object) -> None:
    edit(log, lambda lines: [json.dumps(json.loads(lines[0]) | changes), *lines[1:]])


def line_of(log: Path, name: str) -> int:
    return next(n for n, line in enumerate(log.read_text().splitlines()) if f'"name":"{name}"' in line)


def test_an_untouched_log_is_equal(command: Command, log: Path) -> None:
    count = len(log.read_text().splitlines()) - 1

    said = command("replay", log)

    assert said.code == 0
    assert said.out == (
        f"equal: {count} records, replayed without model, tools or network; the run completed (answered)\n"
    )


def test_a_torn_last_line_is_reported_and_no_difference(command: Command, log: Path) -> None:
    log.write_text(log.read_text()[:-30])
    last = len(log.read_text().splitlines())

    said = command("replay", log)

    assert said.code == 0
    assert said.out.startswith(f"the last line ({last}) is torn; it was left out\nequal: ")


@pytest.mark.parametrize("broken", ['{"step', "[]", "{}", '{"step":1,"super_step":1,"name":[],"data":{},"origin":"x"}'])
def test_another_broken_line_is_2_with_its_number(broken: str, command: Command, log: Path) -> None:
    edit(log, lambda lines: [*lines[:4], broken, *lines[5:]])

    said = command("replay", log)

    assert (said.code, said.out) == (2, "")
    assert "line 5: " in said.err


@pytest.mark.parametrize(
    "name", ["prompt_given", "proposed_action", "inference_finished", "gate_rejected", "run_ended"]
)
def test_a_missing_record_is_6_with_both_sides(name: str, command: Command, log: Path) -> None:
    number = line_of(log, name)
    edit(log, lambda lines: lines[:number] + lines[number + 1 :])

    said = command("replay", log)

    assert said.code == 6
    assert f"line {number + 1} of" in said.out
    assert "recorded: " in said.out
    assert "replayed: " in said.out


def test_a_changed_record_is_6_with_what_is_not_the_same(command: Command, log: Path) -> None:
    number = line_of(log, "call_answered")
    edit(log, lambda lines: [*lines[:number], lines[number].replace("hi", "ho"), *lines[number + 1 :]])

    said = command("replay", log)

    assert said.code == 6
    assert '"result":"ho' in said.out
    assert '"result":"hi' in said.out
    assert "in: data" in said.out


@pytest.mark.parametrize(
    "change", [('"name":"tool_finished"', '"name":"nosuch"'), ('"is_error":false', '"is_error":0')]
)
def test_a_record_that_no_run_could_have_written_is_6(change: tuple[str, str], command: Command, log: Path) -> None:
    number = line_of(log, "tool_finished")
    edit(log, lambda lines: [*lines[:number], lines[number].replace(*change), *lines[number + 1 :]])

    said = command("replay", log)

    assert said.code == 6
    assert said.out.startswith("different: ")


def test_a_newer_format_is_refused(command: Command, log: Path) -> None:
    with_header(log, format=99)

    said = command("replay", log)

    assert (said.code, said.out) == (2, "")
    assert "the log has format 99, this program reads up to 1; use a newer bpagent" in said.err


def test_a_protocol_has_to_be_named_again(command: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    log, rules = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rules.write_text(NOTHING_TODAY)
    model, protocol = script(bash("ls"), "Done."), ("--protocol", f"{rules}:nothing_today")
    command("run", "go", "--model", model, "--workspace", workspace, "--log", log, *protocol)

    without = command("replay", log)
    again = command("replay", log, *protocol)

    assert without.code == 2
    assert "was made with the b-thread 'nothing_today' from rules.py:nothing_today" in without.err
    assert again.code == 0


def test_a_protocol_that_was_not_there_is_a_difference(command: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)

    said = command("replay", log, "--protocol", f"{tmp_path / 'rules.py'}:nothing_today")

    assert said.code == 2
    assert "was made without the b-thread 'nothing_today'" in said.err


WITH_ARGUMENTS = """
from agent.events import ProposedAction, InferenceRequested
from bp import BThreadBody, bthread, sync


@bthread
def calls_at_most(most: int = 1) -> BThreadBody:
    for _ in range(most):
        yield sync(wait_for=ProposedAction)
    yield sync(refuse=ProposedAction, because="enough")


chosen = calls_at_most(2)
"""


def test_a_protocol_comes_back_with_its_arguments_and_the_advice_works(
    command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    log, rules = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rules.write_text(WITH_ARGUMENTS)
    model = script(bash("ls"), bash("ls -a"), bash("ls -l"), "Done.")
    command("run", "go", "--model", model, "--workspace", workspace, "--log", log, "--protocol", f"{rules}:chosen")

    without = command("replay", log)
    advice = re.findall(r"--protocol (\S+)", without.err)

    assert advice == [f"{rules}:chosen"]
    assert command("replay", log, "--protocol", advice[0]).code == 0
    assert command("replay", log, "--protocol", f"{rules}:calls_at_most").code == 0
    assert command("why", log, "--protocol", f"{rules}:calls_at_most").code == 0
