"""Why: who kept a call from running, and who would still have been in the way without each of them."""

from collections.abc import Callable
from typing import Any

import pytest

from agent import Agent, call
from agent.history.why import Cause, find_causes
from agent.log.reading import LogError, read_log
from agent.vocabulary.events import CallAnswered, GateApproved, GateRejected, ProposedAction, ToolFinished, ToolStarted
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BThreadBody, bthread, sync, where
from constitution import Level, Verdict


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


def test_two_who_refuse_are_each_told_with_the_other(why: Callable[..., Any]) -> None:
    [cause] = why("wipe", call("bash", command="rm -rf /").with_id("wipe"), threads=[nothing_today()])

    assert [(objection.bthread, objection.remaining) for objection in cause.objections] == [
        ("by_constitution", ("nothing_today",)),
        ("nothing_today", ("by_constitution",)),
    ]


def test_nobody_there_to_ask(why: Callable[..., Any]) -> None:
    [cause] = why("reset", call("bash", command="git reset --hard").with_id("reset"))

    [objection] = cause.objections
    assert isinstance(objection.because, Declined)
    assert not objection.because.present


@pytest.mark.parametrize(
    ("thread", "kind", "before"),
    [(not_even_proposed, ProposedAction, None), (not_started, ToolStarted, GateApproved)],
)
def test_a_call_that_was_not_put_up_or_not_started(
    why: Callable[..., Any], thread: Any, kind: Any, before: Any
) -> None:
    [cause] = why("look", call("bash", command="ls").with_id("look"), threads=[thread()])

    assert [objection.bthread for objection in cause.objections] == [thread().name]
    assert cause.event(kind) is None
    assert before is None or cause.event(before) is not None


def test_a_flawed_call(why: Callable[..., Any]) -> None:
    [cause] = why("odd", call("nosuch").with_id("odd"))

    assert isinstance(cause.objections[0].because, Flaw)
    assert cause.event(CallAnswered) is not None


def test_a_call_left_because_the_run_ends(why: Callable[..., Any]) -> None:
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
