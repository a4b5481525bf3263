"""`bpagent why` and `bpagent what-if`: what is printed, as text and as JSON."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.cli.sessions import NOTHING_TODAY, Command, bash

Script = Callable[..., str]


@pytest.fixture
def log(command: Command, script: Script, workspace: Path, tmp_path: Path) -> Path:
    log = tmp_path / "logs" / "log.jsonl"
    model = script(bash("ls"), bash("git reset --hard"), bash("rm -rf /no/such/folder"), "Done.")
    assert command("run", "go", "--model", model, "--workspace", workspace, "--log", log).code == 0
    return log


def test_why_says_who_refused_on_what_evidence_and_what_had_to_differ(command: Command, log: Path) -> None:
    said = command("why", log, "call_3")

    assert said.code == 0
    assert "by b-thread by_constitution: rm would delete /no/such/folder" in said.out
    assert "rule delete_outside_workspace (destruction), level deny" in said.out
    assert "evidence: characters 0 to 22: rm -rf /no/such/folder" in said.out
    assert "- without b-thread by_constitution: nobody refuses it" in said.out
    assert "- these policies allow it: passthrough" in said.out


def test_why_says_that_a_person_could_have_said_yes(command: Command, log: Path) -> None:
    said = command("why", log, "call_2")

    assert "nobody was there to answer" in said.out
    assert "- with a yes from a person: it runs" in said.out


def test_why_says_who_let_a_call_run(command: Command, log: Path) -> None:
    assert "approved: no b-thread refused it" in command("why", log, "call_1").out


def test_why_without_a_call_lists_them(command: Command, log: Path) -> None:
    said = command("why", log)

    assert [line.split()[:2] for line in said.out.splitlines()] == [
        ["call_1", "approved"],
        ["call_2", "rejected"],
        ["call_3", "rejected"],
    ]
    assert [json.loads(line)["decision"] for line in command("why", log, "--json").out.splitlines()] == [
        "approved",
        "rejected",
        "rejected",
    ]


def test_why_as_json(command: Command, log: Path) -> None:
    told = json.loads(command("why", log, "call_3", "--json").out)

    assert (told["approved"], told["ran"]) == (False, False)
    assert told["objections"][0]["bthread"] == "by_constitution"
    assert told["objections"][0]["because"]["rule"] == "delete_outside_workspace"
    assert told["levels"]["passthrough"] == "allow"


def test_why_of_an_unknown_call_is_2(command: Command, log: Path) -> None:
    said = command("why", log, "call_9")

    assert (said.code, said.out) == (2, "")
    assert "has no call 'call_9'; calls: call_1, call_2, call_3" in said.err


def test_what_if_tells_changes_divergence_and_share(command: Command, log: Path) -> None:
    said = command("what-if", log, "--policy", "passthrough")

    assert said.code == 0
    assert "  call_2  git reset --hard\n    then rejected: denied: no person present" in said.out
    assert "    now  approved\n" in said.out
    assert "the recording is valid up to line " in said.out
    assert "2 of 3 calls could be judged (67 %); 1 of them would be decided otherwise" in said.out


def test_what_if_over_a_folder_sums_up(command: Command, log: Path) -> None:
    (log.parent / "again.jsonl").write_bytes(log.read_bytes())

    said = command("what-if", log.parent, "--policy", "passthrough")

    assert said.code == 0
    assert "2 logs\n" in said.out
    assert "4 of 6 calls could be judged (67 %); 2 of them would be decided otherwise" in said.out


def test_what_if_goes_on_after_a_log_that_cannot_be_judged(command: Command, log: Path) -> None:
    (log.parent / "broken.jsonl").write_text("{}\n")

    said = command("what-if", log.parent, "--policy", "gated")

    assert said.code == 2
    assert "broken.jsonl" in said.err
    assert "2 of 3 calls could be judged (67 %); 0 of them would be decided otherwise" in said.out


def test_what_if_with_a_protocol_and_as_json(command: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)

    said = command("what-if", log, "--protocol", f"{tmp_path / 'rules.py'}:nothing_today", "--json")

    told = json.loads(said.out)
    assert (told["calls"], told["judged"]) == (3, 1)
    assert told["changed"][0]["call"] == "call_1"
    assert told["changed"][0]["now"]["by"] == ["nothing_today"]
    assert told["divergence"]["why"].startswith("call_1 (bash) was approved, and now: rejected")


def test_what_if_without_a_b_thread(command: Command, log: Path) -> None:
    said = command("what-if", log, "--without", "by_constitution", "--json")

    assert json.loads(said.out)["changed"][0]["now"]["kind"] == "approved"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "nothing would differ"),
        (("--policy", "gatd"), "there is no policy 'gatd'; did you mean 'gated'"),
        (("--without", "nobody"), "has no b-thread 'nobody'"),
    ],
)
def test_wrong_input_is_2(command: Command, log: Path, words: tuple[str, ...], sentence: str) -> None:
    said = command("what-if", log, *words)

    assert said.code == 2
    assert sentence in said.err
