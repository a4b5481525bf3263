"""What-if: a recording under other rules, and where it stops being valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, answer, call
from agent.history.rebuilding import RebuildError, changed_bthreads
from agent.history.what_if import WhatIf, what_if
from agent.log.reading import RecordedRun, read_log
from agent.presets.policy_files import PolicyError, load_policy
from agent.vocabulary.events import GateApproved, ToolFinished
from bp import BThreadBody, bthread, sync, where
from constitution import POLICIES, Level

MakeAgent = Callable[..., Agent]

STEPS = (
    call("bash", command="ls").with_id("look"),
    [call("bash", command="git reset --hard").with_id("reset"), call("bash", command="ls .").with_id("beside")],
    answer("Out.", call("bash", command="curl https://example.com").with_id("fetch")),
    call("bash", command="rm -rf /").with_id("wipe"),
    "Done.",
)


@bthread
def no_second_look() -> BThreadBody:
    yield sync(wait_for=where(ToolFinished))
    yield sync(refuse=where(GateApproved, lambda approved: approved.call.id == "beside"), because="one look is enough")


@bthread
def never_lets_go() -> BThreadBody:
    yield sync(block=GateApproved)


@pytest.fixture
def recorded(make_agent: MakeAgent, tmp_path: Path) -> Callable[..., RecordedRun]:
    """`recorded(approve=...)`: the log of a run."""

    def record(*steps: Any, **options: Any) -> RecordedRun:
        agent = make_agent(*(steps or STEPS), **options)
        agent.run_sync("Go")
        agent.close()
        assert agent.log_path is not None
        return read_log(agent.log_path)

    return record


def decided(result: WhatIf) -> dict[str, tuple[str, str, bool]]:
    return {
        call.call.id: (
            "" if call.then is None else call.then.kind,
            "" if call.now is None else call.now.kind,
            call.assumed,
        )
        for call in result.calls
    }


def test_the_same_rules_change_nothing_and_everything_can_be_judged(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run))

    assert (result.changed, result.divergence, result.judged) == ((), None, 5)
    assert decided(result)["reset"] == ("approved by a person", "approved by a person", False)


def test_a_stricter_policy_changes_a_decision_and_the_recording_ends_with_the_turn(
    recorded: Callable[..., RecordedRun],
) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run, policy=POLICIES["gated"]))

    assert decided(result) == {
        "look": ("approved", "approved", False),
        "reset": ("approved by a person", "rejected", False),
        "beside": ("approved", "approved", False),
        "fetch": ("approved by a person", "rejected", True),
        "wipe": ("rejected", "rejected", True),
    }
    assert result.judged == 3
    assert result.divergence is not None
    assert "reset (bash) was approved by a person, and now: rejected" in result.divergence.why
    first = next(n for n, record in enumerate(run.records, 2) if "Out." in str(record["data"]))
    assert result.divergence.line == first


def test_a_milder_policy_lets_calls_run_whose_results_nobody_knows(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded()

    result = what_if(run, changed_bthreads(run, policy=POLICIES["passthrough"]))

    assert decided(result)["reset"] == ("rejected", "approved", False)
    assert decided(result)["wipe"] == ("rejected", "approved", True)
    assert result.divergence is not None


def test_what_was_answered_then_is_not_asked_again_and_what_was_not_is_told(
    recorded: Callable[..., RecordedRun],
) -> None:
    run = recorded(call("bash", command="git reset --hard").with_id("reset"), "Done.", preset="default")
    from attrs import evolve

    base = POLICIES["default"]
    asking = evolve(base, rules=tuple(evolve(rule, level=Level.ask) for rule in base.rules))

    result = what_if(run, changed_bthreads(run, policy=asking))

    assert decided(result)["reset"] == ("rejected", "rejected", False)


def test_a_new_question_has_no_answer(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(call("bash", command="rm -rf /").with_id("wipe"), "Done.")

    result = what_if(run, changed_bthreads(run, policy=POLICIES["approval_list"]))

    assert decided(result) == {"wipe": ("rejected", "asks a person", False)}


def test_a_protocol_that_was_not_there_is_heard(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run, threads=[no_second_look()]))

    assert decided(result)["beside"] == ("approved", "rejected", False)
    assert [call.call.id for call in result.changed] == ["beside"]
    assert result.changed[0].now is not None
    assert result.changed[0].now.by == ("no_second_look",)


def test_a_protocol_that_was_there_can_be_left_out(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True, threads=[no_second_look()])

    with pytest.raises(RebuildError, match="'no_second_look'"):
        changed_bthreads(run)
    assert decided(what_if(run, changed_bthreads(run, threads=[no_second_look()])))["beside"][1] == "rejected"
    result = what_if(run, changed_bthreads(run, without={"no_second_look"}))

    assert decided(result)["beside"] == ("rejected", "approved", False)


def test_who_holds_a_call_back_for_ever_is_named(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded()

    result = what_if(run, changed_bthreads(run, threads=[never_lets_go()]))

    assert result.calls[0].now is not None
    assert (result.calls[0].now.kind, result.calls[0].now.by) == ("held back", ("never_lets_go",))


def test_a_limit_that_comes_earlier_ends_the_recording(make_agent: MakeAgent, recorded: Any) -> None:
    run = recorded(approve=lambda asked: True)
    from agent.threads.limits import at_most

    result = what_if(run, changed_bthreads(run, threads=[at_most(1)]))

    assert result.judged == 1
    assert result.divergence is not None
    assert "the run would have ended, limit (max_iterations)" in result.divergence.why


def test_a_recording_that_ends_early_is_judged_as_far_as_it_goes(recorded: Callable[..., RecordedRun]) -> None:
    from attrs import evolve

    run = recorded(approve=lambda asked: True)
    for length in range(1, len(run.records)):
        result = what_if(evolve(run, records=run.records[:length]), changed_bthreads(run))
        assert all(call.then is None or not call.changed for call in result.calls), length


def test_an_unknown_b_thread_cannot_be_left_out(recorded: Callable[..., RecordedRun]) -> None:
    with pytest.raises(RebuildError, match="has no b-thread 'by_constitutio'; did you mean 'by_constitution'"):
        changed_bthreads(recorded("Done."), without={"by_constitutio"})


def test_judging_reads_no_disk(recorded: Callable[..., RecordedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of then: a program that was not found then is not found now."""
    run = recorded(approve=lambda asked: True)
    bthreads = changed_bthreads(run, policy=POLICIES["gated"])

    def touched(*_: object, **__: object) -> None:
        raise AssertionError("the disk was looked at")

    for name in ("stat", "lstat", "readlink", "open", "scandir"):
        monkeypatch.setattr(f"os.{name}", touched)
    monkeypatch.setattr("builtins.open", touched)
    result = what_if(run, bthreads)
    monkeypatch.undo()

    assert result.judged == 3


