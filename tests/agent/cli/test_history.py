"""`bpagent why`, `what-if`, `replay` and `fork`, and `/undo`: what is printed, and what is as before."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.agent.cli.sessions import NOTHING_TODAY, Command, OnTerminal, RunOf, Script, bash
from tests.tables import rows


@pytest.fixture
def log(recorded_log: Path) -> Path:
    return recorded_log


@pytest.mark.slow
@rows(
    ("words", "shown"),
    [
        (("why", "call_1"), ("approved: no b-thread refused it",)),
        (("why", "call_2"), ("no user was present to answer", "- with a yes from a person: it runs")),
        (
            ("why", "call_3"),
            (
                "by b-thread by_constitution: rm would delete /no/such/folder",
                "rule delete_tree (destruction), level deny",
                "evidence: characters 0 to 22: rm -rf /no/such/folder",
                "- without b-thread by_constitution: no b-thread refuses it",
                "- these policies allow it: passthrough",
            ),
        ),
        (
            ("what-if", "--policy", "passthrough"),
            (
                "  call_2  touch .git/config\n    then rejected: denied: no person present",
                "    now  approved\n",
                "the recording is valid up to line ",
                "2 of 3 calls could be judged (67 %); 1 of them would be decided otherwise",
            ),
        ),
    ],
)
def test_decisions_are_explained_and_judged_again(
    words: tuple[str, ...], shown: tuple[str, ...], command: Command, log: Path
) -> None:
    said = command(words[0], log, *words[1:])

    assert said.code == 0
    assert [text for text in shown if text not in said.out] == []


def test_why_as_json_names_the_objections(command: Command, log: Path) -> None:
    told = json.loads(command("why", log, "call_3", "--json").out)

    assert (told["approved"], told["ran"], told["levels"]["passthrough"]) == (False, False, "allow")
    assert told["objections"][0]["bthread"] == "by_constitution"
    assert told["objections"][0]["because"]["rule"] == "delete_tree"


@pytest.mark.slow
def test_a_call_allowed_by_a_user_rule_is_shown_so_during_and_after_the_run(
    command: Command, run_of: RunOf, home: Path, tmp_path: Path
) -> None:
    (home / ".bpagent").mkdir()
    rule = f"commands: [{{allow: touch .git/config, file: {Path(shutil.which('touch') or '').resolve()}}}]"
    (home / ".bpagent" / "rules.yaml").write_text(rule)
    words, log = run_of(bash("echo hi"), bash("touch .git/config"), "Done."), tmp_path / "log.jsonl"

    said = command(*words, "--log", log)

    after_action = said.err.partition("action   touch .git/config\n")[2]
    assert after_action.startswith("system   allowed by a rule of yours, without a question\n")
    assert said.err.count("allowed by a rule") == 1
    (home / ".bpagent" / "rules.yaml").unlink()  # as it was then
    assert "allowed by a rule of yours" in command("why", log, "call_2").out
    assert "approved: no b-thread refused it" in command("why", log, "call_1").out


def test_why_without_a_call_lists_calls_and_decisions(command: Command, log: Path) -> None:
    decisions = [["call_1", "approved"], ["call_2", "rejected"], ["call_3", "rejected"]]

    listed = command("why", log)
    as_json = [json.loads(line) for line in command("why", log, "--json").out.splitlines()]

    assert [line.split()[:2] for line in listed.out.splitlines()] == decisions
    assert [[told["call"], told["decision"]] for told in as_json] == decisions


NO_DRAFT = """
from bp import bthread, sync
from agent.events import AnswerCommitted


@bthread
def no_draft():
    yield sync(refuse=AnswerCommitted, because="too risky")
