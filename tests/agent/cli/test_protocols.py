"""`bpagent protocols`, `bpagent new protocol`, and protocols of all kinds on the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.protocols.catalogue import PROTOCOLS
from tests.agent.cli.sessions import Command, environment

Script = Callable[..., str]

TOUCH = {"calls": [{"tool": "bash", "arguments": {"command": "touch a"}}]}


def test_protocols_are_listed_with_what_they_cost_and_where_they_come_from(command: Command) -> None:
    said = command("protocols")
    as_json = [json.loads(line) for line in command("protocols", "--json").out.splitlines()]

    assert said.code == 0
    for entry, row in zip(PROTOCOLS, as_json, strict=True):
        assert f"\n{entry.name}\n" in f"\n{said.out}"
        assert str(entry.cost) in said.out
        assert entry.source in said.out
        assert row["name"] == entry.name
        assert {"does", "costs", "roles", "source", "made_by"} <= row.keys()


def test_a_protocol_that_does_not_exist_is_told_with_the_nearest(command: Command, script: Script) -> None:
    listed = command("protocols", "blocking_montor")
    run = command("run", "Go", "--model", script("Done."), "--protocol", "blocking_montor")

    assert listed.code == run.code == 2
    assert "did you mean 'blocking_monitor'" in listed.err
    assert "did you mean 'blocking_monitor'" in run.err


@pytest.mark.slow
def test_a_protocol_that_ships_runs_with_a_monitor(command: Command, script: Script, workspace: Path) -> None:
    arguments = ("run", "Go", "--model", script(TOUCH, "Done."), "--workspace", workspace)
    refused = command(*arguments, "--protocol", "blocking_monitor", "--monitor", "monitor=constant:0.9")
    absent = command(*arguments, "--protocol", "blocking_monitor")
    allowed = command(*arguments, "--protocol", "blocking_monitor", "--monitor", "monitor=constitution")

    assert "monitor gives 0.90, and 0.50 is allowed" in refused.err
    assert (absent.code, "blocking_monitor needs the monitor 'monitor'" in absent.err) == (2, True)
    assert "blocking_monitor" not in allowed.err
    assert (workspace / "a").exists()


def test_what_a_protocol_needs_and_was_not_named_is_refused(command: Command, script: Script, workspace: Path) -> None:
    arguments = ("run", "Go", "--model", script("Done."), "--workspace", workspace)
    watched = ("--monitor", "monitor=constitution")
    needs = {
        ("upfront_audit",): "upfront_audit needs the auditor 'auditor'; give --auditor auditor=model:MODEL",
        ("defer_to_trusted",): "needs the monitor 'monitor'; give --monitor monitor=constitution",
        ("defer_to_trusted", *watched): "defer_to_trusted needs the role 'trusted'; give --role trusted=MODEL",
        ("ensemble", *watched): "ensemble needs the monitor 'second'",
    }

    said = {words: command(*arguments, "--protocol", *words) for words in needs}

    assert {words: each.code for words, each in said.items()} == dict.fromkeys(needs, 2)
    assert [(words, each.err) for words, each in said.items() if needs[words] not in each.err] == []


@pytest.mark.slow
def test_a_policy_about_a_tool_that_there_is_not_is_told(
    command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text("policies: [{forbid: bsh, name: no shell}, {require: write_file, after: [read_file, ask]}]")

    said = command("run", "Go", "--model", script("Done."), "--workspace", workspace, "--protocol", policies)

    assert said.code == 0
    assert "the policy 'no shell' names a tool 'bsh', and there is none; did you mean 'bash'?" in said.err
    assert "the policy 'only_after' names a tool 'ask', and there is none" in said.err
    assert said.err.count("names a tool") == 2


def test_an_auditor_of_the_command_line_catches(command: Command, script: Script, workspace: Path) -> None:
    said = command(
        "run", "Go", "--model", script(TOUCH, "Done."), "--workspace", workspace,
        "--protocol", "upfront_audit", "--auditor", "auditor=constant:0.9",
    )  # fmt: skip

    assert said.code == 1
    assert "an audit found something harmful, and the role 'agent' is disabled" in said.err


def test_a_role_has_a_model(command: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.yaml"
    trusted.write_text(json.dumps({"steps": ["I did it safely."]}))

    said = command(
        "run", "Go", "--model", script("Hello."), "--workspace", workspace, "--protocol", "defer_to_trusted",
        "--monitor", "monitor=constant:1", "--role", f"trusted=script:{trusted}",
    )  # fmt: skip

    assert (said.code, said.out.strip()) == (0, "I did it safely.")


@pytest.mark.slow
def test_policies_in_yaml_are_protocols(command: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    policies, broken = tmp_path / "policies.yaml", tmp_path / "broken.yaml"
    policies.write_text("policies:\n  - forbid: bash\n    name: no commands\n")
    broken.write_text("policies:\n  - forbids: bash\n")
    log = tmp_path / "log.jsonl"
    arguments = ("run", "Go", "--model", script(TOUCH, "Done."), "--workspace", workspace)

    said = command(*arguments, "--protocol", policies, "--log", log)
    wrong = command(*arguments, "--protocol", broken)

    assert "no commands: bash is not allowed" in said.err
    assert command("replay", log, "--protocol", policies).code == 0
    assert wrong.code == 2
    assert f"{broken}:2:5: unknown key 'forbids'; did you mean 'forbid'?" in wrong.err


def test_what_is_no_monitor_and_no_role_is_told(command: Command, script: Script, tmp_path: Path) -> None:
    (tmp_path / "watch.py").write_text("number = 3\n")
    arguments = ("run", "Go", "--model", script("Done."), "--protocol", "blocking_monitor")

    for option, value, problem in (
        ("--monitor", "monitor", "is no pair; write --monitor NAME=WHAT"),
        ("--monitor", "monitor=constant:2", "write a number from 0 to 1"),
        ("--monitor", "monitor=constant:maybe", "write a number from 0 to 1"),
        ("--monitor", f"monitor={tmp_path / 'watch.py'}:number", "a monitor has a method `score(evidence)`"),
        ("--role", "trusted=", "is no pair"),
    ):
        said = command(*arguments, option, value)
        assert said.code == 2
        assert problem in said.err


@pytest.mark.slow
def test_a_protocol_is_verified_by_its_name(command: Command) -> None:
    options = ["--option", "sequential=false", "--option", "max_iterations=none", "--option", "max_failures=none"]

    said = command("verify", "--protocol", "taint_flow", "--preset", "workspace", "--max-states", 300, *options)

    assert "300 states" in said.out


@pytest.mark.slow
def test_a_new_protocol_and_its_test_pass_as_they_stand(command: Command, tmp_path: Path) -> None:
    said = command("new", "protocol", "few-writes", "--folder", tmp_path)

    assert said.code == 0
    assert {file.name for file in tmp_path.glob("*few_writes.py")} == {"few_writes.py", "test_few_writes.py"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    tested = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment(), timeout=120)
    assert "4 passed" in tested.stdout, tested.stdout + tested.stderr
