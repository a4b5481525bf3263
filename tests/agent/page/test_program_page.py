"""The page of a plain program, without an agent: who requested, heard and held what, at every step."""

import re
from datetime import date

from attrs import frozen

from agent.page import program_page
from bp import BThreadBody, Event, bthread, event, sync

HOT, COLD = event("hot"), event("cold")


@frozen
class Measured(Event):
    on: date


@bthread
def add(what: Event, times: int) -> BThreadBody:
    for _ in range(times):
        yield sync(request=what)


@bthread
def alternate() -> BThreadBody:
    while True:
        yield sync(wait_for=HOT, block=COLD)
        yield sync(wait_for=COLD, block=HOT)


def test_a_plain_program_has_the_page_that_runs_have() -> None:
    page = program_page([add(HOT, 2), add(COLD, 2), alternate().named("tap")], title="Hot and cold")

    assert "<title>Hot and cold</title>" in page
    assert len(re.findall(r'<tr id="step-\d+"', page)) == 4 or page.count('id="step-') == 4
    assert "tap holds cold of add" in page
    assert "tap heard hot" in page


def test_a_program_that_rests_takes_the_posts_one_after_the_other() -> None:
    page = program_page([alternate()], [HOT, COLD, event("temperature", data=21), Measured(date(2026, 11, 22))])

    assert page.count('id="step-') == 4
    assert "hot came from outside" in page
    assert "2026-11-22" in page or "datetime.date(2026, 11, 22)" in page
