"""What the command tells about itself: tools, presets, protocols, this machine, and what to type."""

import json
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from agent.cli.arguments import COMMANDS, called
from agent.cli.parts import PROGRAMS, _show_presets
from agent.cli.screen import Screen
from agent.models.scripted import STEP
from agent.presets import PRESETS, PURPOSES
from agent.protocols import PROTOCOLS
from agent.tools.sandbox.sandbox import LEVELS, achieved
from tests.agent.cli.sessions import Command, RunOf, bash, environment
from tests.tables import rows


def test_help_fits_in_a_hundred_columns_however_wide_the_terminal_is(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    texts = (command("--help").out, command().err, command("run", "--help").out, command("chat", "--help").out)

    assert [line for text in texts for line in text.splitlines() if len(line) > 100] == []


def test_bpagent_alone_shows_first_steps_and_every_command(command: Command) -> None:
    said = command()

    first = [line.split("  ")[2] for line in said.err.splitlines() if line.startswith("    bpagent")]
    words = said.err.partition("All commands:")[2].split()
    assert (said.code, said.out) == (2, "")
    assert first == ["bpagent demo", "bpagent chat --model http://127.0.0.1:8080/v1", "bpagent check 'rm -rf /'"]
    assert max(map(len, said.err.splitlines())) < 80
    assert "demo" in words
    assert [name for name in re.findall(r"^    ([a-z-]+) ", command("--help").out, re.M) if name not in words] == []
    assert "bpagent --help" in said.err


def test_help_imports_nothing_heavy() -> None:
    """Well under 0.2 s: what takes time must not even be imported."""
    statements = "import sys\nfrom agent.cli import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"

    finished = subprocess.run([sys.executable, "-c", statements], capture_output=True, text=True, env=environment())

    heavy = {"anyio", "asyncio", "attr", "attrs", "cattrs", "openai", "tree_sitter", "bp", "constitution"}
    assert heavy.isdisjoint(finished.stderr.split())


def test_tools_have_category_parameters_and_origin(command: Command) -> None:
    said = command("tools")

    assert said.code == 0
    assert "bash            write, from agent.tools.shell" in said.out
    assert "- command (string): the command, as bash understands it" in said.out
    assert "- timeout (number or null, optional): " in said.out


def test_tools_as_json_are_their_schemas(command: Command) -> None:
    tools = [json.loads(line) for line in command("tools", "--json").out.splitlines()]

    files = ["read_file", "write_file", "list_directory"]
    coding = ["edit", "grep", "find", "todoread", "todowrite", "websearch", "webfetch", "task"]
    assert [tool["name"] for tool in tools] == ["bash", *files, "process_output", "process_stop", *coding]
    assert tools[1]["category"] == "read"
    assert tools[1]["parameters"]["required"] == ["path"]
    assert tools[1]["source"] == "agent.tools.collections"


def test_presets_are_a_table_whose_differences_come_first(command: Command) -> None:
    lines = command("presets").out.splitlines()

    names = [word for line in lines if line.startswith("different") for word in line.split()[1:]]
    failures = [word for line in lines if line.startswith("max_failures") for word in line.split()[1:]]
    assert dict(zip(names, failures, strict=True)) == {
        name: str(preset.max_failures or "none") for name, preset in PRESETS.items()
    }
    assert any(line.split() == ["mode", "interactive"] for line in lines[lines.index("the same in all") :])
    assert max(map(len, lines)) <= 100
    text = " ".join(" ".join(lines).split())
    assert [name for name in PRESETS if f"{name} {PURPOSES[name]}" not in text] == []


@rows("columns", [100, 80, 50])
def test_presets_break_no_word(columns: int) -> None:
    output = StringIO()
    _show_presets(Screen(output, columns=columns), {each.name: each.configuration() for each in PRESETS.values()})
    shown = output.getvalue()

    words = ("approval_list", "~/.agent/config.yaml", "~/.agent/workspace")
    assert [word for word in words if word not in shown] == []
    assert max(map(len, shown.splitlines()[:-2])) <= columns
    names = [word for line in shown.splitlines() if line.startswith("different") for word in line.split()[1:]]
    assert names == [*PRESETS]


def test_the_help_of_run_names_every_key_of_a_script(command: Command) -> None:
    said = command("run", "--help").out

    assert [key for key in (*STEP, "tool", "arguments", "id", "retry_after") if key not in said] == []


def test_one_preset_is_shown_with_its_differences_from_default(command: Command) -> None:
    said = command("presets", "autonomous").out

    assert re.search(r"^\* max_iterations +25$", said, re.M)
    assert re.search(r"^  max_failures +5$", said, re.M)
    assert "You are an agent that works on a task" in said


def test_what_is_refused_in_a_sandbox_is_listed(command: Command) -> None:
    lines = command("presets", "--denials").out.splitlines()

    assert (
        len([line for line in lines if "would" in line])
        == len(json_lines(command("presets", "--denials", "--json").out))
        <= 15
    )
    assert any(line.split()[0] == "delete_tree" for line in lines if line)


def json_lines(text: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in text.splitlines()]


def test_presets_as_json_are_their_options(command: Command) -> None:
    found = [json.loads(line) for line in command("presets", "--json").out.splitlines()]

    assert [preset["name"] for preset in found] == [*PRESETS]
    assert json.loads(command("presets", "coding", "--json").out) in found


@pytest.mark.slow
@rows("name", ["", *COMMANDS])
def test_every_command_has_help(name: str, command: Command) -> None:
    said = command(*name.split(), "--help")

    assert said.code == 0
    assert said.out.startswith(f"usage: bpagent {name}".rstrip())
    assert command("--version").out.startswith("bpagent")
    assert command("help", *name.split()).out == said.out


# What people are told to type works where they type it.


@rows(
    ("typed", "on_path", "told"),
    [
        ("{tmp}/bin/bpagent", "bin", "bpagent"),
        ("bin/bpagent", "nothing", "bin/bpagent"),
        ("bin/bpagent", "other", "bin/bpagent"),
        ("-c", "nothing", "bpagent"),
    ],
)
def test_our_command_is_named_if_on_path_else_shown_by_its_path(
    typed: str, on_path: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "bpagent").write_text("#!/bin/sh\n")
        (tmp_path / folder / "bpagent").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [typed.format(tmp=tmp_path)])
    monkeypatch.setenv("PATH", str(tmp_path / on_path))

    assert called("view", "a b.jsonl") == f"{told} view 'a b.jsonl'"


