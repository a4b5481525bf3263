"""`bpagent why` and `bpagent what-if`: what is printed, as text and as JSON."""

import json
import re
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
    assert "- without b-thread by_constitution: no b-thread refuses it" in said.out
    assert "- these policies allow it: passthrough" in said.out


def test_why_says_that_a_person_could_have_said_yes(command: Command, log: Path) -> None:
    said = command("why", log, "call_2")

    assert "no user was present to answer" in said.out
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


# `bpagent replay`: equal, torn, broken, changed, of another program, of a newer format.


@pytest.fixture
def kept(command: Command, script: Script, workspace: Path, tmp_path: Path) -> Path:
    """The log of a run with a call that ran and one that was refused."""
    kept = tmp_path / "log.jsonl"
    model = script(bash("echo hi"), bash("rm -rf /no/such/folder"), "Done.")
    assert command("run", "go", "--model", model, "--workspace", workspace, "--log", kept).code == 0
    return kept


def edit(kept: Path, change: Callable[[list[str]], list[str]]) -> None:
    kept.write_text("\n".join(change(kept.read_text().splitlines())) + "\n")


def with_header(kept: Path, **changes: object) -> None:
    edit(kept, lambda lines: [json.dumps(json.loads(lines[0]) | changes), *lines[1:]])


def line_of(kept: Path, name: str) -> int:
    return next(n for n, line in enumerate(kept.read_text().splitlines()) if f'"name":"{name}"' in line)


def test_an_untouched_log_is_equal(command: Command, kept: Path) -> None:
    count = len(kept.read_text().splitlines()) - 1

    said = command("replay", kept)

    assert said.code == 0
    assert said.out == (
        f"equal: {count} records, replayed without model, tools or network; the run completed (answered)\n"
    )


def test_a_torn_last_line_is_reported_and_no_difference(command: Command, kept: Path) -> None:
    kept.write_text(kept.read_text()[:-30])
    last = len(kept.read_text().splitlines())

    said = command("replay", kept)

    assert said.code == 0
    assert said.out.startswith(f"the last line ({last}) is torn; it was left out\nequal: ")


@pytest.mark.parametrize("broken", ['{"step', "[]", "{}", '{"step":1,"super_step":1,"name":[],"data":{},"origin":"x"}'])
def test_another_broken_line_is_2_with_its_number(broken: str, command: Command, kept: Path) -> None:
    edit(kept, lambda lines: [*lines[:4], broken, *lines[5:]])

    said = command("replay", kept)

    assert (said.code, said.out) == (2, "")
    assert "line 5: " in said.err


@pytest.mark.parametrize(
    "name", ["prompt_given", "proposed_action", "inference_finished", "gate_rejected", "run_ended"]
)
def test_a_missing_record_is_6_with_both_sides(name: str, command: Command, kept: Path) -> None:
    number = line_of(kept, name)
    edit(kept, lambda lines: lines[:number] + lines[number + 1 :])

    said = command("replay", kept)

    assert said.code == 6
    assert f"line {number + 1} of" in said.out
    assert "recorded: " in said.out
    assert "replayed: " in said.out


def test_a_changed_record_is_6_with_what_is_not_the_same(command: Command, kept: Path) -> None:
    number = line_of(kept, "call_answered")
    edit(kept, lambda lines: [*lines[:number], lines[number].replace("hi", "ho"), *lines[number + 1 :]])

    said = command("replay", kept)

    assert said.code == 6
    assert '"result":"ho' in said.out
    assert '"result":"hi' in said.out
    assert "in: data" in said.out


@pytest.mark.parametrize(
    "change", [('"name":"tool_finished"', '"name":"nosuch"'), ('"is_error":false', '"is_error":0')]
)
def test_a_record_that_no_run_could_have_written_is_6(change: tuple[str, str], command: Command, kept: Path) -> None:
    number = line_of(kept, "tool_finished")
    edit(kept, lambda lines: [*lines[:number], lines[number].replace(*change), *lines[number + 1 :]])

    said = command("replay", kept)

    assert said.code == 6
    assert said.out.startswith("different: ")


def test_a_newer_format_is_refused(command: Command, kept: Path) -> None:
    with_header(kept, format=99)

    said = command("replay", kept)

    assert (said.code, said.out) == (2, "")
    assert "the log has format 99, this program reads up to 1; use a newer bpagent" in said.err


def test_a_protocol_has_to_be_named_again(command: Command, script: Script, workspace: Path, tmp_path: Path) -> None:
    kept, rules = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rules.write_text(NOTHING_TODAY)
    model, protocol = script(bash("ls"), "Done."), ("--protocol", f"{rules}:nothing_today")
    command("run", "go", "--model", model, "--workspace", workspace, "--log", kept, *protocol)

    without = command("replay", kept)
    again = command("replay", kept, *protocol)

    assert without.code == 2
    assert "was made with the b-thread 'nothing_today' from rules.py:nothing_today" in without.err
    assert again.code == 0


def test_a_protocol_that_was_not_there_is_a_difference(command: Command, kept: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)

    said = command("replay", kept, "--protocol", f"{tmp_path / 'rules.py'}:nothing_today")

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
    kept, rules = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rules.write_text(WITH_ARGUMENTS)
    model = script(bash("ls"), bash("ls -a"), bash("ls -l"), "Done.")
    command("run", "go", "--model", model, "--workspace", workspace, "--log", kept, "--protocol", f"{rules}:chosen")

    without = command("replay", kept)
    advice = re.findall(r"--protocol (\S+)", without.err)

    assert advice == [f"{rules}:chosen"]
    assert command("replay", kept, "--protocol", advice[0]).code == 0
    assert command("replay", kept, "--protocol", f"{rules}:calls_at_most").code == 0
    assert command("why", kept, "--protocol", f"{rules}:calls_at_most").code == 0


# `bpagent fork`: another run with the first steps of one.


@pytest.mark.slow
def test_a_run_can_be_forked_at_every_step_and_goes_on_from_there(
    command: Command, script: Script, workspace: Path, tmp_path: Path, home: Path
) -> None:
    (home / ".bpagent").mkdir()  # where it is kept how far logs go
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    two = {"calls": [{"tool": "bash", "arguments": {"command": "ls"}}, {"tool": "list_directory", "arguments": {}}]}
    where = ("--workspace", workspace, "--log", first)
    assert command("run", "go", "--model", script(two, "Done."), *where).code == 0
    content = first.read_bytes()

    wrong = []
    for step in [json.loads(line)["step"] for line in content.decode().splitlines()[1:]]:
        forked = command("fork", first, step, "--output", again)
        if (forked.out, command("resume", again).code, command("replay", again).code) != (f"{again}\n", 0, 0):
            wrong.append(step)
        again.unlink()

    assert wrong == []
    assert first.read_bytes() == content
    first.write_bytes(content.replace(b'"ls"', b'"la"'))
    assert "the log was changed there" in command("fork", first, 5).err
    first.write_bytes(content)
    said = command("fork", first, 999)
    assert (said.code, "has no step 999; its last one is" in said.err) == (2, True)