"""


def test_why_says_why_no_call_is_listed(command: Command, run_of: RunOf, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NO_DRAFT)
    refuse = ("--protocol", f"{tmp_path}/rules.py:no_draft")
    flawed = {"calls": [{"tool": "nosuch", "arguments": {}}]}
    for number, (answer, options, sentence) in enumerate((
        (bash("ls"), refuse, "every draft of a turn was refused, with its calls: no_draft: too risky"),
        (flawed, (), "no call that the model asked for could be put up: each was flawed, or the run ended before"),
        ("Done.", (), "the model asked for no call in this run"),
    )):  # fmt: skip
        kept = tmp_path / f"{number}.jsonl"
        command(*run_of(answer, "Done."), "--log", kept, *options)

        assert command("why", kept).err == f"bpagent: {sentence}\n"


def test_what_if_over_a_folder_sums_up_and_goes_on_after_a_log_that_cannot_be_judged(
    command: Command, log: Path
) -> None:
    (log.parent / "again.jsonl").write_bytes(log.read_bytes())
    (log.parent / "broken.jsonl").write_text("{}\n")

    said = command("what-if", log.parent, "--policy", "passthrough")

    assert (said.code, "broken.jsonl" in said.err) == (2, True)
    assert "2 logs\n" in said.out
    assert "4 of 6 calls could be judged (67 %); 2 of them would be decided otherwise" in said.out


def test_what_if_with_a_protocol_or_without_a_b_thread_and_as_json(command: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)

    added = json.loads(command("what-if", log, "--protocol", f"{tmp_path}/rules.py:nothing_today", "--json").out)
    removed = json.loads(command("what-if", log, "--without", "by_constitution", "--json").out)

    assert (added["calls"], added["judged"]) == (3, 1)
    assert (added["changed"][0]["call"], added["changed"][0]["now"]["by"]) == ("call_1", ["nothing_today"])
    assert added["divergence"]["why"].startswith("call_1 (bash) was approved, and now: rejected")
    assert removed["changed"][0]["now"]["kind"] == "approved"


# `bpagent replay`; equal, torn, broken and changed logs are in tests/outside.


@rows(
    ("change", "sentence"),
    [
        (('"name":"gate_approved"', '"name":"gate_rejected"'), "says gate_rejected; its b-threads say gate_approved"),
        (
            ('"status":"completed"', '"status":"stopped"'),
            'with status "stopped"; its b-threads say status "completed"',
        ),
    ],
)
def test_a_forged_record_is_reported_in_a_sentence_or_as_json(
    change: tuple[str, str], sentence: str, command: Command, log: Path
) -> None:
    kept = log.read_text()
    log.write_text(kept.replace(*change, 1))

    said, as_json = command("replay", log), command("replay", log, "--json")

    log.write_text(kept)
    assert (said.code, as_json.code) == (6, 6)
    line, hint, *_ = said.out.splitlines()
    assert sentence in line
    assert max(map(len, (line, hint))) < 200 + len(str(log))
    told = json.loads(as_json.out)
    assert f" equal, line {told['difference']['number'] + 1} says " in line
    assert told["difference"]["recorded"] != told["difference"]["replayed"]
    assert told["difference"]["number"] == told["equal"] + 1


@rows("change", [('"name":"tool_finished"', '"name":"nosuch"'), ('"is_error":false', '"is_error":0')])
def test_an_impossible_record_is_a_difference_too(change: tuple[str, str], command: Command, log: Path) -> None:
    kept = log.read_text()
    begin = kept.index('"name":"tool_finished"')
    log.write_text(kept[:begin] + kept[begin:].replace(*change, 1))

    said = command("replay", log)

    log.write_text(kept)
    assert (said.code, said.out.partition(": ")[0]) == (6, "different")


def test_a_protocol_that_was_not_there_is_no_part_of_a_replay(command: Command, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(NOTHING_TODAY)

    said = command("replay", log, "--protocol", f"{tmp_path / 'rules.py'}:nothing_today")

    assert (said.code, "was made without the b-thread 'nothing_today'" in said.err) == (2, True)


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


@pytest.mark.slow
def test_a_logged_protocol_is_rebuilt_with_its_arguments_and_the_advice_works(
    run_of: RunOf, command: Command, tmp_path: Path
) -> None:
    kept, rules = tmp_path / "log.jsonl", tmp_path / "rules.py"
    rules.write_text(WITH_ARGUMENTS)
    command(*run_of(bash("ls"), bash("ls -a"), bash("ls -l"), "Done."), "--log", kept, "--protocol", f"{rules}:chosen")

    without = command("replay", kept)
    assert (without.code, "was made with the b-thread 'calls_at_most' from " in without.err) == (2, True)
    advice = re.findall(r"--protocol (\S+)", without.err)

    assert advice == [f"{rules}:chosen"]
    assert command("replay", kept, "--protocol", advice[0]).code == 0
    assert command("replay", kept, "--protocol", f"{rules}:calls_at_most").code == 0
    assert command("why", kept, "--protocol", f"{rules}:calls_at_most").code == 0


# `bpagent fork`: another run with the first steps of one.


@pytest.mark.slow
def test_a_run_can_be_forked_at_every_step_and_goes_on_from_there(
    command: Command, run_of: RunOf, tmp_path: Path, home: Path
) -> None:
    (home / ".bpagent").mkdir()  # where it is kept how far logs go
    first, again = tmp_path / "first.jsonl", tmp_path / "again.jsonl"
    two = {"calls": [{"tool": "bash", "arguments": {"command": "ls"}}, {"tool": "list_directory", "arguments": {}}]}
    assert command(*run_of(two, "Done."), "--log", first).code == 0
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
    assert said.code == 2
    assert re.search(r"has no step 999; its last one is \d\d, and turns begin at \d, \d\d; bpagent view", said.err)


@pytest.fixture
def changing(command: Command, run_of: RunOf, workspace: Path, log_of_changes: Path) -> tuple[Path, int]:
    """The log of a run that changed a file twice, and the step at which the first change was done."""
    (workspace / "a").write_text("mine\n")
    calls = [{"call": {"tool": "bash", "arguments": {"command": f"echo {n} > a; touch new{n}"}}} for n in (1, 2)]
    assert command(*run_of(*calls, "Done."), "--log", log_of_changes).code == 0
    records = [json.loads(line) for line in log_of_changes.read_text().splitlines()[1:]]
    return log_of_changes, next(record["step"] for record in records if record["name"] == "call_answered")


@pytest.fixture
def log_of_changes(tmp_path: Path) -> Path:
    return tmp_path / "changes.jsonl"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.slow
def test_a_fork_goes_on_in_a_copy_with_the_files_of_the_step_under_another_protocol_and_model(
    command: Command, changing: tuple[Path, int], script: Script, workspace: Path, tmp_path: Path
) -> None:
    log, step = changing
    copy, rules, before = tmp_path / "copy", tmp_path / "rules.py", contents(workspace)
    rules.write_text(NOTHING_TODAY)
    other = script({"call": {"tool": "bash", "arguments": {"command": "echo other > b"}}}, "Other.")

    made = command("fork", log, step, "--worktree", copy, "--protocol", f"{rules}:nothing_today", "--model", other)

    assert (made.code, contents(copy)) == (0, {"a": "1\n", "new1": ""})
    assert f"workspace {copy}" in " ".join(made.err.split())
    again = ("resume", made.out.strip(), "--protocol", f"{rules}:nothing_today")
    assert f"bpagent {' '.join(again)}" in made.err
    assert command(*again).out == "Other.\n"
    assert (contents(copy), contents(workspace)) == ({"a": "1\n", "new1": ""}, before)
    assert "it is a holiday" in command("why", again[1], "call_2", *again[2:]).out
    assert command("replay", *again[1:]).code == 0
    refused = command("fork", log, step, "--worktree", copy)
    assert (refused.code, "is not empty; name a new folder" in refused.err) == (2, True)


@pytest.mark.slow
def test_a_fork_makes_the_files_what_they_were_if_that_is_said_or_answered(
    command: Command, changing: tuple[Path, int], on_terminal: OnTerminal, workspace: Path
) -> None:
    log, step = changing
    after = contents(workspace)
    said = command("fork", log, step).err
    assert "files stay as they are; --files makes them what they were, --worktree FOLDER a copy" in said
    for answer in ("no", "yes"):
        assert contents(workspace) == after
        terminal = on_terminal("fork", log, step)
        terminal.wait_for("since then 2 files changed, 1 new. Make them what they were? (yes/no)")
        assert terminal.end(f"{answer}\r") == 0
    assert contents(workspace) == {"a": "1\n", "new1": ""}
    (workspace / "a").write_text("by the user\n")

    left = command("fork", log, 1, "--files")

    assert (left.code, contents(workspace)) == (1, {"a": "by the user\n"})
    assert "left: a (was changed by something else than this run)" in left.err
    there = sorted(log.parent.iterdir())
    assert command("runs", "--prune").code == 0
    for words, why in (
        (["--files"], "there is no snapshot 'changes-"),
        (["--worktree", workspace.with_name("copy")], "there is no snapshot 'changes-"),
        (["--files", "--worktree", "x"], "leave it out, or --worktree"),
    ):
        refused = command("fork", log, step, *words)
        assert (refused.code, why in refused.err, sorted(log.parent.iterdir())) == (2, True, there)


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_without_what_its_last_call_had_changed(
    command: Command, process: Command, run_of: RunOf, workspace: Path, tmp_path: Path
) -> None:
    log = tmp_path / "killed.jsonl"
    (workspace / "a").write_text("mine\n")
    half = {"call": {"tool": "bash", "arguments": {"command": "echo half > a; kill -9 $PPID; sleep 9"}}}
    assert process(*run_of(half, "Done."), "--log", log, "--preset", "passthrough").code == -9
    assert (workspace / "a").read_text() == "half\n"

    resumed = command("resume", log, "--files")

    assert (resumed.code, (workspace / "a").read_text()) == (0, "mine\n")
    assert "as before: a" in resumed.err


@pytest.mark.slow
def test_in_a_conversation_files_are_restored_on_a_yes(
    on_terminal: OnTerminal, script: Script, workspace: Path, tmp_path: Path
) -> None:
    write = {"call": {"tool": "write_file", "arguments": {"path": "a.txt", "content": "hers\n"}}}
    (workspace / "a.txt").write_text("mine\n")
    model = script(write, "First.", write, "Second.")
    terminal = on_terminal("chat", "--model", model, "--workspace", workspace, "--log", tmp_path / "log.jsonl")
    for number, answer in enumerate(("rather go on\ryes\r", "n\r")):
        terminal.rest(number)
        terminal.talk("go\r", number + 1)
        assert (workspace / "a.txt").read_text() == "hers\n"
        terminal.type("/undo\r")
        terminal.wait_for("changed: a.txt", times=number + 1)
        terminal.wait_for("Restore these files? (yes/no)", times=number + 1)
        terminal.talk(answer, ("as before: a.txt", "files stay as they are")[number])
        assert (workspace / "a.txt").read_text() == ("mine\n", "hers\n")[number]
    terminal.rest(2)

    assert terminal.end("/quit\r") == 0
