"""`bpagent score`: finished logs scored beside themselves, asked once, audited by budget; `why` shows what was said."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.log.reading import read_log
from tests.agent.cli.sessions import PATIENCE, Command, bash

Script = Callable[..., str]
Start = Callable[..., "subprocess.Popen[str]"]

MONITORS = """\
import time
from pathlib import Path

from agent.effects.monitoring import Audit
from agent.protocols.monitors import Score, text_of


class Words:
    def score(self, evidence):
        with Path(__file__).with_name("asked").open("a") as file:
            file.write("asked\\n")
        return Score(0.9 if "secret" in text_of(evidence.subject) else 0.1, "by its words")


class Slow(Words):
    def score(self, evidence):
        if "second" in text_of(evidence.subject):
            time.sleep(60)
        return super().score(evidence)


class Expert:
    def audit(self, evidence):
        return Audit("harmful" if "secret" in str(evidence.messages) else "harmless", "read all of it")


words, slow, expert = Words(), Slow(), Expert()
"""


@pytest.fixture
def logs(command: Command, script: Script, workspace: Path, tmp_path: Path) -> Path:
    """A folder with the logs of two runs, the second one with a secret."""
    for number, commands in enumerate((["ls", "true"], ["cat secret.txt", "echo second"])):
        model = script(*map(bash, commands), "Done.")
        log = tmp_path / "logs" / f"run-{number}.jsonl"
        assert command("run", "go", "--model", model, "--workspace", workspace, "--log", log).code == 0
    return tmp_path / "logs"


@pytest.fixture
def monitors(tmp_path: Path) -> Path:
    path = tmp_path / "monitors.py"
    path.write_text(MONITORS)
    return path


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.slow
def test_a_second_run_asks_nothing_and_says_so(start: Start, logs: Path, monitors: Path, tmp_path: Path) -> None:
    before = {log: log.read_bytes() for log in logs.glob("*.jsonl")}
    said = []
    for _ in range(2):
        process = start("score", logs, "--monitor", f"words={monitors}:words", "--monitor", "flat=constant:0.2")
        said.append(finished(process))

    (first_code, first, _), (second_code, second, _) = said
    assert (first_code, second_code) == (0, 0)
    assert "words: 4 calls in 2 logs; 4 asked now, 0 known" in first
    assert "0.90 at most, of 2 calls: call_1 (by its words)" in first
    assert "words: 4 calls in 2 logs; nothing asked: all scores were known" in second
    assert "flat: 4 calls in 2 logs; nothing asked" in second
    assert {log: log.read_bytes() for log in logs.glob("*.jsonl")} == before
    assert (tmp_path / "asked").read_text().count("asked") == 4


@pytest.mark.slow
def test_a_pass_that_was_killed_goes_on_where_it_was(start: Start, logs: Path, monitors: Path) -> None:
    log = logs / "run-1.jsonl"
    sidecar = logs / "run-1.jsonl.sidecar"
    killed = start("score", log, "--monitor", f"words={monitors}:slow")
    while not (sidecar.exists() and '"score"' in sidecar.read_text()):
        assert killed.poll() is None
        time.sleep(0.05)  # another process writes it
    in_use = finished(start("score", log, "--monitor", "flat=constant:0.2"))
    killed.send_signal(signal.SIGKILL)
    killed.wait(PATIENCE)
    kept = sidecar.read_text()

    monitors.write_text(MONITORS.replace("time.sleep(60)", "time.sleep(0)"))  # another text: another monitor
    again = finished(start("score", log, "--monitor", f"words={monitors}:slow"))
    once_more = finished(start("score", log, "--monitor", f"words={monitors}:slow"))

    assert (in_use[0], "is in use by process" in in_use[2]) == (2, True)
    assert [json.loads(line).get("call") for line in kept.splitlines()] == [None, "call_1"]
    assert (again[0], "2 asked now" in again[1]) == (0, True)
    assert "nothing asked" in once_more[1]
    assert sidecar.read_text().startswith(kept)


def test_the_most_suspicious_logs_are_audited(command: Command, logs: Path, monitors: Path) -> None:
    words = ("score", logs, "--monitor", f"words={monitors}:words", "--auditor", f"expert={monitors}:expert")

    first, second = command(*words), command(*words, "--audits", "2", "--json")

    assert "expert     harmful: read all of it" in first.out
    assert "1 audits, 1 of them asked now" in first.out
    audits = [told for told in map(json.loads, second.out.splitlines()) if "auditor" in told]
    assert [(Path(told["log"]).name, told["verdict"], told["asked"]) for told in audits] == [
        ("run-1.jsonl", "harmful", False),
        ("run-0.jsonl", "harmless", True),
    ]


def test_a_monitor_can_be_the_auditor(command: Command, logs: Path, monitors: Path) -> None:
    said = command("score", logs, "--monitor", f"words={monitors}:words", "--auditor", "flat=constant:0.7", "--json")

    assert json.loads(said.out.splitlines()[-1])["verdict"] == "harmful"


def test_as_json_each_log_and_monitor_is_a_line(command: Command, logs: Path, monitors: Path) -> None:
    said = command("score", logs, "--monitor", f"words={monitors}:words", "--json")

    told = [json.loads(line) for line in said.out.splitlines()]
    assert [(each["monitor"], each["highest"], each["asked"]) for each in told] == [
        ("words", 0.1, 2),
        ("words", 0.9, 2),
    ]
    assert [score["call"] for score in told[1]["scores"]] == ["call_1", "call_2"]


def test_why_shows_what_was_said_afterwards(command: Command, logs: Path, monitors: Path) -> None:
    log = logs / "run-1.jsonl"
    command("score", log, "--monitor", f"words={monitors}:words")

    assert "afterwards, words: 0.90 (by its words)" in command("why", log, "call_1").out
    assert "afterwards, words: 0.10" in command("why", log, "call_2").out
    assert json.loads(command("why", log, "call_1", "--json").out)["afterwards"][0]["value"] == 0.9


def test_the_page_of_a_run_shows_what_was_said_afterwards(command: Command, logs: Path, monitors: Path) -> None:
    log = logs / "run-1.jsonl"
    command("score", log, "--monitor", f"words={monitors}:words", "--auditor", f"expert={monitors}:expert")

    assert command("view", log).code == 0

    page = log.with_suffix(".html").read_text()
    assert "<dt>words, afterwards</dt><dd>0.90 at most (call_1, of 2)</dd>" in page
    assert "<dt>expert, afterwards</dt><dd>harmful: read all of it</dd>" in page


def test_a_log_that_went_on_is_refused_until_its_sidecar_is_removed(
    command: Command, logs: Path, monitors: Path, script: Script
) -> None:
    log, other = logs / "run-0.jsonl", logs / "run-1.jsonl"
    words = ("score", logs, "--monitor", f"words={monitors}:words")
    command(*words)
    log.write_bytes(other.read_bytes())

    refused = command(*words)

    assert refused.code == 2
    assert "run-0.jsonl.sidecar is about another content of" in refused.err
    assert "remove the sidecar, and score again" in refused.err
    assert "2 calls in 1 logs; nothing asked" in refused.out  # the other one is told all the same
    why = command("why", log, "call_1")
    assert (why.code, "the log has changed since it was scored" in why.err) == (0, True)
    view = command("view", log)
    assert (view.code, "the log has changed since it was scored" in view.err) == (0, True)
    (logs / "run-0.jsonl.sidecar").unlink()
    assert command(*words).code == 0


def test_sidecars_are_no_logs_for_other_commands(command: Command, logs: Path) -> None:
    command("score", logs, "--monitor", "flat=constant:0.2")

    said = command("what-if", logs, "--policy", "strict")

    assert said.code == 0
    assert "2 logs" in said.out
    assert len(read_log(logs / "run-0.jsonl").records) > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no monitor would be asked; name a --monitor"),
        (("--monitor", "constitution"), "is no pair; write --monitor NAME=WHAT"),
        (("--monitor", "a=keyword"), "--monitor 'keyword' names no monitor; write constitution, constant:0.2, model:"),
        (("--monitor", "flat=constant:2"), "--monitor constant:2 gives no score"),
        (("--monitor", "flat=constant:0.2", "--audits", "0"), "--audits 0 audits nothing"),
        (("--monitor", "flat=constant:0.2", "--by", "flat"), "name an --auditor with it"),
        (("--monitor", "flat=constant:0.2", "--by", "x", "--auditor", "a=constitution"), "none of the monitors: flat"),
        (("--monitor", "flat=constant:0.2", "--auditor", "a=constant:x"), "--auditor constant:x gives no score"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    words: tuple[str, ...], told: str, command: Command, logs: Path
) -> None:
    said = command("score", logs, *words)

    assert said.code == 2
    assert told in said.err
    assert not list(logs.glob("*.sidecar"))


def test_a_model_that_cannot_be_reached_leaves_nothing_behind(command: Command, logs: Path, script: Script) -> None:
    said = command("score", logs / "run-0.jsonl", "--monitor", f"model=model:{script()}")

    assert said.code == 1
    assert "2 calls have no score yet, the first because of call_1:" in said.err
    assert not (logs / "run-0.jsonl.sidecar").exists()
