"""`bpagent experiment` and `bpagent new setting`, as a person at a terminal meets them."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli.experiment import teller
from tests.agent.cli.sessions import Command, environment
from tests.tables import rows

PLAN = """\
settings: ['my_words.py:MY_WORDS']
policies: [honest, always]
protocols: [constitution_only, {use: blocking_monitor, budget: 0.5}]
seeds: 1
instances: 1
replicates: 20
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["setting", "protocol"])
def test_a_new_setting_or_protocol_template_passes_its_test(kind: str, folder: Path, command: Command) -> None:
    assert command("new", kind, "my-words").out.split() == ["my_words.py", "test_my_words.py"]

    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_words.py"]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_an_experiment_ends_with_a_table_and_a_figure(folder: Path, command: Command) -> None:
    command("new", "setting", "my_words")
    (folder / "plan.yaml").write_text(PLAN)

    said, results = command("experiment", "plan.yaml"), folder / "plan.results"

    assert said.code == 0, said
    assert "blocking_monitor" in said.out
    assert "Command: bpagent experiment plan.yaml" in said.out
    assert (results / "figure.svg").read_text().startswith("<?xml")
    assert (results / "data/episodes.csv").exists()
    assert "watcher at 0.5" in command("experiment", "freeze", "plan.yaml").out


@pytest.mark.slow
def test_the_example_shows_an_effect_that_its_interval_supports_with_few_episodes(
    folder: Path, command: Command
) -> None:
    assert command("experiment", "--example").code == 0

    with (folder / "example/data/estimates.csv").open(newline="") as table:
        lines = [line for line in csv.DictReader(table) if line["setting"] == "all"]
    (gain,) = (
        line
        for line in lines
        if (line["protocol"], line["measure"]) == ("defer_on_critical", "safety_worst_difference")
    )
    assert float(gain["estimate"]) > 0.5
    assert float(gain["low"]) > 0
    assert len((folder / "example/episodes.jsonl").read_text().splitlines()) == 81
    links = re.findall(r'href="(logs/[^"]+)"', (folder / "example/report.html").read_text())
    assert {Path(link).suffix for link in links} == {".jsonl", ".html"}
    assert [link for link in links if not (folder / "example" / link).exists()] == []


@rows(
    ("kind", "name", "told"),
    [
        ("setting", "json", "'json' is the name of a module that there is already; choose another name"),
        ("protocol", "agent", "'agent' is the name of a module that there is already"),
        ("setting", "class", "'class' cannot be the name of a function"),
        ("setting", "my_words", "my_words.py exists already; choose another name, or another --folder"),
        ("setting", "../words", "cannot be the name of a function"),
        ("protocol", "2fast", "cannot be the name of a function"),
    ],
)
def test_a_name_that_would_do_harm_is_refused_and_nothing_is_written(
    kind: str, name: str, told: str, folder: Path, command: Command
) -> None:
    (folder / "my_words.py").write_text("mine")

    said = command("new", kind, name)

    assert (said.code, told in said.err) == (2, True)
    assert {path.name for path in folder.iterdir()} == {"home", "my_words.py"}
    assert (folder / "my_words.py").read_text() == "mine"


POLICY = "policies: [{forbid: bash, name: no commands}]\n"


@pytest.mark.slow
def test_custom_protocols_and_policies_are_measured_and_run_again_after_changes(folder: Path, command: Command) -> None:
    command("new", "setting", "my_words")
    command("new", "protocol", "few_writes")
    (folder / "rules.yaml").write_text(POLICY)
    own = "[constitution_only, 'few_writes.py:few_writes', {use: [rules.yaml, taint_flow]}]"
    plan = "settings: ['my_words.py:MY_WORDS']\npolicies: [honest]\nprotocols: {own}\ninstances: 1\nreplicates: 20\n"
    (folder / "plan.yaml").write_text(plan.format(own=own) + "splits: [test]\n")

    printed = command("experiment", "plan.yaml").out
    rows = (folder / "plan.results" / "data/episodes.csv").read_text()
    (folder / "rules.yaml").write_text(POLICY.replace("bash", "write_file"))
    again = command("experiment", "plan.yaml")

    assert "few_writes " in printed
    assert "rules+taint_flow " in printed
    assert rows.count("few_writes") == 1
    assert (again.code, "1 of them run now" in again.out) == (0, True)


@pytest.mark.slow
@rows(
    ("name", "told"),
    [
        ("nowhere.py:x", "plan.yaml:3:13: the protocol 'nowhere.py:x': nowhere.py cannot be imported"),
        ("few_writes.py:many", "plan.yaml:3:13: the protocol 'few_writes.py:many': few_writes.py has no 'many'"),
        ("few_writes.py:__doc__", "is str; a protocol is one b-thread"),
        ("wrong.yaml", "wrong.yaml:1:1: unknown key 'polices'; did you mean 'policies'?"),
        (
            "misspelt.py:strict",
            "plan.yaml:3:13: the protocol 'misspelt.py:strict' has a parameter 'treshold', ",
        ),
        ("misspelt.py:strict", "did you mean 'threshold'? Else give it a name of its own"),
    ],
)
def test_an_invalid_custom_protocol_is_reported_with_its_place(
    name: str, told: str, folder: Path, command: Command
) -> None:
    command("new", "protocol", "few_writes")
    (folder / "wrong.yaml").write_text("polices: []\n")
    (folder / "misspelt.py").write_text("def strict(monitor='m', treshold=0.5, tone=1):\n    return ()\n")
    (folder / "plan.yaml").write_text(f"settings: [repair]\npolicies: [honest]\nprotocols: ['{name}']\n")

    said = command("experiment", "plan.yaml")
    assert (said.code, told in said.err) == (2, True)


def test_without_a_terminal_progress_is_printed_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, 61.0, 61.0, 62.0, 122.0, 122.0])
    tell = teller(lambda: next(times))

    for line in ("1 of 9", "2 of 9", "3 of 9", "4 of 9"):
        tell(line)

    assert capsys.readouterr().err == "bpagent: 2 of 9\nbpagent: 4 of 9\n"
