"""Recorded runs: their program built again, why a call did not run, and what other rules would have decided."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call
from agent.cli.demo import nothing_leaves_after_a_secret
from agent.history.rebuilding import RebuildError, changed_bthreads, named, rebuild, recorded_bthreads
from agent.history.what_if import Cause, WhatIf, find_causes, what_if
from agent.lab.settings.infrastructure import touches_power
from agent.log.reading import RecordedRun, read_log
from agent.presets import OptionError
from agent.presets.configuration import load_policy
from agent.protocols.flows import defer_on_critical
from agent.protocols.monitoring import (
    blocking_monitor,
    defer_to_resample,
    ensemble,
    plant_honeypots,
    suspicion_accumulates,
    upfront_audit,
)
from agent.threads.endings import at_most
from agent.vocabulary.encoding import plain
from agent.vocabulary.events import (
    CallAnswered,
    GateApproved,
    GateRejected,
    PromptGiven,
    ProposedAction,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BThread, BThreadBody, bthread, sync, where
from constitution import POLICIES, Level, Policy, Verdict
from tests.tables import rows


@bthread
def onlooker(texts: tuple[str, ...] = ()) -> BThreadBody:
    yield sync(wait_for=PromptGiven)


def recorded(*threads: BThread, **changes: Any) -> RecordedRun:
    header = plain(Agent(ScriptedModel([]), threads=threads).header())
    return RecordedRun(Path("run.jsonl"), header | changes, (), torn=False)


@rows(
    "protocol",
    [
        nothing_leaves_after_a_secret(),
        blocking_monitor("watcher", 0.9419287717780371),
        blocking_monitor(threshold=0.25),
        defer_to_resample("watcher", 0.5, auditor="auditor"),
        suspicion_accumulates("watcher", 17, near=0.8),
        ensemble(("watcher", "second"), 0.975),
        plant_honeypots("watcher", ("honeypot0", "honeypot1"), 0.1),
        defer_on_critical(touches_power),
        upfront_audit(1, "auditor"),
        blocking_monitor("watcher").named("another name"),
    ],
)
def test_a_protocol_that_ships_comes_back_with_its_arguments(protocol: BThread) -> None:
    """Else no log of an experiment could be replayed, or explained."""
    assert rebuild(recorded(protocol))._definitions[-1] == protocol


MONITOR, CRITICAL = (named(each)["function"] for each in (blocking_monitor("w", 0.5), defer_on_critical(touches_power)))
FOREIGN = ("agent.nosuch:rule", "agent.session.agent:Agent", "agent.presets:PRESETS", "agent", "", "evil:rule")


@rows(
    ("function", "arguments"),
    [
        *((name, []) for name in FOREIGN),
        *((MONITOR, told) for told in (["watcher", "high"], ["watcher", "0.5", "0.5"], ["a=b", "c=d", "e"], "watcher")),
        (CRITICAL, ["os:system"]),
        (CRITICAL, ["agent.cli:main"]),
        (CRITICAL, ["agent.lab.settings:no_such"]),
        (CRITICAL, ["agent.lab.settings:World"]),
    ],
)
def test_a_name_that_is_not_a_shipped_b_thread_is_not_rebuilt(function: str, arguments: object) -> None:
    """Also none whose arguments cannot be read: a log cannot have any function asked."""
    entry = {"name": "rule", "function": function, "arguments": arguments}

    with pytest.raises(RebuildError, match=r"'rule'.*which only its author can vouch for"):
        rebuild(recorded(bthreads=[*recorded().header["bthreads"], entry]))


def test_a_b_thread_that_does_not_ship_has_to_be_given_again() -> None:
    run = recorded(onlooker())

    with pytest.raises(RebuildError, match=r"was made with the b-thread 'onlooker'.*give it again.*: --protocol"):
        rebuild(run)
    assert rebuild(run, [onlooker()])._definitions[-1] == onlooker()


@bthread
def plain_rule(monitor="monitor", threshold=0.5, strikes=2, tools=(), strict=False):  # type: ignore[no-untyped-def]
    """A protocol as users write them: without types."""
    yield sync(wait_for=PromptGiven)


def test_a_b_thread_without_types_takes_the_arguments_that_a_plan_gave_it() -> None:
    """Their types are those of the defaults."""
    planned = [
        plain_rule(monitor="watcher", threshold=0.8),
        plain_rule("watcher", 1, 3, ("bash",), True),
        plain_rule(threshold=0.9419287717780371, strict=True),
    ]

    found = [recorded_bthreads(recorded(each), [plain_rule()])[1] for each in planned]

    assert found == [(each,) for each in planned]


class Watched:
    """A value that no text gives back."""


def test_arguments_that_cannot_be_read_have_to_be_given_again() -> None:
    run = recorded(onlooker((Watched(),)))  # type: ignore[arg-type]

    told = r"\(given onlooker\(\('c',\)\), the log has onlooker\(\(<.*in threads="
    with pytest.raises(RebuildError, match=told):
        rebuild(run, [onlooker(("c",))])


@pytest.mark.parametrize("module", ["rules.py", "rules", "mine.rules"])
@pytest.mark.parametrize("then", ["rules.py", "rules", "mine.rules"])
def test_a_file_given_by_its_path_is_the_module_that_a_program_imports(then: str, module: str) -> None:
    def rule(n, predicate):  # type: ignore[no-untyped-def]  # without annotations no text gives back the arguments
        yield sync(wait_for=PromptGiven)

    def is_one() -> None: ...

    rule.__module__, rule.__qualname__, is_one.__module__ = then, "rule", then.removeprefix("mine.")
    run = recorded(bthread(rule)(1, is_one))
    rule.__module__, is_one.__module__ = module, module.removeprefix("mine.")

    assert rebuild(run, [bthread(rule)(1, is_one)])._definitions[-1].args == (1, is_one)
    rule.__module__ = "others"
    with pytest.raises(RebuildError, match="'rule'"):
        rebuild(run, [bthread(rule)(1, is_one)])


def test_reading_a_log_imports_no_named_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    entry = {"name": "rule", "function": "evil:rule", "arguments": []}
    run = recorded()
    run = recorded(bthreads=[*run.header["bthreads"], entry])

    with pytest.raises(RebuildError, match="'rule' from evil:rule"):
        rebuild(run)

    assert "evil" not in sys.modules


def test_a_b_thread_of_the_preset_that_differs_or_is_missing_is_named_with_both_sides() -> None:
    bthreads = list(recorded().header["bthreads"])
    number = [entry["name"] for entry in bthreads].index("too_many_failures")
    differs = [*bthreads[:number], bthreads[number] | {"arguments": ["7"]}, *bthreads[number + 1 :]]

    told = r"b-thread \d+ was too_many_failures\(7\), here it is too_many_failures\(5\)"
    with pytest.raises(RebuildError, match=told):
        rebuild(recorded(bthreads=differs))
    with pytest.raises(RebuildError, match="was not there, here it is abort_on_request"):
        rebuild(recorded(bthreads=bthreads[:-1]))


@rows(
    "changes",
    [
        {"configuration": None},
        {"configuration": {"nosuch": 1}},
        {"configuration": {"name": "default", "policy": "nosuch"}},
        {"configuration": {"name": "default", "max_iterations": "many"}},
        {"bthreads": None},
        {"bthreads": [1]},
    ],
)
def test_a_header_that_cannot_be_read_is_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(RebuildError, match=r"run\.jsonl, line 1: "):
        rebuild(recorded(**changes))


# Why: who kept a call from running, and who would still have been in the way without each of them


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
    assert objection.because.rule == "delete_tree"
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


def test_why_explains_a_call_left_because_the_run_ended(why: Callable[..., Any]) -> None:
    @bthread
    def enough() -> BThreadBody:
        yield sync(wait_for=where(ToolFinished))
        yield sync(refuse=ProposedAction, because=Ending("limit", "enough"))

    calls = [call("bash", command="ls").with_id("one"), call("bash", command="ls").with_id("two")]
    [cause] = why("two", calls, threads=[enough()])

    assert cause.objections[0].because == Ending("limit", "enough")


def test_why_says_that_no_user_was_present_what_is_wrong_with_a_call_and_that_another_one_ran(
    why: Callable[..., Any],
) -> None:
    commands = [call("bash", command=command).with_id(command) for command in ("touch .git/config", "ls")]
    steps = (*commands, call("nosuch").with_id("odd"))
    (declined,), (ran,), (odd,) = (why(id, *steps) for id in ("touch .git/config", "ls", "odd"))

    [objection] = declined.objections
    assert isinstance(objection.because, Declined)
    assert not objection.because.present
    assert ran.objections == ()
    assert ran.event(ToolFinished) is not None
    assert isinstance(odd.objections[0].because, Flaw)
    assert odd.event(CallAnswered) is not None


def test_an_id_that_comes_again_has_a_cause_each_time(why: Callable[..., Any]) -> None:
    first, second = call("bash", command="ls").with_id("same"), call("bash", command="rm -rf /").with_id("same")

    found = why("same", first, second)

    assert [bool(cause.objections) for cause in found] == [False, True]


# What-if: a recording under other rules, and where it stops being valid


MakeAgent = Callable[..., Agent]

STEPS = (
    call("bash", command="ls").with_id("look"),
    [call("bash", command="touch .git/config").with_id("reset"), call("bash", command="ls .").with_id("beside")],
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
def played(make_agent: MakeAgent) -> Callable[..., RecordedRun]:
    """`played(approve=...)`: the log of a run."""

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


def test_the_same_rules_change_nothing_and_everything_can_be_judged(played: Callable[..., RecordedRun]) -> None:
    run = played(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run))

    assert (result.changed, result.divergence, result.judged) == ((), None, 5)
    assert decided(result)["reset"] == ("approved by a person", "approved by a person")


def test_a_stricter_policy_changes_a_decision_and_the_recording_ends_with_the_turn(
    played: Callable[..., RecordedRun],
) -> None:
    run = played(approve=lambda asked: True)

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


RESET = (call("bash", command="touch .git/config").with_id("reset"), "Done.")
WIPE = (call("bash", command="rm -rf /").with_id("wipe"), "Done.")
DEFAULT = POLICIES["default"]
ASKING = evolve(DEFAULT, rules=tuple(evolve(rule, ask=min(rule.ask, rule.deny), deny=9) for rule in DEFAULT.rules))


@rows(
    ("steps", "policy", "decisions"),
    [
        (STEPS, POLICIES["passthrough"], {"reset": ("rejected", "approved"), "wipe": ("rejected", "")}),
        (RESET, ASKING, {"reset": ("rejected", "rejected")}),  # that no user was there is used again
        (WIPE, POLICIES["approval_list"], {"wipe": ("rejected", "asks a person")}),
    ],
)
def test_another_policy_decides_with_the_answers_that_are_played(
    played: Callable[..., RecordedRun], steps: Any, policy: Policy, decisions: dict[str, tuple[str, str]]
) -> None:
    run = played(*steps)

    result = what_if(run, changed_bthreads(run, policy=policy))

    assert {call: decided(result)[call] for call in decisions} == decisions
    assert (result.divergence is None) == (steps == RESET)


def test_what_if_adds_a_protocol_that_the_run_lacked(played: Callable[..., RecordedRun]) -> None:
    run = played(approve=lambda asked: True)

    result = what_if(run, changed_bthreads(run, threads=[no_second_look()]))

    [changed] = result.changed
    assert (changed.call.id, decided(result)["beside"]) == ("beside", ("approved", "rejected"))
    assert changed.now is not None
    assert changed.now.by == ("no_second_look",)


def test_what_if_can_leave_out_a_protocol_of_the_run(played: Callable[..., RecordedRun]) -> None:
    run = played(approve=lambda asked: True, threads=[no_second_look()])

    with pytest.raises(RebuildError, match="'no_second_look'"):
        changed_bthreads(run)
    assert decided(what_if(run, changed_bthreads(run, threads=[no_second_look()])))["beside"][1] == "rejected"
    result = what_if(run, changed_bthreads(run, without={"no_second_look"}))

    assert decided(result)["beside"] == ("rejected", "approved")


def test_the_b_thread_that_blocks_a_call_forever_is_named(played: Callable[..., RecordedRun]) -> None:
    run = played()

    result = what_if(run, changed_bthreads(run, threads=[never_lets_go()]))

    assert result.calls[0].now is not None
    assert (result.calls[0].now.kind, result.calls[0].now.by) == ("held back", ("never_lets_go",))


def test_what_if_ends_where_an_earlier_limit_diverges(make_agent: MakeAgent, played: Any) -> None:
    run = played(approve=lambda asked: True)
    result = what_if(run, changed_bthreads(run, threads=[at_most(1)]))

    assert result.judged == 1
    assert result.divergence is not None
    assert "the run would have ended, limit (max_iterations)" in result.divergence.why


@pytest.mark.slow
def test_a_recording_that_ends_early_is_judged_as_far_as_it_goes(played: Callable[..., RecordedRun]) -> None:
    run = played(approve=lambda asked: True)
    for length in range(1, len(run.records)):
        result = what_if(evolve(run, records=run.records[:length]), changed_bthreads(run))
        assert all(call.then is None or not call.changed for call in result.calls), length


def test_what_if_reads_no_disk(played: Callable[..., RecordedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are those of then: a program that was not found then is not found now."""
    run = played(approve=lambda asked: True)
    bthreads = changed_bthreads(run, policy=POLICIES["gated"])

    def touched(*_: object, **__: object) -> None:
        raise AssertionError("the disk was looked at")

    gc.collect()  # sandboxes of earlier tests remove their folders when they are collected
    gc.disable()
    for name in ("stat", "lstat", "readlink", "open", "scandir"):
        monkeypatch.setattr(f"os.{name}", touched)
    monkeypatch.setattr("builtins.open", touched)
    try:
        result = what_if(run, bthreads)
    finally:
        monkeypatch.undo()
        gc.enable()

    assert result.judged == 3


# Policies as files


def test_a_policy_file_changes_rows_of_one_that_ships(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: default\nlevels: {lose_work: deny}\nblocklist: [shutdown]\nbounded: false\nadmin: ask\n")

    policy = load_policy(str(file))

    [rule] = [rule for rule in policy.rules if rule.name == "lose_work"]
    assert (rule.ask, rule.deny) == (1, 1)
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

    with pytest.raises(OptionError) as raised:
        load_policy(str(file))
    assert complaint in str(raised.value)