# `bpagent doctor` tells what this machine can do; `--sandbox` chooses what a run does about it.


@pytest.mark.slow
def test_doctor_shows_the_sandbox_level_and_why_no_higher_one_is_achieved(command: Command) -> None:
    said = command("doctor")
    found = json.loads(command("doctor", "--json").out)

    assert said.code == (1 if found["sandbox"] == "none" else 0)
    assert found["sandbox"] == achieved()
    assert set(found["why_not"]) <= set(LEVELS)
    assert found["programs"]["bash"]
    assert found["free"] > 0
    assert f"sandbox: {achieved()}" in said.out
    assert all(program in said.out for program in PROGRAMS)
    assert {name: "tar" in programs["uses"] for name, programs in found["settings"].items()} == {
        "repair": False,
        "operations": True,
        "infrastructure": False,
    }
    assert "operations uses /bin/sh, base64" in said.out


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "changed"), [("off", True), ("on", achieved() == "none")])
def test_the_sandbox_is_chosen_on_the_command_line(
    run_of: RunOf, chosen: str, changed: bool, command: Command, workspace: Path, log: Path
) -> None:
    (workspace / "work.sh").write_text("echo gone > ../canary")
    canary = workspace.parent / "canary"
    canary.write_text("alive")

    command(*run_of(bash("sh work.sh"), "Done."), "--log", log,
            "--sandbox", chosen)  # fmt: skip

    assert (canary.read_text() != "alive") is changed
    assert json.loads(log.read_text().splitlines()[0])["sandbox"] == ("" if chosen == "off" else achieved())


# `bpagent completion`.


@rows(
    ("typed", "offered"),
    [
        ("bpagent ru", "run runs"),
        ("bpagent run --mod", "--model"),
        ("bpagent completion ''", "bash zsh fish"),
        ("bpagent why ''", ""),  # files, which bash itself offers
        ("bpagent run --log ''", ""),
    ],
)
def test_bash_completes_commands_and_options(typed: str, offered: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / "complete").write_text(command("completion", "bash").out)
    words = typed.split()
    ask = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _bpagent; echo ${{COMPREPLY[@]}}"

    ran = subprocess.run(["bash", "-c", f"source {tmp_path}/complete; {ask}"], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == (f"{offered}\n", "")


@pytest.mark.slow
def test_other_shells_are_completed_too(command: Command) -> None:
    assert command("completion", "bash").out in command("completion", "zsh").out
    fish = command("completion", "fish").out.splitlines()
    assert (
        sum("-n __fish_use_subcommand" in line for line in fish)
        == len(command("completion", "bash").out.split(") words=")) - 1
    )
    assert any("__fish_seen_subcommand_from run' -l model -r" in line for line in fish)


# `bpagent protocols`, and protocols of all kinds on the command line.


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
def test_a_policy_about_an_unknown_tool_is_reported(run_of: RunOf, command: Command, tmp_path: Path) -> None:
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
    assert (
        f"--protocol '{file}:both': it returned list; a protocol is one b-thread: decorate a generator function"
        in said.err
    )
    assert "begins others with `yield start(...)`" in said.err