# Policies as files


def test_a_policy_file_changes_rows_of_one_that_ships(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: default\nlevels: {lose_work: deny}\nblocklist: [shutdown]\nbounded: false\nadmin: ask\n")

    policy = load_policy(str(file))

    levels = {rule.name: rule.level for rule in policy.rules}
    assert levels["lose_work"] is Level.deny
    assert (policy.name, policy.blocklist, policy.bounded, policy.admin) == ("mine", ("shutdown",), False, Level.ask)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("base: defualt\n", "mine.yaml:1:7: "),
        ("levels: {}\n", "base"),
        ("base: default\nlevels: {lose_wrok: deny}\n", "lose_work"),
        ("base: default\nrules: [allow upload]\n", "mine.yaml:2:9: 'allow upload': rules of a policy can only raise"),
        ("base: default\nrules: deny upload\n", "mine.yaml:2:8: "),
        ("base: default\nlevels: {lose_work: never}\n", "mine.yaml:2:21: "),
        ("base: default\nbounded: maybe\n", "mine.yaml:2:10: "),
        ("base: [\n", "not valid YAML"),
    ],
)
def test_a_wrong_policy_file_is_told_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)

    with pytest.raises(PolicyError) as raised:
        load_policy(str(file))
    assert complaint in str(raised.value)


def test_a_policy_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(PolicyError, match="there is no policy 'gatd'; did you mean 'gated'"):
        load_policy("gatd")
