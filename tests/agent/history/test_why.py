"""Why: who kept a call from running, and who would still have been in the way without each of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, answer, call
from agent.history.rebuilding import RebuildError, changed_bthreads
from agent.history.what_if import WhatIf, what_if
from agent.history.why import Cause, find_causes
from agent.log.reading import LogError, RecordedRun, read_log
from agent.presets.configuration import PolicyError, load_policy
from agent.threads.endings import at_most
from agent.vocabulary.events import CallAnswered, GateApproved, GateRejected, ProposedAction, ToolFinished, ToolStarted
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BThreadBody, bthread, sync, where
from constitution import POLICIES, Level, Policy, Verdict
from tests.tables import rows


@bthread
def nothing_today() -> BThreadBody:
    yield sync(refuse=GateApproved, because="it is a holiday")


@bthread
def not_even_proposed() -> BThreadBody:
    yield sync(refuse=ProposedAction, because="do not ask")


@bthread
def not_started() -> BThreadBody:
    yield sync(refuse=ToolStarted, because="too late")


@pytest.fixture
def why(make_agent: Callable[..., Agent]) -> Callable[..., tuple[Cause, ...]]:
    def ask(id: str, *steps: Any, threads: Any = (), **options: Any) -> tuple[Cause, ...]:
        agent = make_agent(*steps, "Done.", threads=threads, sound=False, **options)
        agent.run_sync("Go")
        agent.close()
        assert agent.log_path is not None
        return find_causes(read_log(agent.log_path), id, threads)

    return ask


def test_a_denied_call_names_rule_and_evidence_and_what_other_policies_say(why: Callable[..., Any]) -> None:
    [cause] = why("wipe", call("bash", command="rm -rf /").with_id("wipe"))

    [objection] = cause.objections
    assert (objection.bthread, objection.remaining) == ("by_constitution", ())
    assert isinstance(objection.because, Verdict)
    assert objection.because.rule == "delete_outside_workspace"
    levels = dict(cause.levels)
    assert (levels["default"], levels["passthrough"]) == (Level.deny, Level.allow)
    assert cause.event(GateRejected) is not None
    assert cause.event(ToolStarted) is None


def test_why_names_every_b_thread_that_refused(why: Callable[..., Any]) -> None:
    [cause] = why("wipe", call("bash", command="rm -rf /").with_id("wipe"), threads=[nothing_today()])

    assert [(objection.bthread, objection.remaining) for objection in cause.objections] == [
        ("by_constitution", ("nothing_today",)),
        ("nothing_today", ("by_constitution",)),
    ]


def test_why_says_that_no_user_was_present_to_ask(why: Callable[..., Any]) -> None:
    [cause] = why("reset", call("bash", command="git reset --hard").with_id("reset"))

    [objection] = cause.objections
    assert isinstance(objection.because, Declined)
    assert not objection.because.present


@pytest.mark.parametrize(
    ("thread", "kind", "before"),
    [(not_even_proposed, ProposedAction, None), (not_started, ToolStarted, GateApproved)],
)
def test_why_explains_a_call_never_judged_or_never_started(
    why: Callable[..., Any], thread: Any, kind: Any, before: Any
) -> None:
    [cause] = why("look", call("bash", command="ls").with_id("look"), threads=[thread()])

    assert [objection.bthread for objection in cause.objections] == [thread().name]
    assert cause.event(kind) is None
    assert before is None or cause.event(before) is not None


def test_why_explains_a_flawed_call(why: Callable[..., Any]) -> None:
    [cause] = why("odd", call("nosuch").with_id("odd"))

    assert isinstance(cause.objections[0].because, Flaw)
    assert cause.event(CallAnswered) is not None


def test_why_explains_a_call_left_because_the_run_ended(why: Callable[..., Any]) -> None:
    @bthread
    def enough() -> BThreadBody:
        yield sync(wait_for=where(ToolFinished))
        yield sync(refuse=ProposedAction, because=Ending("limit", "enough"))

    calls = [call("bash", command="ls").with_id("one"), call("bash", command="ls").with_id("two")]
    [cause] = why("two", calls, threads=[enough()])

    assert cause.objections[0].because == Ending("limit", "enough")


def test_a_call_that_ran_has_no_objections(why: Callable[..., Any]) -> None:
    [cause] = why("look", call("bash", command="ls").with_id("look"))

    assert cause.objections == ()
    assert cause.event(ToolFinished) is not None


def test_an_id_that_comes_again_has_a_cause_each_time(why: Callable[..., Any]) -> None:
    first, second = call("bash", command="ls").with_id("same"), call("bash", command="rm -rf /").with_id("same")

    found = why("same", first, second)

    assert [bool(cause.objections) for cause in found] == [False, True]


def test_an_unknown_call_is_told_with_those_that_are_there(why: Callable[..., Any]) -> None:
    with pytest.raises(LogError, match="has no call 'nosuch'; calls: look"):
        why("nosuch", call("bash", command="ls").with_id("look"))


# What-if: a recording under other rules, and where it stops being valid


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


def decided(result: WhatIf) -> dict[str, tuple[str, str]]:
    return {
        call.call.id: (
            "" if call.then is None else call.then.kind,
            "" if call.now is None else call.now.kind,
        )
        for call in result.calls
    }


def test_the_same_rules_change_nothing_and_everything_can_be_judged(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run))

    assert (result.changed, result.divergence, result.judged) == ((), None, 5)
    assert decided(result)["reset"] == ("approved by a person", "approved by a person")


def test_a_stricter_policy_changes_a_decision_and_the_recording_ends_with_the_turn(
    recorded: Callable[..., RecordedRun],
) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run, policy=POLICIES["gated"]))

    assert decided(result) == {
        "look": ("approved", "approved"),
        "reset": ("approved by a person", "rejected"),
        "beside": ("approved", "approved"),
        "fetch": ("approved by a person", ""),
        "wipe": ("rejected", ""),
    }
    assert result.judged == 3
    assert result.divergence is not None
    assert "reset (bash) was approved by a person, and now: rejected" in result.divergence.why
    first = next(n for n, record in enumerate(run.records, 2) if "Out." in str(record["data"]))
    assert result.divergence.line == first


RESET = (call("bash", command="git reset --hard").with_id("reset"), "Done.")
WIPE = (call("bash", command="rm -rf /").with_id("wipe"), "Done.")
DEFAULT = POLICIES["default"]
ASKING = evolve(DEFAULT, rules=tuple(evolve(rule, level=Level.ask) for rule in DEFAULT.rules))


@rows(
    ("steps", "policy", "decisions"),
    [
        (STEPS, POLICIES["passthrough"], {"reset": ("rejected", "approved"), "wipe": ("rejected", "")}),
        (RESET, ASKING, {"reset": ("rejected", "rejected")}),  # that no user was there is used again
        (WIPE, POLICIES["approval_list"], {"wipe": ("rejected", "asks a person")}),
    ],
)
def test_another_policy_decides_with_the_answers_that_are_recorded(
    recorded: Callable[..., RecordedRun], steps: Any, policy: Policy, decisions: dict[str, tuple[str, str]]
) -> None:
    run = recorded(*steps)

    result = what_if(run, changed_bthreads(run, policy=policy))

    assert {call: decided(result)[call] for call in decisions} == decisions
    assert (result.divergence is None) == (steps == RESET)


@pytest.mark.slow
def test_what_if_adds_a_protocol_that_the_run_lacked(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run, threads=[no_second_look()]))

    assert decided(result)["beside"] == ("approved", "rejected")
    assert [call.call.id for call in result.changed] == ["beside"]
    assert result.changed[0].now is not None
    assert result.changed[0].now.by == ("no_second_look",)


def test_what_if_can_leave_out_a_protocol_of_the_run(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True, threads=[no_second_look()])

    with pytest.raises(RebuildError, match="'no_second_look'"):
        changed_bthreads(run)
    assert decided(what_if(run, changed_bthreads(run, threads=[no_second_look()])))["beside"][1] == "rejected"
    result = what_if(run, changed_bthreads(run, without={"no_second_look"}))

    assert decided(result)["beside"] == ("rejected", "approved")


def test_the_b_thread_that_blocks_a_call_forever_is_named(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded()

    result = what_if(run, changed_bthreads(run, threads=[never_lets_go()]))

    assert result.calls[0].now is not None
    assert (result.calls[0].now.kind, result.calls[0].now.by) == ("held back", ("never_lets_go",))


def test_what_if_ends_where_an_earlier_limit_diverges(make_agent: MakeAgent, recorded: Any) -> None:
    run = recorded(approve=lambda asked: True)
    result = what_if(run, changed_bthreads(run, threads=[at_most(1)]))

    assert result.judged == 1
    assert result.divergence is not None
    assert "the run would have ended, limit (max_iterations)" in result.divergence.why


@pytest.mark.slow
def test_a_recording_that_ends_early_is_judged_as_far_as_it_goes(recorded: Callable[..., RecordedRun]) -> None:
    run = recorded(approve=lambda asked: True)
    for length in range(1, len(run.records)):
        result = what_if(evolve(run, records=run.records[:length]), changed_bthreads(run))
        assert all(call.then is None or not call.changed for call in result.calls), length


def test_an_unknown_b_thread_cannot_be_left_out(recorded: Callable[..., RecordedRun]) -> None:
    with pytest.raises(RebuildError, match="has no b-thread 'by_constitutio'; did you mean 'by_constitution'"):
        changed_bthreads(recorded("Done."), without={"by_constitutio"})


def test_what_if_reads_no_disk(recorded: Callable[..., RecordedRun], monkeypatch: pytest.MonkeyPatch) -> None:
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


@rows(
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
