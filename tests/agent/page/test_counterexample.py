"""Verifications as pages: what came of each, states of b-threads, and a counterexample that can be stepped through."""

import re

from agent.page.counterexample import verification_page
from agent.verification.counterexample import finding
from bp import BThreadBody, bthread, event, sync, verify
from tests.agent.page.chromium import data_of
from tests.bp.programs import philosophers

A, B = event("a"), event("b")


@bthread
def first_a_then_b() -> BThreadBody:
    yield sync(request=A)
    yield sync(request=B)


def test_a_deadlock_is_shown_with_the_way_there_and_with_who_is_in_the_way() -> None:
    page = verification_page(verify(*philosophers(2)), [], "Verified")

    data = data_of(page)
    names = [row["name"] for row in data["rows"]]
    assert names == ["philosopher 0 takes fork 0", "philosopher 1 takes fork 1", "deadlock"]
    last = {(data["lanes"][mark[0]], mark[1]) for mark in data["rows"][-1]["marks"]}
    assert {("philosopher 0", "w"), ("fork 1", "b")} <= last


@bthread
def waits_for_both() -> BThreadBody:
    yield sync(wait_for=A)
    yield sync(wait_for=B)
    raise ValueError("wrong")


def test_a_counterexample_draws_every_position_of_a_b_thread_and_marks_the_last() -> None:
    result = verify(first_a_then_b(), waits_for_both())
    page = verification_page(result, [waits_for_both()], "Verified")

    assert [label in page for label in ("wait for a", "wait for b", "ValueError: wrong")] == [True] * 3
    assert re.findall(r'<g class="([a-z ]+)" id="state-(\d)">', page) == [("bad here", "2")]
    [violation] = result.violations
    assert f'<p class="problem">{finding(violation)}</p>' in page


def test_a_verification_that_holds_draws_the_b_threads_in_question_and_runs_no_script() -> None:
    page = verification_page(verify(first_a_then_b()), [first_a_then_b()], "<First>")

    assert page.count("<figure") == 1
    assert "request a" in page
    assert '<b class="completed">holds</b>' in page
    assert "&lt;First&gt;" in page
    assert "<script" not in page


def test_a_b_thread_that_declares_no_events_is_drawn_with_those_that_are_given() -> None:
    assert verification_page(verify(first_a_then_b()), [waits_for_both()], "Verified").count('id="state-') == 1
    assert verification_page(verify(first_a_then_b()), [waits_for_both()], "Verified", [A, B]).count('id="state-') == 3


def test_a_search_that_ended_at_its_bound_says_where_and_how_to_go_on() -> None:
    page = verification_page(verify(*philosophers(3), max_states=5), [], "Verified")

    assert "not verified: there are more states than --max-states; only 5 states were looked at" in page
    assert "to go on: --max-states 50, or --alone" in page
