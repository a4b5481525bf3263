"""State spaces as pages: every state in the picture, and a counterexample that can be stepped through."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.page.states import states_page, verification_page
from bp import BThreadBody, bthread, event, sync, verify
from tests.agent.page.chromium import PROGRAM, chromium
from tests.bp.philosophers import philosophers

A, B = event("a"), event("b")


@bthread
def first_a_then_b() -> BThreadBody:
    yield sync(request=A)
    yield sync(request=B)


def data_of(page: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.split('id="data">')[1].split("</script>")[0])
    return data


def test_the_states_of_a_small_program_stand_in_a_picture() -> None:
    page = states_page(first_a_then_b(), title="<First>")

    assert page.count("<rect") == 3
    assert [word in page for word in (">a</text>", ">b</text>", '<b class="completed">holds</b>', "&lt;First&gt;")] == [
        True
    ] * 4
    assert "<script" not in page


def test_a_deadlock_is_shown_with_the_way_there_and_with_who_is_in_the_way() -> None:
    page = states_page(*philosophers(2))

    data = data_of(page)
    names = [row["name"] for row in data["rows"]]
    assert names == ["philosopher 0 takes fork 0", "philosopher 1 takes fork 1", "deadlock"]
    last = {(data["lanes"][mark[0]], mark[1]) for mark in data["rows"][-1]["marks"]}
    assert {("philosopher 0", "w"), ("fork 1", "b")} <= last
    assert page.count('class="way"') == 2


def test_a_verification_of_large_programs_draws_the_b_threads_in_question() -> None:
    page = verification_page([("all", verify(first_a_then_b()))], [first_a_then_b()], "Verified")

    assert "request a" in page
    assert page.count("<figure") == 1


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="there is no chromium here")
def test_the_picture_shows_where_the_reader_is(tmp_path: Path) -> None:
    path = tmp_path / "states.html"
    path.write_text(states_page(*philosophers(2)))
    with chromium(tmp_path / "profile") as browser:
        browser.show(path.as_uri())
        places = []
        for _ in range(2):
            browser.press("j")
            places.append(browser.run("document.querySelector('svg .at text').textContent"))

    assert places == ["1", "3: deadlock"]
    assert browser.complaints == []
