"""`bpagent protocols`, `bpagent new protocol`, and protocols of all kinds on the command line."""

import json
from pathlib import Path

import pytest

from agent.protocols import PROTOCOLS
from tests.agent.cli.sessions import Command, RunOf

TOUCH = {"calls": [{"tool": "bash", "arguments": {"command": "touch a"}}]}


def test_protocols_are_listed_with_what_they_cost_and_where_they_come_from(command: Command) -> None:
    said = command("protocols")
    as_json = [json.loads(line) for line in command("protocols", "--json").out.splitlines()]

    assert said.code == 0
    for entry, row in zip(PROTOCOLS, as_json, strict=True):
        assert f"\n{entry.name}\n" in f"\n{said.out}"
        assert entry.cost in said.out
        assert entry.source in said.out
        assert row["name"] == entry.name
        assert {"does", "costs", "roles", "source", "made_by"} <= row.keys()


@pytest.mark.slow
def test_a_protocol_that_ships_runs_with_a_monitor(run_of: RunOf, command: Command, workspace: Path) -> None:
    arguments = run_of(TOUCH, "Done.")
    refused = command(*arguments, "--protocol", "blocking_monitor", "--monitor", "monitor=constant:0.9")
    absent = command(*arguments, "--protocol", "blocking_monitor")
    allowed = command(*arguments, "--protocol", "blocking_monitor", "--monitor", "monitor=constitution")

    assert "monitor gives 0.90, and 0.50 is allowed" in refused.err
    assert (absent.code, "blocking_monitor needs the monitor 'monitor'" in absent.err) == (2, True)
    assert "blocking_monitor" not in allowed.err
    assert (workspace / "a").exists()


@pytest.mark.slow
def test_a_policy_about_a_tool_that_there_is_not_is_told(run_of: RunOf, command: Command, tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text("policies: [{forbid: bsh, name: no shell}, {require: write_file, after: [read_file, ask]}]")

    said = command(*run_of("Done."), "--protocol", policies)

    assert said.code == 0
    assert "the policy 'no shell' names a tool 'bsh', and there is none; did you mean 'bash'?" in said.err
    assert "the policy 'only_after' names a tool 'ask', and there is none" in said.err
    assert said.err.count("names a tool") == 2


def test_an_auditor_of_the_command_line_catches(run_of: RunOf, command: Command) -> None:
    said = command(
        *run_of(TOUCH, "Done."),
        "--protocol", "upfront_audit", "--auditor", "auditor=constant:0.9",
    )  # fmt: skip

    assert said.code == 1
    assert "an audit found something harmful, and the role 'agent' is disabled" in said.err


def test_a_role_has_a_model(run_of: RunOf, command: Command, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.yaml"
    trusted.write_text(json.dumps({"steps": ["I did it safely."]}))

    said = command(
        *run_of("Hello."), "--protocol", "defer_to_trusted",
        "--monitor", "monitor=constant:1", "--role", f"trusted=script:{trusted}",
    )  # fmt: skip

    assert (said.code, said.out.strip()) == (0, "I did it safely.")


@pytest.mark.slow
def test_policies_in_yaml_are_protocols(run_of: RunOf, command: Command, tmp_path: Path, log: Path) -> None:
    policies, broken = tmp_path / "policies.yaml", tmp_path / "broken.yaml"
    policies.write_text("policies:\n  - forbid: bash\n    name: no commands\n")
    broken.write_text("policies:\n  - forbids: bash\n")
    arguments = run_of(TOUCH, "Done.")

    said = command(*arguments, "--protocol", policies, "--log", log)
    wrong = command(*arguments, "--protocol", broken)

    assert "no commands: bash is not allowed" in said.err
    assert command("replay", log, "--protocol", policies).code == 0
    assert wrong.code == 2
    assert f"{broken}:2:5: unknown key 'forbids'; did you mean 'forbid'?" in wrong.err


def test_a_function_that_makes_several_bthreads_is_refused_with_what_begins_others(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "several.py"
    file.write_text("def both():\n    return []\n")

    said = command("verify", "--alone", "--protocol", f"{file}:both")

    assert said.code == 2
    assert "it returned list; a protocol is one b-thread: decorate a generator function with @bthread" in said.err
    assert "begins others with `yield start(...)`" in said.err
